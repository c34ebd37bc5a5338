"""A backup holds everything or is refused; a restore writes everything or nothing."""

import gzip
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql
import typer.testing

from larl._core.validation import InvalidValue
from larl.cli import app
from larl.service.http.auth import Auth
from larl.service.ops.backup import Counts, backup, restore, verify
from larl.service.ops.replay import Replay
from larl.service.storage.database import Database, StorageError
from larl.service.storage.journal import Journal
from larl.service.storage.tables import journal, sessions, snapshots, tokens
from tests.service import records
from tests.waiting import PATIENCE


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return records.everything(tmp_path_factory.mktemp("backup") / "all.db")


@pytest.fixture(scope="module")
def file(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("file") / "all.backup.gz"
    saved(url, path)
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty storage of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'target.db'}"
    found: str = request.getfixturevalue("postgres")
    return found


def saved(url: str, path: Path) -> Counts:
    database = Database(url)
    try:
        return backup(database, path)
    finally:
        database.close()


def stored(url: str) -> list[Any]:
    """All that a storage holds."""
    database = Database(url)
    try:
        with database.reading() as connection:
            every = (journal, tokens, sessions, snapshots)
            return [connection.execute(sql.select(each).order_by(*each.primary_key)).all() for each in every]
    finally:
        database.close()


def test_there_and_back(url: str, file: Path, target: str, tmp_path: Path) -> None:
    rows, held, _, kept = stored(url)
    assert kept
    assert restore(file, target) == (len(rows), len(held)) == verify(file)
    assert stored(target) == [rows, held, [], []]
    database = Database(target)
    assert Replay(Journal(database)).run().events == len(rows)
    database.close()
    saved(target, tmp_path / "again.gz")
    restore(tmp_path / "again.gz", f"sqlite:///{tmp_path / 'back.db'}")
    assert stored(f"sqlite:///{tmp_path / 'back.db'}") == [rows, held, [], []]


def test_a_restored_storage_goes_on(file: Path, target: str) -> None:
    restore(file, target)
    host = records.Host(target)
    host.reward(host.decide("trial", "p0"), 0.5)
    host.close()
    database = Database(target)
    Replay(Journal(database)).run()
    database.close()


def test_a_storage_in_use_is_not_written_to(file: Path, target: str) -> None:
    restore(file, target)
    before = stored(target)
    with pytest.raises(InvalidValue, match="an empty storage"):
        restore(file, target)
    assert stored(target) == before


@pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_short(file: Path, tmp_path: Path, share: float) -> None:
    whole, cut = file.read_bytes(), tmp_path / "cut.gz"
    cut.write_bytes(whole[: int(share * len(whole))])
    refused(cut, tmp_path)


def test_a_file_that_was_cut_short_at_a_line(file: Path, tmp_path: Path) -> None:
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    for kept in (0, 1, 2, len(lines) // 2, len(lines) - 1):
        refused(_zipped(tmp_path / "cut.gz", lines[:kept]), tmp_path)
    refused(_zipped(tmp_path / "cut.gz", [*lines[:5], *lines[6:]]), tmp_path)
    refused(_zipped(tmp_path / "cut.gz", [*lines, lines[-1]]), tmp_path)
    restore(_zipped(tmp_path / "cut.gz", lines), f"sqlite:///{tmp_path / 'new.db'}")


def _zipped(path: Path, lines: list[bytes]) -> Path:
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
        packed.write(b"".join(lines))
    return path


def refused(path: Path, folder: Path) -> None:
    """A file that is not restored, and no storage is made for it."""
    with pytest.raises(InvalidValue, match="a complete backup"):
        restore(path, f"sqlite:///{folder / 'new.db'}")
    assert not (folder / "new.db").exists()


def test_one_flipped_bit_anywhere_is_seen(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    places = [*range(12), *range(12, len(whole) - 8, len(whole) // 150), *range(len(whole) - 8, len(whole))]
    for place in places:
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        (tmp_path / "flipped.gz").write_bytes(data)
        with pytest.raises(InvalidValue, match="a complete backup"):
            verify(tmp_path / "flipped.gz")


def test_a_value_that_was_edited(file: Path, tmp_path: Path) -> None:
    lines = gzip.decompress(file.read_bytes()).replace(b'\\"value\\":0.5,', b'\\"value\\":0.6,').splitlines(True)
    refused(_zipped(tmp_path / "edited.gz", lines), tmp_path)


KILLED = """
import os, signal, sys
from pathlib import Path
from larl.service.http.auth import Auth
from larl.service.ops.backup import restore
left = 100
def step():
    global left
    left -= 1
    if left == 0:
        print("half", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
from larl.service.ops import backup
backup.PAGE = 10
restore(Path(sys.argv[1]), sys.argv[2], step=step)
"""


@pytest.mark.timing
def test_killed_in_the_middle_nothing_is_restored(file: Path, target: str, url: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(file), target], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "half\n"), done.stderr
    assert stored(target) == [[], [], [], []]
    restore(file, target)
    assert stored(target)[0] == stored(url)[0]


@pytest.mark.timing
def test_a_backup_while_others_write_is_of_one_moment(target: str, tmp_path: Path) -> None:
    host = records.Host(target)
    records.trial(host, "first")
    begun, going = threading.Event(), threading.Event()

    def step() -> None:
        if not begun.is_set():  # after the first row, wait until more was written
            begun.set()
            assert going.wait(PATIENCE)

    counts: list[Counts] = []
    database = Database(target)
    before = len(stored(target)[0])
    thread = threading.Thread(target=lambda: counts.append(backup(database, tmp_path / "a.gz", step)))
    thread.start()
    assert begun.wait(PATIENCE)
    records.trial(host, "second")
    Auth(host.database).create("*", "host")
    going.set()
    thread.join()
    database.close()
    host.close()
    assert len(stored(target)[0]) > before
    assert counts == [verify(tmp_path / "a.gz")] == [(before, 0)]


def test_a_storage_that_is_served_is_not_restored_into(file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    serving = Database(url, write=True, create=True)
    with pytest.raises(StorageError, match="serves this storage"):
        restore(file, url)
    serving.close()


def test_the_command_line(url: str, tmp_path: Path) -> None:
    def run(*words: str) -> Any:
        return typer.testing.CliRunner().invoke(app, [*words])

    path, to = str(tmp_path / "a.gz"), f"sqlite:///{tmp_path / 's.db'}"
    done = run("backup", url, "--out", path)
    assert (done.exit_code, done.stdout[:22]) == (0, "written and read back:"), done.output
    done = run("restore", path, "--storage", to)
    assert (done.exit_code, done.stdout[:22]) == (0, "restored and compared:"), done.output
    assert run("restore", path, "--storage", to).exit_code == 2
    assert run("restore", str(tmp_path / "none.gz"), "--storage", to).exit_code == 1
    with Database(to).writing() as connection:
        connection.exec_driver_sql("DROP TRIGGER no_delete")
        connection.exec_driver_sql("DELETE FROM journal WHERE seq = 7")
    gap = run("backup", to, "--out", path)
    assert (gap.exit_code, "row 7" in gap.stderr) == (1, True)
