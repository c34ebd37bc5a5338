"""Discounted LinUCB against weighted ridge regressions that are solved from the whole history at every step."""

import math

import numpy as np
import pytest

import larl
from larl._core.compile import kernel
from larl._core.states import copy_state
from larl.policies._contract import predict
from larl.worlds import Simulator
from tests.conftest import THREE_ARMS
from tests.stepping import decide, learn

ARMS = 3


@kernel
def prediction(state, arm):
    return predict(state, arm)


def context(history, s):
    """Return rewards by lag and arm, then indicators, then the constant; a missing reward has neither."""
    x = np.zeros((2, s, ARMS))
    for lag, (arm, reward) in enumerate(reversed(history[len(history) - s :])):
        x[:, lag, arm] = (0.0, 0.0) if math.isnan(reward) else (reward, 1.0)
    return np.append(x.ravel(), 1.0)


def reference(history, s, discount, alpha, ridge):
    """Return the mean and the bonus of each arm, from all rows and their ages in steps."""
    t, now, result = len(history), context(history, s), []
    for arm in range(ARMS):
        steps = [i for i in range(s, t) if history[i][0] == arm and not math.isnan(history[i][1])]
        x = np.array([context(history[:i], s) for i in steps]).reshape(-1, now.size)
        y = np.array([history[i][1] for i in steps])
        weights = discount ** (t - 1.0 - np.array(steps))  # the row of the latest step has weight 1
        v = (x.T * weights) @ x + ridge * np.eye(now.size)
        w = (x.T * weights**2) @ x + ridge * np.eye(now.size)
        theta, u = np.linalg.solve(v, x.T @ (weights * y)), np.linalg.solve(v, now)
        result.append((now @ theta, alpha * np.sqrt(u @ w @ u)))
    return np.array(result)


@pytest.mark.parametrize(("s", "discount"), [(0, 0.9), (1, 0.5), (1, 0.97), (2, 0.9), (3, 1.0), (2, 1e-3)])
@pytest.mark.parametrize(("alpha", "ridge"), [(1.0, 1.0), (0.4, 0.2)])
def test_predictions_equal_batch_regression(s, discount, alpha, ridge):
    rng, simulator, history = np.random.default_rng(s), Simulator(THREE_ARMS, seed=3, trial=s), []
    state = larl.DiscountedLinUCB(s, discount, alpha, ridge).init(ARMS)
    for t in range(90):
        arm = int(rng.integers(ARMS)) if t < 60 else int(rng.integers(2))  # arm 2 is not played at the end
        if t >= s:
            expected = reference(history, s, discount, alpha, ridge)
            assert np.allclose([prediction(state, each) for each in range(ARMS)], expected, rtol=1e-9, atol=1e-10)
            best = decide(state, 0)
            assert expected[best].sum() > expected.sum(axis=1).max() - 1e-9
            arm = best if rng.random() < 0.4 else arm
        reward = math.nan if rng.random() < 0.1 else simulator.reward(arm)
        history.append((arm, reward))
        learn(state, arm, reward)
        simulator.advance()


# From 10⁶√λ both policies give rows less weight; their predictions then share fewer digits.
@pytest.mark.parametrize(("scale", "tolerance"), [(1.0, 1e-9), (1e7, 1e-2)])
@pytest.mark.parametrize("s", [0, 1, 3])
def test_without_discounting_it_is_larl(s, scale, tolerance):
    specs = larl.DiscountedLinUCB(s, discount=1.0, alpha=0.7, ridge=0.5), larl.LARL(s, alpha=0.7, ridge=0.5)
    states, simulator, rng = [spec.init(ARMS) for spec in specs], Simulator(THREE_ARMS, 5, s), np.random.default_rng(0)
    for t in range(150):
        seed = int(rng.integers(2**63))
        if t >= s:
            discounted, plain = ([prediction(state, arm) for arm in range(ARMS)] for state in states)
            assert np.allclose(discounted, plain, rtol=tolerance, atol=tolerance * scale)
        arm = decide(states[1], seed)
        assert scale > 1.0 or decide(states[0], seed) == arm
        reward = math.nan if t % 17 == 5 else scale * simulator.reward(arm)
        for state in states:
            learn(state, arm, reward)
        simulator.advance()


@pytest.mark.parametrize("discount", [1e-300, 1e-3, 0.5, 0.99])
def test_arm_that_is_never_played_again_returns_to_its_prior(discount):
    state = larl.DiscountedLinUCB(1, discount, alpha=0.8, ridge=0.25).init(2)
    for _ in range(30):
        learn(state, 1, 5.0)
    for _ in range(6000):
        learn(state, 0, 2.0)
    for array in (state.gram, state.squared_gram, state.total):
        assert np.isfinite(array).all()
    length = math.sqrt(1.0 + 1.0 + 2.0**2)  # of the context: constant, indicator and reward
    assert prediction(state, 1) == pytest.approx((0.0, 0.8 * length / math.sqrt(0.25)), abs=1e-12)


def test_missing_rewards_let_time_pass():
    spec, discount = larl.DiscountedLinUCB(0, 0.9), 0.9
    state = spec.init(2)
    learn(state, 0, 4.0)
    for _ in range(3):
        learn(state, 0, math.nan)
    weight = discount**3
    mean, bonus = prediction(state, 0)
    assert mean == pytest.approx(4.0 * weight / (1.0 + weight))
    assert bonus == pytest.approx(math.sqrt(1.0 + weight**2) / (1.0 + weight))


def test_first_steps_are_random_and_add_no_row():
    state, size = larl.DiscountedLinUCB(2, 0.9).init(ARMS), 6000
    seeds = np.random.default_rng(0).integers(0, 2**64, size, dtype=np.uint64)
    for _ in range(2):
        shares = np.bincount([decide(state, seed) for seed in seeds], minlength=ARMS) / size
        assert np.abs(shares - 1 / 3).max() < 4 * np.sqrt(2 / 9 / size)  # 4 standard errors
        learn(state, 1, 5.0)
    assert not state.gram.any()
    assert len({decide(state, seed) for seed in seeds}) == 1


def test_standardised_decisions_ignore_offset_and_unit():
    spec, rng = larl.DiscountedLinUCB(1, 0.95, standardise=True), np.random.default_rng(1)
    state, other = spec.init(2), copy_state(spec.init(2))
    for t in range(80):
        arm, reward = decide(state, t), round(float(rng.normal()), 3)
        assert decide(other, t) == arm
        learn(state, arm, reward)
        learn(other, arm, 1024.0 * reward + 4096.0)
