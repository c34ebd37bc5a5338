"""M-UCB against its definition: forced exploration, indices and tests computed from the complete history."""

import math

import numpy as np
import pytest

import larl
from larl._core.states import copy_state
from tests.policies.test_live_functions import simulate_choices
from tests.stepping import decide, learn


def arm_of(steps, arms, gamma, scale, xi):
    """Return the arm after the steps (arm, reward) since the restart."""
    t = len(steps)
    cycle = math.ceil(arms / gamma)
    if t % cycle < arms:
        return t % cycle
    own = [[reward for other, reward in steps if other == arm] for arm in range(arms)]
    return int(np.argmax([np.mean(r) + scale * math.sqrt(xi * math.log(t) / len(r)) if r else math.inf for r in own]))


def has_changed(steps, arm, window, threshold):
    """Return whether the halves of the last `window` rewards of an arm differ by more than the threshold."""
    rewards = [reward for other, reward in steps if other == arm]
    if len(rewards) < window:
        return False
    first, second = np.split(np.array(rewards[-window:]), 2)
    return abs(second.sum() - first.sum()) > threshold


@pytest.mark.parametrize(
    ("window", "threshold", "gamma", "scale", "xi"),
    [(10, 2.5, 0.1, 1.0, 2.0), (4, 2.0, 0.37, 0.7, 1.0), (2, 2.5, 1.0, 1.0, 2.0), (20, 3.0, 0.01, 1.0, 0.5)],
)
def test_choices_follow_the_definition(window, threshold, gamma, scale, xi):
    rng, steps, restarts = np.random.default_rng(window), [], 0
    state = larl.MUCB(window, threshold, gamma, scale, xi).init(3)
    for t in range(400):
        choice = decide(state, t)
        assert choice == arm_of(steps, 3, gamma, scale, xi)
        arm = choice if rng.random() < 0.8 else int(rng.integers(3))
        steps.append((arm, float(rng.normal(0.5 * arm + 2.0 * (t // 60 % 3 == arm)))))
        learn(state, *steps[-1])
        if has_changed(steps, arm, window, threshold * scale * math.sqrt(window)):
            steps, restarts = [], restarts + 1
        assert state.time[0] == len(steps)
        assert state.plays.tolist() == [sum(other == arm for other, _ in steps) for arm in range(3)]
    assert restarts >= 2


def test_all_arms_restart_together():
    state = larl.MUCB(window=4, threshold=2.0).init(2)
    for t in range(20):
        learn(state, t % 2, 0.0)
    learn(state, 1, 5.0)  # 5 > 2·√4
    assert state.plays.tolist() == [0, 0]
    assert state.total.tolist() == [0.0, 0.0]
    assert [decide(state, 0)] == [0]


def restart_time(shift, at, steps, seed):
    """Return the number of plays of one arm until the first restart; its mean shifts after `at` plays."""
    state, rng = larl.MUCB().init(2), np.random.default_rng(seed)
    for t in range(steps):
        learn(state, 0, rng.normal(shift * (t >= at)))
        if state.time[0] == 0:
            return t + 1
    return math.inf


def test_changes_are_found_and_false_alarms_are_rare():
    # The difference of the halves has sd √w, so one test is a false alarm with probability 2Φ(−5) = 6·10⁻⁷: in 200 runs
    # of 500 tests, fewer than 0.06 are expected. After 15 plays, a jump by 3 sd moves the mean of the difference to
    # 45/√30 = 8.2 standard deviations; it is missed with probability Φ(−3.2) < 10⁻³.
    assert all(restart_time(0.0, 0, 500, seed) == math.inf for seed in range(200))
    delays = np.array([restart_time(3.0, 60, 120, seed) - 60 for seed in range(200)])
    assert delays.min() > 0
    assert np.mean(delays <= 15) >= 0.95


def test_cycle_counts_steps_without_reward():
    state = larl.MUCB(gamma=0.5).init(3)
    arms = []
    for _ in range(3):
        arms.append(decide(state, 0))
        learn(state, arms[-1], math.nan)
    assert arms == [0, 1, 2]
    assert state.plays.tolist() == [0, 0, 0]


def test_unavailable_arm_of_the_cycle_is_replaced_by_the_largest_bound():
    state = larl.MUCB(gamma=0.3).init(3)
    for t in range(10):
        learn(state, t % 3, float(t % 3 == 2))
    assert decide(state, 0) == 0  # step 10 of a cycle of 10 steps
    for available, arm in (([True, False, True], 0), ([False, True, True], 2), ([False, True, False], 1)):
        out, _, _ = simulate_choices(copy_state(state), available)
        assert out.tolist() == [float(other == arm) for other in range(3)]


def test_odd_window_is_refused():
    with pytest.raises(larl.InvalidValue, match="MUCB: window = 7 is not usable; accepted: an even whole number"):
        larl.MUCB(window=7)
