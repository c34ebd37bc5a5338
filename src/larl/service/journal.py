"""The journal: every fact of every study, in the order in which it became one.

Numbers of rows have no gap, so that a row that is lost is seen. To append, a `Turn` takes the locks of what it is
about, looks, and at its end writes all its rows at once: they are on the disk, or none is.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite

from larl.service.database import Database, journal, snapshots

PAGE = 1_000  # rows read at once
APPENDING = 1  # the lock under which rows are numbered
TERMS = ("study", "policy", "closed")  # kinds of rows that say what a study is
MARKS = {"sqlite": "?", "postgresql": "%s"}  # where values go in a statement
ROOM = 99  # rows of one statement: older SQLite takes 999 values
COLUMNS = ", ".join(f'"{column.name}"' for column in journal.c)


def _keeping(dialect: Any) -> Any:
    insert = dialect.insert(snapshots)
    changed = {name: insert.excluded[name] for name in ("seq", "made_by", "state")}
    return insert.on_conflict_do_update(index_elements=["study", "unit"], set_=changed)


KEEP = {"sqlite": _keeping(sqlite), "postgresql": _keeping(postgresql)}


class Row(NamedTuple):
    """A fact."""

    seq: int
    study: str
    kind: str
    unit: str | None
    ref: str | None
    number: int | None
    key: str | None
    at: str
    request: str
    answer: str

    @property
    def asked(self) -> Any:
        return json.loads(self.request)

    @property
    def said(self) -> Any:
        return json.loads(self.answer)


text = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode  # always in the same way


@cache
def of_keys(count: int, mark: str) -> str:
    """The statement that finds rows by study, kind and one of so many keys."""  # as text: to make it takes far longer
    return f'SELECT {COLUMNS} FROM journal WHERE study = {mark} AND kind = {mark} AND "key" IN ({_marks(count, mark)})'


@cache
def append(count: int, mark: str) -> str:
    """The statement that writes so many rows: one for all of them takes a fraction of one for each."""
    return f"INSERT INTO journal ({COLUMNS}) VALUES {', '.join([f'({_marks(len(journal.c), mark)})'] * count)}"


def _marks(count: int, mark: str) -> str:
    return ", ".join([mark] * count)


class Lock(NamedTuple):
    """What a turn is about: a study (or a unit of it), and whether others may be about it at the same time."""

    study: str
    unit: str = ""
    shared: bool = False

    @property
    def number(self) -> int:
        name = f"{self.study}\0{self.unit}".encode()
        return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big", signed=True)


class Turn:
    """A transaction in which rows are appended."""

    def __init__(self, connection: sql.Connection, alone: bool, seq: int | None) -> None:
        self._connection, self.alone, self._seq = connection, alone, seq
        self._mark = MARKS[connection.dialect.name]
        self.rows: list[Row] = []
        self._known: dict[tuple[str, str, str], Row] = {}

    def look(self, wanted: Sequence[tuple[str, str, str]]) -> None:
        """Find out which (study, kind, key) there are already."""
        for study, kind in {(study, kind) for study, kind, _ in wanted}:
            keys = [key for one, of, key in wanted if (one, of) == (study, kind)]
            found = self._connection.exec_driver_sql(of_keys(len(keys), self._mark), (study, kind, *keys))
            for row in map(Row._make, found):
                self._known[study, kind, row.key or ""] = row

    def find(self, study: str, kind: str, key: str) -> Row | None:
        """The row of this key, if there is one (`look` must have asked for it)."""
        return self._known.get((study, kind, key))

    def select(self, *where: Any, limit: int | None = None, newest: bool = False) -> list[Row]:
        """Rows that are in the database."""
        return select(self._connection, *where, limit=limit, newest=newest)

    def append(
        self,
        study: str,
        kind: str,
        at: str,
        request: str,
        answer: str,
        *,
        unit: str | None = None,
        ref: str | None = None,
        number: int | None = None,
        key: str | None = None,
    ) -> Row:
        """A new fact; it gets its number when the turn ends."""
        row = Row(0, study, kind, unit, ref, number, key, at, request, answer)
        self.rows.append(row)
        if key is not None:
            self._known[study, kind, key] = row
        return row

    def take_back(self, first: int) -> None:
        """Forget the rows appended since there were `first`."""
        for row in self.rows[first:]:
            if row.key is not None:
                del self._known[row.study, row.kind, row.key]
        del self.rows[first:]

    def write(self) -> int:
        """Number the rows and write them, once; returns the last number, 0 if there are none."""
        if not self.rows or self.rows[-1].seq:
            return self.rows[-1].seq if self.rows else 0
        if not self.alone:
            self._connection.execute(sql.select(sql.func.pg_advisory_xact_lock(APPENDING)))
            self._seq = None
        last = self._seq if self._seq is not None else last_seq(self._connection)
        self.rows = [row._replace(seq=last + i) for i, row in enumerate(self.rows, 1)]
        for first in range(0, len(self.rows), ROOM):
            some = self.rows[first : first + ROOM]
            self._connection.exec_driver_sql(append(len(some), self._mark), tuple(chain.from_iterable(some)))
        return self.rows[-1].seq

    def snapshot(self, study: str, unit: str) -> Any:
        """The row of a snapshot, if there is one."""
        where = (snapshots.c.study == study, snapshots.c.unit == unit)
        return self._connection.execute(sql.select(snapshots).where(*where)).first()

    def keep(self, **values: Any) -> None:
        """Keep a snapshot instead of the one before."""
        self._connection.execute(KEEP[self._connection.dialect.name], values)


class Journal:
    """The journal of a storage."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._seq: int | None = None  # the last number, where nobody else appends

    @contextmanager
    def turn(self, locks: Iterable[Lock] = ()) -> Iterator[Turn]:
        """A turn under these locks. What it appends is on the disk when the `with` has ended, whole or not at all."""
        with self.database.writing() as connection:
            if not self.database.alone:
                _take(connection, locks)
            turn = Turn(connection, self.database.alone, self._seq if self.database.alone else None)
            yield turn
            last = turn.write()
        self._seq = last or self._seq

    def select(self, *where: Any, limit: int | None = None, newest: bool = False) -> list[Row]:
        """Rows, oldest first unless the `newest` are wanted."""
        with self.database.reading() as connection:
            return select(connection, *where, limit=limit, newest=newest)

    def all(self, *where: Any) -> Iterator[Row]:
        """All rows that there are now, oldest first, read in pages."""
        with self.database.reading() as connection:
            end = last_seq(connection)
        after = 0
        while rows := self.select(*where, journal.c.seq > after, journal.c.seq <= end, limit=PAGE):
            yield from rows
            after = rows[-1].seq


def select(connection: sql.Connection, *where: Any, limit: int | None = None, newest: bool = False) -> list[Row]:
    """Rows of the journal, in order."""
    order = journal.c.seq.desc() if newest else journal.c.seq
    return [Row(*row) for row in connection.execute(sql.select(journal).where(*where).order_by(order).limit(limit))]


def last_seq(connection: sql.Connection) -> int:
    """How many rows there are."""
    return connection.scalar(sql.select(sql.func.max(journal.c.seq))) or 0


def _take(connection: sql.Connection, locks: Iterable[Lock]) -> None:
    """Wait for locks, always in the same order: studies before units. Of two of the same, the one that excludes."""
    wanted: dict[tuple[bool, int], bool] = {}
    for lock in locks:
        place = (bool(lock.unit), lock.number)
        wanted[place] = wanted.get(place, True) and lock.shared
    for (_, number), shared in sorted(wanted.items()):
        take = sql.func.pg_advisory_xact_lock_shared if shared else sql.func.pg_advisory_xact_lock
        connection.execute(sql.select(take(number)))
