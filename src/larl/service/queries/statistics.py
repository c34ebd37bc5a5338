"""Counts and means of a study: a fold over its events."""

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from larl.client.models import DecisionSource, RewardState, Severity
from larl.service.queries.journal_queries import next_reward_state
from larl.service.queries.series import MAX_ARMS, Series, six_digits
from larl.service.storage.events import STUDY_EVENTS, Event, EventKind

STATES = tuple(state.value for state in RewardState)
SOURCES = tuple(source.value for source in DecisionSource if source != DecisionSource.HISTORY)
IMPORTED = 255  # in the place of a state: the step was made before the study and is not counted
SEVERITIES = tuple(severity.value for severity in Severity)


@dataclass
class UnitStatistics:
    """The decisions of a unit, in a few bytes each. Imported steps have a place, and are not counted."""

    unit: str
    number: int
    entered: str
    seq: int = 0
    at: str = ""
    last: str | None = None  # time of the last decision
    days: "array[int]" = field(default_factory=lambda: array("i"))
    states: bytearray = field(default_factory=bytearray)
    rewards: "array[float]" = field(default_factory=lambda: array("d"))  # nan: none
    count: int = 0
    total: float = 0.0
    imported: int = 0

    def add_imported(self) -> None:
        """Add an imported step."""
        self.imported += 1
        self.days.append(0)
        self.states.append(IMPORTED)
        self.rewards.append(float("nan"))

    def to_dict(self) -> dict[str, Any]:
        """Return the unit as an item of a list."""
        return {
            "unit": self.unit,
            "number": self.number,
            "entered": self.entered,
            "last": self.last,
            "decisions": len(self.states) - self.imported,
            "imported": self.imported,
            "states": {state: self.states.count(number) for number, state in enumerate(STATES)},
            "reward": six_digits(self.total / self.count) if self.count else None,
        }


class StudyStatistics:
    """Counts and means of a study."""

    def __init__(self, arms: Sequence[str]) -> None:
        self.seq, self.read_to, self._study_seq, self._at = 0, 0, 0, ""
        self._arms = {arm: number for number, arm in enumerate(arms)}
        self._units: dict[str, UnitStatistics] = {}  # in order of registration
        self._days, self._steps, self._first_day = Series(len(arms)), Series(len(arms)), 0
        self._states, self._sources, self._explored = Counter[str](), Counter[str](), 0
        self._issues: dict[int, dict[str, Any]] = {}  # open ones
        self._add = {
            EventKind.UNIT: self._add_unit,
            EventKind.DECISION: self._add_decision,
            EventKind.REWARD: self._add_reward,
            EventKind.DEFAULT: self._add_reward,
            EventKind.ISSUE: self._add_issue,
            EventKind.RESOLVED: self._resolve_issue,
        }

    def add(self, event: Event) -> None:
        """Count one more event."""
        self.seq, self._at = event.seq, event.at
        if event.kind in STUDY_EVENTS:
            self._study_seq = event.seq
        add = self._add.get(event.kind)  # type: ignore[call-overload]
        if add is not None:
            add(event)
        if event.unit in self._units:
            self._units[event.unit].seq, self._units[event.unit].at = event.seq, event.at

    def _add_unit(self, event: Event) -> None:
        self._units[event.unit or ""] = UnitStatistics(event.unit or "", event.number or 0, event.at)

    def _add_decision(self, event: Event) -> None:
        response, unit = event.response, self._units[event.unit or ""]
        if response["source"] == DecisionSource.HISTORY:
            unit.add_imported()
            return
        today = date.fromisoformat(event.at[:10]).toordinal()
        self._first_day = self._first_day or today
        day = max(today - self._first_day, 0)  # a clock may go back
        state = "pending" if response["arm"] is not None else "unavailable"
        unit.days.append(day)
        unit.states.append(STATES.index(state))
        unit.rewards.append(float("nan"))
        unit.last = event.at
        self._states[state] += 1
        self._sources[response["source"]] += 1
        self._explored += response["explored"]
        given = response["probabilities"]
        probabilities = [given[arm] for arm in self._arms] if given else []
        for series, place in ((self._days, day), (self._steps, event.number or 0)):
            series.add_decision(place, self._arms.get(response["arm"]), probabilities, response["expected"])

    def _add_reward(self, event: Event) -> None:
        unit, t = self._units[event.unit or ""], event.number or 0
        if unit.states[t] == IMPORTED:
            return
        before, old = STATES[unit.states[t]], unit.rewards[t] if unit.rewards[t] == unit.rewards[t] else None
        state, new = next_reward_state(before, old, event.kind, event.response)
        self._states[before] -= 1
        self._states[state] += 1
        unit.states[t], unit.rewards[t] = STATES.index(state), float("nan") if new is None else new
        unit.count += (new is not None) - (old is not None)
        unit.total += (new or 0.0) - (old or 0.0)
        for series, place in ((self._days, unit.days[t]), (self._steps, t)):
            series.change_reward(place, old, new)

    def _add_issue(self, event: Event) -> None:
        self._issues[event.seq] = {"issue": event.seq, **event.response, "resolved": None, "note": None}

    def _resolve_issue(self, event: Event) -> None:
        self._issues.pop(event.number or 0, None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the list of issues."""
        arms, chosen = list(self._arms), self._days.choices()
        many = len(arms) > MAX_ARMS
        order = sorted(range(len(arms)), key=lambda arm: -chosen[arm]) if many else list(range(len(arms)))
        first = order[: MAX_ARMS - 1] if many else order
        units = self._units.values()
        count, total = sum(unit.count for unit in units), sum(unit.total for unit in units)
        issues = Counter(issue["severity"] for issue in self._issues.values())
        return {
            "seq": self.seq,
            "at": self._at,
            "units": len(self._units),
            "decisions": self._states.total(),
            "imported": sum(unit.imported for unit in units),
            "arms": [arms[arm] for arm in first],
            "other_arms": len(arms) - len(first),
            "days": self._by_day(self._days.to_dict(order)),
            "steps": _by_step(self._steps.to_dict(order)),
            "states": {state: self._states[state] for state in STATES},
            "sources": {source: self._sources[source] for source in SOURCES},
            "explored": self._explored,
            "reward": six_digits(total / count) if count else None,
            "issues": {severity: issues[severity] for severity in SEVERITIES},
        }

    def open_issues(self, limit: int) -> list[dict[str, Any]]:
        """Return open issues: the most severe first, of those the newest."""
        return sorted(self._issues.values(), key=lambda one: (SEVERITIES.index(one["severity"]), -one["issue"]))[:limit]

    def roster(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Return units in order of registration."""
        return [unit.to_dict() for unit in list(self._units.values())[after : after + limit]]

    def unit(self, unit: str) -> dict[str, Any] | None:
        """Return a unit with the last event that changed it; None if there is no such unit."""
        found = self._units.get(unit)
        return None if found is None else found.to_dict() | {"seq": max(found.seq, self._study_seq), "at": found.at}

    def _by_day(self, series: dict[str, Any]) -> dict[str, Any]:
        days = range(self._first_day, self._first_day + len(series["decisions"]) * series["width"], series["width"])
        return {"start": [date.fromordinal(day).isoformat() for day in days], **series}


def _by_step(series: dict[str, Any]) -> dict[str, Any]:
    return {"start": [place * series["width"] for place in range(len(series["decisions"]))], **series}
