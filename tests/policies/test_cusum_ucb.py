"""CUSUM-UCB against the definition of the test, computed from each arm's complete history."""

import math

import numpy as np
import pytest

import larl
from larl._core.states import copy_state
from tests.policies.test_live_functions import simulate_choices
from tests.stepping import decide, learn


def latest_segment(rewards, reference, epsilon, threshold):
    """Return the rewards since the last detected change, by the largest sum of any suffix."""
    start, end = 0, reference
    while end < len(rewards):
        centred = np.array(rewards[start + reference : end + 1]) - np.mean(rewards[start : start + reference])
        largest = max(np.cumsum(sign * centred[::-1] - epsilon).max() for sign in (1, -1))  # over all suffixes
        end += 1
        if largest >= threshold:
            start, end = end, end + reference
    return rewards[start:]


def bounds_of(segments, width, xi):
    """Return mean + B√(ξ log n / N) of each arm; ∞ without a reward."""
    n = sum(len(rewards) for rewards in segments)
    return [
        np.mean(rewards) + width * math.sqrt(xi * math.log(n) / len(rewards)) if rewards else math.inf
        for rewards in segments
    ]


@pytest.mark.parametrize(
    ("reference", "epsilon", "threshold", "scale", "xi"),
    [(1, 0.5, 4.0, 1.0, 1.0), (6, 0.2, 3.0, 1.0, 0.5), (10, 0.5, 3.0, 0.7, 1.0), (5, 0.0, 2.0, 2.0, 0.0)],
)
def test_choices_follow_the_definition(reference, epsilon, threshold, scale, xi):
    rng, history, restarts = np.random.default_rng(reference), [[], [], []], 0
    state = larl.CUSUMUCB(reference, epsilon, threshold, 0.0, scale, xi).init(3)
    for t in range(300):
        segments = [latest_segment(rewards, reference, epsilon * scale, threshold * scale) for rewards in history]
        restarts += t > 0 and state.plays.sum() < t - 3
        assert state.plays.tolist() == [len(rewards) for rewards in segments]
        choice = decide(state, t)
        assert choice == np.argmax(bounds_of(segments, scale, xi))
        arm = choice if rng.random() < 0.7 else int(rng.integers(3))
        history[arm].append(float(rng.normal(0.5 * arm + 2.0 * (t // 100 == arm))))
        learn(state, arm, history[arm][-1])
    assert restarts > 0


def test_only_the_changed_arm_restarts():
    state, rng = larl.CUSUMUCB().init(2), np.random.default_rng(1)
    for t in range(100):
        learn(state, t % 2, rng.normal())
    for _ in range(8):
        learn(state, 1, 8.0 + rng.normal())
    assert state.plays[0] == 50.0
    assert state.plays[1] < 8.0


def restart_times(shift, at, steps, trials):
    """Return the number of plays until the first restart of one arm whose mean shifts after `at` plays; ∞ for none."""
    times = []
    for trial in range(trials):
        state, rng, previous = larl.CUSUMUCB().init(2), np.random.default_rng(trial), 0.0
        times.append(math.inf)
        for t in range(steps):
            learn(state, 0, rng.normal(shift * (t >= at)))
            if state.plays[0] <= previous:
                times[-1] = t + 1
                break
            previous = state.plays[0]
    return np.array(times)


def test_documented_detection_delay_and_false_alarms():
    # Offline simulation of the defaults: 20% of arms restart within 200 plays of a constant mean, and a shift by 2 sd
    # is found after 9 plays in 95% of runs without an earlier false alarm. 150 runs; bounds of 3 standard errors.
    trials = 150
    false = np.mean(np.isfinite(restart_times(0.0, 0, 200, trials)))
    assert abs(false - 0.20) < 3.0 * math.sqrt(0.2 * 0.8 / trials)
    delay = restart_times(2.0, 60, 120, trials) - 60
    delay = delay[delay > 0]
    assert np.mean(delay <= 9) > 0.95 - 3.0 * math.sqrt(0.95 * 0.05 / delay.size)
    assert np.mean(delay) == pytest.approx(5.6, abs=0.6)


@pytest.mark.parametrize("available", [[True, True, True], [True, False, True], [False, True, True]])
def test_probabilities_are_exploration_and_the_largest_bound(available):
    state, alpha = larl.CUSUMUCB(alpha=0.3).init(3), 0.3
    for t in range(30):
        learn(state, t % 3, float(t % 3))
    out, _, _ = simulate_choices(copy_state(state), available)
    expected = np.where(available, alpha / sum(available), 0.0)
    expected[2] += 1.0 - alpha
    assert out == pytest.approx(expected, abs=1e-15)


def test_rewards_in_another_unit_change_no_decision():
    # The same rewards times 8, with scale = 8: all comparisons scale exactly by a power of two.
    specs = larl.CUSUMUCB(5, threshold=3.0), larl.CUSUMUCB(5, threshold=3.0, scale=8.0)
    states, rng = [spec.init(3) for spec in specs], np.random.default_rng(2)
    for t in range(200):
        arms = [decide(state, t) for state in states]
        assert arms[0] == arms[1]
        reward = rng.normal(arms[0] == t // 50)
        learn(states[0], arms[0], reward)
        learn(states[1], arms[1], 8.0 * reward)
