"""Discounted UCB against the index of Garivier & Moulines, with discounted sums over the complete history."""

import math

import numpy as np
import pytest

import larl
from tests.stepping import decide, learn


def sums(history, discount, arms):
    """Return N(a) = Σ γ^{t−s} 1{arm a at s} and the sum of rewards with the same weights, for the latest step t."""
    plays, total = [0.0] * arms, [0.0] * arms
    for age, (arm, reward) in enumerate(reversed(history)):
        plays[arm] += discount**age
        total[arm] += discount**age * reward
    return plays, total


@pytest.mark.parametrize(("scale", "xi"), [(1.0, 0.6), (0.4, 0.3), (1.0, 0.0)])
@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99, 1.0])
def test_choices_maximise_the_index(discount, scale, xi):
    rng = np.random.default_rng(int(1000 * discount))
    state, history = larl.DiscountedUCB(discount, scale, xi).init(3), []
    for t in range(250):
        plays, total = sums(history, discount, 3)
        assert np.allclose(state.plays, plays, rtol=1e-10)
        assert np.allclose(state.total, total, rtol=1e-10, atol=1e-12)
        if min(plays) == 0.0:
            index = [0.0 if n else math.inf for n in plays]
        else:
            confidence = xi * math.log(sum(plays))
            index = [r / n + 2.0 * scale * math.sqrt(confidence / n) for r, n in zip(total, plays, strict=True)]
        choice = decide(state, t)
        assert choice == np.argmax(index)
        arm = choice if rng.random() < 0.7 else int(rng.integers(3))
        history.append((arm, rng.normal(0.3 * arm)))
        learn(state, *history[-1])


def test_each_arm_is_played_once_first():
    state = larl.DiscountedUCB(0.9).init(4)
    for expected in range(4):
        assert decide(state, 0) == expected
        learn(state, expected, 5.0 - expected)


def test_unplayed_arm_is_played_again():
    # n tends to 1/(1 − γ) = 10 while N of an unplayed arm tends to 0, so its index grows without limit: with γ = 0.9,
    # B = 1, ξ = 0.6 and a mean 20 below, 2√(0.6 log 10/N) > 20 + 2√(0.6 log 10/10) at N ≈ 0.0123, after 42 steps.
    state, steps = larl.DiscountedUCB(0.9).init(2), []
    learn(state, 1, 0.0)
    for t in range(200):
        steps += [t] if decide(state, 0) == 1 else []
        learn(state, decide(state, 0), 20.0 * (decide(state, 0) == 0))
    gaps = np.diff([0, *steps])
    neglected = next(m for m in range(1, 200) if 2 * math.sqrt(0.6 * math.log(10) / 0.9**m) > 20.74)
    assert len(steps) >= 4
    assert np.all(np.abs(gaps - neglected) <= 1)
