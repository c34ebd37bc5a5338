"""Events of the journal, and the field names of events that earlier versions wrote."""

import json
from enum import StrEnum
from typing import Any, NamedTuple

from larl.client.models import DecisionSource, RewardStatus, Severity
from larl.service.storage.sqlite_file import StorageError

RENAMED = {"floor": "min_probability", "patience": "max_delay", "terms": "config", "taken": "status"}  # old: new
OLD_NAMES = {new: old for old, new in RENAMED.items()}
canonical_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode


class EventKind(StrEnum):
    """What an event records."""

    STUDY = "study"
    POLICY = "policy"
    CLOSED = "closed"
    UNIT = "unit"
    HISTORY = "history"  # an import of steps: their units, decisions and rewards are the events after it
    DECISION = "decision"
    REWARD = "reward"
    DEFAULT = "default"  # no reward came in time
    DELIVERED = "delivered"
    ISSUE = "issue"
    RESOLVED = "resolved"


STUDY_EVENTS = (EventKind.STUDY, EventKind.POLICY, EventKind.CLOSED)  # define the configuration of a study
REWARD_EVENTS = (EventKind.REWARD, EventKind.DEFAULT)
LEARNING_EVENTS = (EventKind.UNIT, EventKind.DECISION, *REWARD_EVENTS)  # an agent is a fold over these


FIELDS = {  # of responses, by kind: those that all versions have written
    EventKind.STUDY: ("config",),
    EventKind.POLICY: ("config",),
    EventKind.CLOSED: ("study", "closed"),
    EventKind.UNIT: ("study", "unit", "number", "at"),
    EventKind.HISTORY: ("study", "steps", "units", "at"),
    EventKind.DECISION: (
        *("id", "study", "unit", "t", "arm", "probabilities", "expected", "width"),
        *("explored", "fallback", "source", "policy_version", "larl", "at"),
    ),
    EventKind.REWARD: ("decision", "value", "arm", "status", "at"),
    EventKind.DEFAULT: ("decision", "value", "status", "at"),
    EventKind.DELIVERED: ("decision", "delivered", "at"),
    EventKind.ISSUE: ("severity", "code", "unit", "happened", "done", "at"),
    EventKind.RESOLVED: ("issue", "resolved", "note"),
}
VALUES = {"source": tuple(DecisionSource), "status": tuple(RewardStatus), "severity": tuple(Severity)}  # of responses


class DamagedRow(StorageError):
    """A row of the journal that cannot be read, or contradicts itself or the rows before it."""

    def __init__(self, seq: int, what: str) -> None:
        self.seq, self.reason = seq, f"row {seq} of the journal is damaged: {what}"
        OSError.__init__(self, self.reason)


class Event(NamedTuple):
    """A row of the journal. `seq` is 0 until it is written."""

    seq: int
    study: str
    kind: str
    unit: str | None
    ref: str | None  # id of the decision, code of the issue, or secret of the study (core/streams)
    number: int | None  # step of a decision, number of a unit or issue, version of a policy, steps of an import
    key: str | None
    at: str
    request_json: str
    response_json: str

    @property
    def request(self) -> Any:
        """The request, with today's field names."""
        return _renamed(self.parse("request", self.request_json), RENAMED)

    @property
    def response(self) -> Any:
        """The response, with today's field names; raise DamagedRow if one is missing."""
        values = _renamed(self.parse("response", self.response_json), RENAMED)
        if self.kind not in FIELDS:
            raise DamagedRow(self.seq, f"its kind is {self.kind}")
        for name in FIELDS[EventKind(self.kind)]:
            if name not in values:
                raise DamagedRow(self.seq, f"its response has no field {name}")
        for name, accepted in VALUES.items():
            if name in values and values[name] not in accepted:
                raise DamagedRow(self.seq, f"{name} of its response must be one of {', '.join(accepted)}")
        return values

    def check_response(self) -> None:
        """Raise DamagedRow if the response cannot be read: then it must not be sent."""
        _ = self.response

    def parse(self, name: str, text: str) -> dict[str, Any]:
        """Return the JSON object of a column; raise DamagedRow if it is none."""
        try:
            text.encode()  # bytes that are not UTF-8 were read as surrogates
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DamagedRow(self.seq, f"its {name} is not JSON ({error})") from error
        if not isinstance(values, dict):
            raise DamagedRow(self.seq, f"its {name} is not a JSON object")
        return values

    def in_stored_names(self, values: dict[str, Any]) -> str:
        """Return a response as JSON, with the field names of the version that wrote this event."""
        old = not RENAMED.keys().isdisjoint(json.loads(self.response_json))
        return canonical_json(_renamed(values, OLD_NAMES) if old else values)


def _renamed(values: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    if names.keys().isdisjoint(values):
        return values
    renamed = {names.get(name, name): value for name, value in values.items()}
    for name in ("config", "terms"):
        if name in renamed:
            renamed[name] = _renamed(renamed[name], names)
    return renamed
