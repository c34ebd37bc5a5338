"""A replay derives exactly what is stored, and names every change of a storage."""

import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer.testing

from larl.cli import app
from larl.service.ops.integrity import Mismatch, check_complete
from larl.service.ops.replay import Replay
from larl.service.storage.database import Database
from larl.service.storage.journal import Journal
from tests.service.host import LARL, UCB
from tests.service.sample_journal import SampleHost, write_sample

KINDS = {"study", "policy", "closed", "unit", "decision", "reward", "default", "delivered", "issue", "resolved"}
STATUSES = {"learnt", "missing", "repaired", "corrected", "repeated", "late", "stored"}


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replay") / "all.db"
    write_sample(path)
    return path


def replayed(path: Path, capacity: int = 2**20, study: str | None = None) -> Any:
    database = Database(f"sqlite:///{path}")
    try:
        check_complete(database)
        return Replay(Journal(database), study, capacity).run()
    finally:
        database.close()


def mismatch(path: Path, *statements: str) -> Mismatch:
    """Change the journal of a storage with SQL; return the mismatch that a replay finds."""
    with sqlite3.connect(path) as connection:
        for name in ("no_update", "no_delete"):
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            assert connection.execute(statement).rowcount != 0
    connection.close()
    with pytest.raises(Mismatch) as caught:
        replayed(path)
    return caught.value


@pytest.fixture
def change(storage: Path, tmp_path: Path) -> Callable[..., Mismatch]:
    """`mismatch` with a copy of the storage."""
    path = tmp_path / "copy.db"
    shutil.copy(storage, path)
    return partial(mismatch, path)


def first_event(storage: Path, where: str) -> tuple[int, str]:
    """Return number and response of the first event that satisfies a condition."""
    with sqlite3.connect(storage) as connection:
        found = connection.execute(f"SELECT seq, answer FROM journal WHERE {where} ORDER BY seq").fetchone()
    connection.close()
    return int(found[0]), str(found[1])


def swap(one: int, other: int) -> list[str]:
    """Return the SQL statements that swap two events."""
    moves = ((one, -1), (other, one), (-1, other))
    return [f"UPDATE journal SET seq = {new} WHERE seq = {old}" for old, new in moves]


def test_events_of_every_kind_replay_exactly(storage: Path) -> None:
    with sqlite3.connect(storage) as connection:
        kinds = {kind for (kind,) in connection.execute("SELECT kind FROM journal")}
        sources = {s for (s,) in connection.execute("SELECT answer->>'source' FROM journal WHERE kind='decision'")}
        statuses = {s for (s,) in connection.execute("SELECT answer->>'status' FROM journal WHERE kind='reward'")}
        rows = connection.execute("SELECT count(*) FROM journal").fetchone()[0]
    connection.close()
    assert kinds == KINDS
    assert sources == {"policy", "fallback", "host", "unavailable"}
    assert statuses == STATUSES
    done = replayed(storage)
    assert (done.events, done.other_versions) == (rows, {})


def test_agents_that_were_evicted_are_rebuilt_identically(storage: Path) -> None:
    assert replayed(storage, capacity=1) == replayed(storage)


def test_one_of_several_studies_can_be_replayed(storage: Path) -> None:
    assert 0 < replayed(storage, study="together").events < replayed(storage).events


