"""A cohort reproduces the engine's cohort bit for bit; without pooling its units are agents."""

import json
import math
from typing import Any

import numpy as np
import pytest

import larl
from larl.policies._pooling import POOLINGS
from tests.live.cohorts import BASE, SPEC, WORLD, leaves, same, step_by_hand
from tests.stepping import units_of

UNITS, ROUNDS, SEED = 5, 30, 3


def compare_cohorts(pooling: str, **options: Any) -> larl.Result:
    settings = {"horizon": ROUNDS, "trials": 1, "seed": SEED, "units": UNITS, "progress": False} | options
    return larl.compare({"it": SPEC}, WORLD, pooling=pooling, **settings)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_cohort_reproduces_engine_cohort(pooling: str) -> None:
    cohort, result = larl.Cohort(SPEC, 2, SEED, pooling=pooling), compare_cohorts(pooling)
    arms, rewards = (np.asarray(each)[0, 0] for each in (result.arm, result.reward))
    for unit, decision, reward in step_by_hand(cohort, UNITS, ROUNDS):
        assert (decision.unit, decision.arm) == (f"unit {unit}", str(arms[unit, decision.t]))
        assert reward == rewards[unit, decision.t]
    assert cohort.units == tuple(f"unit {unit}" for unit in range(UNITS))
    assert cohort.t == UNITS * ROUNDS


def test_units_without_pooling_equal_agents_and_engine_trials() -> None:
    trials = larl.compare({"it": SPEC}, WORLD, horizon=ROUNDS, trials=UNITS, seed=SEED)
    for name in ("regret", "arm", "reward"):
        assert np.array_equal(trials.data[name][0], compare_cohorts("none").data[name][0, 0])
    second = compare_cohorts("none", trials=2)
    assert np.array_equal(
        second.arm[0, 1, 2], larl.compare({"it": SPEC}, WORLD, horizon=ROUNDS, trials=8, seed=3).arm[0, 7]
    )
    cohort, agent = larl.Cohort(SPEC, 2, SEED, min_probability=0.1), larl.Agent(SPEC, 2, SEED, min_probability=0.1)
    for t in range(20):
        for unit in ("a", "b"):
            one = cohort.decide(unit)
            cohort.observe(one, float(t % 3))
            if unit == "a":
                other = agent.decide()
                agent.observe(other, float(t % 3))
                assert one[1:-1] == other[1:-1]
    assert same(cohort.state("a"), agent.state)


@pytest.mark.parametrize("pooling", ["full", "partial"])
@pytest.mark.parametrize("keep", ["all", "summary"])
def test_results_do_not_depend_on_threads_and_blocks(pooling: str, keep: str) -> None:
    options = {"trials": 5, "horizon": 12, "keep": keep}
    results = [
        compare_cohorts(pooling, **options, **how) for how in ({"threads": 1}, {"threads": 2, "block": 2}, {"block": 5})
    ]
    assert all(each.data.identical(results[0].data) for each in results)
    assert results[0].unit_total().sizes == {"policy": 1, "trial": 5, "unit": UNITS}
    assert np.allclose(results[0].total(), results[0].unit_total().mean("unit"))


def test_summary_of_cohorts_agrees_with_all_data() -> None:
    complete, summary = (compare_cohorts("full", trials=4, keep=keep) for keep in ("all", "summary"))
    assert np.allclose(complete.unit_total(), summary.unit_total(), rtol=1e-12)
    assert np.allclose(complete.curves()["mean"], summary.curves()["mean"], rtol=1e-12)
    assert np.allclose(complete.curves()["sd"], summary.curves()["sd"], rtol=1e-9)


def test_units_of_a_memory_share_common_arrays() -> None:
    units = units_of(SPEC.init(2), 3)
    stacked = units.stacked()
    units.state(1).time[0] = 7
    units.state(1).ridge.theta[0, 0] = 2.0
    assert stacked.time.tolist() == [[0], [7], [0]]
    assert stacked.ridge.theta.shape == units.state(2).ridge.theta.shape
    assert units.state(2).ridge.theta[0, 0] == 2.0


