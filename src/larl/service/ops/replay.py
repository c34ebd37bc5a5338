"""Replay: every event is derived again from the events before it and compared with the stored one, byte for byte.

The handlers that serve requests derive the events; snapshots are not used. Taken as stored, because nothing determines
them: requests (their effect on later events is checked), times, a study's seed and secret, the version of larl, that a
policy failed, issues, and events missing at the very end. Policies must be those of this larl, on a machine with the
same arithmetic.

Memory: a few numbers for every unit, and agents up to `capacity` bytes.
"""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from larl import __version__
from larl._core.validation import InvalidValue
from larl.service.core.agent_cache import AgentCache
from larl.service.core.agent_repository import AgentRepository
from larl.service.core.batch import MEMORY
from larl.service.core.commands import Command, command_of
from larl.service.core.handlers import CommandHandlers
from larl.service.core.handlers.base import Step
from larl.service.core.issues import IssueLog
from larl.service.core.policy_timeout import CircuitOpen, DirectRunner
from larl.service.core.streams import ref_to_secret
from larl.service.core.study_repository import StudyRepository
from larl.service.ops.history_checks import HistoryChecks
from larl.service.ops.integrity import Mismatch, about, check_equal
from larl.service.schemas.requests import HistoryRequest, HistoryStep
from larl.service.storage.database import StorageError
from larl.service.storage.events import DamagedRow, Event, EventKind, canonical_json
from larl.service.storage.journal import Journal, Transaction
from larl.service.storage.tables import journal


class ReplaySummary(NamedTuple):
    """What was replayed."""

    events: int
    decisions: int
    other_versions: dict[str, int]  # number of decisions by version, if it is not this one


class ReplayTransaction(Transaction):
    """Appends events to memory only, and sees the journal as it was before event `seq`."""

    def __init__(self, source: Journal) -> None:
        self._journal, self.single_writer, self.seq = source, True, 0
        self.events, self._existing = [], {}

    def clear(self) -> None:
        """Forget the events of the last check."""
        self.events.clear()
        self._existing.clear()

    def select(self, *where: Any, limit: int | None = None, newest: bool = False) -> list[Event]:
        """Return events before `seq`."""
        return self._journal.select(*where, journal.c.seq < self.seq, limit=limit, newest=newest)

    def snapshot(self, study: str, unit: str, made_by: str) -> None:
        """Use no snapshot."""


