"""What there is to be read: studies, units, decisions and what became of them, rewards, issues."""

from collections.abc import Mapping, Sequence
from typing import Any

from larl.service.database import journal
from larl.service.journal import TERMS, Journal, Row
from larl.service.problems import missing
from larl.service.seats import Study, info
from larl.service.terms import Terms

OUTCOMES = ("reward", "default")


class Views:
    """Questions to a journal. Lists come in pages: `after` is the cursor, a row's number."""

    def __init__(self, book: Journal) -> None:
        self._book = book

    def studies(self) -> list[dict[str, Any]]:
        """All studies."""
        found: dict[str, Study] = {}
        for row in self._book.select(journal.c.kind.in_(TERMS)):
            found.setdefault(row.study, Study()).read(row)
        return [info(study) for study in found.values()]

    def study(self, name: str) -> dict[str, Any]:
        """One study."""
        return info(self.known(name))

    def terms(self, name: str) -> Terms:
        """The terms of a study that are in force."""
        return self.known(name).terms

    def known(self, name: str) -> Study:
        """A study as its rows have it."""
        study = Study()
        for row in self._book.select(journal.c.study == name, journal.c.kind.in_(TERMS)):
            study.read(row)
        if not study.versions:
            raise missing("study", name)
        return study

    def units(self, name: str, after: int = 0, limit: int = 100) -> dict[str, Any]:
        """Units in the order in which they entered."""
        self.known(name)
        rows = self._page(after, limit, journal.c.study == name, journal.c.kind == "unit")
        return _paged(rows, limit, [row.said for row in rows])

    def unit(self, name: str, unit: str) -> dict[str, Any]:
        """One unit."""
        rows = self._book.select(journal.c.study == name, journal.c.kind == "unit", journal.c.unit == unit)
        if not rows:
            raise missing("unit", unit)
        return dict(rows[0].said)

    def decisions(self, name: str, unit: str | None = None, after: int = 0, limit: int = 100) -> dict[str, Any]:
        """Decisions, and what is known of them."""
        self.known(name)
        where = [journal.c.study == name, journal.c.kind == "decision"]
        rows = self._page(after, limit, *where, *([journal.c.unit == unit] if unit else []))
        return _paged(rows, limit, self.with_outcomes(rows))

    def decision(self, ref: str) -> dict[str, Any]:
        """One decision."""
        rows = self._book.select(journal.c.ref == ref, journal.c.kind == "decision")
        if not rows:
            raise missing("decision", ref)
        return self.with_outcomes(rows)[0]

    def rewards(self, name: str, unit: str | None = None, after: int = 0, limit: int = 100) -> dict[str, Any]:
        """Rewards as they came or were filled in."""
        self.known(name)
        where = [journal.c.study == name, journal.c.kind.in_(OUTCOMES)]
        rows = self._page(after, limit, *where, *([journal.c.unit == unit] if unit else []))
        shown = [
            {"arm": None, **row.said, "seq": row.seq, "unit": row.unit, "default": row.kind == "default"}
            for row in rows
        ]
        return _paged(rows, limit, shown)

    def issues(self, name: str, after: int = 0, limit: int = 100) -> dict[str, Any]:
        """Issues, and whether they are resolved."""
        self.known(name)
        rows = self._page(after, limit, journal.c.study == name, journal.c.kind == "issue")
        numbers = [row.seq for row in rows]
        where = (journal.c.study == name, journal.c.kind == "resolved", journal.c.number.in_(numbers))
        done = {row.number: row.said for row in self._book.select(*where)} if rows else {}
        shown = [
            {"issue": row.seq, **row.said, **{key: done.get(row.seq, {}).get(key) for key in ("resolved", "note")}}
            for row in rows
        ]
        return _paged(rows, limit, shown)

    def with_outcomes(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Decisions with what is known of them now."""
        refs = [row.ref for row in rows]
        about: dict[str, list[Row]] = {ref or "": [] for ref in refs}
        kinds = journal.c.kind.in_((*OUTCOMES, "delivered"))
        for row in self._book.select(journal.c.ref.in_(refs), kinds) if refs else ():
            about[row.ref or ""].append(row)
        return [shown(row, about[row.ref or ""]) for row in rows]

    def _page(self, after: int, limit: int, *where: Any) -> list[Row]:
        return self._book.select(*where, journal.c.seq > after, limit=limit)


def shown(decision: Row, about: Sequence[Row]) -> dict[str, Any]:
    """A decision and what is known of it now, from the rows about it."""
    said: dict[str, Any] = decision.said
    known: dict[str, Any] = {"reward": None, "played": said["arm"], "delivered": None}
    known |= {"reason": decision.asked.get("reason"), "state": "unavailable" if said["arm"] is None else "pending"}
    for row in about:
        told = row.said
        if row.kind == "delivered":
            known["delivered"] = told["delivered"]
            continue
        known["state"], known["reward"] = became(known["state"], known["reward"], row.kind, told)
        if row.kind == "reward" and told["taken"] not in ("late", "repeated"):
            known["played"] = told["arm"] or known["played"]
    return said | known


def became(state: str, value: float | None, kind: str, told: Mapping[str, Any]) -> tuple[str, float | None]:
    """State and reward of a decision after one more row of OUTCOMES, of this kind and with this answer."""
    if kind == "default":
        return "missing" if told["value"] is None else "defaulted", told["value"]
    if told["taken"] == "late":
        return state if state in ("observed", "corrected") else "late", value
    if told["taken"] == "repeated":
        return state, value
    if told["taken"] == "corrected":
        return "corrected", told["value"]
    return "missing" if told["value"] is None else "observed", told["value"]


def _paged(rows: Sequence[Row], limit: int, items: list[Any]) -> dict[str, Any]:
    return {"items": items, "next": rows[-1].seq if len(rows) == limit else None}
