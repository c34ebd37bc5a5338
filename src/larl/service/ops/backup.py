"""Backup: a storage as one portable file, and back. It has the journal, and the tokens with their hashes.

The file is gzip of JSON lines: a header (format, schema, counts), a list for each row of the journal and each token,
and the SHA-256 digest of all lines before. It has no sessions and no snapshots: users log in again, agents are rebuilt.
The digest finds damage; it does not prove who wrote the file. So tokens are restored only if that is asked for.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sql

from larl import __version__
from larl._core.files import write_atomically
from larl._core.validation import InvalidValue
from larl.service.clock import now
from larl.service.ops.row_checks import RowChecks
from larl.service.storage.database import Database, StorageError
from larl.service.storage.events import Event, canonical_json
from larl.service.storage.journal import APPENDING, PAGE
from larl.service.storage.tables import SCHEMA, journal, snapshots, tokens

FORMAT = "larl.backup"
GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # without name and time
MAX_LINE = 2 * 2**20  # bytes; a request has 64 kB at most, and a row repeats it a few times
FETCH = 20  # rows that are in memory at once, so that even the longest do not need much
BATCH = 2**20  # bytes of lines that are inserted at once
ORDER = {journal: journal.c.seq, tokens: tokens.c.id}  # tables, and the order of their rows
Step = Callable[[], object]


class Counts(NamedTuple):
    """Numbers of rows and tokens."""

    rows: int
    tokens: int


def backup(database: Database, out: Path, step: Step = lambda: None) -> Counts:
    """Write a backup, also while the storage is served; the file is read again before it gets its name."""
    counts = Counts(0, 0)

    def write(path: Path) -> None:
        nonlocal counts
        with _consistent(database) as connection:
            counts = _counts(connection)
            _write(path, _lines(connection, counts, step))
        if verify(path) != counts:
            raise StorageError(out, "the file differs from the storage; it was not kept")

    write_atomically(out, write, private=True)
    return counts


@contextmanager
def _consistent(database: Database) -> Iterator[sql.Connection]:
    """Open a transaction that sees one state of the storage while others write."""
    with database.reading() as connection:
        if not database.is_sqlite:
            connection.execute(sql.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
        yield connection


def _counts(connection: sql.Connection) -> Counts:
    return Counts(*(connection.scalar(sql.select(sql.func.count()).select_from(table)) or 0 for table in ORDER))


def _lines(connection: sql.Connection, counts: Counts, step: Step) -> Iterator[bytes]:
    """Yield the lines of the file, without the digest."""
    yield _line({"format": FORMAT, "schema": SCHEMA, "larl": __version__, "at": now(), **counts._asdict()})
    checks, rows = RowChecks(), counts.rows
    for row in _rows(connection):
        if rows:
            checks.check(Event(*row))
            rows -= 1
        yield _line(list(row))
        step()


def _rows(connection: sql.Connection, tables: Iterable[sql.Table] = tuple(ORDER)) -> Iterator[Any]:
    """Yield the stored rows of tables, in order."""
    for table in tables:
        yield from connection.execute(sql.select(table).order_by(ORDER[table]).execution_options(yield_per=FETCH))


def _line(values: Any) -> bytes:
    return canonical_json(values).encode() + b"\n"


def _write(path: Path, lines: Iterable[bytes]) -> None:
    digest = hashlib.sha256()
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
        for line in lines:
            digest.update(line)
            file.write(line)
        file.write(_line({"sha256": digest.hexdigest()}))


def verify(path: Path) -> Counts:
    """Return the counts of a backup; raise InvalidValue if it is incomplete or was changed."""
    with _open(path) as lines:
        counts = _header(path, next(lines, b""))
        for seq, line in enumerate(islice(lines, counts.rows), 1):
            if json.loads(line)[0] != seq:
                raise _invalid(path, f"row {seq} is missing")
        if sum(1 for _ in islice(lines, counts.tokens)) < counts.tokens or next(lines, None) is not None:
            raise _invalid(path, "its header says another number of rows")
    return counts


@contextmanager
def _open(path: Path) -> Iterator[Iterator[bytes]]:
    """Open a backup and yield its lines; the last one raises InvalidValue if the digest is wrong."""
    try:
        with path.open("rb") as raw:
            if raw.read(len(GZIP_HEADER)) != GZIP_HEADER:
                raise _invalid(path, "it is not a gzip file that larl wrote")
            raw.seek(0)
            with gzip.GzipFile(fileobj=raw) as file:
                yield _check_digest(path, file)
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError, IndexError, KeyError, TypeError) as error:
        if isinstance(error, InvalidValue):
            raise
        raise _invalid(path, str(error)) from error


def _check_digest(path: Path, file: gzip.GzipFile) -> Iterator[bytes]:
    """Yield all lines but the last, which has their digest."""
    digest, before = hashlib.sha256(), b""
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
        if len(line) > MAX_LINE:
            raise _invalid(path, f"line {number} has more than {MAX_LINE} bytes")
        if before:
            digest.update(before)
            yield before
        before = line
    if before != _line({"sha256": digest.hexdigest()}):
        raise _invalid(path, "it was truncated or edited: the digest does not match")


def _header(path: Path, line: bytes) -> Counts:
    header = json.loads(line)
    if header["format"] != FORMAT or header["schema"] != SCHEMA:
        raise _invalid(path, f"it has schema {header['schema']}; this larl reads {SCHEMA}")
    return Counts(int(header["rows"]), int(header["tokens"]))


def _invalid(path: Path, why: str) -> InvalidValue:
    return InvalidValue("restore", "file", str(path), f"a complete backup, as `larl backup` wrote it ({why})")


def read_tokens(path: Path) -> list[dict[str, Any]]:
    """Return the tokens of a backup, with their hashes."""
    with _open(path) as lines:
        rows = _header(path, next(lines, b"")).rows
        return [_values(tokens, line) for line in islice(lines, rows, None)]


def restore(
    path: Path, url: str, counts: Counts | None = None, step: Step = lambda: None, *, with_tokens: bool = False
) -> Counts:
    """Write a backup into an empty storage, in one transaction; the stored rows are compared before it ends.

    `counts`: the result of `verify`, if it is known. Return the numbers of restored rows and tokens.
    """
    counts = counts or verify(path)
    counts = counts if with_tokens else counts._replace(tokens=0)
    database = Database(url, write=True, create=True, accept_loss=True)  # _require_empty checks it
    try:
        with database.writing() as connection:
            _require_empty(database, connection)
            with _open(path) as lines:
                next(lines)
                _fill(connection, lines, counts, step)
            with _open(path) as lines:
                next(lines)
                stored = (_line(list(row)) for row in _rows(connection))
                if any(line != row for line, row in zip_longest(islice(lines, sum(counts)), stored)):
                    raise StorageError(database.display_url, "its rows differ from the backup; nothing was kept")
        database.note_last(counts.rows)
    finally:
        database.close()
    return counts


def _require_empty(database: Database, connection: sql.Connection) -> None:
    """Refuse a storage in which there is something; nobody may write to it from here on."""
    if not database.is_sqlite:
        connection.execute(sql.select(sql.func.pg_advisory_xact_lock(APPENDING)))
    there = [table.name for table in (*ORDER, snapshots) if connection.execute(sql.select(table).limit(1)).first()]
    if there:
        accepted = f"an empty storage; this one has rows in its table {there[0]}"
        raise InvalidValue("restore", "storage", database.display_url, accepted)


def _fill(connection: sql.Connection, lines: Iterator[bytes], counts: Counts, step: Step) -> None:
    for table, count in zip(ORDER, counts, strict=True):
        for some in _batches(islice(lines, count)):
            connection.execute(table.insert(), [_values(table, line) for line in some])
            for _ in some:
                step()


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield lines in lists of PAGE lines, or of BATCH bytes."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if len(batch) == PAGE or size > BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _values(table: sql.Table, line: bytes) -> dict[str, Any]:
    return dict(zip([column.name for column in table.columns], json.loads(line), strict=True))
