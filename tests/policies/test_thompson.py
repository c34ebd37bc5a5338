"""Gaussian Thompson sampling against posteriors computed from the history, and exact probabilities of two arms."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import larl
from larl._core.compile import kernel
from larl.policies._thompson import posterior
from tests.stepping import decide, learn

SIGMA, PRIOR = 0.8, 1.7


@kernel
def posterior_of(count, total, sigma, prior_sd):
    return posterior(count, total, sigma, prior_sd)


# Each policy, and the weight that it gives to a play `age` steps before the latest.
POLICIES = {
    "plain": (larl.ThompsonSampling(SIGMA, PRIOR), lambda age: 1.0),
    "discounted": (larl.DiscountedThompson(0.8, SIGMA, PRIOR), lambda age: 0.8**age),
    "window": (larl.SlidingWindowThompson(6, SIGMA, PRIOR), lambda age: float(age < 6)),
}


def reference(history, arm, weight):
    """Return posterior mean and sd of one arm's mean; a play with weight w has precision w/σ²."""
    ages = [(weight(len(history) - 1 - i), reward) for i, (a, reward) in enumerate(history) if a == arm]
    precision = PRIOR**-2 + sum(w for w, _ in ages) * SIGMA**-2
    return sum(w * r for w, r in ages) * SIGMA**-2 / precision, precision**-0.5


def moments(state, arms):
    """Return posterior mean and sd of each arm's mean according to the State."""
    counts = getattr(state, "window", state)
    return [posterior_of(counts.plays[a], counts.total[a], state.sigma, state.prior_sd) for a in range(arms)]


@pytest.mark.parametrize("name", POLICIES)
def test_posteriors_equal_those_from_the_history(name):
    spec, weight = POLICIES[name]
    state, history, rng = spec.init(3), [], np.random.default_rng(0)
    for _ in range(60):
        expected = [reference(history, a, weight) for a in range(3)]
        assert np.allclose(moments(state, 3), expected, rtol=1e-9, atol=1e-12)
        history.append((int(rng.choice(3, p=[0.6, 0.3, 0.1])), rng.normal(2.0)))
        learn(state, *history[-1])


def test_posterior_is_the_conditional_of_the_joint_normal():
    rewards = np.random.default_rng(1).normal(1.0, 2.0, 7)
    state = larl.ThompsonSampling(SIGMA, PRIOR).init(2)
    for reward in rewards:
        learn(state, 1, reward)
    seen = PRIOR**2 * np.ones((7, 7)) + SIGMA**2 * np.eye(7)
    weights = np.linalg.solve(seen, np.full(7, PRIOR**2))
    expected = weights @ rewards, math.sqrt(PRIOR**2 - weights.sum() * PRIOR**2)
    assert np.allclose(moments(state, 2), [(0.0, PRIOR), expected], rtol=1e-10)


@pytest.mark.parametrize("rewards", [[], [(0, 1.0), (1, 0.2), (1, 0.9), (0, 0.1)], [(0, 0.3)] * 9 + [(1, 1.0)]])
@pytest.mark.parametrize("name", POLICIES)
def test_choice_frequencies_of_two_arms_are_exact(name, rewards):
    spec, weight = POLICIES[name]
    state, size = spec.init(2), 5000
    for arm, reward in rewards:
        learn(state, arm, reward)
    (m0, s0), (m1, s1) = (reference(rewards, a, weight) for a in range(2))
    p = norm.cdf((m1 - m0) / math.hypot(s0, s1))
    seeds = np.random.default_rng(7).integers(0, 2**64, size, dtype=np.uint64)
    share = np.mean([decide(state, seed) for seed in seeds])
    assert abs(share - p) < 4 * math.sqrt(p * (1 - p) / size)  # 4 standard errors


@pytest.mark.parametrize("spec", [larl.DiscountedThompson(1.0, SIGMA, PRIOR), larl.SlidingWindowThompson(300, SIGMA)])
def test_without_forgetting_it_is_thompson_sampling(spec):
    states = [spec.init(3), larl.ThompsonSampling(SIGMA, spec.prior_sd).init(3)]
    rng, played = np.random.default_rng(4), set()
    for _ in range(300):
        seed = int(rng.integers(2**63))
        arm, same = (decide(state, seed) for state in states)
        assert arm == same
        played.add(arm)
        reward = rng.normal(0.2 * arm)
        for state in states:
            learn(state, arm, reward)
    assert played == {0, 1, 2}
