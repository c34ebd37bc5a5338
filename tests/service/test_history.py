"""The import of a pilot: all or nothing, once, and learnt as `from_log` learns it."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy.exc import OperationalError

import larl
from larl.service.core.agents import AgentHandle
from larl.service.core.handlers.history import HistoryHandlers
from larl.service.core.problems import Problem
from larl.service.schemas.requests import MAX_STEPS
from larl.service.storage import group_commit
from larl.service.storage.database import StorageError
from tests.service.host import LARL, Host, history_command, hosts
from tests.service.pilots import ARMS, ROWS, pilot, rows_of, steps_of
from tests.service.study_client import content, create_study, service_client


def state(host: Host, unit: str, pooled: bool) -> list[Any]:
    """Return the arrays of a unit's State in the service."""
    handle = host.batch.studies.agents.cache.get(("sleep", "" if pooled else unit))
    assert handle is not None
    return arrays(handle.agent.state(unit) if pooled else handle.agent.state)


def arrays(value: Any) -> list[Any]:
    return [each for field in value for each in (arrays(field) if isinstance(field, tuple) else [np.asarray(field)])]


@pytest.mark.parametrize("pooling", ["none", "full"])
def test_service_knows_what_a_warm_start_knows(storage: str, pooling: str) -> None:
    frame, pooled = pilot(context=True), pooling != "none"
    spec, settings = larl.LARL(s=1, context=1), {"seed": 7, "min_probability": 0.1}
    with hosts(storage) as [host]:
        host.create_study(policy=spec.to_dict(), pooling=pooling, min_probability=0.1)
        receipt = host.import_history("pilot", steps_of(frame))
        assert (receipt["study"], receipt["steps"], receipt["units"]) == ("sleep", len(frame), 2)
        config = host.batch.studies.open_study("sleep").config
        for number, unit in enumerate(("p0", "p1")):
            learner: Any
            if pooled:
                learner = larl.Cohort.from_log(spec, frame, arms=ARMS, pooling=pooling, **settings)
                expected = learner.state(unit)
            else:
                own = frame[frame.unit == unit]
                learner = larl.Agent.from_log(spec, own, arms=ARMS, trial=number, **settings)
                expected = learner.state
            for one, other in zip(state(host, unit, pooled), arrays(expected), strict=True):
                np.testing.assert_array_equal(one, other)
        learner.use_streams(config.streams)  # the last unit decides with the same random bits
        decided = host.decide("p1", "own", context=[0.5])
        same = learner.decide(*(["p1"] if pooled else []), context=[0.5])
        assert (decided["t"], decided["source"]) == (ROWS, "policy")
        assert decided["id"].removeprefix("sleep." if pooled else "sleep.1-") == same.id
        for name in ("arm", "probabilities", "expected", "width", "explored"):
            assert decided[name] == getattr(same, name)
        assert host.replay() == len(frame) + 1


def test_repeated_import_gets_identical_bytes_and_changes_nothing(storage: str) -> None:
    steps = steps_of(pilot())
    with hosts(storage) as [host]:
        host.create_study()
        [first] = host.batch.execute([history_command("pilot", steps)])
        stored = rows_of(host)
        assert host.batch.execute([history_command("pilot", steps)]) == [first]
        host.decide("p0", "own")
    with hosts(storage) as [host]:
        assert host.batch.execute([history_command("pilot", steps)] * 2) == [first] * 2
        with pytest.raises(Problem, match="used for a request with another payload"):
            host.import_history("pilot", steps[:-1])
        with pytest.raises(Problem) as refused:
            host.import_history("other", steps[5:])
        assert (refused.value.status, refused.value.more["field"]) == (422, "steps[0].id")
        assert rows_of(host)[:-1] == stored


