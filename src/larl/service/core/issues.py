"""Issues of studies: each is recorded once while it is open, and reported."""

from collections.abc import Sequence
from typing import Any

from larl.service.core.state import fold_studies
from larl.service.storage.events import STUDY_EVENTS, Event, EventKind, canonical_json
from larl.service.storage.journal import Transaction
from larl.service.storage.tables import journal

LOSS = (
    "agents were rebuilt from the events that are left, and decisions went on; units that were treated by a lost "
    "decision have another one on record, or none"
)


class IssueLog:
    """Records issues. `unreported` are those that were not sent to anybody yet."""

    def __init__(self) -> None:
        self.unreported: list[dict[str, Any]] = []

    def record(
        self, tx: Transaction, study: str, severity: str, code: str, unit: str, happened: str, done: str, at: str
    ) -> None:
        """Record an issue, unless it is open: what happened, and what the service did."""
        if not _is_open(tx, study, code, unit or None):
            self._append(tx, study, severity, code, unit, happened, done, at)

    def record_losses(self, tx: Transaction, losses: Sequence[str], at: str) -> None:
        """Record in all open studies that events are lost. Each process says what it knows to be lost."""
        studies = fold_studies(tx.select(journal.c.kind.in_(STUDY_EVENTS)))
        for name, study in studies.items():
            for happened in losses if study.closed is None else ():
                self._append(tx, name, "red", "journal_went_back", "", happened, LOSS, at)

    def _append(
        self, tx: Transaction, study: str, severity: str, code: str, unit: str, happened: str, done: str, at: str
    ) -> None:
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
