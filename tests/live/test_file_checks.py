"""A file with a valid digest whose content an agent or cohort cannot have is refused before compiled code uses it."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import larl
from larl.live import files, snapshots
from larl.policies._bounds import MAX_STEPS, state_arrays
from tests.live.fuzz_files import run, totals
from tests.live.test_agent_files import make_agent
from tests.live.test_cohort_files import make_cohort

Change = Callable[[dict[str, Any]], Any]


def put(*path: Any) -> Callable[[Any], Change]:
    """Returns a function of a value that returns a change: the value is put at a path."""

    def with_value(value: Any) -> Change:
        def change(document: dict[str, Any]) -> None:
            inner: Any = document
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value

        return change

    return with_value


def put_number(name: str, index: int, value: Any) -> Change:
    """A change of one number of an array of the State."""

    def change(document: dict[str, Any]) -> None:
        array = document["base"]["state"][name]
        numbers = np.frombuffer(base64.b64decode(array["data"]), dtype=array["type"]).copy()
        numbers[index] = value
        array["data"] = base64.b64encode(numbers.tobytes()).decode()

    return change


def refusal(document: dict[str, Any], change: Change, path: Path, kind: str) -> str:
    """The message of InvalidFile for a changed document with a valid digest."""
    changed = json.loads(json.dumps(document))
    change(changed)
    load: Any = larl.Agent.load if kind == "agent" else larl.Cohort.load
    with pytest.raises(larl.InvalidFile) as error:
        load(files.write(path, changed, kind))
    assert str(path) in str(error.value)
    return str(error.value)


AGENT: list[tuple[Change, str]] = [
    (put("past", "arm", 0)(3), "past.arm"),
    (put("past", "arm", 0)(-2), "past.arm"),
    (put("past", "arm", 0)(True), "past.arm"),
    (put("past", "arm", 0)(2**63), "past.arm"),
    (put("past", "arm")([0]), "columns"),
    (put("past", "reward", 2)(1e101), "past.reward"),
    (put("past", "reward", 2)(float("inf")), "past.reward"),
    (put("past", "reward", 2)("1"), "past.reward"),
    (put("past", "pending", 2)(1), "past.pending"),
    (put("past", "pending", 2)(True), "cannot have"),
    (put("past", "context", 0)([1.0]), "past.context"),
    (put("base", "time")(-1), "base.time"),
    (put("base", "time")(MAX_STEPS + 1), "base.time"),
    (put("base", "time")(10**400), "base.time"),
    (put("base", "time")(1.5), "base.time"),
    (put("counts", "learnt")(-1), "counts.learnt"),
    (put("counts", "learnt")(True), "counts.learnt"),
    (put("max_delay")(2), "columns"),
    (put("trial")(-1), "trial"),
    (put("horizon")("x"), "horizon"),
    (put("arms")(3), "arms"),
    (put("policy", "s")(10**400), "s = "),
    (put("policy", "s")(2**40), "whose State is in the file"),
    (put("policy", "s")(3000), "whose State is in the file"),
    (put_number("lags.indices", 1, 4), "lags.indices"),
    (put_number("lags.indices", 1, -(2**62)), "lags.indices"),
    (put_number("time", 0, -1), "time"),
    (put_number("ridge.theta", 0, np.inf), "infinite"),
    (put("base", "state", "time", "data")("AAAA"), "3 bytes, not 8"),
    (put("base", "state", "time", "data")("!"), "base64"),
    (put("base", "state", "time", "data")(7), "does not fit"),
    (put("base", "state", "time")(7), "does not fit"),
    (put("base")(None), "does not fit"),
]


@pytest.mark.parametrize(("change", "message"), AGENT, ids=[f"{i} {message}" for i, (_, message) in enumerate(AGENT)])
def test_agent_with_impossible_content_is_refused(change: Change, message: str, tmp_path: Path) -> None:
    document = make_agent(larl.LARL(1)).pack() | {"world": None}
    assert message in refusal(document, change, tmp_path / "agent.json", "agent")


def test_rewards_of_a_standardised_policy_must_be_in_both_orders(tmp_path: Path) -> None:
    agent = larl.Agent(larl.UCB(standardise=True), 2, max_delay=1)
    for t in range(40):
        agent.observe(agent.decide(), float(t))
    message = refusal(agent.pack(), put_number("first.ring", 5, 0.5), tmp_path / "agent.json", "agent")
    assert "ordered" in message


COHORT: list[tuple[Change, str]] = [
    (put("past", "unit", 0)(3), "past.unit"),
    (put("past", "arm", 0)(2), "past.arm"),
    (put("closed")(-1), "closed"),
    (put("closed")(10**6), "closed"),
    (put("decisions", 0)(0), "decisions"),
    (put("decisions", 0)(2.0), "decisions"),
    (put("decisions")([90]), "decisions"),
    (put("units", 1)("x"), "units"),
    (put("units", 1)(7), "units"),
    (put_number("lags.indices", 3, 5), "lags.indices"),
]


@pytest.mark.parametrize(("change", "message"), COHORT, ids=[f"{i} {text}" for i, (_, text) in enumerate(COHORT)])
@pytest.mark.parametrize("pooling", ["full", "partial"])
def test_cohort_with_impossible_content_is_refused(change: Change, message: str, pooling: str, tmp_path: Path) -> None:
    assert message in refusal(make_cohort(pooling).pack(), change, tmp_path / "cohort.json", "cohort")


@pytest.mark.parametrize("text", ["[" * 200_000, '{"format": "larl.agent", "world": ' + '{"base":' * 200_000])
def test_deeply_nested_file_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_text(text)
    with pytest.raises(larl.InvalidFile, match=r"agent\.json: is not the file of an agent"):
        larl.Agent.load(tmp_path / "agent.json")


def test_mutated_files_are_refused_or_usable() -> None:
    """A short run of the command; `python -m tests.live.fuzz_files` tries every policy."""
    only = ["agent UCB", f"agent {larl.LARL(1)}", f"cohort {larl.LARL(1)}, full", "store all", "result all"]
    counts = totals(run(300, only=only))
    assert (counts["mutations"], counts["crashed"], counts["hung"]) == (300, 0, 0)
    assert min(counts["refused"], counts["same"]) > 50


def test_snapshot_with_impossible_content_is_refused() -> None:
    agent = make_agent(larl.LARL(1))
    data = snapshots.dump(agent)
    end = 4 + int.from_bytes(data[:4], "little")
    values = json.loads(data[4:end])
    changes: list[dict[str, Any]] = [
        {"time": -1},
        {"end": 10**18},
        {"time": 2.0},
        {"checkpoints": [values["end"] + 1, None, None]},
        {"counts": values["counts"] | {"late": -1}},
        {"arrays": values["arrays"][:-1]},
    ]
    for change in changes:
        header = json.dumps(values | change).encode()
        with pytest.raises(ValueError, match=r"accepted|fewer arrays"):
            snapshots.restore(larl.Agent(agent.policy, 3, max_delay=7), snapshot_bytes(header, data[end:]))
    index = data.index(state_arrays(agent._history.state)["lags.indices"].tobytes(), end)
    wrong = data[:index] + (2**40).to_bytes(8, "little") + data[index + 8 :]
    with pytest.raises(ValueError, match=r"lags\.indices"):
        snapshots.restore(larl.Agent(agent.policy, 3, max_delay=7), wrong)
    again = larl.Agent(agent.policy, list(agent.arms), seed=9, min_probability=0.1, max_delay=7)
    snapshots.restore(again, data)
    assert again.decide() == agent.decide()


def snapshot_bytes(header: bytes, arrays: bytes) -> bytes:
    return len(header).to_bytes(4, "little") + header + arrays
