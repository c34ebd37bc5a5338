"""KL-UCB against its definition: the bound as a numerical root, computed from the history."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr

import larl
from tests.policies.test_live_functions import simulate_choices
from tests.stepping import decide, learn

CASES = [
    (larl.KLUCB(), 1.0),
    (larl.KLUCB(c=3.0), 1.0),
    (larl.DiscountedKLUCB(0.9), 0.9),
    (larl.DiscountedKLUCB(0.4, c=3.0), 0.4),
    (larl.DiscountedKLUCB(0.97, reward_range=(-1.0, 3.0)), 0.97),
]


def index(history, arm, discount, c):
    """Return mean and the largest q with N kl(mean, q) ≤ log n + c log log n, from the rewards in [0, 1]."""
    weights = [discount ** (len(history) - 1 - i) for i in range(len(history))]
    plays = sum(w for w, (a, _) in zip(weights, history, strict=True) if a == arm)
    if plays == 0.0:
        return math.nan, math.inf
    mean = sum(w * r for w, (a, r) in zip(weights, history, strict=True) if a == arm) / plays
    log_all = math.log(max(sum(weights), 1.0))
    level = (log_all + c * math.log(max(log_all, 1.0))) / plays

    def excess(q):
        return rel_entr(mean, q) + rel_entr(1.0 - mean, 1.0 - q) - level

    if mean == 1.0 or excess(1.0 - 1e-15) <= 0.0:
        return mean, 1.0
    return mean, brentq(excess, mean, 1.0 - 1e-15, xtol=1e-15) if level > 0.0 else mean


@pytest.mark.parametrize(("spec", "discount"), CASES, ids=str)
def test_bounds_and_choices_follow_the_definition(spec, discount):
    state, history, rng, (low, high) = spec.init(3), [], np.random.default_rng(1), spec.reward_range
    for t in range(60):
        bounds = [index(history, arm, discount, spec.c) for arm in range(3)]
        choice = decide(state, t)
        largest = max(bound for _, bound in bounds)
        assert bounds[choice][1] >= largest - 1e-7 or bounds[choice][1] == largest
        if t % 6 == 5:
            _, seen, _ = simulate_choices(state, [True] * 3, 60, 1 / 3)
            for arm, (mean, bound) in enumerate(bounds):
                expected = low + (high - low) * mean, (high - low) * (bound - mean)
                assert seen[arm] == pytest.approx(expected, abs=1e-7, nan_ok=True)
        arm = choice if rng.random() < 0.7 else int(rng.integers(3))
        reward = float(rng.random() < 0.2 + 0.3 * arm) if t % 4 else rng.random()
        history.append((arm, reward))
        learn(state, arm, low + (high - low) * reward)


def test_without_discount_it_is_kl_ucb():
    states, rng = [spec.init(3) for spec in (larl.DiscountedKLUCB(1.0, 3.0), larl.KLUCB(3.0))], np.random.default_rng(4)
    for t in range(200):
        arm, same = (decide(state, t) for state in states)
        assert arm == same
        reward = math.nan if t % 17 == 5 else float(rng.random() < 0.3 * arm)
        for state in states:
            learn(state, arm, reward)
    assert states[0].plays.tolist() == states[1].plays.tolist()
    assert states[0].plays.min() > 0.0


def test_rewards_outside_their_range_are_clipped():
    states = [larl.KLUCB().init(2) for _ in range(2)]
    for reward, clipped in ((5.0, 1.0), (-1e100, 0.0), (0.3, 0.3)):
        learn(states[0], 0, reward)
        learn(states[1], 0, clipped)
    assert states[0].total.tolist() == states[1].total.tolist()


def regret_of(spec, means, steps, trial):
    """Return the regret of one trial with constant Bernoulli arms."""
    state, rng, plays = spec.init(len(means)), np.random.default_rng(trial), np.zeros(len(means))
    for t in range(steps):
        arm = decide(state, t)
        plays[arm] += 1.0
        learn(state, arm, float(rng.random() < means[arm]))
    return plays @ (max(means) - np.array(means))


def test_regret_is_below_that_of_ucb1():
    ucb1 = larl.DiscountedUCB(1.0, xi=0.5)  # mean + √(2 log n / N)
    means, steps, trials = (0.1, 0.03, 0.02), 1000, 20
    specs = larl.KLUCB(), ucb1
    regret = np.array([[regret_of(spec, means, steps, trial) for spec in specs] for trial in range(trials)])
    gain = regret[:, 1] - regret[:, 0]
    assert gain.mean() > 4.0 * gain.std() / math.sqrt(trials)
    assert regret[:, 0].mean() < 0.6 * regret[:, 1].mean()
