"""Standardised rewards: robust, exact, and free of offset and unit."""

import numpy as np
import pytest

import larl
from larl import worlds
from larl.policies._standard import LATEST, NORMAL
from larl.world import Walk
from tests.stepping import learn


def test_centre_and_spread_are_the_medians_of_the_latest() -> None:
    state, draws = larl.LARL(2, standardise=True).init(2), np.random.default_rng(0)
    rewards = np.round(draws.standard_t(1.5, size=3 * LATEST), 1)  # wild ones and ties
    for t, reward in enumerate(rewards):
        learn(state, t % 2, reward)
        latest = np.sort(rewards[max(t + 1 - LATEST, 0) : t + 1])
        assert state.standard[0] == pytest.approx(np.median(latest), abs=1e-12)
        away = np.sort(np.abs(latest - np.median(latest)))
        assert state.standard[1] == pytest.approx(NORMAL * away[latest.size // 2], abs=1e-12)


@pytest.mark.parametrize(
    ("factor", "offset"), [(1.0, 0.0), (1e-3, 0.0), (1e3, 0.0), (1.0, 1000.0), (1.0, -1000.0), (0.02, 7.0)]
)
def test_neither_offset_nor_unit_changes_a_decision(factor: float, offset: float) -> None:
    chosen = []
    for scale, shift in ((1.0, 0.0), (factor, offset)):
        agent, walk, arms = larl.Agent(larl.LARL(3, standardise=True), 2, seed=3), Walk(worlds.paper(5), 3, 0), []
        for _ in range(300):
            decision = agent.decide()
            arms.append(int(str(decision.arm)))
            agent.observe(decision, shift + scale * walk.reward(arms[-1]))
            walk.advance(arms[-1])
        chosen.append(arms)
    assert chosen[0] == chosen[1]


def test_it_is_off_unless_asked_for() -> None:
    assert not hasattr(larl.LARL(3).init(2), "standard")
    with pytest.raises(larl.InvalidValue, match="standardise"):
        larl.LARL(3, standardise="yes")  # type: ignore[arg-type]


def test_what_is_expected_is_in_the_rewards_own_unit() -> None:
    agent = larl.Agent(larl.LARL(0, standardise=True), ["low", "high"], seed=0)
    draws = np.random.default_rng(1)
    for t in range(200):
        arm = agent.arms[t % 2]
        agent.observe(agent.decide(), 500.0 + 10.0 * (arm == "high") + draws.normal(), arm=arm)
    decision = agent.decide()
    assert decision.arm == "high"
    assert decision.expected == pytest.approx(510.0, abs=1.0)
