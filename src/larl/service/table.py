"""A study as a table: one row for each unit and decision, and what became of it."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sql

from larl._core.validation import InvalidValue
from larl.service.database import journal
from larl.service.journal import PAGE, TERMS, Journal, last_seq
from larl.service.seats import Study
from larl.service.terms import Terms
from larl.service.views import shown

ABOUT = ("reward", "default", "delivered")
PLAIN = {  # column: type
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
Record = dict[str, Any]


class Table:
    """The decisions of a study, as they were when this was made."""

    def __init__(self, book: Journal, study: str) -> None:
        self._book, self.study = book, study
        self.step: Callable[[], object] = lambda: None  # called for each decision that is read
        with book.database.reading() as connection:
            self._end = last_seq(connection)
        known = Study()
        for row in book.select(journal.c.study == study, journal.c.kind.in_(TERMS)):
            known.read(row)
        if not known.versions:
            raise InvalidValue("export", "study", study, studies_of(book))
        self.terms: Terms = known.terms
        self.columns: dict[str, type] = PLAIN | {
            **{f"p_{arm}": float for arm in self.terms.arms},
            **{f"context_{i}": float for i in range(self.terms.width)},
        }

    def count(self) -> int:
        """How many decisions there are."""
        where = (journal.c.study == self.study, journal.c.kind == "decision", journal.c.seq <= self._end)
        with self._book.database.reading() as connection:
            return connection.scalar(sql.select(sql.func.count()).select_from(journal).where(*where)) or 0

    def records(self, unit: str | None = None) -> Iterator[Record]:
        """All decisions, or those of a unit, in the order in which they were made."""
        here = [journal.c.study == self.study, journal.c.kind == "decision", journal.c.seq <= self._end]
        here += [journal.c.unit == unit] if unit else []
        after = 0
        while rows := self._book.select(*here, journal.c.seq > after, limit=PAGE):
            refs = [row.ref or "" for row in rows]
            about: dict[str, list[Any]] = {ref: [] for ref in refs}
            where = (journal.c.ref.in_(refs), journal.c.kind.in_(ABOUT), journal.c.seq <= self._end)
            for row in self._book.select(*where):
                about[row.ref or ""].append(row)
            for row in rows:
                yield self._record(row.seq, row.asked, shown(row, about[row.ref or ""]))
                self.step()
            after = rows[-1].seq

    def _record(self, seq: int, asked: Record, said: Record) -> Record:
        """A row of the table."""
        offered = asked.get("available")
        odds, context = said["probabilities"], asked.get("context") or ()
        return {
            **{name: said.get(name) for name in PLAIN},
            "seq": seq,
            "available": said["arm"] is not None,
            "offered": None if offered is None else json.dumps(offered, ensure_ascii=False),
            **{f"p_{arm}": odds.get(arm) for arm in self.terms.arms},
            **{f"context_{i}": value for i, value in enumerate(context)},
        }


def studies_of(book: Journal) -> str:
    """The names of a storage's studies, for a message."""
    names = [row.study for row in book.select(journal.c.kind == "study")]
    return f"one of {', '.join(names)}" if names else "a study; this storage has none"


def line_of(values: list[Any]) -> str:
    """A line of CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerow(values)
    return file.getvalue()
