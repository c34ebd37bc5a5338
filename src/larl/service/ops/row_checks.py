"""Checks of a journal's rows against themselves and each other: cheaper than a replay, which derives every value.

They find text that is not JSON or not as larl writes it, columns that differ from the JSON, responses that differ from
their request, and gaps in rows, steps, units and versions. Only a replay finds a changed digit of a prediction.
"""

from collections import Counter
from typing import Any

from larl.service.storage.events import REWARD_EVENTS, DamagedRow, Event, EventKind, canonical_json

TOLERANCE = 1e-6  # of the sum of probabilities
COLUMNS = {  # by kind: columns, and the fields of the response that have the same value
    EventKind.STUDY: {"study": "study", "at": "made"},
    EventKind.POLICY: {"study": "study", "number": "policy_version", "at": "at"},
    EventKind.CLOSED: {"study": "study", "at": "closed"},
    EventKind.UNIT: {"study": "study", "unit": "unit", "number": "number", "at": "at"},
    EventKind.HISTORY: {"study": "study", "number": "steps", "at": "at"},
    EventKind.DECISION: {"study": "study", "unit": "unit", "ref": "id", "number": "t", "at": "at"},
    EventKind.REWARD: {"ref": "decision", "at": "at"},
    EventKind.DEFAULT: {"ref": "decision", "at": "at"},
    EventKind.DELIVERED: {"ref": "decision", "at": "at"},
    EventKind.ISSUE: {"unit": "unit", "ref": "code", "at": "at"},
    EventKind.RESOLVED: {"number": "issue", "at": "resolved"},
}
REPEATED = {  # by kind: fields of the request that the response repeats
    EventKind.UNIT: ("unit",),
    EventKind.DECISION: ("unit",),
    EventKind.REWARD: ("decision", "value", "arm"),
    EventKind.DEFAULT: ("decision", "value"),
    EventKind.DELIVERED: ("decision", "delivered"),
    EventKind.RESOLVED: ("issue", "note"),
}


class RowChecks:
    """Checks the rows of a journal in order."""

    def __init__(self) -> None:
        self._seq = 0
        self._next: Counter[tuple[str, ...]] = Counter()  # next step of a unit, unit or version of a study

    def check(self, event: Event) -> None:
        """Check the next row; raise DamagedRow."""
        self._seq += 1
        if event.seq != self._seq:
            raise DamagedRow(self._seq, "it is missing")
        request, response = event.request, event.response
        for name, text in (("request", event.request_json), ("response", event.response_json)):
            if canonical_json(event.parse(name, text)) != text:
                raise DamagedRow(event.seq, f"its {name} is not written as larl writes it")
        kind = EventKind(event.kind)
        for column, field in COLUMNS[kind].items():
            if getattr(event, column) != response[field]:
                raise DamagedRow(event.seq, f"its column {column} differs from {field} of its response")
        for field in REPEATED.get(kind, ()):
            if request[field] != response[field]:
                raise DamagedRow(event.seq, f"{field} of its request differs from that of its response")
        if kind == EventKind.DECISION:
            _check_probabilities(event, response)
        self._check_order(event, kind)

    def _check_order(self, event: Event, kind: EventKind) -> None:
        study, unit = event.study, event.unit or ""
        versions, units, steps = ("study", study), ("unit", study), ("step", study, unit)
        if kind != EventKind.STUDY and not self._next[versions]:
            raise DamagedRow(event.seq, f"there is no study {study} before it")
        if kind == EventKind.STUDY:
            self._next[versions] = 1
        elif kind == EventKind.POLICY:
            self._count(event, versions, "policy_version", 1)
        elif kind == EventKind.UNIT:
            self._count(event, units, "number of the unit")
            self._next[steps] = 0
        elif kind == EventKind.DECISION:
            if steps not in self._next:
                raise DamagedRow(event.seq, f"there is no unit {unit} before it")
            self._count(event, steps, "step")
        elif kind in (*REWARD_EVENTS, EventKind.DELIVERED) and not (event.number or 0) < self._next[steps]:
            raise DamagedRow(event.seq, f"its unit has no step {event.number}")

    def _count(self, event: Event, place: tuple[str, ...], what: str, first: int = 0) -> None:
        """Check a number that must be the next one of its place."""
        expected = first + self._next[place]
        if event.number != expected:
            raise DamagedRow(event.seq, f"its {what} is {event.number}; after the rows before, it must be {expected}")
        self._next[place] += 1


def _check_probabilities(event: Event, response: Any) -> None:
    probabilities, arm = response["probabilities"], response["arm"]
    total = sum(probabilities.values())
    if arm is not None and probabilities and (arm not in probabilities or abs(total - 1.0) > TOLERANCE):
        raise DamagedRow(event.seq, f"its probabilities must have sum 1 and one for its arm; their sum is {total}")
