"""Packed ridge regression against the normal equations: any contexts, missing lags, removed rows."""

import numpy as np
import pytest

from larl._core.compile import kernel
from larl.policies._lags import dense_context, lags_init, pair_count, push, push_missing
from larl.policies._linalg.packed_ridge import (
    SparseContext,
    add_row,
    clear_rows,
    dense_inverse,
    dense_theta,
    inverse_trace,
    packed_ridge_init,
    predict_arm,
    predict_two_arms,
    rank_one_update,
    solve,
)

SIZES = [(1, 0), (2, 0), (1, 1), (2, 1), (3, 1), (2, 2), (5, 2), (2, 5), (3, 4), (4, 3), (10, 1)]  # arms, s


@kernel
def compiled_add(ridge, arm, context, size, reward):
    add_row(ridge, arm, context, context.indices.size, size, reward)


@kernel
def compiled_remove(ridge, arm, context, size, reward):
    leverage, error = solve(ridge, arm, context, context.indices.size, size, reward)
    rank_one_update(ridge, arm, size, -1.0, 1.0 - leverage, error)
    return leverage, error


@kernel
def compiled_predict_two(ridge, arm, other, context):
    return predict_two_arms(ridge, arm, other, context, context.indices.size)


@kernel
def compiled_predict(ridge, arm, context):
    return predict_arm(ridge, arm, context, context.indices.size)


@kernel
def compiled_clear(ridge, size):
    clear_rows(ridge, size)


@kernel
def compiled_trace(ridge, arm):
    return inverse_trace(ridge, arm)


@kernel
def compiled_push(lags, arms, arm, reward):
    if arm < 0:
        push_missing(lags, lags.indices.size - 1, arms)
    else:
        push(lags, lags.indices.size - 1, arms, arm, reward)


def entries(context: SparseContext, size: int) -> np.ndarray:
    """Return the dense context, without the constant's empty second entry."""
    x = np.zeros((size, 2))
    x[context.indices] = context.value.reshape(-1, 4)[:, :2]
    return np.delete(x.ravel(), 1)


def random_context(rng: np.random.Generator, size: int) -> SparseContext:
    """Return a context with a constant and random other pairs."""
    indices = np.flatnonzero(rng.random(size) < 0.6)
    pairs = rng.normal(size=(indices[indices > 0].size + 1, 2))
    pairs[0] = 1.0, 0.0
    return SparseContext(np.append(0, indices[indices > 0]), pairs[:, [0, 1, 1, 0]].ravel())


class NormalEquations:
    """The same regressions from their normal equations."""

    def __init__(self, arms: int, d: int, penalty: float) -> None:
        self.gram, self.moment = np.array([np.eye(d) * penalty] * arms), np.zeros((arms, d))

    def add(self, arm: int, x: np.ndarray, reward: float, sign: float = 1.0) -> None:
        self.gram[arm] += sign * np.outer(x, x)
        self.moment[arm] += sign * reward * x

    def agrees(self, ridge) -> None:
        for arm, (gram, moment) in enumerate(zip(self.gram, self.moment, strict=True)):
            inverse = np.linalg.inv(gram)
            assert np.allclose(dense_inverse(ridge, arm), inverse, rtol=1e-9, atol=1e-10)
            assert np.array_equal(dense_inverse(ridge, arm), dense_inverse(ridge, arm).T)
            assert np.allclose(dense_theta(ridge, arm), inverse @ moment, rtol=1e-9, atol=1e-10)
            assert compiled_trace(ridge, arm) == pytest.approx(np.trace(inverse), rel=1e-9)

    def score(self, arm: int, x: np.ndarray) -> tuple[float, float]:
        solved = np.linalg.solve(self.gram[arm], np.array([self.moment[arm], x]).T)
        return x @ solved[:, 0], np.sqrt(x @ solved[:, 1])