def changed(**fields: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda step: {name: value for name, value in (step | fields).items() if value != "absent"}


BAD: dict[str, tuple[dict[str, Any], int, str]] = {
    "arm": ({"arm": "c"}, 422, "steps[4].arm"),
    "reward": ({"reward": "high"}, 422, "steps[4].reward"),
    "infinite reward": ({"reward": 1e101}, 422, "steps[4].reward"),
    "no reward": ({"reward": "absent"}, 422, "steps[4].reward"),
    "reward without an arm": ({"arm": None, "reward": 1.0}, 422, "steps[4].reward"),
    "probabilities without an arm": (
        {"arm": None, "reward": None, "probabilities": {"a": 0.5, "b": 0.5}},
        422,
        "steps[4].probabilities",
    ),
    "unit": ({"unit": "p 0"}, 422, "steps[4].unit"),
    "id twice": ({"id": "log.p0.0"}, 422, "steps[4].id"),
    "context": ({"context": [1.0]}, 422, "steps[4].context"),
    "time": ({"made": "yesterday"}, 422, "steps[4].made"),
    "probabilities": ({"probabilities": {"a": 0.9, "b": 0.5}}, 422, "steps[4].probabilities"),
    "unknown field": ({"rewards": 1.0}, 422, "steps[4].rewards"),
    "unit that has decided": ({"unit": "decided"}, 409, "steps[4].unit"),
}


def test_one_bad_step_refuses_all_and_is_named(tmp_path: Path) -> None:
    steps = steps_of(pilot())
    with service_client(tmp_path) as client:
        create_study(client, arms=ARMS)
        own = content(client.post("/v1/studies/sleep/decisions", json={"unit": "decided", "key": "own"}))
        before = content(client.get("/v1/studies/sleep/overview"))["seq"]
        for fields, status, field in BAD.values():
            bad = [*steps[:4], changed(**fields)(steps[4]), *steps[5:]]
            refused = client.post("/v1/studies/sleep/history", json={"key": "pilot", "steps": bad})
            assert (refused.status_code, refused.json()["field"]) == (status, field), refused.text
            assert field.partition(".")[0] in refused.json()["detail"]
        many = [{"id": f"s{i}", "unit": "p", "arm": "a", "reward": 1} for i in range(MAX_STEPS + 1)]
        for wrong, accepted in ((many, "a list of 1000 or fewer items"), ([], "a list of 1 or more items")):
            refused = client.post("/v1/studies/sleep/history", json={"key": "k", "steps": wrong})
            assert (refused.status_code, refused.json()["field"]) == (422, "steps")
            assert refused.json()["accepted"] == accepted
        unknown = {"key": "k", "steps": [steps[0] | {"rewards": 1}]}
        refused = client.post("/v1/studies/sleep/history", json=unknown)
        assert refused.json()["accepted"].startswith("only the fields id, unit, arm, reward")
        assert content(client.get("/v1/studies/sleep/overview"))["seq"] == before
        assert [each["unit"] for each in content(client.get("/v1/studies/sleep/units"))["items"]] == ["decided"]
        assert content(client.post("/v1/studies/sleep/history", json={"key": "pilot", "steps": steps}))["steps"] == 24
        first = content(client.get("/v1/studies/sleep/decisions"))["items"]
        assert (first[0]["id"], [each["source"] for each in first[1:]]) == (own["id"], ["history"] * len(steps))


def test_history_comes_in_parts_and_only_before_the_first_decision(storage: str) -> None:
    steps = steps_of(pilot())
    with hosts(storage, 2 if storage.startswith("postgres") else 1) as opened:
        host, other = opened[0], opened[-1]
        host.create_study(policy=LARL)
        other.register("p1")
        host.import_history("one", steps[:10])
        other.import_history("two", steps[10:20])
        decision = host.decide("p1", "own")
        assert decision["t"] == 10
        with pytest.raises(Problem) as refused:
            other.import_history("three", steps[20:])
        assert (refused.value.status, refused.value.more["value"]) == (409, "p1")
        assert "before its first decision" in refused.value.detail
        other.import_history("three", [step for step in steps[20:] if step["unit"] == "p0"])
        own = larl.Agent.from_log(larl.LARL(s=1), pilot()[lambda rows: rows.unit == "p0"], arms=ARMS)
        assert host.decide("p0", "next")["expected"] == own.decide().expected
        assert host.replay() == len(steps)


def test_study_with_explicit_registration_names_the_unknown_unit(sqlite: str) -> None:
    with hosts(sqlite) as [host]:
        host.create_study(registration="explicit")
        host.register("p0")
        with pytest.raises(Problem) as refused:
            host.import_history("pilot", steps_of(pilot()))
        assert (refused.value.status, refused.value.more["field"]) == (404, "steps[1].unit")
        host.close_study()
        with pytest.raises(Problem, match="closed"):
            host.import_history("pilot", steps_of(pilot()))


@pytest.mark.parametrize("pooling", ["none", "full"])
def test_import_that_fails_midway_leaves_nothing(sqlite: str, pooling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the service, and a disk that is full when the events are written."""
    steps, add, insert = steps_of(pilot()), HistoryHandlers._add, group_commit.insert

    def fail(handlers: Any, step: Any, key: str, row: Any) -> None:
        add(handlers, step, key, row)
        if row.id == steps[7]["id"]:
            raise RuntimeError("midway")

    def full(connection: Any, events: Any, last: int) -> Any:
        insert(connection, events[:5], last)
        raise OperationalError("INSERT", {}, Exception("database or disk is full"))

    with hosts(sqlite) as [host]:
        host.create_study(policy=LARL, pooling=pooling)
        before = rows_of(host)
        with monkeypatch.context() as patch:
            patch.setattr(HistoryHandlers, "_add", fail)
            with pytest.raises(Problem, match="nothing was changed"):
                host.import_history("pilot", steps)
            patch.undo()
            patch.setattr(group_commit, "insert", full)
            with pytest.raises(StorageError, match="disk is full"):
                host.import_history("pilot", steps)
        assert rows_of(host) == before
        host.import_history("pilot", steps)
        found = host.decide("p0", "own")
        assert host.replay() == len(steps) + 1
    with hosts(sqlite.replace("study.db", "other.db")) as [undisturbed]:
        undisturbed.create_study(policy=LARL, pooling=pooling)
        undisturbed.import_history("pilot", steps)
        expected = undisturbed.decide("p0", "own")
    assert found | {"at": ""} == expected | {"at": ""}


def test_policy_that_fails_learns_the_steps_later(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, record, calls = steps_of(pilot()), AgentHandle.record, 0

    def fail(handle: Any, *arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise ArithmeticError("not now")
        record(handle, *arguments)

    with hosts(sqlite) as [host]:
        host.create_study(policy=LARL)
        with monkeypatch.context() as patch:
            patch.setattr(AgentHandle, "record", fail)
            host.import_history("pilot", steps)
        assert [issue["code"] for issue in host.issues()] == ["policy"]
        expected = larl.Agent.from_log(larl.LARL(s=1), pilot()[lambda rows: rows.unit == "p0"], arms=ARMS).decide()
        assert host.decide("p0", "own")["expected"] == expected.expected
        assert host.replay() == len(steps) + 1


@pytest.mark.parametrize("pooling", ["none", "full"])
def test_restarted_service_goes_on_from_snapshots_and_from_events(sqlite: str, pooling: str) -> None:
    frame = pd.concat([pilot().assign(t=pilot().t + part * ROWS) for part in range(12)])
    with hosts(sqlite) as [host]:
        host.create_study(policy=LARL, pooling=pooling)
        host.import_history("pilot", steps_of(frame))
    path = Path(sqlite.removeprefix("sqlite:///"))
    shutil.copy(path, path.with_name("events.db"))
    with sqlite3.connect(path.with_name("events.db")) as connection:
        assert connection.execute("DELETE FROM snapshots").rowcount > 0
    connection.close()
    found = []
    for url in (sqlite, f"sqlite:///{path.with_name('events.db')}"):
        with hosts(url) as [host]:
            found.append([host.decide(unit, unit) | {"at": ""} for unit in ("p1", "p0", "new")])
            assert host.replay() == len(frame) + 3
    assert found[0] == found[1]


def test_only_an_admin_imports(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        create_study(client, arms=ARMS)
    for role in ("host", "analyst"):
        with service_client(tmp_path, role) as client:
            refused = client.post("/v1/studies/sleep/history", json={"key": "k", "steps": steps_of(pilot())})
            assert (refused.status_code, refused.json()["field"]) == (403, "role")


def test_keys_of_imported_decisions_are_not_used_again(sqlite: str) -> None:
    with hosts(sqlite) as [host]:
        host.create_study()
        host.import_history("pilot", steps_of(pilot()))
        with pytest.raises(Problem, match="a new key"):
            host.decide("p0", "log.p0.0")
        host.decide("p2", "taken")
        with pytest.raises(Problem) as refused:
            host.import_history("more", [{"id": "taken", "unit": "p3", "arm": "a", "reward": 1.0}])
        assert refused.value.more["field"] == "steps[0].id"
