"""A storage of schema 1 that an earlier version wrote, with other field names, stays usable: the test of the format.

`old/journal-1.db` has events of all kinds. `old/*.csv` are its exports and `old/journal-1.backup.gz` is its backup, by
the version that wrote it. None of these files is ever regenerated.
"""

import csv
import gzip
import hashlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from starlette.testclient import TestClient

import larl
from larl._core.validation import InvalidValue
from larl.cli import app
from larl.client import RewardReceipt, StudyInfo
from larl.client.models import parse
from larl.service.export.files import export
from larl.service.export.table import Table
from larl.service.ops.backup import backup, restore, verify
from larl.service.ops.integrity import check_complete
from larl.service.ops.replay import Replay, ReplaySummary
from larl.service.storage.database import Database, StorageError
from larl.service.storage.events import EventKind
from larl.service.storage.journal import Journal
from tests.service.study_client import content, service_client

OLD = Path(__file__).with_name("old")
JOURNAL, BACKUP = OLD / "journal-1.db", OLD / "journal-1.backup.gz"
EVENTS, DECISIONS = 162, {"alone": 28, "together": 20, "trial": 24}
SETTINGS = {"alone": (0.2, 3), "together": (0.1, 4), "trial": (0.2, 50)}  # min_probability and max_delay in force
RENAMED = {"floor": "min_probability", "patience": "max_delay"}  # fields of requests
Row = tuple[Any, ...]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A copy of the old storage."""
    return Path(shutil.copy(JOURNAL, tmp_path / "study.db"))


@pytest.fixture
def client(file: Path) -> Iterator[TestClient]:
    """A service of that copy."""
    with service_client(file.parent) as found:
        yield found


def stored_rows(file: Path) -> list[Row]:
    connection = sqlite3.connect(file)
    try:
        return connection.execute("SELECT * FROM journal ORDER BY seq").fetchall()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """The rows of the old journal."""
    return stored_rows(Path(shutil.copy(JOURNAL, tmp_path_factory.mktemp("old") / "journal.db")))


def replayed(file: Path) -> ReplaySummary:
    database = Database(f"sqlite:///{file}")
    try:
        check_complete(database)
        return Replay(Journal(database)).run()
    finally:
        database.close()


def test_old_journal_has_all_kinds_of_events_and_the_old_field_names(rows: list[Row]) -> None:
    assert len(rows) == EVENTS
    assert {row[2] for row in rows} == {kind.value for kind in EventKind} - {"history"}  # which came later
    text = "".join(row[8] + row[9] for row in rows)
    assert all(f'"{name}":' in text for name in ("floor", "patience", "terms", "taken"))
    assert not any(f'"{name}":' in text for name in ("min_probability", "max_delay", "config", "status"))


def test_old_journal_replays_exactly(file: Path) -> None:
    summary = replayed(file)
    assert (summary.events, summary.decisions) == (EVENTS, sum(DECISIONS.values()))


@pytest.mark.parametrize(
    ("old", "new"),
    [('"taken":"late"', '"taken":"repaired"'), ('"floor":0.2', '"floor":0.3'), ('"terms":', '"config":')],
)
def test_replay_finds_changes_of_an_old_journal(file: Path, old: str, new: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TRIGGER no_update")
        changed = connection.execute("UPDATE journal SET answer = replace(answer, ?, ?)", (old, new))
        assert changed.rowcount == EVENTS
    connection.close()
    result = typer.testing.CliRunner().invoke(app, ["replay", f"sqlite:///{file}"])
    assert (result.exit_code, result.stderr[:13]) == (3, "mismatch: row")


@pytest.mark.parametrize("study", DECISIONS)
def test_exports_of_an_old_journal_are_byte_identical(file: Path, tmp_path: Path, study: str) -> None:
    database = Database(f"sqlite:///{file}")
    try:
        export(Table(Journal(database), study), "csv", tmp_path / "export.csv")
    finally:
        database.close()
    assert (tmp_path / "export.csv").read_bytes() == (OLD / f"{study}.csv").read_bytes()


@pytest.mark.parametrize("study", DECISIONS)
def test_old_study_is_served_with_the_new_field_names(client: TestClient, study: str) -> None:
    info = content(client.get(f"/v1/studies/{study}"))
    assert (info["min_probability"], info["max_delay"]) == SETTINGS[study]
    assert set(info) == set(StudyInfo.__dataclass_fields__)
    assert {"status"} == set(content(client.get(f"/v1/studies/{study}/rewards"))["items"][0]) & {"status", "taken"}
    overview = content(client.get(f"/v1/studies/{study}/overview"))
    assert (overview["decisions"], overview["behind"]) == (DECISIONS[study], 0)
    assert sum(overview["states"].values()) == DECISIONS[study]
    roster = content(client.get(f"/v1/studies/{study}/roster"))["items"]
    assert sum(unit["decisions"] for unit in roster) == DECISIONS[study]
    last = content(client.get(f"/v1/studies/{study}/unit-overview?unit={roster[0]['unit']}"))["steps"][-1]
    assert last == content(client.get(f"/v1/decisions/{last['id']}"))


def test_new_events_follow_the_old_ones(client: TestClient, file: Path, rows: list[Row]) -> None:
    for study, unit, t, context in (
        ("together", "a", 5, [0.5, 0.5]),
        ("trial", "p0", 6, None),
        ("trial", "new", 0, None),
    ):
        path, body = f"/v1/studies/{study}/decisions", {"unit": unit, "key": f"new-{unit}", "context": context}
        decision = content(client.post(path, json=body))
        assert (decision["t"], decision["source"]) == (t, "policy")
        reward = content(
            client.post(f"/v1/decisions/{decision['id']}/reward", json={"key": f"new-{unit}", "value": 0.5})
        )
        assert reward["status"] == "learnt"
    late = rows[111][4]  # the first decision of trial: within its maximum delay, so that its reward can be corrected
    path, body = f"/v1/decisions/{late}/reward", {"key": "correction", "value": 0.75}
    assert content(client.post(path, json=body))["status"] == "corrected"
    client.__exit__(None, None, None)  # saves snapshots
    assert stored_rows(file)[:EVENTS] == rows
    assert replayed(file)[:2] == (EVENTS + 8, sum(DECISIONS.values()) + 3)


def test_agent_of_an_old_unit_has_learnt_its_rewards(client: TestClient) -> None:
    agent = larl.Agent(larl.UCB(), ["stay", "go"], seed=5, trial=0, min_probability=0.2, max_delay=50)
    with (OLD / "trial.csv").open(newline="") as exported:
        steps = [row for row in csv.DictReader(exported) if row["unit"] == "p0"]
    for step in steps:
        decision = agent.decide()
        assert decision.arm == step["arm"]
        agent.observe(decision.id, float(step["reward"]))
    expected = agent.decide()
    found = content(client.post("/v1/studies/trial/decisions", json={"unit": "p0", "key": "next"}))
    for name in ("t", "arm", "probabilities", "expected", "width", "explored"):
        assert found[name] == getattr(expected, name)


def request_of(row: Row) -> tuple[str, dict[str, Any]]:
    """Return the path and the body of the request that a row stores, with the new field names."""
    _, study, kind, _, _, number, key, _, stored, _ = row
    body = {RENAMED.get(name, name): value for name, value in json.loads(stored).items()}
    decision = body.pop("decision", "")
    if kind == "decision":
        return f"/v1/studies/{study}/{'ingest' if 'made' in body else 'decisions'}", body | {"key": key}
    if kind in ("reward", "delivered"):
        return f"/v1/decisions/{decision}/{kind}", body | {"key": key}
    return {
        "study": ("/v1/studies", body | {"study": study}),
        "policy": (f"/v1/studies/{study}/policy", body | {"key": key}),
        "closed": (f"/v1/studies/{study}/close", body),
        "unit": (f"/v1/studies/{study}/units", body),
        "resolved": (f"/v1/studies/{study}/issues/{number}/resolved", {"note": body.get("note")}),
    }[kind]


def test_repeated_old_request_gets_the_stored_response(client: TestClient, file: Path, rows: list[Row]) -> None:
    for row in rows:
        if row[2] not in ("default", "issue"):  # these have no request
            path, body = request_of(row)
            response = client.post(path, json=body)
            assert (response.status_code, response.content) == (200, row[9].encode()), (path, body)
    assert stored_rows(file) == rows


def test_client_reads_the_stored_response_with_the_new_field_names(rows: list[Row]) -> None:
    study = parse(StudyInfo, json.loads(rows[0][9]))
    assert (study.study, study.min_probability, study.max_delay) == ("alone", 0.1, 3)
    receipt = parse(RewardReceipt, json.loads(rows[3][9]))
    assert (receipt.value, receipt.status) == (0.5, "learnt")


def test_old_study_with_other_settings_is_a_conflict(client: TestClient, rows: list[Row]) -> None:
    path, body = request_of(rows[0])
    response = client.post(path, json=body | {"min_probability": 0.3, "max_delay": 5})
    assert response.status_code == 409
    assert "min_probability = 0.1, not 0.3; max_delay = 3, not 5" in response.json()["detail"]


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_old_field_name_is_refused_with_the_new_one(client: TestClient, old: str, new: str) -> None:
    body = {"study": "new", "arms": ["a", "b"], "policy": {"policy": "UCB"}, old: 0}
    response = client.post("/v1/studies", json=body)
    assert (response.status_code, response.json()["field"]) == (422, old)
    assert response.json()["detail"] == f"{old} is not a field of this request; accepted: {new}"


def test_old_field_name_of_a_new_policy_is_refused_with_the_new_one(client: TestClient) -> None:
    body = {"key": "1", "policy": {"policy": "UCB"}, "replaces": 1, "reason": "", "floor": 0.1}
    response = client.post("/v1/studies/trial/policy", json=body)
    assert (response.status_code, response.json()["accepted"]) == (422, "min_probability")


def backup_rows(path: Path) -> list[bytes]:
    """Return the lines of a backup between its header, which has the time, and its digest."""
    return gzip.decompress(path.read_bytes()).splitlines()[1:-1]


def test_backup_and_restore_of_an_old_journal_are_byte_identical(file: Path, tmp_path: Path, rows: list[Row]) -> None:
    database = Database(f"sqlite:///{file}")
    try:
        assert backup(database, tmp_path / "new.gz") == (EVENTS, 2)
    finally:
        database.close()
    assert backup_rows(tmp_path / "new.gz") == backup_rows(BACKUP)
    for path in (tmp_path / "new.gz", BACKUP):
        restored = tmp_path / f"{path.name}.db"
        assert restore(path, f"sqlite:///{restored}", with_tokens=True) == (EVENTS, 2)
        assert stored_rows(restored) == rows
        assert replayed(restored).events == EVENTS


def test_storage_of_another_schema_is_refused(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE about SET schema = 2")
    connection.close()
    message = rf"it has schema 2; larl {larl.__version__} reads schema 1"
    with pytest.raises(StorageError, match=message):
        Database(f"sqlite:///{file}")
    refused = typer.testing.CliRunner().invoke(app, ["replay", f"sqlite:///{file}"])
    assert (refused.exit_code, refused.stderr) == (1, f"error: sqlite:///{file}: {message}\n")


def test_backup_of_another_schema_is_refused(tmp_path: Path) -> None:
    lines = gzip.decompress(BACKUP.read_bytes()).splitlines(keepends=True)[:-1]
    lines[0] = lines[0].replace(b'"schema":1', b'"schema":2')
    digest = b'{"sha256":"%s"}\n' % hashlib.sha256(b"".join(lines)).hexdigest().encode()
    with (tmp_path / "a.gz").open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
        packed.write(b"".join([*lines, digest]))
    with pytest.raises(InvalidValue, match="it has schema 2; this larl reads 1"):
        verify(tmp_path / "a.gz")
