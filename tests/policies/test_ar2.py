"""AR2 against a direct implementation that recomputes estimates and errors from the history at every step."""

import math

import numpy as np
import pytest

import larl
from tests.stepping import decide, learn


def estimate(seen, arm, t, alpha):
    """Return r̂(t) = α^{t−τ}R(τ) and its standard error in units of σ; ε(j) contributes α^{t−j}ε(j) for τ < j < t."""
    last = max(step for step, (other, _) in enumerate(seen) if other == arm)
    return alpha ** (t - last) * seen[last][1], math.sqrt(sum(alpha ** (2 * (t - j)) for j in range(last + 1, t)))


class Reference:
    """AR2: play every arm once; then the leader and, every second step, the arm that was triggered first."""

    def __init__(self, arms, alpha, sigma, epoch, threshold):
        self.arms, self.alpha, self.epoch, self.scale = arms, alpha, epoch, threshold * sigma
        self.seen, self.waiting, self.leader = [], [], 0

    def choice(self):
        t = len(self.seen)
        if t < self.arms:
            return t
        return self.waiting[0] if (t - self.arms) % 2 == 1 and self.waiting else self.leader

    def learn(self, arm, reward):
        self.seen.append((arm, reward))
        t = len(self.seen)
        if t == self.epoch:
            self.seen, self.waiting, self.leader = [], [], 0
        elif t >= self.arms:
            now = [estimate(self.seen, a, t, self.alpha) for a in range(self.arms)]
            self.leader = max({arm, self.seen[-2][0]}, key=lambda a: now[a][0])  # the better of the last two arms
            self.waiting = [a for a in self.waiting if a not in (arm, self.leader)]
            for a in range(self.arms):
                gap = now[self.leader][0] - now[a][0]
                if a != self.leader and a not in self.waiting and gap <= self.scale * now[a][1]:
                    self.waiting.append(a)


def rewards_of(alpha, sigma, arms, steps, seed):
    """Return rewards of the model R_i(t) = r_i(t) + ε_i(t), r_i(t+1) = αR_i(t), after a burn-in."""
    rng, result = np.random.default_rng(seed), [np.zeros(arms)]
    for _ in range(200 + steps):
        result.append(alpha * result[-1] + sigma * rng.normal(size=arms))
    return np.array(result[-steps:])


@pytest.mark.parametrize("threshold", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("alpha", "sigma", "arms", "epoch"), [(0.9, 1.0, 3, 40), (0.6, 0.3, 5, 31), (0.99, 2, 2, 400)])
def test_choices_equal_direct_implementation(alpha, sigma, arms, epoch, threshold):
    state = larl.AR2(alpha, sigma, epoch, threshold).init(arms)
    reference, explored = Reference(arms, alpha, sigma, epoch, threshold), 0
    for t, rewards in enumerate(rewards_of(alpha, sigma, arms, 500, seed=arms)):
        arm = decide(state, t)
        assert arm == reference.choice()
        explored += t % epoch >= arms and arm != reference.leader
        learn(state, arm, rewards[arm])
        reference.learn(arm, rewards[arm])
        now = len(reference.seen)
        for a in {a for a, _ in reference.seen}:
            assert state.estimate[a] == pytest.approx(estimate(reference.seen, a, now, alpha)[0], rel=1e-9)
    assert explored > 20


def test_epoch_starts_with_one_play_of_each_arm():
    spec, choices = larl.AR2(0.8, 1.0, epoch=11), []
    state = spec.init(4)
    for t in range(44):
        if t % 11 == 0:  # the State is reset
            assert all(np.array_equal(now, first) for now, first in zip(state, spec.init(4), strict=True))
        choices.append(decide(state, 0))
        learn(state, choices[-1], 9.0 * (choices[-1] == 2))  # arm 2 leads by far: no other arm is triggered
    assert choices == ([0, 1, 2, 3] + [2] * 7) * 4


@pytest.mark.parametrize("age", range(2, 9))
def test_arm_is_triggered_within_threshold(age):
    # Arm 1 is played only at step 1. Arm 0 leads by far; `age` steps later its lead is just at the threshold.
    alpha, sigma, threshold = 0.85, 0.6, 1.4
    for factor, triggered in [(1 - 1e-9, True), (1 + 1e-9, False)]:
        state, seen = larl.AR2(alpha, sigma, 100, threshold).init(2), [(0, 50.0), (1, 2.0)]
        mean, error = estimate([*seen, *[(0, 0.0)] * (age - 1)], 1, 1 + age, alpha)
        seen += [(0, 50.0)] * (age - 2) + [(0, (mean + factor * threshold * sigma * error) / alpha)]
        for arm, reward in seen:
            assert decide(state, 0) == arm
            learn(state, arm, reward)
        assert (state.triggered[1] >= 0) == triggered
        choices = []
        for _ in range(2):
            choices.append(decide(state, 0))
            learn(state, choices[-1], 50.0 if choices[-1] == 0 else -50.0)
        assert choices.count(1) == triggered  # arm 1 gets the next exploration step, if it was triggered


def test_arm_with_larger_reward_becomes_leader():
    state = larl.AR2(0.9, 1.0, epoch=100).init(2)
    for arm, reward in [(0, 1.0), (1, 0.8), (0, 1.0)]:
        assert decide(state, 0) == arm
        learn(state, arm, reward)
    assert decide(state, 0) == 1
    learn(state, 1, 30.0)
    for _ in range(6):  # far ahead, it is always played
        assert decide(state, 0) == 1
        learn(state, 1, 30.0)


@pytest.mark.parametrize(("alpha", "sigma", "arms"), [(0.9, 0.5, 2), (0.5, 0.3, 4), (0.9, 5.0, 3)])
def test_default_epoch_is_that_of_the_paper(alpha, sigma, arms):
    exact = arms * alpha**-3 * sigma**-3  # ⌈exact⌉, but at least two plays of every arm
    assert larl.AR2(alpha, sigma).init(arms).epoch == max(math.ceil(exact), 2 * arms)


def test_epoch_shorter_than_two_plays_per_arm_is_refused():
    with pytest.raises(larl.InvalidValue, match="AR2: epoch = 5 is not usable; accepted: a whole number ≥ 6"):
        larl.AR2(0.9, 1.0, epoch=5).init(3)