@pytest.mark.parametrize(
    ("where", "old", "new", "what"),
    [
        ("answer->>'source' = 'policy' AND answer->>'arm' = 'go'", '"arm":"go"', '"arm":"stay"', "arm"),
        ("study = 'together' AND answer->>'explored' = 0", '"explored":false', '"explored":true', "explored"),
        ("answer->>'source' = 'fallback'", '"go":0.5}', '"go":0.5000000000000001}', "probabilities.go"),
        ("answer->>'source' = 'host'", '"source":"host"', '"source":"policy"', "decision"),
        ("answer->>'source' = 'unavailable'", '"t":3', '"t":4', "t"),
        ("kind = 'reward' AND answer->>'status' = 'learnt'", '"value":0.5', '"value":0.6', "value"),
        ("kind = 'reward' AND answer->>'status' = 'late'", '"status":"late"', '"status":"repaired"', "status"),
        ("kind = 'default'", '"value":0.25', '"value":0.2', "value"),
        ("kind = 'unit' AND number = 1", '"number":1', '"number":2', "number"),
        (
            "kind = 'policy' AND study = 'alone'",
            '"min_probability":0.2',
            '"min_probability":0.3',
            "config.min_probability",
        ),
        ("kind = 'delivered'", "true", "false", "delivered"),
        ("kind = 'resolved'", "larger", "smaller", "note"),
        ("kind = 'closed'", '"closed":"2', '"closed":"3', "closed"),
        ("kind = 'study' AND study = 'alone'", '"max_delay":3', '"max_delay":4', "max_delay"),
    ],
)
def test_changed_field_of_a_response_is_named(
    storage: Path, change: Callable[..., Mismatch], where: str, old: str, new: str, what: str
) -> None:
    seq, response = first_event(storage, where)
    assert old in response
    found = change(f"UPDATE journal SET answer = replace(answer, '{old}', '{new}') WHERE seq = {seq}")
    assert (found.seq, found.what) == (seq, what)


def test_changed_last_digit_of_a_probability_is_found(storage: Path, change: Callable[..., Mismatch]) -> None:
    seq, _ = first_event(storage, "answer->>'source' = 'policy' AND answer->'probabilities'->>'go' = 0.9")
    found = change(f"UPDATE journal SET answer = replace(answer, '0.9', '0.9000000000000001') WHERE seq = {seq}")
    assert (found.seq, found.what, found.stored) == (seq, "probabilities.go", 0.9000000000000001)
    assert found.derived == 0.9


def test_reward_changed_in_request_and_response_is_found_by_its_effect(
    storage: Path, change: Callable[..., Mismatch]
) -> None:
    seq, _ = first_event(storage, "kind = 'reward' AND answer->>'status' = 'learnt'")
    new = "request = replace(request, '\"value\":0.5', '\"value\":0.6'), answer = replace(answer, '0.5', '0.6')"
    found = change(f"UPDATE journal SET {new} WHERE seq = {seq}")
    assert found.seq > seq
    assert found.what in ("expected", "width")


@pytest.mark.parametrize("column", ["ref", "number", "unit"])
def test_changed_column_is_named(storage: Path, change: Callable[..., Mismatch], column: str) -> None:
    seq, _ = first_event(storage, "kind = 'decision' AND study = 'trial' AND number = 5")
    value = {"ref": "'trial.0-5-0123456789abcdef'", "number": "9", "unit": "'p9'"}[column]
    found = change(f"UPDATE journal SET {column} = {value} WHERE seq = {seq}")
    assert (found.seq, found.what) == (seq, column)


def test_changed_unit_of_a_request_is_named(storage: Path, change: Callable[..., Mismatch]) -> None:
    seq, _ = first_event(storage, "kind = 'decision' AND study = 'trial' AND number = 5")
    found = change(f'UPDATE journal SET request = replace(request, \'"unit":"p0"\', \'"unit":"p1"\') WHERE seq = {seq}')
    assert (found.seq, found.what) == (seq, "unit")


@pytest.mark.parametrize("kind", ["default", "decision", "unit", "reward"])
def test_missing_event_is_found(storage: Path, change: Callable[..., Mismatch], kind: str) -> None:
    seq, _ = first_event(storage, f"kind = '{kind}'")
    found = change(f"DELETE FROM journal WHERE seq = {seq}")
    assert (found.seq, found.what) == (seq, "row")


