"""Snapshots of agents: written in the background, checked when they are read.

A snapshot saves the time to read and learn every event again; it is never needed. So it may be late or missing, and is
used only if everything about it is right: a checksum covers its content and what it is a snapshot of.
"""

import hashlib
import json
import logging
import threading
from typing import Any, NamedTuple

from larl.service.storage.database import StorageError
from larl.service.storage.journal import Journal

LOG = logging.getLogger("larl.service")
DIGEST = 32  # bytes
CAPACITY = 64 * 2**20  # bytes that may wait
GROUP = 2**20  # bytes that are written in one transaction, if there are several


class Snapshot(NamedTuple):
    """An agent after event `seq`: `at` is the time of that event, `decisions` the number of decisions until then."""

    study: str
    unit: str  # empty for a cohort
    number: int
    seq: int
    at: str
    decisions: int
    made_by: str
    content: bytes

    def row(self) -> dict[str, Any]:
        """Return the row of the snapshots table."""
        about = json.dumps(self[:-1]).encode()
        state = b"".join([len(about).to_bytes(4, "little"), about, self.content])
        digest = hashlib.blake2b(state, digest_size=DIGEST).digest()
        return {name: getattr(self, name) for name in ("study", "unit", "seq", "made_by")} | {"state": digest + state}


class InvalidSnapshot(ValueError):
    """A snapshot that is damaged, or one of something else."""


def read_snapshot(row: Any) -> Snapshot:
    """Return the snapshot in a row; raise InvalidSnapshot unless it is the one that was written there."""
    digest, state = bytes(row.state[:DIGEST]), bytes(row.state[DIGEST:])
    if digest != hashlib.blake2b(state, digest_size=DIGEST).digest():
        raise InvalidSnapshot("its checksum does not match")
    end = 4 + int.from_bytes(state[:4], "little")
    about: Any = json.loads(state[4:end])
    snapshot = Snapshot._make([*about, state[end:]])
    for name in ("study", "unit", "seq", "made_by"):
        if getattr(snapshot, name) != getattr(row, name):
            raise InvalidSnapshot(f"its {name} is {getattr(snapshot, name)!r}, not {getattr(row, name)!r}")
    return snapshot


class SnapshotWriter:
    """Writes snapshots on a thread of its own, in the order in which they came; the last one of a unit counts."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._waiting: dict[tuple[str, str], Snapshot] = {}
        self._bytes, self._is_open = 0, True
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="snapshots", daemon=True)
        self._thread.start()

    @property
    def is_full(self) -> bool:
        """Whether so many snapshots are waiting that the next one had better be left out."""
        return self._bytes > CAPACITY

    def save(self, snapshot: Snapshot) -> None:
        """Write a snapshot soon; wait while too many are waiting."""
        with self._changed:
            self._changed.wait_for(lambda: not self.is_full)
            self._remove(snapshot.study, snapshot.unit)
            self._waiting[snapshot.study, snapshot.unit] = snapshot
            self._bytes += len(snapshot.content)
            self._changed.notify_all()

    def find(self, study: str, unit: str, made_by: str) -> Snapshot | None:
        """Return a snapshot that is not written yet."""
        with self._changed:
            found = self._waiting.get((study, unit))
        return found if found is not None and found.made_by == made_by else None

    def flush(self) -> None:
        """Wait until everything is written."""
        with self._changed:
            while self._waiting:
                self._changed.wait()

    def close(self) -> None:
        """Write what is waiting, and stop."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()
        self._thread.join()

    def _work(self) -> None:
        while group := self._next_group():
            try:
                self._journal.save_snapshots([snapshot.row() for snapshot in group])
            except StorageError as error:
                LOG.warning("snapshots were not saved: %s", error)
            with self._changed:
                for snapshot in group:
                    if self._waiting.get((snapshot.study, snapshot.unit)) is snapshot:
                        self._remove(snapshot.study, snapshot.unit)
                self._changed.notify_all()

    def _next_group(self) -> list[Snapshot]:
        """Return the snapshots to write next; none if the writer is closed."""
        group: list[Snapshot] = []
        size = 0
        with self._changed:
            while not self._waiting and self._is_open:
                self._changed.wait()
            for snapshot in self._waiting.values():
                size += len(snapshot.content)
                if group and size > GROUP:
                    break
                group.append(snapshot)
        return group

    def _remove(self, study: str, unit: str) -> None:
        snapshot = self._waiting.pop((study, unit), None)
        if snapshot is not None:
            self._bytes -= len(snapshot.content)
