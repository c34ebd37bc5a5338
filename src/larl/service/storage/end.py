"""The end of a journal that several processes append to: are the events still there that this process knows?

After a failover to a server that lagged, the last events are missing, and their numbers are given to other events.
"""

import threading
from typing import Any, NamedTuple

import sqlalchemy as sql

from larl.service.storage.database import StorageError
from larl.service.storage.events import Event

Head = tuple[Any, ...]  # what identifies an event: all columns but the request and the response; empty for none
COLUMNS = 'seq, study, kind, unit, ref, "number", "key", at'
READ_END = f"SELECT {COLUMNS} FROM journal WHERE seq = %s OR seq = (SELECT max(seq) FROM journal) ORDER BY seq"
REREAD = "everything is read again from the journal"


class JournalWentBack(StorageError):
    """The journal has lost events that this process knows."""

    def __init__(self, storage: object, last: int, known: int) -> None:
        lost = f"{last + 1} to {known}" if last < known else f"up to {known}"
        self.happened = f"the database has lost events of the journal that were stored: numbers {lost}"
        super().__init__(storage, f"{self.happened}; {REREAD}")


class Known(NamedTuple):
    """The newest event that this process knows. `generation` is the number of times that the journal went back."""

    generation: int
    head: Head


class JournalEnd:
    """What this process knows of the journal's end. Threads can share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.known = Known(0, ())
        self._losses: list[str] = []  # what happened and is not recorded yet

    def see(self, known: Known, head: Head) -> None:
        """Note an event that was stored or read by a transaction that began with `known`."""
        with self._lock:
            if known.generation == self.known.generation and head[:1] > self.known.head[:1]:
                self.known = Known(known.generation, head)

    def lose(self, known: Known, error: JournalWentBack) -> None:
        """Note that events are lost. From now on, this process knows nothing."""
        with self._lock:
            if known.generation == self.known.generation:
                self.known = Known(known.generation + 1, ())
                self._losses.append(error.happened)

    def forget(self) -> None:
        """Let all threads read everything again, because another process has written what they do not know."""
        with self._lock:
            self.known = Known(self.known.generation + 1, ())

    def take_losses(self) -> list[str]:
        """Return the losses that are not recorded, to record them; other threads do not get them."""
        with self._lock:
            losses, self._losses = self._losses, []
        return losses

    def return_losses(self, losses: list[str]) -> None:
        """Take back losses that were not recorded."""
        with self._lock:
            self._losses = losses + self._losses


def head_of(event: Event) -> Head:
    """Return what identifies an event."""
    return event[:-2]


def read_end(connection: sql.Connection, known: Head) -> tuple[int, Head]:
    """Return the number of the last event, 0 if there is none, and its head; raise JournalWentBack."""
    heads = [tuple(row) for row in connection.exec_driver_sql(READ_END, (known[0] if known else 0,))]
    last = heads[-1] if heads else ()
    if known and known not in heads:
        raise JournalWentBack(connection.engine.url.render_as_string(), last[0] if last else 0, known[0])
    return (last[0] if last else 0), last
