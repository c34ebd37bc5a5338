"""An agent or cohort as a fold over the events of the journal, with snapshots."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from larl import __version__
from larl._core.kernel_cache import source_digest
from larl._core.validation import InvalidValue
from larl.client.models import DecisionSource
from larl.live import snapshots
from larl.live.decision import Decision
from larl.service.clock import now
from larl.service.core.policy_timeout import PolicyRunner
from larl.service.core.snapshots import Snapshot
from larl.service.core.study_config import StudyConfig
from larl.service.storage.events import REWARD_EVENTS, DamagedRow, Event, EventKind, canonical_json

SNAPSHOT_FORMAT = 2  # 1 was JSON
CODE_VERSION = f"{__version__}-{source_digest()}-{SNAPSHOT_FORMAT}"  # snapshots of other code are not used
COMPILE_LIMIT = 300.0  # seconds that compiling a policy may take
OVERHEAD = 8_000  # bytes of an agent besides its arrays' data, about
SNAPSHOT_EVERY = 64  # events
LARGE_ARRAY = 4096  # numbers from which on a product is no faster than a look at each
BYTES_PER_EVENT = 16_384  # of a snapshot: large ones are saved less often
_compiled: set[str] = set()


def compile_policy(config: StudyConfig) -> Exception | None:
    """Compile a study's policy before it decides, which may take minutes; return why it failed, or None."""
    name = canonical_json([dict(config.policy), len(config.arms), config.pooling, config.is_plain])
    if name not in _compiled:
        runner = PolicyRunner(COMPILE_LIMIT)
        try:
            runner.call(_try, config)
        except Exception as error:  # it fails again when it decides, which is handled there
            return error
        finally:
            runner.close()
        _compiled.add(name)
    return None


def _try(config: StudyConfig) -> None:
    handle = AgentHandle(config, 0)
    handle.observe(handle.decide("unit", None, [0.0] * config.context_size, now()).id, 0.0, None)


class AgentHandle:
    """An agent or cohort, and the last event that it has learnt from."""

    def __init__(self, config: StudyConfig, number: int, unit: str = "", snapshot: Snapshot | None = None) -> None:
        self.config, self.number = config, number
        self.place = config.study, "" if config.is_pooled else unit
        self.seq, self.at = 0, ""  # number and time of the last stored event that it knows
        self.unsaved = 0  # events since the last snapshot
        self.is_stored = True  # whether all events that it knows are stored
        self.size = 0
        self.agent: Any = config.new_agent(number)
        if snapshot is not None:
            snapshots.restore(self.agent, snapshot.content)
            self.seq, self.at = snapshot.seq, snapshot.at
        self._prefix = f"{config.study}." if config.is_pooled else f"{config.study}.{number}-"

    def snapshot(self) -> Snapshot:
        """Return the whole agent as bytes."""
        content, decisions = snapshots.dump(self.agent), self.agent._history.end
        return Snapshot(*self.place, self.number, self.seq, self.at, decisions, made_by(self.config), content)

    @property
    def is_snapshot_due(self) -> bool:
        """Whether so much was learnt since the last snapshot that the next one is worth its costs."""
        every = max(SNAPSHOT_EVERY, self.size // BYTES_PER_EVENT)
        return self.is_stored and self.unsaved >= (4 * every if self.config.is_pooled else every)

    def update_size(self) -> int:
        """Return the bytes that the agent holds now, and set `size`."""
        self.size = OVERHEAD + snapshots.memory(self.agent, self.config.state_size)
        return self.size

    def stored(self, event: Event) -> None:
        """Note that an event that the agent knows is stored."""
        self.seq, self.at, self.is_stored = event.seq, event.at, True

    def decide(self, unit: str, available: Sequence[str] | None, context: Sequence[float] | None, at: str) -> Decision:
        """Decide for a unit at a time; raise ArithmeticError if the policy's numbers are not valid."""
        self._learns()
        self._check_state(unit)
        day = self.config.day(at)
        decision: Decision = self.agent.decide(*self._unit(unit), available, self._context(context), day)
        return validated(decision._replace(id=f"{self._prefix}{decision.id}"))

    def _check_state(self, unit: str) -> None:
        """Raise ArithmeticError if the State is not finite: then arms cannot be compared."""
        if self.config.is_pooled and unit not in self.agent.units:
            return
        state = self.agent.state(unit) if self.config.is_pooled else self.agent.state
        for array in self.config.finite_arrays(state):
            is_small = array.size < LARGE_ARRAY
            if is_small and math.isfinite(np.vdot(array, array)):  # the fastest check; a square may overflow
                continue
            if not np.isfinite(array).all():
                raise ArithmeticError("the policy's State is not finite")

    def record(self, unit: str, arm: str | None, context: Sequence[float] | None) -> None:
        """Record an arm that was chosen outside the policy; None if no arm was available."""
        self._learns()
        self.agent.record(*self._unit(unit), arm, self._context(context))

    def observe(self, decision: str, value: float | None, arm: str | None) -> str:
        """Learn the reward of a decision; return its status."""
        self._learns()
        return str(self.agent.observe(decision.removeprefix(self._prefix), value, arm=arm))

    def learn(self, events: Iterable[Event]) -> "AgentHandle":
        """Learn from LEARNING_EVENTS of the journal; return the handle."""
        for event in events:
            try:
                self._learn(event)
            except (InvalidValue, KeyError) as error:
                raise DamagedRow(event.seq, f"it cannot be learnt ({error})") from error
            self.is_stored = event.seq > 0
            if self.is_stored:
                self.stored(event)
        return self

    def _learn(self, event: Event) -> None:
        if event.kind == EventKind.UNIT and self.config.is_pooled:
            self.agent.enter(event.unit)
        elif event.kind == EventKind.DECISION:
            unit, response = event.unit or "", event.response
            if self.config.update_every is not None and response["source"] == DecisionSource.POLICY:
                self.agent.update_if_due(*self._unit(unit), self.config.day(event.at))
            self.record(unit, response["arm"], event.request.get("context"))
        elif event.kind in REWARD_EVENTS:
            request = event.request
            self.observe(event.ref or "", request["value"], request.get("arm"))

    def _learns(self) -> None:
        self.unsaved += 1
        self.is_stored = False

    def _unit(self, unit: str) -> tuple[str, ...]:
        return (unit,) if self.config.is_pooled else ()

    def _context(self, context: Sequence[float] | None) -> Sequence[float] | None:
        return context if self.config.context_size else None


def made_by(config: StudyConfig) -> str:
    """Return what a snapshot must have been made by to be used for this configuration."""
    return f"{CODE_VERSION}-{config.version}"


def validated(decision: Decision) -> Decision:
    """Return a decision with finite numbers; raise ArithmeticError for what a policy must not return."""
    probabilities = decision.probabilities.values()
    if not math.isfinite((decision.expected or 0.0) + (decision.width or 0.0)):
        numbers = f"{decision.expected} with width {decision.width}"
        raise ArithmeticError(f"the policy's prediction is not finite: {numbers}")
    in_range = all(0.0 <= probability <= 1.0 + 1e-9 for probability in probabilities)
    if not in_range or not math.isclose(sum(probabilities), 1.0, abs_tol=1e-6):
        raise ArithmeticError(f"the policy's probabilities must be in [0, 1] and sum to 1: {decision.probabilities}")
    if decision.arm is not None and decision.probabilities[decision.arm] <= 0.0:
        raise ArithmeticError(f"the policy chose arm {decision.arm}, to which it gives probability 0")
    return decision
