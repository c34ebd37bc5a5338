"""Imported steps in replays, backups, exports and statistics."""

import csv
import sqlite3
from pathlib import Path

import pytest

import larl
from larl.service.export.files import export
from larl.service.export.table import Table
from larl.service.ops.backup import backup, restore
from larl.service.ops.integrity import Mismatch
from larl.service.ops.replay import Replay
from tests.service.host import hosts
from tests.service.pilots import ARMS, ROWS, pilot, rows_of, steps_of
from tests.service.study_client import content, create_study, service_client


@pytest.mark.parametrize(
    ("where", "change"),
    [
        ("kind = 'reward' AND number = 2 AND unit = 'p0'", "request = replace(request, '\"value\":', '\"value\":1')"),
        ("kind = 'decision' AND number = 2", "request = replace(request, '\"history\"', '\"story\"')"),
        ("kind = 'decision' AND number = 2", "\"key\" = 'other'"),
        ("kind = 'decision' AND number = 2", "answer = replace(answer, 'history', 'host')"),
        ("kind = 'history'", "answer = replace(answer, '\"steps\":24', '\"steps\":25')"),
        ("kind = 'history'", "request = replace(request, 'log.p0.4', 'log.p0.x')"),
    ],
)
def test_replay_finds_a_changed_import(sqlite: str, where: str, change: str) -> None:
    with hosts(sqlite) as [host]:
        host.create_study()
        host.import_history("pilot", steps_of(pilot()))
        host.decide("p0", "own")
        assert host.replay() == 25
    with sqlite3.connect(sqlite.removeprefix("sqlite:///")) as connection:
        connection.execute("DROP TRIGGER no_update")
        found = connection.execute(f"SELECT seq FROM journal WHERE {where} LIMIT 1").fetchone()[0]
        connection.execute(f"UPDATE journal SET {change} WHERE seq = {found}")
    connection.close()
    with hosts(sqlite) as [host], pytest.raises(Mismatch):
        Replay(host.journal).run()


def test_backup_restores_an_import(sqlite: str, tmp_path: Path) -> None:
    with hosts(sqlite) as [host]:
        host.create_study()
        host.import_history("pilot", steps_of(pilot()))
        backup(host.database, tmp_path / "backup.gz")
        rows = rows_of(host)
    restore(tmp_path / "backup.gz", f"sqlite:///{tmp_path / 'copy.db'}")
    with hosts(f"sqlite:///{tmp_path / 'copy.db'}") as [host]:
        assert rows_of(host) == rows
        assert host.replay() == 24


def test_exports_mark_imported_steps(sqlite: str, tmp_path: Path) -> None:
    known = [step | ({"probabilities": {"a": 0.25, "b": 0.75}} if step["arm"] else {}) for step in steps_of(pilot())]
    with hosts(sqlite) as [host]:
        host.create_study(min_probability=0.1)
        host.import_history("pilot", known)
        host.reward(host.decide("p0", "own")["id"], "own", 0.5)
        table = Table(host.journal, "sleep")
        export(table, "csv", tmp_path / "sleep.csv")
        assert export(table, "vw", tmp_path / "sleep.vw") == {
            "no reward": sum(step["arm"] is not None and step["reward"] is None for step in known),
            "no arm was available": 2,
        }
        export(table, "lifejacket", tmp_path / "lifejacket.csv", fill=0.0)
    with (tmp_path / "sleep.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["source"] for row in rows] == ["history"] * 24 + ["policy"]
    assert [row["arm"] or None for row in rows[:-1]] == [step["arm"] for step in known]
    assert [float(row["reward"]) if row["reward"] else None for row in rows[:-1]] == [step["reward"] for step in known]
    assert {row["p_a"] for row in rows[:-1] if row["arm"]} == {"0.25"}
    again = larl.Cohort.from_log(larl.UCB(), tmp_path / "sleep.csv")
    assert again.t == 25
    with (tmp_path / "lifejacket.csv").open(encoding="utf-8") as file:
        policies = [row["policy_num"] for row in csv.DictReader(file) if row["user_id"] == "p0"]
    assert policies == ["-1"] * 12 + ["0"]


def test_statistics_count_imported_steps_apart(tmp_path: Path) -> None:
    """Every number but `imported` is the same as without the import."""
    found = {}
    for imported in (False, True):
        folder = tmp_path / str(imported)
        folder.mkdir()
        with service_client(folder) as client:
            create_study(client, arms=ARMS, policy={"policy": "Random"})
            if imported:
                content(client.post("/v1/studies/sleep/history", json={"key": "k", "steps": steps_of(pilot())}))
            for i, unit in enumerate(("p0", "p1", "p1", "p0", "p1")):
                body = {"unit": unit, "key": f"{unit}-{i}", "available": ["a"]}
                decision = content(client.post("/v1/studies/sleep/decisions", json=body))
                assert decision["t"] == {0: 0, 1: 0, 2: 1, 3: 1, 4: 2}[i] + imported * ROWS
                content(client.post(f"/v1/decisions/{decision['id']}/reward", json={"key": f"r{i}", "value": 1.0 * i}))
            overview = content(client.get("/v1/studies/sleep/overview"))
            roster = content(client.get("/v1/studies/sleep/roster"))["items"]
            unit = content(client.get("/v1/studies/sleep/unit-overview?unit=p0"))
            assert (overview.pop("imported"), unit["imported"]) == (imported * 24, imported * ROWS)
            assert [each.pop("imported") for each in roster] == [imported * ROWS] * 2
            assert [step["source"] for step in unit["steps"]] == ["history"] * imported * ROWS + ["policy"] * 2
            assert overview["decisions"] == sum(overview["states"].values()) == sum(overview["sources"].values()) == 5
            times = [overview.pop(name) for name in ("seq", "at", "steps")]
            assert sum(times[-1]["decisions"]) == 5
            found[imported] = overview, [each | {"entered": "", "last": ""} for each in roster]
    assert found[True] == found[False]
