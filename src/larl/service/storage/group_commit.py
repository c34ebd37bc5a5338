"""Numbering and writing events: numbers have no gaps, and one disk sync serves all that wait for it."""

import logging
import threading
from collections import deque
from collections.abc import Sequence

import sqlalchemy as sql
from sqlalchemy.exc import IntegrityError, OperationalError

from larl.service.storage.database import Database, StorageError
from larl.service.storage.end import REREAD, JournalEnd
from larl.service.storage.events import Event
from larl.service.storage.tables import journal

LOG = logging.getLogger("larl.service")
PLACEHOLDERS = {"sqlite": "?", "postgresql": "%s"}
COLUMNS = ", ".join(f'"{column.name}"' for column in journal.c)


def last_seq(connection: sql.Connection) -> int:
    """Return the number of the last event, 0 if there is none."""
    return connection.scalar(sql.select(sql.func.max(journal.c.seq))) or 0


def insert(connection: sql.Connection, events: Sequence[Event], last: int) -> list[Event]:
    """Number events after `last`, write them, and return them."""
    numbered = [event._replace(seq=last + i) for i, event in enumerate(events, 1)]
    values = ", ".join([PLACEHOLDERS[connection.dialect.name]] * len(journal.c))
    connection.exec_driver_sql(f"INSERT INTO journal ({COLUMNS}) VALUES ({values})", numbered)
    return numbered


class _Commit:
    """Events of one transaction that wait to be written, and what became of them."""

    def __init__(self, events: list[Event], generation: int) -> None:
        self.events, self.generation, self.is_done = events, generation, False
        self.error: Exception | None = None


class GroupCommit:
    """Commits of several threads to a storage without other writers: those that wait during a disk sync go together."""

    def __init__(self, database: Database, end: JournalEnd) -> None:
        self._database, self._end, self._lock = database, end, threading.Lock()
        self._waiting: deque[_Commit] = deque()
        self._seq: int | None = None  # the last number

    def commit(self, connection: sql.Connection, events: list[Event], generation: int) -> list[Event]:
        """Number events and write them; return them when they are on disk.

        `generation` is that of the journal before their transaction: it changes if another process writes.
        """
        if not events:
            return events
        own = _Commit(events, generation)
        self._waiting.append(own)
        with self._lock:
            if not own.is_done:  # else another thread has written them
                self._write(connection, [self._waiting.popleft() for _ in range(len(self._waiting))])
        if own.error is not None:
            raise own.error
        return own.events

    def _write(self, connection: sql.Connection, group: list[_Commit]) -> None:
        """Write the events of all commits; if the events of one are the reason of a failure, only that one fails."""
        try:
            if any(each.generation != self._end.known.generation for each in group):
                raise StorageError(self._database.display_url, REREAD)
            with self._database.writing_with(connection):
                last = last_seq(connection) if self._seq is None else self._seq
                numbered = insert(connection, [event for each in group for event in each.events], last)
        except Exception as error:
            self._seq = None
            is_intruder = isinstance(error.__cause__, IntegrityError)
            if is_intruder:
                LOG.error("another process has written to the storage: everything is read again")
                self._end.forget()
            for each in group:
                if is_intruder or isinstance(error.__cause__, OperationalError) or len(group) == 1:
                    each.is_done, each.error = True, error
                else:
                    self._write(connection, [each])
            return
        self._seq, first = numbered[-1].seq, 0
        self._database.note_last(self._seq)
        for each in group:
            first, each.events = first + len(each.events), numbered[first : first + len(each.events)]
            each.is_done = True
