"""Ridge regression in tiles against normal equations: any contexts, lags of which nothing is known, removals."""

import numba
import numpy as np
import pytest

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


@numba.njit
def learn_(tiles, arm, context, size, reward):
    add_row(tiles, arm, context, context.indices.size, size, reward)


@numba.njit
def forget_(tiles, arm, context, size, reward):
    leverage, error = solve(tiles, arm, context, context.indices.size, size, reward)
    rank_one_update(tiles, arm, size, -1.0, 1.0 - leverage, error)
    return leverage, error


@numba.njit
def scores_(tiles, arm, other, context):
    return predict_two_arms(tiles, arm, other, context, context.indices.size)


@numba.njit
def score_(tiles, arm, context):
    return predict_arm(tiles, arm, context, context.indices.size)


@numba.njit
def clear_(tiles, size):
    clear_rows(tiles, size)


@numba.njit
def trace_(tiles, arm):
    return inverse_trace(tiles, arm)


@numba.njit
def push_(lags, arms, arm, reward):
    if arm < 0:
        push_missing(lags, lags.indices.size - 1, arms)
    else:
        push(lags, lags.indices.size - 1, arms, arm, reward)


def entries(context: SparseContext, size: int) -> np.ndarray:
    """The context written out, without the constant's empty second entry."""
    x = np.zeros((size, 2))
    x[context.indices] = context.value.reshape(-1, 4)[:, :2]
    return np.delete(x.ravel(), 1)


def random_context(rng: np.random.Generator, size: int) -> SparseContext:
    """A constant and any of the other pairs, with any values."""
    places = np.flatnonzero(rng.random(size) < 0.6)
    pairs = rng.normal(size=(places[places > 0].size + 1, 2))
    pairs[0] = 1.0, 0.0
    return SparseContext(np.append(0, places[places > 0]), pairs[:, [0, 1, 1, 0]].ravel())


class Direct:
    """The same regressions by their normal equations."""

    def __init__(self, arms: int, d: int, penalty: float) -> None:
        self.gram, self.moment = np.array([np.eye(d) * penalty] * arms), np.zeros((arms, d))

    def add(self, arm: int, x: np.ndarray, reward: float, sign: float = 1.0) -> None:
        self.gram[arm] += sign * np.outer(x, x)
        self.moment[arm] += sign * reward * x

    def agrees(self, tiles) -> None:
        for arm, (gram, moment) in enumerate(zip(self.gram, self.moment, strict=True)):
            inverse = np.linalg.inv(gram)
            assert np.allclose(dense_inverse(tiles, arm), inverse, rtol=1e-9, atol=1e-10)
            assert np.array_equal(dense_inverse(tiles, arm), dense_inverse(tiles, arm).T)
            assert np.allclose(dense_theta(tiles, arm), inverse @ moment, rtol=1e-9, atol=1e-10)
            assert trace_(tiles, arm) == pytest.approx(np.trace(inverse), rel=1e-9)

    def score(self, arm: int, x: np.ndarray) -> tuple[float, float]:
        solved = np.linalg.solve(self.gram[arm], np.array([self.moment[arm], x]).T)
        return x @ solved[:, 0], np.sqrt(x @ solved[:, 1])


@pytest.mark.parametrize(("arms", "s"), SIZES)
@pytest.mark.parametrize("penalty", [1.0, 0.3])
def test_any_contexts_added_and_removed(arms, s, penalty):
    size, rng = pair_count(s, arms), np.random.default_rng(arms + 10 * s)
    tiles, direct, rows = packed_ridge_init(arms, size, penalty), Direct(arms, 2 * size - 1, penalty), []
    direct.agrees(tiles)
    for t in range(60):
        context, arm, reward = random_context(rng, size), int(rng.integers(arms)), float(rng.normal())
        x, other = entries(context, size), int(rng.integers(arms))
        expected = *direct.score(arm, x), *direct.score(other, x)
        assert np.allclose(scores_(tiles, arm, other, context), expected, rtol=1e-9, atol=1e-10)
        assert score_(tiles, arm, context) == scores_(tiles, other, arm, context)[2:]
        learn_(tiles, arm, context, size, reward)
        direct.add(arm, x, reward)
        rows.append((arm, context, reward))
        if t % 3 == 2:
            arm, context, reward = rows.pop(int(rng.integers(len(rows))))
            x = entries(context, size)
            mean, width = direct.score(arm, x)
            leverage, error = forget_(tiles, arm, context, size, reward)
            assert (leverage, error) == (pytest.approx(width**2, rel=1e-8), pytest.approx(reward - mean, abs=1e-9))
            direct.add(arm, x, reward, -1.0)
        direct.agrees(tiles)


@pytest.mark.parametrize(("arms", "s"), SIZES)
def test_lags_of_which_some_are_missing(arms, s):
    size, rng = pair_count(s, arms), np.random.default_rng(s)
    tiles, direct, lags, history = (
        packed_ridge_init(arms, size, 0.7),
        Direct(arms, 2 * size - 1, 0.7),
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
        assert np.allclose(score_(tiles, arm, lags), direct.score(arm, row), rtol=1e-9, atol=1e-10)
        learn_(tiles, arm, lags, size, reward)
        direct.add(arm, row, reward)
        history.append((arm if rng.random() < 0.7 else -1, reward))
        push_(lags, arms, *history[-1])
        direct.agrees(tiles)


def test_the_leading_pairs_are_a_regression_of_their_own():
    arms, rng = 2, np.random.default_rng(0)
    large, small = packed_ridge_init(arms, 9, 0.5), packed_ridge_init(arms, 5, 0.5)
    for _ in range(20):
        learn_(large, int(rng.integers(arms)), random_context(rng, 9), 9, float(rng.normal()))
    clear_(large, 5)
    for _ in range(20):
        arm, context, reward = int(rng.integers(arms)), random_context(rng, 5), float(rng.normal())
        learn_(large, arm, context, 5, reward)
        learn_(small, arm, context, 5, reward)
    assert np.array_equal(large.inverse[:, : small.inverse.shape[1]], small.inverse)
    assert np.array_equal(large.theta[:, : small.theta.shape[1]], small.theta)
    clear_(large, 9)
    fresh = packed_ridge_init(arms, 9, 0.5)
    assert np.array_equal(large.inverse, fresh.inverse)
    assert np.array_equal(large.theta, fresh.theta)
