"""Sliding-window UCB against the index of Garivier & Moulines, computed from the list of the last plays."""

import math

import numpy as np
import pytest

import larl
from tests.stepping import decide, learn


def index(history, window, arms, scale, xi):
    """Return mean + B√(ξ log(min(t, window))/N) of each arm, inf for an arm without a play in the window."""
    recent = history[-window:]
    seen = [[reward for arm, reward in recent if arm == a] for a in range(arms)]
    return [
        sum(r) / len(r) + scale * math.sqrt(xi * math.log(min(len(history), window)) / len(r)) if r else math.inf
        for r in seen
    ]


@pytest.mark.parametrize(("scale", "xi"), [(1.0, 0.6), (2.5, 0.1), (1.0, 0.0)])
@pytest.mark.parametrize("window", [1, 2, 4, 13, 1000])
def test_choices_maximise_the_index(window, scale, xi):
    rng = np.random.default_rng(window)
    state, history = larl.SlidingWindowUCB(window, scale, xi).init(3), []
    for t in range(300):
        choice = decide(state, t)
        assert choice == np.argmax(index(history, window, 3, scale, xi))
        arm = choice if rng.random() < 0.7 else int(rng.integers(3))
        history.append((arm, rng.normal(0.3 * arm)))
        learn(state, *history[-1])
        assert np.array_equal(state.window.plays, [sum(a == b for b, _ in history[-window:]) for a in range(3)])


@pytest.mark.parametrize(("window", "steps"), [(1000, 4), (1000, 9), (5, 5), (5, 23)])
def test_bonus_uses_the_number_of_steps_in_the_window(window, steps):
    # Arm 0 once with reward 0, otherwise arm 1 with reward m: arm 0 is played if m < (1 − 1/√(n−1))·2√(0.6 log n),
    # n = min(t, w).
    n = min(steps, window)
    level = (1.0 - 1.0 / math.sqrt(n - 1)) * 2.0 * math.sqrt(0.6 * math.log(n))
    for factor, expected in [(1 - 1e-9, 0), (1 + 1e-9, 1)]:
        state = larl.SlidingWindowUCB(window, scale=2.0).init(2)
        for t in range(steps):
            arm = 0 if t == steps - 2 else 1
            learn(state, arm, factor * level * arm)
        assert decide(state, 0) == expected


def test_each_arm_is_played_once_first():
    state = larl.SlidingWindowUCB(10).init(4)
    for expected in range(4):
        assert decide(state, 0) == expected
        learn(state, expected, 5.0 - expected)


def test_steps_before_the_window_have_no_effect():
    # Integer rewards, so that sums are exact: two histories with the same last 8 steps give the same window.
    states = [larl.SlidingWindowUCB(8).init(3) for _ in range(2)]
    for state, past in zip(states, (20, 13), strict=True):
        rng = np.random.default_rng(past)
        for _ in range(past):
            learn(state, int(rng.integers(3)), float(rng.integers(-900, 900)))
        for t in range(8):
            learn(state, t % 3, float(t))
    assert np.array_equal(states[0].window.total, states[1].window.total)
    assert np.array_equal(states[0].window.plays, states[1].window.plays)


def test_rounding_errors_leave_with_the_window():
    # Next to rewards of 10¹⁶, small ones lose all digits; one window later the sums are exact again.
    state, rng = larl.SlidingWindowUCB(10).init(2), np.random.default_rng(0)
    rewards = rng.normal(size=40)
    rewards[:20:3] = 1e16
    for t in range(40):
        learn(state, t % 2, rewards[t])
    assert np.allclose(state.window.total, [rewards[30::2].sum(), rewards[31::2].sum()], rtol=1e-12)
