"""Standardised rewards: median and scale, and invariance to offset and unit."""

import numpy as np
import pytest

import larl
from larl import worlds
from larl.policies import Policy
from larl.policies._standardise import LATEST, MAD_TO_SD, NEGLIGIBLE_SHARE
from larl.worlds import Simulator
from tests.stepping import learn


def test_centre_and_scale_are_medians_of_the_latest_rewards() -> None:
    state, draws = larl.LARL(2, standardise=True).init(2), np.random.default_rng(0)
    rewards = np.round(draws.standard_t(1.5, size=4 * LATEST), 1)  # outliers and ties
    rewards[2 * LATEST : 3 * LATEST] = draws.random(LATEST) < 0.1  # most are equal
    for t, reward in enumerate(rewards):
        learn(state, t % 2, reward)
        latest = np.sort(rewards[max(t + 1 - LATEST, 0) : t + 1])
        assert state.standard[0] == pytest.approx(np.median(latest), abs=1e-12)
        deviations = np.sort(np.abs(latest - np.median(latest)))
        width, rms = MAD_TO_SD * deviations[latest.size // 2], np.sqrt(np.mean(deviations**2))
        assert state.standard[1] == pytest.approx(width if width > NEGLIGIBLE_SHARE * rms else rms, rel=1e-12)


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
    assert not hasattr(larl.LARL(3).init(2), "standard")
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


def test_only_policies_that_share_fields_can_be_pooled() -> None:
    assert larl.Cohort(larl.UCB(standardise=True), 2, pooling="full").decide("unit").arm
    for spec in (larl.DiscountedUCB(0.9, standardise=True), larl.SlidingWindowUCB(9, standardise=True)):
        with pytest.raises(larl.InvalidValue, match="share"):
            larl.Cohort(spec, 2, pooling="full")
