"""The events of an import must be its steps and rewards, in order."""

from collections import deque
from typing import Any, NamedTuple

from larl.service.core.commands import Command
from larl.service.core.handlers.history import stored_step
from larl.service.schemas.requests import HistoryRequest, HistoryStep
from larl.service.storage.events import Event, EventKind


class _Expected(NamedTuple):
    """An event that must follow an import: the decision or the reward of a step."""

    kind: EventKind
    row: HistoryStep
    key: str  # of the import


class HistoryChecks:
    """Checks the events that follow imports."""

    def __init__(self) -> None:
        self._expected: dict[str, deque[_Expected]] = {}  # by study
        self._decision: dict[str, str | None] = {}  # id of the last imported decision of a study

    def begin(self, command: Command[HistoryRequest]) -> None:
        """Expect the events of an import."""
        expected = self._expected[command.study] = deque[_Expected]()
        for row in command.body.steps:
            expected.append(_Expected(EventKind.DECISION, row, command.key))
            if row.arm is not None:
                expected.append(_Expected(EventKind.REWARD, row, command.key))

    def check(self, event: Event) -> HistoryStep | None:
        """Return the step of an imported decision, None for other events; raise ValueError if another is expected."""
        expected = self._expected.get(event.study)
        is_imported = event.kind == EventKind.DECISION and "history" in event.request
        if not expected:
            if is_imported:
                raise ValueError("there is no import before it to which it belongs")
            return None
        if event.kind in (EventKind.UNIT, EventKind.ISSUE):
            return None
        kind, row, key = expected.popleft()
        if kind == EventKind.DECISION:
            _require(event, kind, stored_step(key, row), row.id)
            self._decision[event.study] = event.ref
            return row
        decision = self._decision[event.study]
        _require(event, kind, {"decision": decision, "value": row.reward, "arm": None}, None)
        return None


def _require(event: Event, kind: EventKind, request: dict[str, Any], key: str | None) -> None:
    if (event.kind, event.request, event.key) != (kind, request, key):
        raise ValueError(f"the import before it has another {kind} here")
