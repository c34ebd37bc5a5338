"""An SQLite file has one server under all its names, says what it lost, and is never changed if it is not larl's."""

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import typer.testing

from larl._core.validation import InvalidValue
from larl.cli import app
from larl.service.core.command_queue import CommandQueue
from larl.service.ops.backup import backup, restore
from larl.service.storage.database import Database, StorageError
from tests.service.host import Host, decision_command, hosts
from tests.service.processes import Server
from tests.waiting import eventually


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


def run(*arguments: str) -> Any:
    return typer.testing.CliRunner().invoke(app, [*arguments])


def write_decisions(path: Path, count: int = 3) -> None:
    with hosts(f"sqlite:///{path}") as [host]:
        host.create_study()
        for i in range(count):
            host.decide("u", str(i))


@pytest.mark.parametrize("link", [os.link, os.symlink], ids=["hard link", "symbolic link"])
@pytest.mark.timing
def test_file_has_one_server_under_all_its_names(path: Path, tmp_path: Path, link: Any) -> None:
    """Two processes: in one process, the second is refused without opening the file."""
    with Server(f"sqlite:///{path}", tmp_path / "log", "--no-auth"):
        (tmp_path / "elsewhere").mkdir()
        link(path, tmp_path / "elsewhere" / "other.db")
        for name in (path, tmp_path / "elsewhere" / "other.db"):
            with pytest.raises(StorageError, match="serves this"):
                Database(f"sqlite:///{name}", write=True)


def test_second_server_in_the_same_process_is_refused(path: Path, tmp_path: Path) -> None:
    first = Database(f"sqlite:///{path}", write=True, create=True)
    os.link(path, tmp_path / "other.db")
    with pytest.raises(StorageError, match=f"process {os.getpid()} serves this storage"):
        Database(f"sqlite:///{tmp_path / 'other.db'}", write=True)
    first.close()
    Database(f"sqlite:///{tmp_path / 'other.db'}", write=True).close()


@pytest.mark.parametrize("url", ["sqlite:///file:{}?uri=true", "sqlite:///{}?cache=shared", "sqlite:///file:{}"])
def test_options_of_sqlite_are_refused(path: Path, url: str) -> None:
    with pytest.raises(InvalidValue, match="SQLite without options"):
        Database(url.format(path), create=True)
    assert not path.exists()


def test_service_recovers_from_a_foreign_writer(path: Path) -> None:
    """No lock stops a program that writes to the file. Its rows are read, and nothing is acknowledged twice."""
    host = Host(f"sqlite:///{path}")
    host.create_study()
    first = host.decide("u", "1")
    with sqlite3.connect(path) as connection:  # another server decides for the unit
        row = list(connection.execute("SELECT * FROM journal WHERE kind = 'decision'").fetchone())
        row[0], row[4], row[5], row[6] = row[0] + 1, host.batch.studies.find("sleep").config.decision_id(0, 1), 1, "x"
        answer = json.loads(row[9]) | {"id": row[4], "t": 1}
        row[9] = json.dumps(answer, separators=(",", ":"))
        connection.execute(f"INSERT INTO journal VALUES ({', '.join('?' * len(row))})", row)
    connection.close()
    queue = CommandQueue(host.resources)
    replies = queue._replies(
        host.batch, [decision_command("u", "2"), decision_command("u", "1"), decision_command("v", "3")]
    )
    second, repeated, other = (json.loads(reply) for reply in replies)
    assert (second["t"], repeated, other["t"]) == (2, first, 0)
    assert host.decide("u", "4")["t"] == 3
    assert [event.seq for event in host.journal.select()] == list(range(1, 9))
    queue.close()
    host.database.close()


def test_lost_write_ahead_log_is_noticed(path: Path, tmp_path: Path) -> None:
    write_decisions(path)
    shutil.copy(path, tmp_path / "early.db")
    host = Host(f"sqlite:///{path}")
    host.decide("u", "later")
    for suffix in ("", "-wal", "-shm", ".last"):  # as after a power cut: nothing is closed
        shutil.copy(f"{path}{suffix}", f"{tmp_path}/cut.db{suffix}")
    host.close()
    cut = tmp_path / "cut.db"
    for suffix in ("-wal", "-shm"):
        os.remove(f"{cut}{suffix}")
    lost = r"rows 6 to 6 of the journal are lost: cut\.db\.last says that 6 were stored.*--accept-loss"
    with pytest.raises(StorageError, match=lost):
        Database(f"sqlite:///{cut}", write=True)
    done = run("backup", f"sqlite:///{cut}", "--out", str(tmp_path / "b.gz"))
    assert (done.exit_code, "rows 6 to 6 of the journal are lost" in done.output) == (1, True)
    assert run("replay", f"sqlite:///{cut}").exit_code == 1
    os.remove(path)  # the whole file is lost
    with pytest.raises(StorageError, match="rows 1 to 6 of the journal are lost"):
        Database(f"sqlite:///{path}", write=True, create=True)


@pytest.mark.timing
def test_loss_can_be_accepted(path: Path, tmp_path: Path) -> None:
    write_decisions(path)
    last = Path(f"{path}.last")
    last.write_text(f"{99:20}\n")
    assert run("serve", "--storage", f"sqlite:///{path}", "--port", "0").exit_code == 1
    with Server(f"sqlite:///{path}", tmp_path / "log", "--no-auth", "--accept-loss"):
        assert eventually(last.read_text, f"{5:20}\n")
    Database(f"sqlite:///{path}", write=True).close()


def test_copied_and_restored_storages_are_not_refused(path: Path, tmp_path: Path) -> None:
    write_decisions(path)
    shutil.copy(path, tmp_path / "copy.db")
    Database(f"sqlite:///{tmp_path / 'copy.db'}", write=True).close()
    database = Database(f"sqlite:///{path}")
    backup(database, tmp_path / "b.gz")
    database.close()
    write_decisions(tmp_path / "other.db", 9)
    os.remove(tmp_path / "other.db")  # other.db.last stays
    restore(tmp_path / "b.gz", f"sqlite:///{tmp_path / 'other.db'}")
    Database(f"sqlite:///{tmp_path / 'other.db'}", write=True).close()
    assert int((tmp_path / "other.db.last").read_text()) == 5
    (tmp_path / "copy.db.last").write_bytes(bytes(21))  # a power cut may leave zeros
    Database(f"sqlite:///{tmp_path / 'copy.db'}", write=True).close()


COMMANDS = ("token create --storage", "token list --storage", "serve --port 0 --storage", "replay", "backup --out x.gz")


@pytest.mark.parametrize("command", COMMANDS)
def test_file_of_another_program_is_not_changed(path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(path.parent)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE about (version INTEGER)")
        connection.execute("CREATE TABLE places (url TEXT)")
    connection.close()
    before = path.read_bytes()
    done = run(*command.split(), "sqlite:///study.db")
    message = "error: sqlite:///study.db: this is not a storage of larl: it has the table places; nothing was changed\n"
    assert (done.exit_code, done.output) == (1, message)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["study.db"]
