"""Agents of units and studies, rebuilt from the journal and its snapshots when they are needed."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from larl.service.core.agent_cache import AgentCache, Place
from larl.service.core.agents import AgentHandle, made_by
from larl.service.core.policy_timeout import CircuitOpen, DirectRunner
from larl.service.core.snapshots import InvalidSnapshot, Snapshot, SnapshotWriter, read_snapshot
from larl.service.core.state import UnitState
from larl.service.core.study_config import StudyConfig
from larl.service.storage.events import LEARNING_EVENTS, Event

LOG = logging.getLogger("larl.service")
Result = TypeVar("Result")
MAX_PAUSE = 60.0  # seconds for which a policy that fails again and again is not called


class EventSource(Protocol):
    """Where agents are rebuilt from: a transaction, or the journal."""

    def snapshot(self, study: str, unit: str, made_by: str) -> Any:
        """Return the row of a snapshot, or None."""

    def position(self, study: str, unit: str | None, seq: int) -> tuple[int, str] | None:
        """Return the number of decisions until event `seq`, and its time; None if it is not an event of the unit."""

    def learning_events(self, study: str, unit: str | None, after: int = 0) -> list[Event]:
        """Return the events from which an agent learns."""


class AgentRepository:
    """The agents of studies that are executed on one thread. Without `snapshots`, none are saved."""

    def __init__(self, runner: DirectRunner, cache: AgentCache, snapshots: SnapshotWriter | None = None) -> None:
        self._runner, self.cache, self._snapshots = runner, cache, snapshots
        self._circuits: dict[Place, tuple[int, float]] = {}  # failures in a row, and the end of the pause
        self._due: dict[Place, AgentHandle] = {}  # agents whose next snapshot is due

    def call(
        self, source: EventSource, config: StudyConfig, unit: UnitState, use: Callable[[AgentHandle], Result]
    ) -> Result:
        """Return `use(agent)` for a unit; raise CircuitOpen, PolicyTimeout, or what the policy raises."""
        place = _place(config, unit.unit)
        failures, until = self._circuits.get(place, (0, 0.0))
        if time.monotonic() < until:
            raise CircuitOpen(f"it failed {failures} times in a row")
        handle = self.cache.get(place)
        if handle is None or handle.config.version != config.version:
            handle = self._load(source, config, unit, place)
        return self._runner.call(use, handle)

    def _load(self, source: EventSource, config: StudyConfig, unit: UnitState, place: Place) -> AgentHandle:
        """Rebuild an agent from its snapshot, if there is a valid one, and the events after it."""
        self.cache.drop(place)
        number = 0 if config.is_pooled else unit.number
        snapshot = self._find_snapshot(source, config, number, place)
        events = source.learning_events(place[0], place[1] or None, snapshot.seq if snapshot else 0)
        handle = self._runner.call(self._rebuild, config, number, place[1], snapshot, events)
        if handle is None:
            events = source.learning_events(place[0], place[1] or None)
            handle = self._runner.call(lambda: AgentHandle(config, number, place[1]).learn(events))
        for other, evicted in self.cache.put(place, handle):
            if other[0] == place[0]:  # agents of other studies may be in use by another thread
                self._save(evicted)
        return handle

    def _rebuild(
        self, config: StudyConfig, number: int, unit: str, snapshot: Snapshot | None, events: Sequence[Event]
    ) -> AgentHandle | None:
        """Return an agent that has learnt from events; None if the snapshot does not fit."""
        try:
            handle = AgentHandle(config, number, unit, snapshot)
        except Exception as error:
            if snapshot is None:
                raise
            _warn(config.study, number, error)
            return None
        return handle.learn(events)

    def _find_snapshot(self, source: EventSource, config: StudyConfig, number: int, place: Place) -> Snapshot | None:
        """Return the snapshot of an agent, if there is one and everything about it is right."""
        made = made_by(config)
        waiting = self._snapshots.find(*place, made) if self._snapshots else None
        row = None if waiting else source.snapshot(*place, made)
        if row is None and waiting is None:
            return None
        try:
            snapshot = waiting or read_snapshot(row)
            found = source.position(place[0], place[1] or None, snapshot.seq)
            if (snapshot.number, snapshot.decisions, snapshot.at) != (number, *(found or (0, ""))):
                raise InvalidSnapshot("the journal has other events until there")
        except (ValueError, TypeError) as error:
            _warn(config.study, number, error)
            return None
        return snapshot

    def learn(self, config: StudyConfig, unit: str, events: Sequence[Event]) -> None:
        """Let an agent in memory learn from events that it did not produce; if it fails, it is rebuilt when needed."""
        place = _place(config, unit)
        handle = self.cache.get(place)
        if handle is not None and events:
            try:
                self._runner.call(handle.learn, events)
            except Exception:
                self.cache.drop(place)

    def catch_up(self, source: EventSource, config: StudyConfig, unit: str = "") -> None:
        """Let an agent in memory learn from events that other processes wrote."""
        place = _place(config, unit)
        handle = self.cache.get(place)
        if handle is not None and handle.config.version == config.version:
            self.learn(config, unit, source.learning_events(place[0], place[1] or None, handle.seq))

    def drop(self, study: str, unit: str) -> None:
        """Remove an agent from memory; it is rebuilt when it is needed."""
        self.cache.drop((study, unit))

    def clear(self) -> None:
        """Remove all agents from memory."""
        self.cache.clear()

    def rollback(self, study: str, unit: str) -> None:
        """Remove agents that may know of events that are not stored."""
        self.cache.drop((study, unit))
        self.cache.drop((study, ""))

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
        self.cache.drop(place)

    def reset_circuits(self, study: str) -> None:
        """Close the circuits of a study, which has a new policy."""
        self._circuits = {place: state for place, state in self._circuits.items() if place[0] != study}

    def committed(self, events: Sequence[Event]) -> None:
        """Note the numbers of stored events, and which agents have learnt from so many that a snapshot is due."""
        changed: dict[Place, AgentHandle] = {}
        for event in events:
            if event.kind in LEARNING_EVENTS:
                handle = self.cache.get((event.study, event.unit or "")) or self.cache.get((event.study, ""))
                if handle is not None:
                    handle.stored(event)
                    changed[handle.place] = handle
        for place, handle in changed.items():
            self.cache.resize(handle)
            if handle.is_snapshot_due:
                self._due[place] = handle

    def save_due(self) -> None:
        """Save the snapshots that are due."""
        due, self._due = self._due, {}
        for handle in due.values():
            self._save(handle)

    def save_all(self, study: str) -> None:
        """Save snapshots of all agents of a study that have changed since their last."""
        for _, handle in self.cache.of(study):
            self._save(handle, wait=True)

    def _save(self, handle: AgentHandle, *, wait: bool = False) -> None:
        """Pass a snapshot to the writer, unless the agent knows of events that are not stored."""
        if self._snapshots is None or not handle.is_stored or not handle.unsaved:
            return
        if wait or not self._snapshots.is_full:
            self._snapshots.save(handle.snapshot())
            handle.unsaved = 0


def _place(config: StudyConfig, unit: str) -> Place:
    return config.study, "" if config.is_pooled else unit


def _warn(study: str, number: int, error: Exception) -> None:
    reason = f"{type(error).__name__}: {error}"
    LOG.warning("a snapshot of study %s, unit number %d, is not used; its events are read: %s", study, number, reason)