class Replay:
    """Replays a journal, or one study of it."""

    def __init__(self, source: Journal, study: str | None = None, capacity: int = MEMORY) -> None:
        self._journal, self._study = source, study
        self._tx, self._runner = ReplayTransaction(source), DirectRunner()
        self._agents = AgentRepository(self._runner, AgentCache(capacity))
        self._studies = StudyRepository(self._agents)
        self._secret: bytes | None = None  # of the study that is created next
        self._handlers = CommandHandlers(self._studies, IssueLog(), lambda: self._secret, limit_state=False)
        self._history = HistoryChecks()
        self._waiting: set[tuple[str, str]] = set()  # units with a default reward that no decision follows yet

    def count(self) -> int:
        """Return the number of events to replay, at least 1; raise InvalidValue if there is no such study."""
        count = self._journal.count(*self._where())
        if self._study and not count:
            raise InvalidValue("replay", "study", self._study, self._journal.studies())
        return count or 1

    def _where(self) -> list[Any]:
        return [journal.c.study == self._study] if self._study else []

    def run(self, step: Callable[[], object] = lambda: None) -> ReplaySummary:
        """Replay all events; call `step` after each. Raise Mismatch."""
        events, versions = 0, Counter[str]()
        for event in self._journal.all(*self._where()):
            self.check(event)
            events += 1
            versions.update([event.response["larl"]] if event.kind == EventKind.DECISION else [])
            step()
        others = {version: count for version, count in versions.items() if version != __version__}
        return ReplaySummary(events, versions.total(), others)

    def check(self, event: Event) -> None:
        """Derive the next event and compare it with the stored one."""
        try:
            derived = self._derive(event)
            response = event.in_stored_names(json.loads(derived.response_json) | self._given(event))
        except Exception as error:
            if isinstance(error, Mismatch | StorageError) and not isinstance(error, DamagedRow):
                raise
            reason = f"nothing ({type(error).__name__}: {error})"
            raise Mismatch(event.seq, about(event), event.kind, event.response_json, reason) from error
        for name in ("unit", "ref", "number"):
            check_equal(event, name, getattr(event, name), getattr(derived, name))
        if event.kind == EventKind.DEFAULT:
            check_equal(event, "request", event.request_json, derived.request_json)
        check_equal(event, "response", event.response_json, response)

    def _given(self, event: Event) -> dict[str, Any]:
        """Return the fields of a response that nothing determines."""
        return {"larl": event.response["larl"]} if event.kind == EventKind.DECISION else {}

    def _derive(self, event: Event) -> Event:
        """Derive an event with the handlers; where the policy failed, it is not called."""
        self._tx.seq = event.seq
        self._tx.clear()
        self._agents.reset_circuits(event.study)  # whether a circuit was open depends on time
        if event.kind == EventKind.ISSUE:
            return self._issue(event)
        response, place = event.response, (event.study, event.unit or "")
        if place in self._waiting and event.kind not in (EventKind.DEFAULT, EventKind.DECISION):
            raise ValueError("a decision must follow a default reward")
        has_failed = response.get("source") == "fallback" or response.get("status") == "stored"
        if has_failed:
            with self._runner.without_policy(CircuitOpen("it failed")):
                derived = self._execute(event)
        else:
            derived = self._execute(event)
        if has_failed:
            self._agents.learn(self._studies.open_study(event.study).config, event.unit or "", [event])
        return derived

    def _execute(self, event: Event) -> Event:
        place = (event.study, event.unit or "")
        if event.kind == EventKind.DEFAULT:
            self._waiting.add(place)
            return self._default(event)
        imported = self._history.check(event)
        if imported is not None:
            return self._imported(event, imported)
        self._check_order(event)
        command = command_of(event)
        if isinstance(command.body, HistoryRequest):
            history = cast("Command[HistoryRequest]", command)
            self._history.begin(history)
            return self._handlers.history.begin(self._tx, history, event.at)
        if event.kind == EventKind.STUDY:
            self._secret = ref_to_secret(event.ref)
            if command.body.seed is None:  # type: ignore[attr-defined]
                command = command._replace(body=command.body.model_copy(update={"seed": event.response["seed"]}))
        self._waiting.discard(place)
        return self._handlers.execute(self._tx, command, event.at)

    def _check_order(self, event: Event) -> None:
        """Raise an error for an event that the service would not have appended here."""
        study = self._studies.find(event.study)
        if event.kind == EventKind.STUDY and study is not None:
            raise ValueError("the study exists already")
        if event.kind not in (EventKind.STUDY, EventKind.RESOLVED):
            self._studies.open_study(event.study)
        if event.kind == EventKind.UNIT and self._studies.has_unit(event.study, event.request["unit"]):
            raise ValueError("the unit exists already")
        if event.kind == EventKind.DECISION and study is not None:
            self._check_decision(event, study.config.max_delay)

    def _check_decision(self, event: Event, max_delay: int) -> None:
        request, source = event.request, event.response["source"]
        if (source == "host") != ("made" in request) or (source == "unavailable") != (request.get("available") == []):
            raise ValueError(f"its source cannot be {source}")
        unit = self._studies.unit(self._tx, event.study, request["unit"])
        if unit is None:
            raise ValueError("the unit is not registered")
        for _, decision in unit.overdue(max_delay):
            raise Mismatch(event.seq, about(event), "default reward", "none", f"one for {decision} before this row")

    def _step(self, event: Event) -> Step:
        """Return the next step of the unit of an event."""
        config = self._studies.open_study(event.study).config
        unit = self._studies.unit(self._tx, event.study, event.unit or "")
        if unit is None:
            raise ValueError("the unit is not registered")
        return Step(self._tx, config, unit, event.at)

    def _default(self, event: Event) -> Event:
        step = self._step(event)
        for t, decision in step.unit.overdue(step.config.max_delay):
            return self._handlers.rewards.fill_in(step, t, decision)
        raise ValueError("no reward was overdue")

    def _imported(self, event: Event, row: HistoryStep) -> Event:
        step = self._step(event)
        if step.unit.has_decided:
            raise ValueError("the unit has decided before")
        return self._handlers.history.add_decision(step, event.request["history"], row)

    def _issue(self, event: Event) -> Event:
        """Return an issue as it must be written."""
        response = event.response | {"unit": event.unit, "at": event.at}
        return event._replace(ref=response["code"], number=None, response_json=canonical_json(response))
