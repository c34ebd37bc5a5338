"""The journal: every event of every study, in order.

Numbers of events have no gaps, so a lost event is noticed. A `Transaction` takes locks, reads, and writes all its
events at its end: they are on disk, or none is.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite

from larl.service.storage.database import Database
from larl.service.storage.end import Head, JournalEnd, JournalWentBack, head_of, read_end
from larl.service.storage.events import LEARNING_EVENTS, Event, EventKind
from larl.service.storage.tables import journal, snapshots

PAGE = 1_000  # events read at once
APPENDING = 1  # the lock under which events are numbered
PLACEHOLDERS = {"sqlite": "?", "postgresql": "%s"}
COLUMNS = ", ".join(f'"{column.name}"' for column in journal.c)


def _upsert(dialect: Any) -> Any:
    insert = dialect.insert(snapshots)
    changed = {name: insert.excluded[name] for name in ("seq", "made_by", "state")}
    return insert.on_conflict_do_update(index_elements=["study", "unit"], set_=changed)


SAVE_SNAPSHOT = {"sqlite": _upsert(sqlite), "postgresql": _upsert(postgresql)}


@cache
def select_by_key(count: int, placeholder: str) -> str:
    """Return the query for events of a study and kind with one of `count` keys; to build it with SQLAlchemy is slow."""
    keys = ", ".join([placeholder] * count)
    return f'SELECT {COLUMNS} FROM journal WHERE study = {placeholder} AND kind = {placeholder} AND "key" IN ({keys})'


class Lock(NamedTuple):
    """A lock of PostgreSQL on a study or one of its units; a shared lock excludes only exclusive ones."""

    study: str
    unit: str = ""
    shared: bool = False

    @property
    def number(self) -> int:
        name = f"{self.study}\0{self.unit}".encode()
        return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big", signed=True)


class Transaction:
    """A transaction that appends events. `seq` is the number of the last event, if no other process appends.

    With several processes, `known` is the newest event that this one knew before, and `seen` the newest that it read.
    """

    def __init__(self, connection: sql.Connection, single_writer: bool, seq: int | None, known: Head = ()) -> None:
        self._connection, self.single_writer, self._seq, self._known = connection, single_writer, seq, known
        self.seen: Head = ()
        self._is_checked = False
        self._placeholder = PLACEHOLDERS[connection.dialect.name]
        self.events: list[Event] = []
        self._existing: dict[tuple[str, str, str], Event] = {}
        self._command_start = 0

    def preload(self, wanted: Sequence[tuple[str, str, str]]) -> None:
        """Read the events with these studies, kinds and keys, for `existing`."""
        for study, kind in {(study, kind) for study, kind, _ in wanted}:
            keys = [key for one, other, key in wanted if (one, other) == (study, kind)]
            query = select_by_key(len(keys), self._placeholder)
            for event in map(Event._make, self._connection.exec_driver_sql(query, (study, kind, *keys))):
                self._existing[study, kind, event.key or ""] = event

    def existing(self, study: str, kind: str, key: str) -> Event | None:
        """Return the event with a preloaded key, or one that this transaction appended; None if there is none."""
        return self._existing.get((study, kind, key))

    def select(self, *where: Any, limit: int | None = None, newest: bool = False) -> list[Event]:
        """Return stored events."""
        events = select(self._connection, *where, limit=limit, newest=newest)
        if events and not self.single_writer:
            self.seen = max(self.seen, head_of(events[0 if newest else -1]), key=lambda head: head[:1])
        return events

    def learning_events(self, study: str, unit: str | None, after: int = 0) -> list[Event]:
        """Return what an agent learns from: stored events after a number, then those of this transaction."""
        where = [journal.c.study == study, journal.c.kind.in_(LEARNING_EVENTS), journal.c.seq > after]
        stored = self.select(*where, *([] if unit is None else [journal.c.unit == unit]))
        return stored + [event for event in self.events if event.study == study and unit in (None, event.unit)]

    def append(
        self,
        kind: EventKind,
        study: str,
        at: str,
        request_json: str,
        response_json: str,
        *,
        unit: str | None = None,
        ref: str | None = None,
        number: int | None = None,
        key: str | None = None,
    ) -> Event:
        """Append an event. It gets its number when the transaction ends."""
        event = Event(0, study, kind.value, unit, ref, number, key, at, request_json, response_json)
        self.events.append(event)
        if key is not None:
            self._existing[study, kind, key] = event
        return event

    def begin_command(self) -> None:
        """Mark the state to which `rollback_command` returns."""
        self._command_start = len(self.events)

    def rollback_command(self) -> list[Event]:
        """Remove the events of the last command and return them."""
        removed = self.events[self._command_start :]
        del self.events[self._command_start :]
        for event in removed:
            if event.key is not None:
                del self._existing[event.study, event.kind, event.key]
        return removed

    def write(self) -> int | None:
        """Number the events and write them, once; return the last number, None if there are no events.

        Raise JournalWentBack if the journal has lost events that this process knows: responses may rest on them.
        """
        is_new = bool(self.events) and not self.events[-1].seq
        if is_new and not self.single_writer:
            acquire_journal(self._connection)
        if not self.single_writer and (is_new or not self._is_checked):
            self._seq, _ = read_end(self._connection, self._known)
            self._is_checked = True
        if is_new:
            last = last_seq(self._connection) if self._seq is None else self._seq
            self.events = [event._replace(seq=last + i) for i, event in enumerate(self.events, 1)]
            values = ", ".join([self._placeholder] * len(journal.c))
            self._connection.exec_driver_sql(f"INSERT INTO journal ({COLUMNS}) VALUES ({values})", self.events)
        return self.events[-1].seq if self.events else None

    def snapshot(self, study: str, unit: str, made_by: str) -> Any:
        """Return the snapshot of a unit, if this code and policy made it."""
        return select_snapshot(self._connection, study, unit, made_by)

    def save_snapshot(self, **values: Any) -> None:
        """Replace the snapshot of a unit."""
        self._connection.execute(SAVE_SNAPSHOT[self._connection.dialect.name], values)


class Journal:
    """The journal of a storage."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._seq: int | None = None  # the last number, if no other process appends
        self.end = JournalEnd()

    @contextmanager
    def transaction(self, locks: Iterable[Lock] = ()) -> Iterator[Transaction]:
        """Open a transaction under these locks. Its events are on disk when the `with` ends: all, or none."""
        single_writer, known = self.database.single_writer, self.end.known
        seq, self._seq = self._seq, None  # read it again after an error: another process may have appended
        transaction = None
        try:
            with self.database.writing() as connection:
                if not single_writer:
                    _acquire(connection, locks)
                transaction = Transaction(connection, single_writer, seq if single_writer else None, known.head)
                yield transaction
                last = transaction.write()
        except JournalWentBack as error:
            self.end.lose(known, error)
            raise
        finally:
            if transaction is not None:
                self.end.see(known, transaction.seen)
        if last and not single_writer:
            self.end.see(known, head_of(transaction.events[-1]))
        if last:
            self.database.note_last(last)
        self._seq = last or seq

    def select(self, *where: Any, limit: int | None = None, newest: bool = False) -> list[Event]:
        """Return events, oldest first unless the `newest` are wanted."""
        with self.database.reading() as connection:
            return select(connection, *where, limit=limit, newest=newest)

    def all(self, *where: Any) -> Iterator[Event]:
        """Yield all present events, oldest first, read in pages."""
        end, after = self.last_seq(), 0
        while events := self.select(*where, journal.c.seq > after, journal.c.seq <= end, limit=PAGE):
            yield from events
            after = events[-1].seq

    def last_seq(self) -> int:
        """Return the number of the last event; raise JournalWentBack if events that this process knows are lost."""
        known = self.end.known
        with self.database.reading() as connection:
            if self.database.single_writer:
                return last_seq(connection)
            try:
                seq, head = read_end(connection, known.head)
            except JournalWentBack as error:
                self.end.lose(known, error)
                raise
        self.end.see(known, head)
        return seq

    def count(self, *where: Any) -> int:
        """Return the number of events that satisfy conditions."""
        with self.database.reading() as connection:
            return connection.scalar(sql.select(sql.func.count()).select_from(journal).where(*where)) or 0

    def snapshot(self, study: str, unit: str, made_by: str) -> Any:
        """Return the snapshot of a unit, if this code and policy made it."""
        with self.database.reading() as connection:
            return select_snapshot(connection, study, unit, made_by)

    def study_names(self) -> list[str]:
        """Return the names of the studies."""
        return [event.study for event in self.select(journal.c.kind == EventKind.STUDY)]

    def studies(self) -> str:
        """Return the names of the studies, for an error message."""
        names = self.study_names()
        return f"one of {', '.join(names)}" if names else "a study; this storage has none"


