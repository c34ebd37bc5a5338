"""The journal: every event of every study, in order.

Numbers of events have no gaps, so a lost event is noticed. A `Transaction` takes locks, reads, and writes all its
events at its end: they are on disk, or none is.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite

from larl.service.storage.database import Database
from larl.service.storage.end import Head, JournalEnd, JournalWentBack, head_of, read_end
from larl.service.storage.events import LEARNING_EVENTS, Event, EventKind
from larl.service.storage.group_commit import COLUMNS, PLACEHOLDERS, GroupCommit, insert, last_seq
from larl.service.storage.tables import journal, snapshots

PAGE = 1_000  # events read at once
APPENDING = 1  # the lock under which events are numbered


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
    """A transaction that appends events.

    With several processes, `known` is the newest event that this one knew before, and `seen` the newest that it read.
    """

    def __init__(self, connection: sql.Connection, single_writer: bool, known: Head = ()) -> None:
        self._connection, self.single_writer, self._known = connection, single_writer, known
        self.seen: Head = ()
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

    def write(self) -> None:
        """Number the events and write them, if other processes append too.

        Raise JournalWentBack if the journal has lost events that this process knows: responses may rest on them.
        """
        if self.events:
            acquire_journal(self._connection)
        last, _ = read_end(self._connection, self._known)
        if self.events:
            self.events = insert(self._connection, self.events, last)

    def snapshot(self, study: str, unit: str, made_by: str) -> Any:
        """Return the snapshot of a unit, if this code and policy made it."""
        return select_snapshot(self._connection, study, unit, made_by)

    def position(self, study: str, unit: str | None, seq: int) -> tuple[int, str] | None:
        """Return the number of decisions until event `seq`, and its time; None if it is not an event of the unit."""
        return position(self._connection, study, unit, seq)


class Journal:
    """The journal of a storage."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.end = JournalEnd()
        self._commits = GroupCommit(database, self.end)

    @contextmanager
    def transaction(self, locks: Iterable[Lock] = ()) -> Iterator[Transaction]:
        """Open a transaction under these locks. Its events are on disk when the `with` ends: all, or none."""
        known = self.end.known
        if self.database.single_writer:
            with self.database.reading_latest() as connection:  # nobody else writes what the transaction reads
                transaction = Transaction(connection, True)
                yield transaction
                transaction.events = self._commits.commit(connection, transaction.events, known.generation)
            return
        shared = None
        try:
            with self.database.writing() as connection:
                _acquire(connection, locks)
                shared = Transaction(connection, False, known.head)
                yield shared
                shared.write()
        except JournalWentBack as error:
            self.end.lose(known, error)
            raise
        finally:
            if shared is not None:
                self.end.see(known, shared.seen)
        if shared.events:
            self.end.see(known, head_of(shared.events[-1]))

    def save_snapshots(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Replace snapshots."""
        with self.database.writing() as connection:
            connection.execute(SAVE_SNAPSHOT[connection.dialect.name], rows)

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

    def position(self, study: str, unit: str | None, seq: int) -> tuple[int, str] | None:
        """Return the number of decisions until event `seq`, and its time; None if it is not an event of the unit."""
        with self.database.reading() as connection:
            return position(connection, study, unit, seq)

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


def position(connection: sql.Connection, study: str, unit: str | None, seq: int) -> tuple[int, str] | None:
    """Return the number of decisions until event `seq`, and its time; None if it is not an event of the unit."""
    here = [journal.c.study == study, *([] if unit is None else [journal.c.unit == unit])]
    at = connection.scalar(sql.select(journal.c.at).where(journal.c.seq == seq, *here))
    decisions = [*here, journal.c.kind == EventKind.DECISION, journal.c.seq <= seq]
    if at is None:
        return None
    if unit is None:
        return connection.scalar(sql.select(sql.func.count()).select_from(journal).where(*decisions)) or 0, at
    last = connection.scalar(sql.select(journal.c.number).where(*decisions).order_by(journal.c.seq.desc()).limit(1))
    return 0 if last is None else last + 1, at


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
