"""Standardised rewards: median and scale, and invariance to offset and unit."""

import math

import numpy as np
import pytest

import larl
from larl import worlds
from larl._core.compile import kernel
from larl.policies import Policy
from larl.policies._latest_rewards import MAD_TO_SD, NEGLIGIBLE_SHARE, insert_reward, latest_rewards_init
from larl.policies._standardise import FIRST, STORED
from larl.worlds import Simulator
from tests.stepping import learn


def median_and_scale(rewards: np.ndarray) -> tuple[float, float]:
    deviations = np.sort(np.abs(rewards - np.median(rewards)))
    others = deviations[deviations > NEGLIGIBLE_SHARE * deviations[-1]]
    if rewards.size - others.size <= rewards.size // 2:
        width = MAD_TO_SD * deviations[rewards.size // 2]
    else:
        width = others[others.size // 2] * math.sqrt(others.size / rewards.size) if others.size else 0.0
    return float(np.median(rewards)), float(width)


def test_median_and_scale_are_those_of_the_latest_rewards() -> None:
    size, draws = 101, np.random.default_rng(0)
    rewards = np.round(draws.standard_t(1.5, size=4 * size), 1)  # outliers and ties
    rewards[2 * size : 3 * size] = draws.random(size) < 0.1  # most are equal
    latest, insert = latest_rewards_init(size), kernel(lambda state, reward: insert_reward(state, reward))
    for t, reward in enumerate(rewards):
        insert(latest, reward)
        assert latest.standard == pytest.approx(median_and_scale(rewards[max(t + 1 - size, 0) : t + 1]), rel=1e-12)


def used_scale(rewards: np.ndarray) -> tuple[tuple[float, float], int]:
    """Median and scale after these steps, and the step from which on the policy has learnt."""
    scale, begin, stored = (0.0, 0.0), 0, np.empty(0)
    for t, reward in enumerate(rewards):
        is_given = not math.isnan(reward)
        if stored.size == 0 and not is_given:
            begin = t + 1
            continue
        count = np.isfinite(stored).sum()
        is_fixed = count >= FIRST or stored.size >= STORED
        if is_fixed and is_given and scale[1] == 0.0 and reward != scale[0]:
            begin, stored, count, is_fixed = t, np.empty(0), 0, False
        if not is_fixed:
            stored = np.append(stored, reward)
            if is_given and (count + 1 in (1, 2, 4, 8, 16, 32) or scale[1] == 0.0):
                scale = median_and_scale(stored[np.isfinite(stored)])
    return scale, begin


KINDS = {
    "normal": lambda draws: 50.0 + draws.normal(size=90),
    "binary": lambda draws: 1.0 * (draws.random(90) < 0.3),
    "constant for long": lambda draws: np.where(np.arange(90) < 45, 7.0, draws.normal(size=90)),
    "mostly missing": lambda draws: np.where(draws.random(90) < 0.7, math.nan, draws.normal(size=90)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_policy_has_learnt_from_rewards_of_one_origin_and_unit(kind: str) -> None:
    draws = np.random.default_rng(3)
    rewards = KINDS[kind](draws)
    rewards[draws.random(90) < 0.15] = math.nan
    contexts, arms = draws.normal(size=(90, 2)), draws.integers(2, size=90)
    state = larl.LARL(2, context=2, standardise=True).init(2)
    for t in range(90):
        learn(state, int(arms[t]), rewards[t], contexts[t])
        (centre, width), begin = used_scale(rewards[: t + 1])
        assert state.scale == pytest.approx((centre, width), rel=1e-12)
        reference = larl.LARL(2, context=2).init(2)
        for i in range(begin, t + 1):
            learn(reference, int(arms[i]), np.divide(rewards[i] - centre, width or math.inf), contexts[i])
        np.testing.assert_allclose(state.inner.ridge.theta, reference.ridge.theta, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.inner.ridge.inverse, reference.ridge.inverse, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("outlier", [1e3, -1e9])
@pytest.mark.parametrize("equal_first", [0, 40])
@pytest.mark.parametrize("zeros", [0.0, 0.6])
def test_scale_is_not_that_of_an_outlier(outlier: float, equal_first: int, zeros: float) -> None:
    for seed in range(10):
        draws = np.random.default_rng(seed)
        rewards = draws.normal(size=100) * (draws.random(100) >= zeros)
        rewards[: equal_first + 1] = [0.0] * equal_first + [outlier]
        state = larl.UCB(standardise=True).init(2)
        for t, reward in enumerate(rewards):
            learn(state, t % 2, reward)
        assert 0.02 < state.scale[1] < 3.0


STANDARDISED = [
    larl.LARL(3, standardise=True),
    larl.UCB(standardise=True),
    larl.SlidingWindowUCB(30, standardise=True),
    larl.DiscountedUCB(0.9, standardise=True),
    larl.CUSUMUCB(standardise=True),
    larl.MUCB(standardise=True),
    larl.GLRklUCB(standardise=True),
]


@pytest.mark.parametrize(
    ("factor", "offset"), [(1.0, 0.0), (1e-3, 0.0), (1e3, 0.0), (1.0, 1000.0), (1.0, -1000.0), (0.02, 7.0)]
)
@pytest.mark.parametrize("spec", STANDARDISED, ids=str)
def test_decisions_do_not_depend_on_offset_and_unit(spec: Policy, factor: float, offset: float) -> None:
    chosen = []
    for scale, shift in ((1.0, 0.0), (factor, offset)):
        agent, simulator, arms = larl.Agent(spec, 2, seed=3), Simulator(worlds.paper(5), 3, 0), []
        for _ in range(300):
            decision = agent.decide()
            arms.append(int(str(decision.arm)))
            agent.observe(decision, shift + scale * simulator.reward(arms[-1]))
            simulator.advance(arms[-1])
        chosen.append(arms)
    assert chosen[0] == chosen[1]


def test_standardise_is_off_by_default() -> None:
    assert not hasattr(larl.LARL(3).init(2), "scale")
    with pytest.raises(larl.InvalidValue, match="standardise"):
        larl.LARL(3, standardise="yes")  # type: ignore[arg-type]


def test_predictions_are_in_units_of_the_reward() -> None:
    agent = larl.Agent(larl.LARL(0, standardise=True), ["low", "high"], seed=0)
    draws = np.random.default_rng(1)
    for t in range(200):
        arm = agent.arms[t % 2]
        agent.observe(agent.decide(), 500.0 + 10.0 * (arm == "high") + draws.normal(), arm=arm)
    decision = agent.decide()
    assert decision.arm == "high"
    assert decision.expected == pytest.approx(510.0, abs=1.0)


@pytest.mark.parametrize("spec", STANDARDISED, ids=str)
def test_binary_rewards_are_learned(spec: Policy) -> None:
    # More than half of the rewards are equal, so the median absolute deviation is 0. Random arms lose 0.3 per step.
    lost, steps = [], 300
    for trial in range(20):
        agent, draws = larl.Agent(spec, 2, seed=trial), np.random.default_rng(trial)
        gap = 0
        for _ in range(steps):
            decision = agent.decide()
            agent.observe(decision, float(draws.random() < (0.8 if decision.arm == "1" else 0.2)))
            gap += decision.arm != "1"
        lost.append(0.6 * gap / steps)
    assert np.mean(lost) + 3.0 * np.std(lost) / np.sqrt(len(lost)) < 0.15


@pytest.mark.parametrize("spec", [larl.LARL(1, standardise=True), larl.UCB(standardise=True)], ids=str)
def test_most_common_reward_of_both_arms_may_differ(spec: Policy) -> None:
    # The median is 0 while the first arm is played, 1 while the second is: rewards must not be relative to it.
    lost, steps, success = [], 400, (0.2, 0.65)
    for trial in range(30):
        agent, draws = larl.Agent(spec, 2, seed=trial), np.random.default_rng(trial)
        for _ in range(steps):
            decision = agent.decide()
            lost.append(0.45 * (decision.arm == "0"))
            agent.observe(decision, float(draws.random() < success[int(str(decision.arm))]))
    trials = np.reshape(lost, (30, steps)).mean(axis=1)
    assert trials.mean() + 3.0 * trials.std() / np.sqrt(30) < 0.3 * 0.225  # random arms lose 0.225 per step


def test_only_policies_that_share_fields_can_be_pooled() -> None:
    assert larl.Cohort(larl.UCB(standardise=True), 2, pooling="full").decide("unit").arm
    for spec in (larl.DiscountedUCB(0.9, standardise=True), larl.SlidingWindowUCB(9, standardise=True)):
        with pytest.raises(larl.InvalidValue, match="share"):
            larl.Cohort(spec, 2, pooling="full")
