"""Issues of studies: each is recorded once while it is open, and reported."""

from typing import Any

from larl.service.storage.events import Event, EventKind, canonical_json
from larl.service.storage.journal import Transaction
from larl.service.storage.tables import journal


class IssueLog:
    """Records issues. `unreported` are those that were not sent to anybody yet."""

    def __init__(self) -> None:
        self.unreported: list[dict[str, Any]] = []

    def record(
        self, tx: Transaction, study: str, severity: str, code: str, unit: str, happened: str, done: str, at: str
    ) -> None:
        """Record an issue, unless it is open: what happened, and what the service did."""
        if _is_open(tx, study, code, unit or None):
            return
        issue = {"severity": severity, "code": code, "unit": unit or None, "happened": happened, "done": done}
        tx.append(EventKind.ISSUE, study, at, "{}", canonical_json(issue | {"at": at}), unit=unit or None, ref=code)
        del issue["unit"]  # an alert leaves the service: it must not name a unit
        self.unreported.append({"study": study, "at": at, **issue})

    def rollback(self, events: list[Event]) -> None:
        """Forget the issues of events that are not stored."""
        for event in events:
            if event.kind == EventKind.ISSUE:
                self.unreported.pop()


def _is_open(tx: Transaction, study: str, code: str, unit: str | None) -> bool:
    """Return whether such an issue is recorded and not resolved, by this process or another."""
    kinds = (EventKind.ISSUE, EventKind.RESOLVED)
    where = (journal.c.study == study, journal.c.kind.in_(kinds), journal.c.ref == code, journal.c.unit == unit)
    stored = tx.select(*where, limit=1, newest=True)
    new = [event for event in tx.events if event.kind in kinds and event[1:2] + event[3:5] == (study, unit, code)]
    return [event.kind for event in [*stored, *new]][-1:] == [EventKind.ISSUE]