@pytest.mark.parametrize(("arms", "s"), SIZES)
@pytest.mark.parametrize("penalty", [1.0, 0.3])
def test_adding_and_removing_rows_equals_normal_equations(arms, s, penalty):
    size, rng = pair_count(s, arms), np.random.default_rng(arms + 10 * s)
    ridge, reference, rows = packed_ridge_init(arms, size, penalty), NormalEquations(arms, 2 * size - 1, penalty), []
    reference.agrees(ridge)
    for t in range(60):
        context, arm, reward = random_context(rng, size), int(rng.integers(arms)), float(rng.normal())
        x, other = entries(context, size), int(rng.integers(arms))
        expected = *reference.score(arm, x), *reference.score(other, x)
        assert np.allclose(compiled_predict_two(ridge, arm, other, context), expected, rtol=1e-9, atol=1e-10)
        assert compiled_predict(ridge, arm, context) == compiled_predict_two(ridge, other, arm, context)[2:]
        compiled_add(ridge, arm, context, size, reward)
        reference.add(arm, x, reward)
        rows.append((arm, context, reward))
        if t % 3 == 2:
            arm, context, reward = rows.pop(int(rng.integers(len(rows))))
            x = entries(context, size)
            mean, width = reference.score(arm, x)
            leverage, error = compiled_remove(ridge, arm, context, size, reward)
            assert (leverage, error) == (pytest.approx(width**2, rel=1e-8), pytest.approx(reward - mean, abs=1e-9))
            reference.add(arm, x, reward, -1.0)
        reference.agrees(ridge)


@pytest.mark.parametrize(("arms", "s"), SIZES)
def test_missing_lags_equal_normal_equations(arms, s):
    size, rng = pair_count(s, arms), np.random.default_rng(s)
    ridge, reference, lags, history = (
        packed_ridge_init(arms, size, 0.7),
        NormalEquations(arms, 2 * size - 1, 0.7),
        lags_init(s, arms),
        [],
    )
    for _ in range(50):
        x = np.zeros((s, arms, 2))
        for lag, (arm, reward) in enumerate(history[: -s - 1 : -1] if s else []):
            if arm >= 0:
                x[lag, arm] = reward, 1.0
        assert np.array_equal(entries(lags, size), np.append(1.0, x.ravel()))
        assert np.array_equal(dense_context(lags, s, arms), np.append(x[::-1].transpose(2, 0, 1).ravel(), 1.0))
        row = np.append(1.0, x.ravel())
        arm, reward = int(rng.integers(arms)), float(rng.normal())
        assert np.allclose(compiled_predict(ridge, arm, lags), reference.score(arm, row), rtol=1e-9, atol=1e-10)
        compiled_add(ridge, arm, lags, size, reward)
        reference.add(arm, row, reward)
        history.append((arm if rng.random() < 0.7 else -1, reward))
        compiled_push(lags, arms, *history[-1])
        reference.agrees(ridge)


def test_leading_pairs_are_an_independent_regression():
    arms, rng = 2, np.random.default_rng(0)
    large, small = packed_ridge_init(arms, 9, 0.5), packed_ridge_init(arms, 5, 0.5)
    for _ in range(20):
        compiled_add(large, int(rng.integers(arms)), random_context(rng, 9), 9, float(rng.normal()))
    compiled_clear(large, 5)
    for _ in range(20):
        arm, context, reward = int(rng.integers(arms)), random_context(rng, 5), float(rng.normal())
        compiled_add(large, arm, context, 5, reward)
        compiled_add(small, arm, context, 5, reward)
    assert np.array_equal(large.inverse[:, : small.inverse.shape[1]], small.inverse)
    assert np.array_equal(large.theta[:, : small.theta.shape[1]], small.theta)
    compiled_clear(large, 9)
    fresh = packed_ridge_init(arms, 9, 0.5)
    assert np.array_equal(large.inverse, fresh.inverse)
    assert np.array_equal(large.theta, fresh.theta)
