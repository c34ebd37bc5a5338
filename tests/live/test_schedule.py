"""Scheduled learning: what is fixed between updates, what an update learns, and that files and snapshots keep it."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import larl
from larl.live import snapshots
from tests.live.test_agent import same

ARMS = ["nothing", "prompt"]
SETTINGS: dict[str, Any] = {"update_every": 4, "warm_up": 1, "allocation": "best", "min_probability": {"prompt": 0.2}}
SMOOTH: dict[str, Any] = {"policy": larl.UCB(), "arms": ARMS, "allocation": "smooth"}
MONDAY = date(2026, 5, 4)


def played(agent: larl.Agent, rewards: list[float]) -> list[larl.Decision]:
    """Decide once for each reward, which comes at once."""
    decisions = []
    for reward in rewards:
        decisions.append(agent.decide())
        agent.observe(decisions[-1], reward)
    return decisions


def test_probabilities_change_at_updates_only() -> None:
    agent = larl.Agent(**SMOOTH, update_every=4, warm_up=2)
    rewards = np.random.default_rng(0).normal(size=22).tolist()
    probabilities = [decision.probabilities["prompt"] for decision in played(agent, rewards)]
    assert probabilities[:2] == [0.5, 0.5]
    changes = [t for t in range(3, 22) if probabilities[t] != probabilities[t - 1]]
    assert changes == [6, 10, 14, 18]


def test_update_has_learnt_all_rewards_in_order() -> None:
    agent, plain = larl.Agent(larl.LARL(1), ARMS, update_every=5), larl.Agent(larl.LARL(1), ARMS)
    for t, reward in enumerate(np.random.default_rng(1).normal(size=23)):
        decision = agent.decide()
        assert same(agent._schedule.updates[0].state, plain.state) == (t % 5 == 0)
        agent.observe(decision, float(reward))
        plain.observe(plain.record(decision.arm), float(reward))


@pytest.mark.parametrize("change", ["late", "corrected", "missing"])
def test_late_and_corrected_rewards_are_learnt_at_the_next_update(change: str) -> None:
    agent, other = (larl.Agent(**SMOOTH, update_every=6, max_delay=20) for _ in range(2))
    first: larl.Decision | str = ""
    for t in range(18):
        one, two = agent.decide(), other.decide()
        assert (one.probabilities == two.probabilities) == (t < 12)
        first = one if t == 3 else first
        if t != 3 or change != "late":
            agent.observe(one, 0.1 * t)
            other.observe(two, 0.1 * t)
        if t == 7:  # after the update of step 6, before that of step 12
            agent.observe(first, None if change == "missing" else 9.0)


def make_cohort(pooling: str) -> larl.Cohort:
    cohort = larl.Cohort(larl.LARL(1), ARMS, 5, pooling=pooling, max_delay=9, **SETTINGS)
    source, open_decisions = np.random.default_rng(2), []
    for t in range(15):
        for unit in ("anna", "ben", "carl")[: 1 + t // 3]:
            open_decisions.append(cohort.decide(unit))
            if source.random() < 0.6:
                cohort.observe(open_decisions.pop(source.integers(len(open_decisions))), float(source.normal()))
    return cohort


def continued(cohort: larl.Cohort) -> list[Any]:
    """Return further decisions of all units, with late rewards among them."""
    decisions = []
    for t in range(9):
        for unit in ("anna", "ben", "carl", "dora"):
            decisions.append(cohort.decide(unit))
            if t % 2:
                cohort.observe(decisions[-3], 0.1 * t)
    return [*decisions, cohort.counts]


@pytest.mark.parametrize("pooling", ["none", "full", "partial"])
def test_loaded_cohort_continues_identically(pooling: str, tmp_path: Path) -> None:
    cohort = make_cohort(pooling)
    loaded = larl.Cohort.load(cohort.save(tmp_path / "cohort.json"))
    cohort.save(tmp_path / "cohort.json")
    assert continued(loaded) == continued(cohort)


@pytest.mark.parametrize("pooling", ["full", "partial"])
def test_restored_snapshot_of_a_cohort_continues_identically(pooling: str) -> None:
    cohort = make_cohort(pooling)
    restored = larl.Cohort(larl.LARL(1), ARMS, 5, pooling=pooling, max_delay=9, **SETTINGS)
    snapshots.restore(restored, snapshots.dump(cohort))
    assert continued(restored) == continued(cohort)


def test_loaded_and_restored_agent_keep_the_update(tmp_path: Path) -> None:
    settings: dict[str, Any] = {**SMOOTH, "update_every": "night", "max_delay": 5}
    agent = larl.Agent(**settings)
    decisions = [agent.decide(day=MONDAY + timedelta(days=t // 4)) for t in range(7)]
    for t, decision in enumerate(decisions):
        agent.observe(decision, float(t))
    loaded = larl.Agent.load(agent.save(tmp_path / "agent.json"))
    restored = larl.Agent(**settings)
    snapshots.restore(restored, snapshots.dump(agent))
    for t in range(7, 16):
        each = [one.decide(day=MONDAY + timedelta(days=t // 4)) for one in (agent, loaded, restored)]
        assert each[0] == each[1] == each[2]
        assert [one.observe(each[0].id, 0.3 * t) for one in (agent, loaded, restored)]
    with pytest.raises(larl.InvalidValue, match="that file has deployment = "):
        larl.Agent(**SMOOTH, max_delay=5).save(tmp_path / "agent.json")


def test_memory_counts_the_states_of_updates() -> None:
    agent, plain = larl.Agent(**SMOOTH, update_every=3), larl.Agent(**SMOOTH)
    for each in (agent, plain):
        played(each, [0.1, 0.2, 0.3, 0.4])
    assert snapshots.memory(agent, 100) == snapshots.memory(plain, 100) + 100


def test_night_is_the_first_decision_of_a_later_day() -> None:
    agent = larl.Agent(**SMOOTH, update_every="night")
    days = [MONDAY, MONDAY, MONDAY + timedelta(days=2), MONDAY + timedelta(days=1), MONDAY + timedelta(days=3)]
    probabilities = []
    for day in days:
        decision = agent.decide(day=day)
        agent.observe(decision, 2.0 if decision.arm == "prompt" else -1.0)
        probabilities.append(decision.probabilities["prompt"])
    changes = [t for t in range(1, 5) if probabilities[t] != probabilities[t - 1]]
    assert changes == [2, 4]  # a clock that is set back causes no update


def test_day_is_required_with_night_and_refused_without() -> None:
    agent = larl.Cohort(larl.UCB(), ARMS, update_every="night")
    with pytest.raises(larl.InvalidValue, match=r"day = None .*update_every is 'night'"):
        agent.decide("anna")
    assert agent.units == ()
    with pytest.raises(larl.InvalidValue, match=r"day = .*accepted: None"):
        larl.Agent(larl.UCB(), ARMS).decide(day=MONDAY)


def test_recording_with_updates_equals_deciding() -> None:
    settings: dict[str, Any] = {**SMOOTH, "update_every": 3, "warm_up": 2}
    agent, copy = larl.Agent(**settings), larl.Agent(**settings)
    decisions: list[str] = []
    for t in range(20):
        decision = agent.decide()
        copy.update_if_due()
        decisions.append(copy.record(decision.arm))
        assert decisions[-1] == decision.id
        for each in (agent, copy):
            if t % 4 != 1:
                each.observe(decisions[-1], float(t % 3))
            if t % 4 == 3:
                each.observe(decisions[-3], -1.0)  # late
    assert same(agent._schedule.updates[0].state, copy._schedule.updates[0].state)
    assert agent.decide() == copy.decide()


def test_failed_decision_does_not_count_as_an_update() -> None:
    agent = larl.Agent(larl.LARL(1), ARMS, update_every=2)
    played(agent, [0.1, 0.2])
    before = agent._schedule.updates[0]
    agent._history.state.ridge.theta[0, 0] = np.nan
    with pytest.raises(larl.PolicyError):
        agent.decide()
    assert agent._schedule.updates[0] is before


def test_warm_up_has_the_given_probabilities() -> None:
    arms, given = ["a", "b", "c"], {"a": 0.2, "b": 0.3, "c": 0.5}
    agent = larl.Agent(larl.UCB(), arms, warm_up=4, warm_up_probabilities=given, min_probability=0.1)
    first = agent.decide()
    assert first.probabilities == pytest.approx(given)
    assert not first.explored
    assert agent.decide(available=["a", "b"]).probabilities == pytest.approx({"a": 0.4, "b": 0.6, "c": 0.0})
    assert agent.decide(available=[]).arm is None
    assert agent.decide(available=["c"]).probabilities == {"a": 0.0, "b": 0.0, "c": 1.0}
    assert sorted(agent.decide().probabilities.values()) == pytest.approx([0.1, 0.1, 0.8])
    only_c = larl.Agent(larl.UCB(), arms, warm_up=1, warm_up_probabilities={"c": 1.0})
    assert only_c.decide(available=["a", "b"]).probabilities == {"a": 0.5, "b": 0.5, "c": 0.0}


def test_warm_up_draws_have_the_given_probabilities_and_are_learnt() -> None:
    share = {"nothing": 0.3, "prompt": 0.7}
    agent = larl.Agent(larl.UCB(), ARMS, warm_up=3_000, warm_up_probabilities=share)
    prompts = sum(decision.arm == "prompt" for decision in played(agent, [0.0] * 3_000))
    assert abs(prompts - 2_100) <= 4.0 * np.sqrt(3_000 * 0.21)
    assert agent.state.weight.sum() == 3_002.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"warm_up": -1}, "Agent: warm_up = -1"),
        ({"warm_up": 3, "warm_up_probabilities": {"prompt": 0.9}}, "warm_up_probabilities = .*the sum 1"),
        ({"warm_up": 3, "warm_up_probabilities": {"x": 1.0}}, "warm_up_probabilities = 'x' .*only the arms"),
        ({"warm_up_probabilities": {"prompt": 1.0}}, "warm_up_probabilities = .*None, or warm_up ≥ 1"),
        ({"warm_up": 3, "min_probability": {"nothing": 0.6}}, "warm_up_probabilities = .*not below min_probability"),
        ({"update_every": "week"}, "Agent: update_every = 'week' .*'night', or None"),
        ({"update_every": True}, "Agent: update_every = True"),
    ],
)
def test_unusable_schedules_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(larl.InvalidValue, match=message):
        larl.Agent(larl.UCB(), ARMS, **values)


def test_files_without_a_deployment_have_none() -> None:
    packed = larl.Agent(larl.UCB(), ARMS).pack()
    assert packed["deployment"] is None
    assert "updates" not in packed
    del packed["deployment"]  # as earlier versions wrote it
    assert larl.Agent.unpack(packed).decide() == larl.Agent(larl.UCB(), ARMS).decide()