@pytest.mark.parametrize(
    ("kind", "what"), [("default", "default reward"), ("reward", "width"), ("unit", "decision"), ("decision", "reward")]
)
def test_missing_event_is_found_also_if_the_others_are_renumbered(
    storage: Path, change: Callable[..., Mismatch], kind: str, what: str
) -> None:
    seq, _ = first_event(storage, f"kind = '{kind}' AND study = 'alone'")
    found = change(
        f"DELETE FROM journal WHERE seq = {seq}",
        f"UPDATE journal SET seq = -seq WHERE seq > {seq}",
        "UPDATE journal SET seq = -seq - 1 WHERE seq < 0",
    )
    assert (found.seq >= seq, found.what) == (True, what)


def test_default_reward_before_another_event_is_found(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    host = SampleHost(f"sqlite:///{path}")
    host.create_study("s", UCB, seed=1, max_delay=2)
    for _ in range(3):
        last = host.decide("s", "u")
        host.deliver(last)
    host.close()
    seq, _ = first_event(path, "kind = 'default'")
    found = mismatch(path, *swap(seq - 1, seq))
    assert (found.seq, "a decision must follow a default reward" in str(found)) == (seq, True)


def test_event_after_the_end_of_a_study_is_found(storage: Path, change: Callable[..., Mismatch]) -> None:
    seq, _ = first_event(storage, "kind = 'default'")
    closed, _ = first_event(storage, "study = 'alone' AND kind = 'closed'")
    found = change(*swap(seq, closed))
    assert found.seq == seq + 1
    assert "closed" in str(found)


def test_swapped_events_are_found(storage: Path, change: Callable[..., Mismatch]) -> None:
    seq, _ = first_event(storage, "kind = 'reward' AND answer->>'status' = 'repaired'")
    found = change(*swap(seq, seq + 1))
    assert (found.seq, found.what, found.stored, found.derived) == (seq, "status", "corrected", "repaired")


@pytest.mark.parametrize("pooling", ["none", "partial"])
def test_status_of_a_reward_does_not_depend_on_restarts(tmp_path: Path, pooling: str) -> None:
    path = tmp_path / "s.db"
    host = SampleHost(f"sqlite:///{path}")
    host.create_study("s", LARL, seed=1, pooling=pooling)
    decisions = [host.decide("s", "u") for _ in range(6)]
    host.close()
    host = SampleHost(f"sqlite:///{path}")
    assert host.reward(decisions[-1], 0.5) == "learnt"
    assert host.reward(decisions[0], 0.5) == "repaired"
    host.close()
    assert replayed(path).decisions == 6


def test_replay_command(storage: Path, tmp_path: Path) -> None:
    run = typer.testing.CliRunner().invoke
    done = run(app, ["replay", f"sqlite:///{storage}"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("replayed exactly: ")
    path = tmp_path / "copy.db"
    shutil.copy(storage, path)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER no_update")
        connection.execute("""UPDATE journal SET answer = replace(answer, '"larl":"', '"larl":"0.0.')""")
    connection.close()
    other = run(app, ["replay", f"sqlite:///{path}", "--study", "trial"])
    assert "note: 24 of the decisions were made by larl 0.0." in other.stdout
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE journal SET answer = '{}' WHERE seq = 9")
    connection.close()
    wrong = run(app, ["replay", f"sqlite:///{path}"])
    assert wrong.exit_code == 3
    assert "mismatch: row 9, " in wrong.stderr
    assert run(app, ["replay", f"sqlite:///{path}", "--study", "none"]).exit_code == 2
    assert run(app, ["replay", f"sqlite:///{tmp_path / 'none.db'}"]).exit_code == 1


def test_damaged_file_is_an_error(storage: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    data = bytearray(storage.read_bytes())
    data[8192:8292] = bytes(100)
    path.write_bytes(data)
    done = typer.testing.CliRunner().invoke(app, ["replay", f"sqlite:///{path}"])
    assert done.exit_code == 1
