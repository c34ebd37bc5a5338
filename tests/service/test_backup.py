"""A backup is complete or is refused; a restore writes everything or nothing."""

import gzip
import hashlib
import json
import signal
import subprocess
import sys
import threading
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql
import typer.testing

from larl._core.validation import InvalidValue
from larl.cli import app
from larl.service.http.auth import Auth
from larl.service.ops.backup import GZIP_HEADER, Counts, backup, restore, verify
from larl.service.ops.replay import Replay
from larl.service.storage.database import Database, StorageError
from larl.service.storage.events import canonical_json
from larl.service.storage.journal import Journal
from larl.service.storage.tables import journal, sessions, snapshots, tokens
from tests.service.sample_journal import SampleHost, write_sample, write_trial
from tests.waiting import PATIENCE


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_sample(tmp_path_factory.mktemp("backup") / "all.db")


@pytest.fixture(scope="module")
def file(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("file") / "all.backup.gz"
    write_backup(url, path)
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty storage of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'target.db'}"
    found: str = request.getfixturevalue("postgres")
    return found


def write_backup(url: str, path: Path) -> Counts:
    database = Database(url)
    try:
        return backup(database, path)
    finally:
        database.close()


def stored(url: str) -> list[Any]:
    """Return the rows of all tables."""
    database = Database(url)
    try:
        with database.reading() as connection:
            tables = (journal, tokens, sessions, snapshots)
            return [connection.execute(sql.select(each).order_by(*each.primary_key)).all() for each in tables]
    finally:
        database.close()


def test_restored_storage_has_the_same_rows(url: str, file: Path, target: str, tmp_path: Path) -> None:
    rows, token_rows, _, snapshot_rows = stored(url)
    assert snapshot_rows
    assert restore(file, target, with_tokens=True) == (len(rows), len(token_rows)) == verify(file)
    assert stored(target) == [rows, token_rows, [], []]
    database = Database(target)
    assert Replay(Journal(database)).run().events == len(rows)
    database.close()
    write_backup(target, tmp_path / "again.gz")
    restore(tmp_path / "again.gz", f"sqlite:///{tmp_path / 'back.db'}", with_tokens=True)
    assert stored(f"sqlite:///{tmp_path / 'back.db'}") == [rows, token_rows, [], []]


def test_restored_storage_accepts_new_events(file: Path, target: str) -> None:
    restore(file, target)
    host = SampleHost(target)
    host.reward(host.decide("trial", "p0"), 0.5)
    host.close()
    database = Database(target)
    Replay(Journal(database)).run()
    database.close()


def test_storage_with_rows_is_not_restored_into(file: Path, target: str) -> None:
    restore(file, target)
    before = stored(target)
    with pytest.raises(InvalidValue, match="an empty storage"):
        restore(file, target)
    assert stored(target) == before


@pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.5, 0.9, 0.999])
def test_truncated_backup_is_refused(file: Path, tmp_path: Path, share: float) -> None:
    content, cut = file.read_bytes(), tmp_path / "cut.gz"
    cut.write_bytes(content[: int(share * len(content))])
    assert_refused(cut, tmp_path)


