"""A replay comes to what is stored; whatever was changed in a storage is found and named."""

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
from tests.service import records

KINDS = {"study", "policy", "closed", "unit", "decision", "reward", "default", "delivered", "issue", "resolved"}
TAKEN = {"learnt", "missing", "repaired", "corrected", "repeated", "late", "stored"}


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replay") / "all.db"
    records.everything(path)
    return path


def replayed(path: Path, room: int = 2**20, study: str | None = None) -> Any:
    database = Database(f"sqlite:///{path}")
    try:
        check_complete(database)
        return Replay(Journal(database), study, room).run()
    finally:
        database.close()


def mismatch(path: Path, *statements: str) -> Mismatch:
    """Run SQL on a storage whose journal may be changed; returns the mismatch that a replay finds."""
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
    """`mismatch` of a copy."""
    path = tmp_path / "copy.db"
    shutil.copy(storage, path)
    return partial(mismatch, path)


def one(storage: Path, where: str) -> tuple[int, str]:
    """Number and answer of a row."""
    with sqlite3.connect(storage) as connection:
        found = connection.execute(f"SELECT seq, answer FROM journal WHERE {where} ORDER BY seq").fetchone()
    connection.close()
    return int(found[0]), str(found[1])


def swapped(one: int, other: int) -> list[str]:
    moves = ((one, -1), (other, one), (-1, other))
    return [f"UPDATE journal SET seq = {new} WHERE seq = {old}" for old, new in moves]


def test_everything_is_replayed(storage: Path) -> None:
    with sqlite3.connect(storage) as connection:
        kinds = {kind for (kind,) in connection.execute("SELECT kind FROM journal")}
        sources = {s for (s,) in connection.execute("SELECT answer->>'source' FROM journal WHERE kind='decision'")}
        taken = {t for (t,) in connection.execute("SELECT answer->>'status' FROM journal WHERE kind='reward'")}
        rows = connection.execute("SELECT count(*) FROM journal").fetchone()[0]
    connection.close()
    assert kinds == KINDS
    assert sources == {"policy", "fallback", "host", "unavailable"}
    assert taken == TAKEN
    done = replayed(storage)
    assert (done.events, done.other_versions) == (rows, {})


def test_minds_that_were_let_go_come_back_the_same(storage: Path) -> None:
    assert replayed(storage, room=1) == replayed(storage)


def test_one_study_of_several(storage: Path) -> None:
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
def test_a_changed_answer_is_named(
    storage: Path, change: Callable[..., Mismatch], where: str, old: str, new: str, what: str
) -> None:
    seq, answer = one(storage, where)
    assert old in answer
    found = change(f"UPDATE journal SET answer = replace(answer, '{old}', '{new}') WHERE seq = {seq}")
    assert (found.seq, found.what) == (seq, what)


def test_the_last_digit_of_a_probability(storage: Path, change: Callable[..., Mismatch]) -> None:
    seq, _ = one(storage, "answer->>'source' = 'policy' AND answer->'probabilities'->>'go' = 0.9")
    found = change(f"UPDATE journal SET answer = replace(answer, '0.9', '0.9000000000000001') WHERE seq = {seq}")
    assert (found.seq, found.what, found.stored) == (seq, "probabilities.go", 0.9000000000000001)
    assert found.derived == 0.9


def test_a_reward_changed_in_all_its_places_is_seen_by_what_followed(
    storage: Path, change: Callable[..., Mismatch]
) -> None:
    seq, _ = one(storage, "kind = 'reward' AND answer->>'status' = 'learnt'")
    new = "request = replace(request, '\"value\":0.5', '\"value\":0.6'), answer = replace(answer, '0.5', '0.6')"
    found = change(f"UPDATE journal SET {new} WHERE seq = {seq}")
    assert found.seq > seq
    assert found.what in ("expected", "width")


@pytest.mark.parametrize("column", ["ref", "number", "unit"])
def test_a_changed_column(storage: Path, change: Callable[..., Mismatch], column: str) -> None:
    seq, _ = one(storage, "kind = 'decision' AND study = 'trial' AND number = 5")
    value = {"ref": "'trial.0-5-0123456789abcdef'", "number": "9", "unit": "'p9'"}[column]
    found = change(f"UPDATE journal SET {column} = {value} WHERE seq = {seq}")
    assert (found.seq, found.what) == (seq, column)


@pytest.mark.parametrize("kind", ["default", "decision", "unit", "reward"])
def test_a_missing_row(storage: Path, change: Callable[..., Mismatch], kind: str) -> None:
    seq, _ = one(storage, f"kind = '{kind}'")
    found = change(f"DELETE FROM journal WHERE seq = {seq}")
    assert (found.seq, found.what) == (seq, "row")


@pytest.mark.parametrize(
    ("kind", "what"), [("default", "default reward"), ("reward", "width"), ("unit", "decision"), ("decision", "reward")]
)
def test_a_missing_row_whose_gap_was_closed(
    storage: Path, change: Callable[..., Mismatch], kind: str, what: str
) -> None:
    seq, _ = one(storage, f"kind = '{kind}' AND study = 'alone'")
    found = change(
        f"DELETE FROM journal WHERE seq = {seq}",
        f"UPDATE journal SET seq = -seq WHERE seq > {seq}",
        "UPDATE journal SET seq = -seq - 1 WHERE seq < 0",
    )
    assert (found.seq >= seq, found.what) == (True, what)


def test_a_default_reward_that_came_before_its_time(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    host = records.Host(f"sqlite:///{path}")
    host.study("s", records.UCB, seed=1, max_delay=2)
    for _ in range(3):
        last = host.decide("s", "u")
        host.delivered(last)
    host.close()
    seq, _ = one(path, "kind = 'default'")
    found = mismatch(path, *swapped(seq - 1, seq))
    assert (found.seq, "a decision must follow a default reward" in str(found)) == (seq, True)


def test_a_default_reward_that_was_not_due(storage: Path, change: Callable[..., Mismatch]) -> None:
    seq, _ = one(storage, "kind = 'default'")
    late, _ = one(storage, "study = 'alone' AND kind = 'closed'")
    found = change(*swapped(seq, late))
    assert found.seq == seq + 1
    assert "closed" in str(found)


def test_rows_that_changed_places(storage: Path, change: Callable[..., Mismatch]) -> None:
    seq, _ = one(storage, "kind = 'reward' AND answer->>'status' = 'repaired'")
    found = change(*swapped(seq, seq + 1))
    assert (found.seq, found.what, found.stored, found.derived) == (seq, "status", "corrected", "repaired")


@pytest.mark.parametrize("pooling", ["none", "partial"])
def test_a_reward_is_in_time_whenever_the_service_was_restarted(tmp_path: Path, pooling: str) -> None:
    path = tmp_path / "s.db"
    host = records.Host(f"sqlite:///{path}")
    host.study("s", records.LARL, seed=1, pooling=pooling)
    names = [host.decide("s", "u") for _ in range(6)]
    host.close()
    host = records.Host(f"sqlite:///{path}")
    assert host.reward(names[-1], 0.5) == "learnt"
    assert host.reward(names[0], 0.5) == "repaired"
    host.close()
    assert replayed(path).decisions == 6


def test_the_command_line(storage: Path, tmp_path: Path) -> None:
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


def test_a_damaged_file(storage: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    data = bytearray(storage.read_bytes())
    data[8192:8292] = bytes(100)
    path.write_bytes(data)
    done = typer.testing.CliRunner().invoke(app, ["replay", f"sqlite:///{path}"])
    assert done.exit_code == 1
