"""What the rows of a study come to, one row after another."""

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from larl.service.journal import TERMS, Row
from larl.service.series import MOST_ARMS, Series, short
from larl.service.views import became

STATES = ("pending", "observed", "corrected", "missing", "defaulted", "late", "unavailable")
SEVERITIES = ("red", "yellow", "green")


@dataclass
class Course:
    """What became of each decision of a unit, in a few bytes."""

    unit: str
    number: int
    entered: str
    seq: int = 0
    at: str = ""
    last: str | None = None  # when it decided last
    days: "array[int]" = field(default_factory=lambda: array("i"))
    states: bytearray = field(default_factory=bytearray)
    rewards: "array[float]" = field(default_factory=lambda: array("d"))  # nan: none
    count: int = 0
    total: float = 0.0

    def shown(self) -> dict[str, Any]:
        """A unit in a list of them."""
        states = {state: self.states.count(number) for number, state in enumerate(STATES)}
        mean = short(self.total / self.count) if self.count else None
        own = {"unit": self.unit, "number": self.number, "entered": self.entered, "last": self.last}
        return own | {"decisions": len(self.states), "states": states, "reward": mean}


class Tally:
    """A study, counted."""

    def __init__(self, arms: Sequence[str]) -> None:
        self.seq, self.read_to, self._terms_seq, self._at = 0, 0, 0, ""
        self._arms = {arm: number for number, arm in enumerate(arms)}
        self._units: dict[str, Course] = {}
        self._order: list[str] = []
        self._days, self._steps, self._first_day = Series(len(arms)), Series(len(arms)), 0
        self._states, self._sources = Counter[str](), Counter[str]()
        self._explored = 0
        self._issues: dict[int, dict[str, Any]] = {}  # those that are open
        self._reads = {
            "unit": self._enter,
            "decision": self._decide,
            "reward": self._reward,
            "default": self._reward,
            "issue": self._issue,
            "resolved": self._resolved,
        }

    def read(self, row: Row) -> None:
        """Count one more row."""
        self.seq, self._at = row.seq, row.at
        if row.kind in TERMS:
            self._terms_seq = row.seq
        if row.kind in self._reads:
            self._reads[row.kind](row)
        if row.unit in self._units:
            self._units[row.unit].seq, self._units[row.unit].at = row.seq, row.at

    def _enter(self, row: Row) -> None:
        self._units[row.unit or ""] = Course(row.unit or "", row.number or 0, row.at)
        self._order.append(row.unit or "")

    def _decide(self, row: Row) -> None:
        said, course = row.said, self._units[row.unit or ""]
        today = date.fromisoformat(row.at[:10]).toordinal()
        self._first_day = self._first_day or today
        day = max(today - self._first_day, 0)  # a clock may go back
        state = "pending" if said["arm"] is not None else "unavailable"
        course.days.append(day)
        course.states.append(STATES.index(state))
        course.rewards.append(float("nan"))
        course.last = row.at
        self._states[state] += 1
        self._sources[said["source"]] += 1
        self._explored += said["explored"]
        odds = [said["probabilities"][arm] for arm in self._arms] if said["probabilities"] else []
        for series, place in ((self._days, day), (self._steps, row.number or 0)):
            series.decide(place, self._arms.get(said["arm"]), odds, said["expected"])

    def _reward(self, row: Row) -> None:
        course, t = self._units[row.unit or ""], row.number or 0
        before, old = STATES[course.states[t]], course.rewards[t] if course.rewards[t] == course.rewards[t] else None
        state, new = became(before, old, row.kind, row.said)
        self._states[before] -= 1
        self._states[state] += 1
        course.states[t], course.rewards[t] = STATES.index(state), float("nan") if new is None else new
        course.count += (new is not None) - (old is not None)
        course.total += (new or 0.0) - (old or 0.0)
        for series, place in ((self._days, course.days[t]), (self._steps, t)):
            series.reward(place, old, new)

    def _issue(self, row: Row) -> None:
        self._issues[row.seq] = {"issue": row.seq, **row.said, "resolved": None, "note": None}

    def _resolved(self, row: Row) -> None:
        self._issues.pop(row.number or 0, None)

    def shown(self) -> dict[str, Any]:
        """All of it."""
        arms, chosen = list(self._arms), self._days.chosen()
        many = len(arms) > MOST_ARMS
        order = sorted(range(len(arms)), key=lambda arm: -chosen[arm]) if many else list(range(len(arms)))
        apart = order[: MOST_ARMS - 1] if many else order
        count, total = (
            sum(each.count for each in self._units.values()),
            sum(each.total for each in self._units.values()),
        )
        return {
            "seq": self.seq,
            "at": self._at,
            "units": len(self._units),
            "decisions": self._states.total(),
            "arms": [arms[arm] for arm in apart],
            "other_arms": len(arms) - len(apart),
            "days": self._dated(self._days.shown(order)),
            "steps": _stepped(self._steps.shown(order)),
            "states": {state: self._states[state] for state in STATES},
            "sources": {source: self._sources[source] for source in ("policy", "fallback", "host", "unavailable")},
            "explored": self._explored,
            "reward": short(total / count) if count else None,
            "issues": self._open_issues(),
        }

    def _open_issues(self) -> dict[str, int]:
        count = Counter(issue["severity"] for issue in self._issues.values())
        return {severity: count[severity] for severity in SEVERITIES}

    def open_issues(self, most: int) -> list[dict[str, Any]]:
        """Issues that are open: the gravest first, of those the newest."""
        return sorted(self._issues.values(), key=lambda each: (SEVERITIES.index(each["severity"]), -each["issue"]))[
            :most
        ]

    def roster(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Units, as they entered."""
        return [self._units[unit].shown() for unit in self._order[after : after + limit]]

    def unit(self, unit: str) -> dict[str, Any] | None:
        """A unit, and the last row that changed what is known of it."""
        course = self._units.get(unit)
        return None if course is None else course.shown() | {"seq": max(course.seq, self._terms_seq), "at": course.at}

    def _dated(self, series: dict[str, Any]) -> dict[str, Any]:
        days = range(self._first_day, self._first_day + len(series["decisions"]) * series["width"], series["width"])
        return {"start": [date.fromordinal(day).isoformat() for day in days], **series}


def _stepped(series: dict[str, Any]) -> dict[str, Any]:
    return {"start": [place * series["width"] for place in range(len(series["decisions"]))], **series}
