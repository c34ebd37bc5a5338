"""A storage as one portable file, and back: the journal, and tokens with their hashes.

Gzip of lines of JSON: a header (format, schema, counts), a list for each row of the journal and for each token, and the
SHA-256 digest of all lines before. Sessions and snapshots are not in it: people sign in again, minds are folded anew.
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
from larl.service.database import SCHEMA, Database, StorageError, journal, snapshots, tokens
from larl.service.journal import APPENDING, PAGE, text

FORMAT = "larl.backup"
HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # of the gzip: no name, no time
ORDER = {journal: journal.c.seq, tokens: tokens.c.id}  # tables, and in which order their rows are written
Step = Callable[[], object]


class Counts(NamedTuple):
    """How much there is."""

    rows: int
    tokens: int


def backup(database: Database, out: Path, step: Step = lambda: None) -> Counts:
    """Write a backup of a storage as it is now, also while it is served; read back before it gets its name."""
    counts = Counts(0, 0)

    def write(path: Path) -> None:
        nonlocal counts
        with _still(database) as connection:
            counts = _counts(connection)
            _write(path, _lines(connection, counts, step))
        if verify(path) != counts:
            raise StorageError(out, "the file differs from the storage; it was not kept")

    write_atomically(out, write, private=True)
    return counts


@contextmanager
def _still(database: Database) -> Iterator[sql.Connection]:
    """A storage that does not change while it is read, though others write."""
    with database.reading() as connection:
        if not database.lite:
            connection.execute(sql.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
        yield connection


def _counts(connection: sql.Connection) -> Counts:
    return Counts(*(connection.scalar(sql.select(sql.func.count()).select_from(table)) or 0 for table in ORDER))


def _lines(connection: sql.Connection, counts: Counts, step: Step) -> Iterator[bytes]:
    """The file line by line, but for the digest."""
    yield _line({"format": FORMAT, "schema": SCHEMA, "larl": __version__, "at": now(), **counts._asdict()})
    for line in _stored(connection):
        yield line
        step()


def _stored(connection: sql.Connection) -> Iterator[bytes]:
    """What is stored, line by line."""
    for table, order in ORDER.items():
        query = sql.select(table).order_by(order).execution_options(yield_per=PAGE)
        for row in connection.execute(query):
            yield _line(list(row))


def _line(values: Any) -> bytes:
    return text(values).encode() + b"\n"


def _write(path: Path, lines: Iterable[bytes]) -> None:
    digest = hashlib.sha256()
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
        for line in lines:
            digest.update(line)
            file.write(line)
        file.write(_line({"sha256": digest.hexdigest()}))


def verify(path: Path) -> Counts:
    """What a backup holds. Raises InvalidValue if it is not whole, or not what was written."""
    with _opened(path) as lines:
        counts = _header(path, next(lines, b""))
        for seq, line in enumerate(islice(lines, counts.rows), 1):
            if json.loads(line)[0] != seq:
                raise _wrong(path, f"row {seq} is missing")
        if sum(1 for _ in islice(lines, counts.tokens)) < counts.tokens or next(lines, None) is not None:
            raise _wrong(path, "there are not as many rows as its header says")
    return counts


@contextmanager
def _opened(path: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a backup; at their end, the digest must be right."""
    try:
        with path.open("rb") as raw:
            if raw.read(len(HEAD)) != HEAD:
                raise _wrong(path, "it does not begin as one")
            raw.seek(0)
            with gzip.GzipFile(fileobj=raw) as file:
                yield _digested(path, file)
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError, IndexError, KeyError, TypeError) as error:
        if isinstance(error, InvalidValue):
            raise
        raise _wrong(path, str(error)) from error


def _digested(path: Path, file: Iterable[bytes]) -> Iterator[bytes]:
    """All lines but the last, which has the digest of them."""
    digest, before = hashlib.sha256(), b""
    for line in file:
        if before:
            digest.update(before)
            yield before
        before = line
    if before != _line({"sha256": digest.hexdigest()}):
        raise _wrong(path, "it was cut short or edited: its digest is not that of what it holds")


def _header(path: Path, line: bytes) -> Counts:
    header = json.loads(line)
    if header["format"] != FORMAT or header["schema"] != SCHEMA:
        raise _wrong(path, f"it has schema {header['schema']}; this larl reads {SCHEMA}")
    return Counts(int(header["rows"]), int(header["tokens"]))


def _wrong(path: Path, why: str) -> InvalidValue:
    return InvalidValue("restore", "file", str(path), f"a whole backup, as `larl backup` wrote it ({why})")


def restore(path: Path, url: str, counts: Counts | None = None, step: Step = lambda: None) -> Counts:
    """Write a backup into an empty storage, in one transaction; what is stored is compared before it ends.

    `counts`: what `verify` said of the file, if it was asked already.
    """
    counts = counts or verify(path)
    database = Database(url, write=True, create=True)
    try:
        with database.writing() as connection:
            _refuse_full(database, connection)
            with _opened(path) as lines:
                next(lines)
                _fill(connection, lines, counts, step)
            with _opened(path) as lines:
                next(lines)
                if any(line != stored for line, stored in zip_longest(lines, _stored(connection))):
                    raise StorageError(database.shown, "its rows differ from the backup; nothing was kept")
    finally:
        database.close()
    return counts


def _refuse_full(database: Database, connection: sql.Connection) -> None:
    """Refuse a storage in which there is something; nobody may write to it from here on."""
    if not database.lite:
        connection.execute(sql.select(sql.func.pg_advisory_xact_lock(APPENDING)))
    there = [table.name for table in (*ORDER, snapshots) if connection.execute(sql.select(table).limit(1)).first()]
    if there:
        accepted = f"an empty storage; this one has rows in its table {there[0]}"
        raise InvalidValue("restore", "storage", database.shown, accepted)


def _fill(connection: sql.Connection, lines: Iterator[bytes], counts: Counts, step: Step) -> None:
    for table, count in zip(ORDER, counts, strict=True):
        names, left = [column.name for column in table.columns], islice(lines, count)
        while some := [dict(zip(names, json.loads(line), strict=True)) for line in islice(left, PAGE)]:
            connection.execute(table.insert(), some)
            for _ in some:
                step()
