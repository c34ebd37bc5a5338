"""Queries of the journal: studies, units, decisions with their rewards, rewards, issues."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sql

from larl.service.core.problems import not_found
from larl.service.core.state import StudyState, fold_studies
from larl.service.storage.events import REWARD_EVENTS, STUDY_EVENTS, Event, EventKind
from larl.service.storage.journal import Journal
from larl.service.storage.tables import journal

Items = dict[str, Any]
IS_STUDY = journal.c.kind == sql.literal_column("'study'")  # as the partial index has it: no other events are read


class JournalQueries:
    """Reads the journal. Lists come in pages: `after` is the cursor, the number of an event."""

    def __init__(self, source: Journal) -> None:
        self.journal = source

    def studies(self, is_wanted: Callable[[str], bool] = lambda _: True) -> dict[str, StudyState]:
        """Return studies by name."""
        names = [event.study for event in self.journal.select(IS_STUDY) if is_wanted(event.study)]
        return fold_studies(self.journal.select(journal.c.study.in_(names), journal.c.kind.in_(STUDY_EVENTS)))

    def state(self, study: str) -> StudyState:
        """Return a study; raise 404."""
        found = fold_studies(self.journal.select(journal.c.study == study, journal.c.kind.in_(STUDY_EVENTS)))
        if not found:
            raise not_found("study", study)
        return found[study]

    def units(self, study: str, unit: str | None = None, after: int = 0, limit: int = 100) -> Items:
        """Return units in order of registration."""
        events = self._page(study, unit, after, limit, journal.c.kind == EventKind.UNIT)
        return _paged(events, limit, [event.response for event in events])

    def unit(self, study: str, unit: str) -> Items:
        """Return a unit; raise 404."""
        where = (journal.c.study == study, journal.c.kind == EventKind.UNIT, journal.c.unit == unit)
        for event in self.journal.select(*where):
            return dict(event.response)
        raise not_found("unit", unit)

    def decisions(self, study: str, unit: str | None = None, after: int = 0, limit: int = 100) -> Items:
        """Return decisions with their rewards."""
        events = self._page(study, unit, after, limit, journal.c.kind == EventKind.DECISION)
        return _paged(events, limit, self.with_rewards(events))

    def decision(self, decision: str) -> Items:
        """Return a decision with its reward; raise 404."""
        events = self.journal.select(journal.c.ref == decision, journal.c.kind == EventKind.DECISION)
        if not events:
            raise not_found("decision", decision)
        return self.with_rewards(events)[0]

    def rewards(self, study: str, unit: str | None = None, after: int = 0, limit: int = 100) -> Items:
        """Return rewards in order of arrival, with default rewards."""
        events = self._page(study, unit, after, limit, journal.c.kind.in_(REWARD_EVENTS))
        added = [{"seq": each.seq, "unit": each.unit, "default": each.kind == EventKind.DEFAULT} for each in events]
        items = [{"arm": None} | event.response | more for event, more in zip(events, added, strict=True)]
        return _paged(events, limit, items)

    def issues(self, study: str, after: int = 0, limit: int = 100) -> Items:
        """Return issues, and how they were resolved."""
        events = self._page(study, None, after, limit, journal.c.kind == EventKind.ISSUE)
        numbers = [event.seq for event in events]
        where = (journal.c.study == study, journal.c.kind == EventKind.RESOLVED, journal.c.number.in_(numbers))
        resolved = {event.number: event.response for event in self.journal.select(*where)} if events else {}
        open_issue = {"resolved": None, "note": None}
        items = [{"issue": each.seq} | open_issue | each.response | resolved.get(each.seq, {}) for each in events]
        return _paged(events, limit, items)

    def with_rewards(self, decisions: Sequence[Event], end: int | None = None) -> list[Items]:
        """Return decisions as responses with what is known of them, at event `end` or now."""
        about: dict[str, list[Event]] = {event.ref or "": [] for event in decisions}
        where = (journal.c.ref.in_(list(about)), journal.c.kind.in_((*REWARD_EVENTS, EventKind.DELIVERED)))
        until = () if end is None else (journal.c.seq <= end,)
        for event in self.journal.select(*where, *until) if decisions else ():
            about[event.ref or ""].append(event)
        return [decision_view(event, about[event.ref or ""]) for event in decisions]

    def _page(self, study: str, unit: str | None, after: int, limit: int, kinds: Any) -> list[Event]:
        where = [journal.c.study == study, kinds, journal.c.seq > after]
        events = self.journal.select(*where, *([] if unit is None else [journal.c.unit == unit]), limit=limit)
        if not events:
            self.state(study)  # raises 404 if there is no such study
        return events


def decision_view(decision: Event, about: Sequence[Event]) -> Items:
    """Return a decision with what the events about it say."""
    response: Items = decision.response
    view: Items = response | {
        "reason": decision.request.get("reason"),
        "state": "pending" if response["arm"] is not None else "unavailable",
        "reward": None,
        "played": response["arm"],
        "delivered": None,
    }
    for event in about:
        told = event.response
        if event.kind == EventKind.DELIVERED:
            view["delivered"] = told["delivered"]
            continue
        view["state"], view["reward"] = next_reward_state(view["state"], view["reward"], event.kind, told)
        if event.kind == EventKind.REWARD and told["status"] not in ("late", "repeated"):
            view["played"] = told["arm"] or view["played"]
    return view


def next_reward_state(
    state: str, value: float | None, kind: str, response: Mapping[str, Any]
) -> tuple[str, float | None]:
    """Return state and reward of a decision after one more event of REWARD_EVENTS."""
    status, new = response["status"], response["value"]
    if kind == EventKind.DEFAULT:
        return "missing" if new is None else "defaulted", new
    if status == "late":
        return state if state in ("observed", "corrected") else "late", value
    if status == "repeated":
        return state, value
    if status == "corrected":
        return "corrected", new
    return "missing" if new is None else "observed", new


def _paged(events: Sequence[Event], limit: int, items: list[Any]) -> Items:
    return {"items": items, "next": events[-1].seq if len(events) == limit else None}
