"""Events of the journal, and the field names of events that earlier versions wrote."""

import json
from enum import StrEnum
from typing import Any, NamedTuple

RENAMED = {"floor": "min_probability", "patience": "max_delay", "terms": "config", "taken": "status"}  # old: new
OLD_NAMES = {new: old for old, new in RENAMED.items()}
canonical_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode


class EventKind(StrEnum):
    """What an event records."""

    STUDY = "study"
    POLICY = "policy"
    CLOSED = "closed"
    UNIT = "unit"
    DECISION = "decision"
    REWARD = "reward"
    DEFAULT = "default"  # no reward came in time
    DELIVERED = "delivered"
    ISSUE = "issue"
    RESOLVED = "resolved"


STUDY_EVENTS = (EventKind.STUDY, EventKind.POLICY, EventKind.CLOSED)  # define the configuration of a study
REWARD_EVENTS = (EventKind.REWARD, EventKind.DEFAULT)
LEARNING_EVENTS = (EventKind.UNIT, EventKind.DECISION, *REWARD_EVENTS)  # an agent is a fold over these


class Event(NamedTuple):
    """A row of the journal. `seq` is 0 until it is written."""

    seq: int
    study: str
    kind: str
    unit: str | None
    ref: str | None  # id of the decision, code of the issue, or secret of the study (core/streams)
    number: int | None  # step of a decision, number of a unit or issue, version of a policy
    key: str | None
    at: str
    request_json: str
    response_json: str

    @property
    def request(self) -> Any:
        """The request, with today's field names."""
        return _renamed(json.loads(self.request_json), RENAMED)

    @property
    def response(self) -> Any:
        """The response, with today's field names."""
        return _renamed(json.loads(self.response_json), RENAMED)

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
