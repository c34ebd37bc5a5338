"""GLR-klUCB against its definition: every split of the complete history, and indices by a numerical root."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr

import larl
from larl._core.states import copy_state
from tests.policies.test_live_functions import simulate_choices
from tests.stepping import decide, learn


def kl(p, q, sigma):
    """Return the divergence of N(p, σ²) from N(q, σ²), or of Bernoulli distributions if σ is None."""
    return rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q) if sigma is None else (p - q) ** 2 / (2.0 * sigma**2)


def log_likelihood(rewards, sigma):
    """Return the largest log-likelihood of the rewards for one mean, up to a constant of the rewards."""
    mean = np.mean(rewards)
    if sigma is None:
        return len(rewards) * (rel_entr(mean, 1.0) + rel_entr(1.0 - mean, 1.0))
    return -np.sum((np.array(rewards) - mean) ** 2) / (2.0 * sigma**2)


def has_changed(rewards, delta, sigma):
    """Return whether the ratio of the likelihoods with and without a change reaches the threshold, for some split."""
    n, whole = len(rewards), log_likelihood(rewards, sigma)
    ratios = [log_likelihood(rewards[:s], sigma) + log_likelihood(rewards[s:], sigma) - whole for s in range(1, n)]
    return max(ratios, default=0.0) >= math.log(n**1.5 / delta)


def index(rewards, t, sigma):
    """Return the largest q with N kl(mean, q) ≤ log t."""
    if not rewards:
        return math.inf
    mean, level = float(np.mean(rewards)), math.log(t) / len(rewards)
    high = mean + 1e3 if sigma else 1.0 - 1e-15
    if level == 0.0 or mean >= high or kl(mean, high, sigma) <= level:
        return mean if level == 0.0 else high
    return brentq(lambda q: kl(mean, q, sigma) - level, mean, high, xtol=1e-14)


CASES = [
    larl.GLRklUCB(delta=0.5, memory=400),
    larl.GLRklUCB(delta=0.2, alpha=0.3, restart="local", sigma=0.7, memory=400),
    larl.GLRklUCB(delta=0.9, memory=12, every=3),
    larl.GLRklUCB(delta=0.9, rewards="bernoulli", memory=400),
    larl.GLRklUCB(delta=0.9, alpha=0.1, rewards="bernoulli", restart="local", memory=30, every=2),
]


@pytest.mark.parametrize("spec", CASES, ids=str)
def test_choices_follow_the_definition(spec):
    rng, history, start, restarts = np.random.default_rng(1), [[], [], []], [0, 0, 0], 0
    state, sigma = spec.init(3), None if spec.rewards == "bernoulli" else spec.sigma
    for t in range(300):
        indices = [index(history[arm], t - start[arm], sigma) for arm in range(3)]
        cycle = t % math.ceil(3 / spec.alpha)
        choice = decide(state, t)
        if cycle < 3:
            assert choice == cycle
        else:  # equal indices can differ in the last bit
            assert indices[choice] >= max(indices) - 1e-12 or indices[choice] == max(indices)
        arm = choice if rng.random() < 0.8 else int(rng.integers(3))
        level = 0.25 * arm + 0.5 * (t // 75 % 3 == arm)
        history[arm].append(float(rng.random() < level) if sigma is None else float(rng.normal(3.0 * level)))
        learn(state, arm, history[arm][-1])
        if len(history[arm]) % spec.every == 0 and has_changed(history[arm][-spec.memory :], spec.delta, sigma):
            restarts += 1
            for other in range(3):
                if spec.restart == "global" or other == arm:
                    history[other], start[other] = [], t + 1
        assert state.plays.tolist() == [len(rewards) for rewards in history]
        assert state.since.tolist() == [t + 1 - first for first in start]
    assert restarts >= 2


def restart_time(shift, at, steps, seed, **options):
    """Return the number of plays of one arm until the first restart; its mean shifts after `at` plays."""
    state, rng = larl.GLRklUCB(delta=0.05, memory=500, **options).init(2), np.random.default_rng(seed)
    for t in range(steps):
        learn(state, 0, rng.normal(shift * (t >= at)))
        if state.plays[0] == 0:
            return t + 1
    return math.inf


def test_false_alarms_and_detection_delay():
    false = np.mean([restart_time(0.0, 0, 500, seed) < math.inf for seed in range(200)])
    assert false <= 0.05
    # After 100 plays of mean 0 and d of mean 2, the ratio for this split is ½·100d/(100 + d)·(2 + noise)² on average:
    # 23 at d = 13, above log(113√113/0.05) = 10.1 by 2.3 standard deviations of the noise.
    delays = np.array([restart_time(2.0, 100, 140, seed) - 100 for seed in range(200)])
    assert np.mean((delays > 0) & (delays <= 13)) >= 0.95


def test_memory_forgets_old_rewards_in_the_test_only():
    # The change is outside the latest 4 rewards when the arm is tested, every 20 plays.
    states = [larl.GLRklUCB(memory=memory, every=20).init(2) for memory in (4, 20)]
    for t in range(20):
        for state in states:
            learn(state, 0, 9.0 * (t >= 10))
    assert states[0].plays[0] == 20
    assert states[0].total[0] == 90.0
    assert states[1].plays[0] == 0


def test_unavailable_arm_of_the_cycle_is_replaced_by_the_largest_bound():
    state = larl.GLRklUCB(alpha=0.3).init(3)
    for t in range(10):
        learn(state, t % 3, float(t % 3 == 2))
    assert decide(state, 0) == 0
    for available, arm in (([True, False, True], 0), ([False, True, True], 2), ([False, True, False], 1)):
        out, _, _ = simulate_choices(copy_state(state), available)
        assert out.tolist() == [float(other == arm) for other in range(3)]


def test_bernoulli_rewards_are_clipped():
    states = [larl.GLRklUCB(rewards="bernoulli").init(2) for _ in range(2)]
    for reward, clipped in ((5.0, 1.0), (-2.0, 0.0), (0.3, 0.3)):
        learn(states[0], 0, reward)
        learn(states[1], 0, clipped)
    assert states[0].total.tolist() == states[1].total.tolist()
    with pytest.raises(larl.InvalidValue, match="standardise = True"):
        larl.GLRklUCB(rewards="bernoulli", standardise=True)


def test_cycle_continues_without_rewards():
    state = larl.GLRklUCB().init(3)
    arms = []
    for _ in range(3):
        arms.append(decide(state, 0))
        learn(state, arms[-1], math.nan)
    assert arms == [0, 1, 2]
