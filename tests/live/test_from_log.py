"""Warm starts: an agent or cohort from a log equals one to which the same steps were recorded by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import larl

ARMS = ["off", "on"]
ROWS = 40


def pilot(units: int = 1) -> pd.DataFrame:
    """A log of named arms, with missing rewards and rows without an action, by time and then unit."""
    draw, count = np.random.default_rng(3), ROWS * units
    frame = pd.DataFrame(
        {
            "time": np.repeat(pd.date_range("2026-03-01", periods=ROWS, freq="6h"), units),
            "user": [f"p{i}" for i in range(units)] * ROWS,
            "arm": draw.choice(ARMS, count).astype(object),
            "reward": np.where(draw.random(count) < 0.2, np.nan, draw.normal(size=count)),
            "context_0": draw.normal(size=count),
            "context_1": draw.random(count) < 0.5,
        }
    )
    frame.loc[draw.choice(count, count // 10, replace=False), ["arm", "reward"]] = None
    return frame


def record_by_hand(learner: Any, frame: pd.DataFrame, context: tuple[str, ...] = ()) -> Any:
    for row in frame.to_dict("records"):
        unit = (row["user"],) if isinstance(learner, larl.Cohort) else ()
        numbers = [float(row[name]) for name in context]
        arm = None if pd.isna(row["arm"]) else row["arm"]
        decision = learner.record(*unit, arm, numbers or None)
        if arm is not None:
            learner.observe(decision, None if pd.isna(row["reward"]) else row["reward"])
    return learner


@pytest.mark.parametrize(
    ("policy", "context"),
    [(larl.UCB(), ()), (larl.LARL(s=1), ()), (larl.LARL(s=1, context=2), ("context_1", "context_0"))],
)
def test_agent_equals_one_that_recorded_the_same_steps(policy: larl.Policy, context: tuple[str, ...]) -> None:
    frame, settings = pilot(), {"seed": 9, "min_probability": 0.1, "max_delay": 5}
    agent = larl.Agent.from_log(policy, frame.sample(frac=1.0, random_state=1), context=context or None, **settings)
    by_hand = record_by_hand(larl.Agent(policy, ARMS, **settings), frame, context)
    assert agent.pack() == by_hand.pack()
    assert agent.t == ROWS
    given = [0.5] * len(context) or None
    for reward in (0.3, None, -1.0):
        decision, other = agent.decide(context=given), by_hand.decide(context=given)
        assert decision == other
        assert agent.observe(decision, reward) == by_hand.observe(other, reward)
    assert agent.pack() == by_hand.pack()


@pytest.mark.parametrize("pooling", ["none", "full"])
def test_cohort_equals_one_that_recorded_the_same_steps(pooling: str) -> None:
    frame = pilot(units=3)
    cohort = larl.Cohort.from_log(larl.LARL(s=1), frame, seed=2, pooling=pooling)
    by_hand = record_by_hand(larl.Cohort(larl.LARL(s=1), ARMS, seed=2, pooling=pooling), frame)
    assert cohort.units == ("p0", "p1", "p2")
    assert cohort.pack() == by_hand.pack()
    assert [cohort.decide(unit) for unit in ("p1", "p0", "new")] == [
        by_hand.decide(unit) for unit in ("p1", "p0", "new")
    ]


def test_units_learn_in_order_of_time_not_of_the_table() -> None:
    frame = pilot(units=3)
    cohort = larl.Cohort.from_log(larl.LARL(s=1), frame.sort_values(["user", "time"]), pooling="full")
    in_order = larl.Cohort.from_log(larl.LARL(s=1), frame, pooling="full")
    assert cohort.pack() == in_order.pack()


def test_every_kind_of_table_gives_the_same_agent(tmp_path: Path) -> None:
    frame = pilot()
    path, packed = tmp_path / "pilot.csv", tmp_path / "pilot.csv.gz"
    frame.to_csv(path, index=False)
    frame.to_csv(packed, index=False)
    polars = pl.DataFrame(
        {name: frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in frame}
    )
    expected = larl.Agent.from_log(larl.UCB(), frame).pack()
    for log in (path, str(packed), polars):
        assert larl.Agent.from_log(larl.UCB(), log).pack() == expected


def test_log_of_an_agent_teaches_what_the_agent_knows() -> None:
    """An agent that decides the next step knows what the warm start from its own decisions knows."""
    agent, rows = larl.Agent(larl.LARL(s=1), ARMS, seed=4), []
    draw = np.random.default_rng(0)
    for t in range(30):
        decision, reward = agent.decide(), float(draw.normal())
        agent.observe(decision, reward)
        rows.append({"t": t, "arm": decision.arm, "reward": reward})
    warm = larl.Agent.from_log(larl.LARL(s=1), pd.DataFrame(rows), arms=ARMS, seed=4)
    assert warm.decide() == agent.decide()


def test_arms_fix_the_order_and_add_arms_that_never_occur() -> None:
    frame, arms = pilot(), ["never", "on", "off"]
    agent = larl.Agent.from_log(larl.UCB(), frame, arms=arms)
    assert list(agent.arms) == arms
    assert agent.pack() == record_by_hand(larl.Agent(larl.UCB(), arms), frame).pack()
    assert agent.decide().arm == "never"
    numbers = pd.DataFrame({"t": range(4), "a": [1, 2, 10, 1], "r": [0.0, 1.0, 0.0, 1.0]})
    assert larl.Agent.from_log(larl.UCB(), numbers).arms == ("1", "2", "10")
    assert larl.Agent.from_log(larl.UCB(), numbers, arms=11).arms == tuple(map(str, range(11)))


def test_warm_agent_is_saved_and_loaded(tmp_path: Path) -> None:
    agent = larl.Agent.from_log(larl.LARL(s=1), pilot(), min_probability=0.1)
    cohort = larl.Cohort.from_log(larl.LARL(s=1), pilot(units=2), pooling="full")
    assert larl.Agent.load(agent.save(tmp_path / "agent.json")).decide() == agent.decide()
    assert larl.Cohort.load(cohort.save(tmp_path / "cohort.json")).decide("p1") == cohort.decide("p1")


@pytest.mark.parametrize("rewards", [[1e30, -1e30] * 5, [1e-300] * 10, [5.0] * 10, [0, 1] * 5, [None] * 9 + [1e100]])
def test_unusual_rewards_leave_a_finite_state(rewards: list[Any]) -> None:
    log = pd.DataFrame({"t": range(10), "arm": ["off", "on"] * 5, "reward": rewards})
    agent = larl.Agent.from_log(larl.LARL(s=1, standardise=True), log)
    assert sum(agent.decide().probabilities.values()) == pytest.approx(1.0)


LOG = pd.DataFrame({"t": [0, 1, 2], "arm": ["off", "on", "off"], "reward": [0.0, 1.0, 2.0]})
REFUSED: dict[str, tuple[pd.DataFrame, dict[str, Any], str]] = {
    "unknown arm": (
        LOG,
        {"arms": ["on", "other"]},
        "row 1, column 'arm' = 'off' is not usable; accepted: one of on, other",
    ),
    "several units": (
        LOG.assign(u=["x", "y", "x"]),
        {},
        "log = '2 units' .* Cohort.from_log learns from several units",
    ),
    "one arm": (LOG.assign(arm="on"), {}, r"arms = \['on'\] .* all actions of the log are the same"),
    "reward": (LOG.assign(reward=["0", "high", "1"]), {}, "row 2, column 'reward' = 'high'"),
    "no column": (LOG.drop(columns="reward"), {}, "column of the reward = None .* or reward=NAME"),
    "time twice": (LOG.assign(t=[0, 1, 1]), {}, r"row 3, column 't' = 1 .* use unit=NAME"),
    "no rows": (LOG[:0], {}, "log = '0 rows'"),
    "unused context": (LOG, {"context": ["t"]}, r"context = \['t'\] .* none: UCB"),
    "unit": (LOG, {"unit": 3}, "unit = 3 is not usable; accepted: the name of a column"),
    "day first": (LOG, {"day_first": "yes"}, "day_first = 'yes'"),
    "arms": (LOG, {"arms": "off"}, "arms = 'off' is not usable; accepted: two or more different names"),
    "setting": (LOG, {"min_probability": 0.6}, "min_probability = 0.6"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_unusable_log_is_refused_with_row_and_column(case: str) -> None:
    frame, options, message = REFUSED[case]
    with pytest.raises(larl.InvalidValue, match=message) as refused:
        larl.Agent.from_log(larl.UCB(), frame, **options)
    assert refused.value.owner in ("Agent.from_log", "Agent")


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({}, {}, "context = 'context_0' .* one of the log's columns: t, arm, reward"),
        ({}, {"context": "t"}, "context = 't' .* names of 2 columns, for LARL"),
        ({"x": [0.0, None, 1.0]}, {"context": ["t", "x"]}, "row 2, column 'x' = None"),
        ({"x": ["a", "b", "c"]}, {"context": ["t", "x"]}, "row 1, column 'x' = 'a'.* accepted: a finite number"),
        ({"r": [0.1, 1e120, 0.2]}, {}, r"row 2, column 'r' = 1e\+120.* accepted: a finite number from −1e100 to 1e100"),
        ({"x": [0.0, 1.0, 1e101]}, {"context": ["t", "x"]}, "row 3, column 'x' = 1e[+]101"),
        ({}, {"context": ["t", "t"]}, "context = 't' .* each once"),
    ],
)
def test_context_columns_are_numbers_and_complete(
    columns: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(larl.InvalidValue, match=message):
        larl.Agent.from_log(larl.LARL(s=1, context=2), LOG.assign(**columns), **options)


def test_cohort_needs_a_column_of_the_unit_and_one_unit_can_be_declared() -> None:
    with pytest.raises(larl.InvalidValue, match=r"Cohort.from_log: unit = None .* Agent.from_log"):
        larl.Cohort.from_log(larl.UCB(), LOG)
    assert larl.Agent.from_log(larl.UCB(), LOG.assign(u=["x", "y", "x"]), unit=False).t == 3
    assert larl.Agent.from_log(larl.UCB(), LOG.assign(u="x")).t == 3


def test_steps_for_the_service_are_the_rows_in_order_of_time() -> None:
    frame = pilot(units=2)
    steps = larl.logs.read_steps(frame.iloc[::-1], context=["context_0"])
    assert [step["id"] for step in steps[:4]] == ["log.p1.0", "log.p0.0", "log.p1.1", "log.p0.1"]
    assert sorted({len(step) for step in steps}) == [5]
    by_unit = {unit: [step for step in steps if step["unit"] == unit] for unit in ("p0", "p1")}
    for unit, found in by_unit.items():
        rows = frame[frame.user == unit]
        assert [step["arm"] for step in found] == [None if pd.isna(arm) else arm for arm in rows.arm]
        assert [step["reward"] for step in found] == [None if pd.isna(each) else each for each in rows.reward]
        assert [step["context"] for step in found] == [[each] for each in rows.context_0]
    with pytest.raises(larl.InvalidValue, match="unit = None"):
        larl.logs.read_steps(LOG)