def select(connection: sql.Connection, *where: Any, limit: int | None = None, newest: bool = False) -> list[Event]:
    """Return events of the journal, in order."""
    order = journal.c.seq.desc() if newest else journal.c.seq
    query = sql.select(journal).where(*where).order_by(order).limit(limit)
    return [Event(*row) for row in connection.execute(query)]


def select_snapshot(connection: sql.Connection, study: str, unit: str, made_by: str) -> Any:
    """Return the row of a snapshot, or None; events that it knows must be in the journal."""
    last = sql.select(sql.func.max(journal.c.seq)).scalar_subquery()
    where = (snapshots.c.study == study, snapshots.c.unit == unit, snapshots.c.made_by == made_by)
    return connection.execute(sql.select(snapshots).where(*where, snapshots.c.seq <= last)).first()


def last_seq(connection: sql.Connection) -> int:
    """Return the number of the last event, 0 if there is none."""
    return connection.scalar(sql.select(sql.func.max(journal.c.seq))) or 0


def acquire_journal(connection: sql.Connection) -> None:
    """Wait for the lock under which events are numbered."""
    connection.execute(sql.select(sql.func.pg_advisory_xact_lock(APPENDING)))


def _acquire(connection: sql.Connection, locks: Iterable[Lock]) -> None:
    """Wait for locks in a fixed order, studies before units. Of two locks on one thing, take the exclusive one."""
    wanted: dict[tuple[bool, int], bool] = {}
    for lock in locks:
        place = (bool(lock.unit), lock.number)
        wanted[place] = wanted.get(place, True) and lock.shared
    for (_, number), shared in sorted(wanted.items()):
        take = sql.func.pg_advisory_xact_lock_shared if shared else sql.func.pg_advisory_xact_lock
        connection.execute(sql.select(take(number)))