@pytest.mark.parametrize("pooling", POOLINGS)
def test_refused_call_changes_nothing(pooling: str) -> None:
    cohort = larl.Cohort(SPEC, ["a", "b"], pooling=pooling)
    first = cohort.decide("x")
    cohort.observe(first, 1.0)
    before, counts = [np.copy(leaf) for leaf in leaves(cohort.state("x"))], dict(cohort.counts)
    for call in (
        lambda: cohort.decide(""),
        lambda: cohort.decide(7),  # type: ignore[arg-type]
        lambda: cohort.decide("y", available=["c"]),
        lambda: cohort.decide("y", context=[1.0]),
        lambda: cohort.observe(first, math.nan),
        lambda: cohort.observe(first, 1.0, arm="c"),
        lambda: cohort.observe("1-0-00", 1.0),
        lambda: cohort.observe("0-1-00", 1.0),
        lambda: cohort.observe("0-0", 1.0),
        lambda: cohort.observe(first._replace(id="x"), 1.0),
        lambda: cohort.state("y"),
    ):
        with pytest.raises(larl.InvalidValue):
            call()
    assert (cohort.t, cohort.units, cohort.counts) == (1, ("x",), counts)
    assert all(np.array_equal(a, b) for a, b in zip(before, leaves(cohort.state("x")), strict=True))


INVALID_ARGUMENTS = {
    "pooling = 'some'": lambda: larl.Cohort(SPEC, 2, pooling="some"),
    "min_probability": lambda: larl.Cohort(SPEC, 2, min_probability=0.6),
    "Cohort: arms": lambda: larl.Cohort(SPEC, 1),
    "pooling 'full': policy = Random.*LARL, UCB": lambda: larl.Cohort(larl.Random(), 2, pooling="full"),
    "radius = 'alpha'": lambda: larl.Cohort(larl.LARL(1, radius="theory"), 2, pooling="partial", world=BASE, horizon=9),
    "pooling 'partial': policy = RoundRobin": lambda: larl.compare(
        {"it": larl.RoundRobin()}, BASE, horizon=2, trials=1, units=2, pooling="partial"
    ),
    "compare: pooling = 'full'.*units = 70": lambda: larl.compare(
        {"it": SPEC}, BASE, horizon=2, trials=1, pooling="full"
    ),
    "compare: units = 0": lambda: larl.compare({"it": SPEC}, BASE, horizon=2, trials=1, units=0),
}


@pytest.mark.parametrize("message", INVALID_ARGUMENTS)
def test_invalid_argument_names_field(message: str) -> None:
    with pytest.raises(larl.InvalidValue, match=message):
        INVALID_ARGUMENTS[message]()


def test_decision_ids_are_unique_over_units() -> None:
    cohort = larl.Cohort(larl.UCB(), 2, pooling="full")
    decisions = [cohort.decide(unit) for _ in range(20) for unit in ("1", "1-1", "11", "ü")]
    assert len({decision.id for decision in decisions}) == 80
    assert cohort.observe(decisions[-2].id, 1.0) == "repaired"
    assert cohort.counts["repaired"] == 1


@pytest.mark.parametrize("pooling", ["none", "full", "partial"])
def test_recorded_arms_give_same_decisions(pooling: str) -> None:
    """One cohort decides, another records the same arms: all later decisions are equal."""
    first, second = (larl.Cohort(larl.LARL(1), ["a", "b"], 3, pooling=pooling, min_probability=0.1) for _ in range(2))
    for name in ("x", "y", "z"):
        assert first.enter(name) == second.enter(name)
    for t in range(24):
        unit = ("z", "x", "z", "y")[t % 4]
        decision = first.decide(unit, None if t % 5 else [])
        assert second.record(unit, decision.arm) == decision.id
        if t % 3 and decision.arm:
            for cohort in (first, second):
                cohort.observe(decision.id, 0.1 * t)
    second = larl.Cohort.unpack(json.loads(json.dumps(second.pack())))
    assert second.units == ("x", "y", "z")
    for unit in second.units:
        assert first.decide(unit) == second.decide(unit)