def test_backup_with_missing_or_repeated_lines_is_refused(file: Path, tmp_path: Path) -> None:
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    for count in (0, 1, 2, len(lines) // 2, len(lines) - 1):
        assert_refused(write_gzip(tmp_path / "cut.gz", lines[:count]), tmp_path)
    assert_refused(write_gzip(tmp_path / "cut.gz", [*lines[:5], *lines[6:]]), tmp_path)
    assert_refused(write_gzip(tmp_path / "cut.gz", [*lines, lines[-1]]), tmp_path)
    restore(write_gzip(tmp_path / "cut.gz", lines), f"sqlite:///{tmp_path / 'new.db'}")


def write_gzip(path: Path, lines: list[bytes]) -> Path:
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
        packed.write(b"".join(lines))
    return path


def assert_refused(path: Path, folder: Path) -> None:
    """Assert that a file is refused and no storage is created."""
    with pytest.raises(InvalidValue, match="a complete backup"):
        restore(path, f"sqlite:///{folder / 'new.db'}")
    assert not (folder / "new.db").exists()


def test_backup_with_one_flipped_bit_is_refused(file: Path, tmp_path: Path) -> None:
    """After the header, a flipped bit may change nothing: padding, or a reference to an equal part of the content."""
    content = file.read_bytes()
    end, unused = len(content), 0
    places = [*range(12), *range(12, end - 8, end // 150), *range(end - 8, end)]
    for place in places:
        data = bytearray(content)
        data[place] ^= 1 << place % 8
        (tmp_path / "flipped.gz").write_bytes(data)
        if place >= len(GZIP_HEADER) and _unpacked(data) == gzip.decompress(content):
            unused += 1
            continue
        with pytest.raises(InvalidValue, match="a complete backup"):
            verify(tmp_path / "flipped.gz")
    assert unused <= len(places) // 20


def _unpacked(data: bytes) -> bytes | None:
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error):
        return None


def test_backup_with_an_edited_value_is_refused(file: Path, tmp_path: Path) -> None:
    lines = gzip.decompress(file.read_bytes()).replace(b'\\"value\\":0.5,', b'\\"value\\":0.6,').splitlines(True)
    assert_refused(write_gzip(tmp_path / "edited.gz", lines), tmp_path)


def test_tokens_are_restored_only_on_request_and_listed(file: Path, tmp_path: Path) -> None:
    """The digest is not keyed: anyone can add a token to a file."""
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    header = json.loads(lines[0])
    added = canonical_json(["ffffffffffffffff", "0" * 64, "*", "admin", "2026-01-01T00:00:00.000000Z", None])
    body = [canonical_json(header | {"tokens": header["tokens"] + 1}).encode() + b"\n", *lines[1:-1]]
    body += [added.encode() + b"\n"]
    digest = hashlib.sha256(b"".join(body)).hexdigest()
    edited = write_gzip(tmp_path / "edited.gz", [*body, canonical_json({"sha256": digest}).encode() + b"\n"])
    done = run("restore", str(edited), "--storage", f"sqlite:///{tmp_path / 'without.db'}")
    assert (done.exit_code, "not restored: 3 tokens" in done.stdout) == (0, True), done.output
    assert stored(f"sqlite:///{tmp_path / 'without.db'}")[1] == []
    done = run("restore", str(edited), "--storage", f"sqlite:///{tmp_path / 'with.db'}", "--tokens")
    listed = [line.split()[:3] for line in done.stdout.splitlines()[1:]]
    assert (len(listed), ["ffffffffffffffff", "admin", "*"] in listed) == (3, True), done.output
    assert len(stored(f"sqlite:///{tmp_path / 'with.db'}")[1]) == 3


@pytest.mark.parametrize("row", [b'"' + b"a" * (64 << 20) + b'"\n', b"1" * (64 << 20), b'[1,"a"]\n' * (8 << 20)])
def test_memory_for_a_backup_is_bounded(file: Path, tmp_path: Path, row: bytes) -> None:
    header = gzip.decompress(file.read_bytes()).splitlines(keepends=True)[0]
    bomb = write_gzip(tmp_path / "bomb.gz", [header, row])
    tracemalloc.start()
    try:
        assert_refused(bomb, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_memory_for_long_rows_is_bounded(tmp_path: Path) -> None:
    """Rows of the largest length that is accepted are restored a few at a time."""
    rows = [[seq, "s", "study", None, None, 1, f"s{seq}", "", "{}", "a" * (2**20)] for seq in range(1, 41)]
    for row in rows:
        row[1] = f"s{row[0]}"
    header = {"format": "larl.backup", "schema": 1, "larl": "0", "at": "", "rows": len(rows), "tokens": 0}
    body = [canonical_json(each).encode() + b"\n" for each in (header, *rows)]
    digest = hashlib.sha256(b"".join(body)).hexdigest()
    file = write_gzip(tmp_path / "long.gz", [*body, canonical_json({"sha256": digest}).encode() + b"\n"])
    tracemalloc.start()
    try:
        restore(file, f"sqlite:///{tmp_path / 'long.db'}")
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


KILLED_RESTORE = """
import os, signal, sys
from pathlib import Path
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
def test_killed_restore_writes_nothing(file: Path, target: str, url: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED_RESTORE, str(file), target], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "half\n"), done.stderr
    assert stored(target) == [[], [], [], []]
    restore(file, target)
    assert stored(target)[0] == stored(url)[0]


@pytest.mark.timing
def test_backup_during_writes_has_one_consistent_state(target: str, tmp_path: Path) -> None:
    host = SampleHost(target)
    write_trial(host, "first")
    started, proceed = threading.Event(), threading.Event()

    def step() -> None:
        if not started.is_set():  # after the first row, wait for new events
            started.set()
            assert proceed.wait(PATIENCE)

    counts: list[Counts] = []
    database = Database(target)
    before = len(stored(target)[0])
    thread = threading.Thread(target=lambda: counts.append(backup(database, tmp_path / "a.gz", step)))
    thread.start()
    assert started.wait(PATIENCE)
    write_trial(host, "second")
    Auth(host.host.database).create("*", "host")
    proceed.set()
    thread.join()
    database.close()
    host.close()
    assert len(stored(target)[0]) > before
    assert counts == [verify(tmp_path / "a.gz")] == [(before, 0)]


def test_served_storage_is_not_restored_into(file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    serving = Database(url, write=True, create=True)
    with pytest.raises(StorageError, match="serves this storage"):
        restore(file, url)
    serving.close()


def run(*arguments: str) -> Any:
    return typer.testing.CliRunner().invoke(app, [*arguments])


def test_commands_backup_and_restore(url: str, tmp_path: Path) -> None:
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
