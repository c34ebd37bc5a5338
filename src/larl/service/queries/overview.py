"""Overviews of studies and units for the page. The journal is read once; each request reads what is new.

An SQL aggregate would parse the JSON of all events for each request, as they have no columns for rewards.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from larl.service.core.problems import not_found
from larl.service.queries.inspector import Inspector
from larl.service.queries.journal_queries import JournalQueries
from larl.service.queries.statistics import StudyStatistics
from larl.service.storage.events import EventKind
from larl.service.storage.tables import journal

PAGE = 200  # numbers of events read at once
READ_LIMIT = 1.0  # seconds that one request may read; the next one continues
MAX_STEPS = 500  # of a unit
MAX_ISSUES = 50


class Overviews:
    """The studies of a journal, counted as far as they were requested."""

    def __init__(self, queries: JournalQueries) -> None:
        self._queries, self._journal, self._inspector = queries, queries.journal, Inspector(queries.journal)
        self._lock, self._generation = threading.Lock(), 0
        self._statistics: dict[str, tuple[threading.Lock, StudyStatistics]] = {}

    def close(self) -> None:
        """Stop."""
        self._inspector.close()

    def study(self, study: str, after: int = 0) -> dict[str, Any] | None:
        """Return the overview of a study; None if it has no event after number `after`."""
        with self._counted(study) as (statistics, behind):
            if not behind and 0 < statistics.seq <= after:
                return None
            issues = statistics.open_issues(MAX_ISSUES)
            return {"study": study, "behind": behind, **statistics.to_dict(), "open": issues}

    def roster(self, study: str, after: int, limit: int) -> dict[str, Any]:
        """Return units in order of registration, with their counts."""
        with self._counted(study) as (statistics, _):
            items = statistics.roster(after, limit)
        return {"items": items, "next": after + limit if len(items) == limit else None}

    def unit(self, study: str, unit: str, after: int = 0) -> dict[str, Any] | None:
        """Return a unit, its last steps and its model weights; None if it has no event after number `after`."""
        with self._counted(study) as (statistics, behind):
            counts = statistics.unit(unit)
        if counts is None and not behind:
            raise not_found("unit", unit)
        if counts is None or (not behind and counts["seq"] <= after):
            return None
        here = (journal.c.study == study, journal.c.kind == EventKind.DECISION, journal.c.unit == unit)
        decisions = self._journal.select(*here, limit=MAX_STEPS, newest=True)[::-1]
        state = self._queries.state(study)
        return {
            "study": study,
            "behind": behind,
            **counts,
            "arms": list(state.config.arms),
            "steps": self._queries.with_rewards(decisions),
            "has_weights": self._inspector.has_weights(state),
            "weights": self._inspector.weights(state, unit, counts["number"]),
        }

    @contextmanager
    def _counted(self, study: str) -> Iterator[tuple[StudyStatistics, int]]:
        """Lock the statistics of a study; yield them, and how many events they have not counted."""
        with self._lock:
            generation = self._journal.end.known.generation
            if generation != self._generation:  # the journal has lost events
                self._statistics.clear()
                self._inspector.clear()
                self._generation = generation
            if study not in self._statistics:
                arms = self._queries.state(study).config.arms
                self._statistics[study] = threading.Lock(), StudyStatistics(arms)
            lock, statistics = self._statistics[study]
        with lock:
            yield statistics, self._catch_up(study, statistics)

    def _catch_up(self, study: str, statistics: StudyStatistics) -> int:
        """Count new events, for READ_LIMIT seconds at most; return how many are left."""
        end, until = self._journal.last_seq(), time.monotonic() + READ_LIMIT
        while statistics.read_to < end:
            last = min(statistics.read_to + PAGE, end)
            where = (journal.c.study == study, journal.c.seq > statistics.read_to, journal.c.seq <= last)
            for event in self._journal.select(*where):
                statistics.add(event)  # may raise DamagedRow: then the events before it stay counted
                statistics.read_to = event.seq
            statistics.read_to = last
            if time.monotonic() > until:
                break
        return end - statistics.read_to
