"""A study as a table: one row per decision, with its reward."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

from larl._core.validation import InvalidValue
from larl.service.core.problems import Problem
from larl.service.queries.journal_queries import JournalQueries
from larl.service.storage.events import Event, EventKind
from larl.service.storage.journal import PAGE, Journal
from larl.service.storage.tables import journal

COLUMNS = {  # column: type; then a probability per arm and the context
    "seq": int,
    "unit": str,
    "t": int,
    "at": str,
    "id": str,
    "available": bool,
    "offered": str,
    "arm": str,
    "played": str,
    "reward": float,
    "state": str,
    "delivered": bool,
    "source": str,
    "policy_version": int,
    "explored": bool,
    "expected": float,
    "width": float,
    "reason": str,
    "larl": str,
}
FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")  # an apostrophe too: so the first one can be removed unambiguously
Record = dict[str, Any]


class Table:
    """The decisions of a study, as they are when this is created."""

    def __init__(self, source: Journal, study: str) -> None:
        self._journal, self._queries, self.study = source, JournalQueries(source), study
        self.step: Callable[[], object] = lambda: None  # called for each decision that is read
        self.page_size = PAGE  # decisions that are read at once
        self._end = source.last_seq()
        try:
            self.config = self._queries.state(study).config
        except Problem as error:
            raise InvalidValue("export", "study", study, source.studies()) from error
        self.columns: dict[str, type] = COLUMNS | {
            **{f"p_{arm}": float for arm in self.config.arms},
            **{f"context_{i}": float for i in range(self.config.context_size)},
        }

    def _where(self) -> list[Any]:
        return [journal.c.study == self.study, journal.c.kind == EventKind.DECISION, journal.c.seq <= self._end]

    def count(self) -> int:
        """Return the number of decisions."""
        return self._journal.count(*self._where())

    def records(self, unit: str | None = None) -> Iterator[Record]:
        """Yield all decisions, or those of a unit, oldest first."""
        where, after = self._where() + ([journal.c.unit == unit] if unit else []), 0
        while decisions := self._journal.select(*where, journal.c.seq > after, limit=self.page_size):
            for event, view in zip(decisions, self._queries.with_rewards(decisions, self._end), strict=True):
                yield self._record(event, view)
                self.step()
            after = decisions[-1].seq

    def _record(self, event: Event, view: Record) -> Record:
        """Return a row of the table."""
        request = event.request
        offered, context = request.get("available"), request.get("context") or ()
        return {
            **{name: view.get(name) for name in COLUMNS},
            "seq": event.seq,
            "available": view["arm"] is not None,
            "offered": None if offered is None else json.dumps(offered, ensure_ascii=False),
            **{f"p_{arm}": view["probabilities"].get(arm) for arm in self.config.arms},
            **{f"context_{i}": value for i, value in enumerate(context)},
        }


def csv_line(values: list[Any]) -> str:
    """Return a line of CSV. Text that a spreadsheet would take for a formula gets an apostrophe in front."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerow([_harmless(value) for value in values])
    return file.getvalue()


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
