"""Agents of units and studies, rebuilt from the journal and its snapshots when they are needed."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from larl.service.core.agents import AgentHandle, made_by
from larl.service.core.policy_timeout import CircuitOpen, DirectRunner
from larl.service.core.state import UnitState
from larl.service.core.study_config import StudyConfig
from larl.service.storage.events import LEARNING_EVENTS, Event

Result = TypeVar("Result")
SNAPSHOT_EVERY = 64  # events
MAX_PAUSE = 60.0  # seconds for which a policy that fails again and again is not called


class EventSource(Protocol):
    """Where agents are rebuilt from: a transaction, or the journal."""

    @property
    def events(self) -> Sequence[Event]:
        """Events that are not stored yet."""

    def snapshot(self, study: str, unit: str, made_by: str) -> Any:
        """Return a snapshot, or None."""

    def learning_events(self, study: str, unit: str | None, after: int = 0) -> list[Event]:
        """Return the events from which an agent learns."""

    def save_snapshot(self, **values: Any) -> None:
        """Store a snapshot."""


class AgentRepository:
    """Agents in memory, up to `capacity` bytes: those used last. A cohort always stays."""

    def __init__(self, runner: DirectRunner, capacity: int) -> None:
        self._runner, self._capacity, self._bytes = runner, capacity, 0
        self._handles: OrderedDict[tuple[str, str], AgentHandle] = OrderedDict()  # by study and unit, "" for a cohort
        self._circuits: dict[tuple[str, str], tuple[int, float]] = {}  # failures in a row, and the end of the pause

    def call(
        self, source: EventSource, config: StudyConfig, unit: UnitState, use: Callable[[AgentHandle], Result]
    ) -> Result:
        """Return `use(agent)` for a unit; raise CircuitOpen, PolicyTimeout, or what the policy raises."""
        place = _place(config, unit.unit)
        failures, until = self._circuits.get(place, (0, 0.0))
        if time.monotonic() < until:
            raise CircuitOpen(f"it failed {failures} times in a row")
        handle = self._handles.get(place)
        if handle is None or handle.config.version != config.version:
            handle = self._load(source, config, unit.number, place)
        self._handles.move_to_end(place)
        return self._runner.call(use, handle)

    def _load(self, source: EventSource, config: StudyConfig, number: int, place: tuple[str, str]) -> AgentHandle:
        """Rebuild an agent from its snapshot, if there is one, and the events after it."""
        self.drop(*place)
        snapshot = source.snapshot(*place, made_by(config))
        events = source.learning_events(place[0], place[1] or None, snapshot.seq if snapshot else 0)
        handle = self._runner.call(lambda: AgentHandle(config, number, snapshot).learn(events))
        self._handles[place] = handle
        self._bytes += handle.size
        if self._bytes > self._capacity:
            self._evict(source)
        return handle

    def _evict(self, source: EventSource) -> None:
        """Drop the agents that were not used for longest, but none that has learnt from events not stored yet."""
        busy = {(event.study, event.unit) for event in source.events}
        for _ in range(len(self._handles) - 1):
            if self._bytes <= self._capacity:
                return
            place, handle = next(iter(self._handles.items()))
            if place in busy or handle.config.is_pooled:
                self._handles.move_to_end(place)
                continue
            if handle.unsaved:
                _save(source, place, handle)
            self.drop(*place)

    def learn(self, config: StudyConfig, unit: str, events: Sequence[Event]) -> None:
        """Let an agent in memory learn from events that it did not produce; if it fails, it is rebuilt when needed."""
        place = _place(config, unit)
        handle = self._handles.get(place)
        if handle is not None and events:
            try:
                self._runner.call(handle.learn, events)
            except Exception:
                self.drop(*place)

    def catch_up(self, source: EventSource, config: StudyConfig, unit: str = "") -> None:
        """Let an agent in memory learn from events that other processes wrote."""
        place = _place(config, unit)
        handle = self._handles.get(place)
        if handle is not None and handle.config.version == config.version:
            self.learn(config, unit, source.learning_events(place[0], place[1] or None, handle.seq))

    def drop(self, study: str, unit: str) -> None:
        """Remove an agent from memory; it is rebuilt when it is needed."""
        handle = self._handles.pop((study, unit), None)
        if handle is not None:
            self._bytes -= handle.size

    def clear(self) -> None:
        """Remove all agents from memory."""
        self._handles.clear()
        self._bytes = 0

    def rollback(self, study: str, unit: str) -> None:
        """Remove agents that may know of events that are not stored."""
        self.drop(study, unit)
        self.drop(study, "")

    def record_success(self, config: StudyConfig, unit: str) -> None:
        """Close the circuit of a policy that works."""
        if self._circuits:
            self._circuits.pop(_place(config, unit), None)

    def record_failure(self, config: StudyConfig, unit: str) -> None:
        """Remove an agent whose policy failed; from the second failure in a row on, open its circuit for a while."""
        place = _place(config, unit)
        count = self._circuits.get(place, (0, 0.0))[0] + 1
        pause = min(2.0**count, MAX_PAUSE) if count > 1 else 0.0
        self._circuits[place] = count, time.monotonic() + pause
        self.drop(*place)

    def reset_circuits(self, study: str) -> None:
        """Close the circuits of a study, which has a new policy."""
        self._circuits = {place: state for place, state in self._circuits.items() if place[0] != study}

    def committed(self, source: EventSource, every: int = SNAPSHOT_EVERY) -> None:
        """Note the numbers of stored events, and save snapshots of agents that have learnt from many."""
        changed: dict[tuple[str, str], AgentHandle] = {}
        for event in source.events:
            for place in ((event.study, event.unit or ""), (event.study, "")):
                handle = self._handles.get(place) if event.kind in LEARNING_EVENTS else None
                if handle is not None:
                    handle.seq = event.seq
                    changed[place] = handle
        for place, handle in changed.items():
            if handle.unsaved >= (4 * every if handle.config.is_pooled else every):
                _save(source, place, handle)

    def save_all(self, source: EventSource) -> None:
        """Save snapshots of all agents that have changed since their last."""
        for place, handle in self._handles.items():
            if handle.unsaved:
                _save(source, place, handle)


def _place(config: StudyConfig, unit: str) -> tuple[str, str]:
    return config.study, "" if config.is_pooled else unit


def _save(source: EventSource, place: tuple[str, str], handle: AgentHandle) -> None:
    study, unit = place
    made = made_by(handle.config)
    source.save_snapshot(study=study, unit=unit, seq=handle.seq, made_by=made, state=handle.snapshot())
