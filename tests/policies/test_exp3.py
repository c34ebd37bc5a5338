"""Exp3 and Rexp3 against the weights of Auer et al. and the tuning of Besbes et al., computed directly."""

import math

import numpy as np
import pytest

import larl
from larl._core.compile import kernel
from larl.policies.exp3 import probability
from tests.stepping import decide, learn


@kernel
def probability_of(state, arm):
    return probability(state, arm)


def probabilities(state):
    return np.array([probability_of(state, a) for a in range(state.log_weight.size)])


def mixed(weights, gamma):
    return (1.0 - gamma) * weights / weights.sum() + gamma / weights.size


@pytest.mark.parametrize(("gamma", "low", "high"), [(0.1, 0.0, 1.0), (0.5, -3.0, 2.0), (1.0, 0.0, 1.0)])
def test_probabilities_follow_from_the_weights(gamma, low, high):
    rng = np.random.default_rng(1)
    state, weights, outside = larl.Exp3(gamma, (low, high)).init(4), np.ones(4), 0
    for _ in range(80):
        p = mixed(weights, gamma)
        assert np.allclose(probabilities(state), p, rtol=1e-10)
        arm, reward = int(rng.integers(4)), float(rng.normal((low + high) / 2, high - low))
        learn(state, arm, reward)
        outside += not low < reward < high
        share = 0.0 if reward <= low else 1.0 if reward >= high else (reward - low) / (high - low)
        weights[arm] *= math.exp(gamma * (share / p[arm]) / 4)
    assert outside > 10


def test_choice_frequencies_are_the_probabilities():
    state = larl.Exp3(0.3).init(3)
    for arm, reward in [(0, 1.0), (2, 0.7), (2, 1.0), (1, 0.1), (2, 0.9)]:
        learn(state, arm, reward)
    p, size = probabilities(state), 8000
    seeds = np.random.default_rng(0).integers(0, 2**64, size, dtype=np.uint64)
    shares = np.bincount([decide(state, seed) for seed in seeds], minlength=3) / size
    assert np.ptp(p) > 0.1
    assert np.all(np.abs(shares - p) < 4 * np.sqrt(p * (1 - p) / size))  # 4 standard errors


def test_weights_do_not_overflow():
    state = larl.Exp3(0.5).init(2)
    for _ in range(4000):  # the weight itself would be e^(4000/3)
        learn(state, 0, 1.0)
    assert np.allclose(probabilities(state), [0.75, 0.25])


@pytest.mark.parametrize("variation", [0.01, 0.5, 3.0, 80.0, 1e4])
@pytest.mark.parametrize(("arms", "horizon"), [(2, 200), (5, 3000)])
def test_tuning_is_that_of_besbes_et_al(arms, horizon, variation):
    spec = larl.Rexp3(variation)
    exact = (arms * math.log(arms)) ** (1 / 3) * (horizon / variation) ** (2 / 3)
    length = spec.batch(arms, horizon)
    assert length == horizon if exact > horizon else length - 1 < exact <= length  # ⌈exact⌉, at most the horizon
    gamma = math.sqrt(arms * math.log(arms) / ((math.e - 1) * length))
    assert spec.init(arms, horizon=horizon).gamma == pytest.approx(min(gamma, 1.0), rel=1e-14)


def test_weights_restart_after_every_batch():
    spec = larl.Rexp3(6.0, (-1.0, 1.0), horizon=120)
    state, rng = spec.init(3, horizon=10**6), np.random.default_rng(2)  # the horizon of the spec has priority
    length, weights = math.ceil((3 * math.log(3)) ** (1 / 3) * 20 ** (2 / 3)), np.ones(3)
    for t in range(4 * length + 5):
        if t % length == 0:
            weights = np.ones(3)
        p = mixed(weights, state.gamma)
        assert np.allclose(probabilities(state), p, rtol=1e-10)
        assert (np.ptp(p) == 0.0) == (t % length == 0)
        arm, reward = int(rng.integers(3)), float(rng.uniform(-0.5, 1.5))
        learn(state, arm, reward)
        weights[arm] *= math.exp(state.gamma * (min((reward + 1) / 2, 1) / p[arm]) / 3)


def test_rexp3_with_one_batch_is_exp3():
    rexp3 = larl.Rexp3(0.001).init(2, horizon=300)
    exp3 = larl.Exp3(rexp3.gamma).init(2)
    rng = np.random.default_rng(3)
    for t in range(300):
        seed = int(rng.integers(2**63))
        arm = decide(exp3, seed)
        assert decide(rexp3, seed) == arm, t
        for state in (rexp3, exp3):
            learn(state, arm, float(arm))
    with pytest.raises(larl.InvalidValue, match="horizon"):
        larl.Rexp3(1.0).init(2)
