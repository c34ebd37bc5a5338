"""What a study comes to at a glance. Its journal is followed, so that a look costs as much as what is new."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from larl.service.database import journal
from larl.service.journal import TERMS, Journal, last_seq
from larl.service.onlooker import Onlooker
from larl.service.problems import missing
from larl.service.tally import Tally
from larl.service.views import Views

KINDS = (*TERMS, "unit", "decision", "reward", "default", "delivered", "issue", "resolved")
STRETCH = 2_000  # numbers of rows read at once
SECONDS = 1.0  # that one look may read; the next goes on from there
STEPS = 500  # of a unit that are shown, the last
ISSUES = 50  # that are shown


class Overviews:
    """The studies of a journal, counted as far as somebody has looked."""

    def __init__(self, book: Journal, views: Views) -> None:
        self._book, self._views, self._onlooker = book, views, Onlooker(book)
        self._lock = threading.Lock()
        self._tallies: dict[str, tuple[threading.Lock, Tally]] = {}

    def close(self) -> None:
        """Look no more."""
        self._onlooker.close()

    def study(self, name: str, after: int = 0) -> dict[str, Any] | None:
        """A study; None if nothing has happened in it after row `after`."""
        with self._counted(name) as (tally, behind):
            if not behind and 0 < tally.seq <= after:
                return None
            return {"study": name, "behind": behind, **tally.shown(), "open": tally.open_issues(ISSUES)}

    def roster(self, name: str, after: int, limit: int) -> dict[str, Any]:
        """Units as they entered, and how they are doing."""
        with self._counted(name) as (tally, _):
            items = tally.roster(after, limit)
        return {"items": items, "next": after + limit if len(items) == limit else None}

    def unit(self, name: str, unit: str, after: int = 0) -> dict[str, Any] | None:
        """A unit, its last steps, and what its policy weighs; None if nothing has happened to it after row `after`."""
        with self._counted(name) as (tally, behind):
            found = tally.unit(unit)
        if found is None and not behind:
            raise missing("unit", unit)
        if found is None or (not behind and found["seq"] <= after):
            return None
        here = (journal.c.study == name, journal.c.kind == "decision", journal.c.unit == unit)
        rows = self._book.select(*here, limit=STEPS, newest=True)[::-1]
        study = self._views.known(name)
        weights = self._onlooker.evidence(study, unit, found["number"])
        shown = {"arms": list(study.terms.arms), "steps": self._views.with_outcomes(rows)}
        weighed = {"weighs": self._onlooker.can(study), "evidence": weights}
        return {"study": name, "behind": behind, **found, **shown, **weighed}

    @contextmanager
    def _counted(self, name: str) -> Iterator[tuple[Tally, int]]:
        """A tally that nobody else has for now, and how many rows it is behind."""
        with self._lock:
            if name not in self._tallies:
                self._tallies[name] = threading.Lock(), Tally(self._views.known(name).terms.arms)
            lock, tally = self._tallies[name]
        with lock:
            yield tally, self._catch_up(name, tally)

    def _catch_up(self, name: str, tally: Tally) -> int:
        """Count what is new, for a while; returns how many rows are left."""
        with self._book.database.reading() as connection:
            end = last_seq(connection)
        until = time.monotonic() + SECONDS
        while tally.read_to < end:
            stretch = min(tally.read_to + STRETCH, end)
            here = (journal.c.study == name, journal.c.kind.in_(KINDS))
            for row in self._book.select(*here, journal.c.seq > tally.read_to, journal.c.seq <= stretch):
                tally.read(row)
            tally.read_to = stretch
            if time.monotonic() > until:
                break
        return end - tally.read_to
