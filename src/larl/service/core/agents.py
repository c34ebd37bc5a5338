"""An agent or cohort as a fold over the events of the journal, with snapshots."""

import json
import math
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from larl import __version__
from larl._core.compile import source_digest
from larl._core.validation import InvalidValue
from larl.live.agent import Agent, Decision
from larl.live.cohort import Cohort
from larl.service.core.policy_timeout import PolicyRunner
from larl.service.core.study_config import StudyConfig
from larl.service.storage.events import REWARD_EVENTS, DamagedRow, Event, EventKind, canonical_json

CODE_VERSION = f"{__version__}-{source_digest()}"  # snapshots of other code are not used
COMPILE_LIMIT = 300.0  # seconds that compiling a policy may take
COPIES = 4  # of a State that an agent keeps, at most
_compiled: set[str] = set()


def compile_policy(config: StudyConfig) -> Exception | None:
    """Compile a study's policy before it decides, which may take minutes; return why it failed, or None."""
    name = canonical_json([dict(config.policy), len(config.arms), config.pooling])
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
    handle.observe(handle.decide("unit", None, [0.0] * config.context_size).id, 0.0, None)


class AgentHandle:
    """An agent or cohort, and the last event that it has learnt from."""

    def __init__(self, config: StudyConfig, number: int, snapshot: Any = None) -> None:
        self.config, self.number, self.seq = config, number, 0
        self.unsaved = 0  # events since the last snapshot
        if snapshot is None:
            self.agent: Any = config.new_agent(number)
        else:
            kind = Cohort if config.is_pooled else Agent
            self.agent, self.seq = kind.unpack(json.loads(zlib.decompress(snapshot.state))), snapshot.seq
            self.agent.use_streams(config.streams)
        self._prefix = f"{config.study}." if config.is_pooled else f"{config.study}.{number}-"

    def snapshot(self) -> bytes:
        """Return the whole agent as bytes."""
        self.unsaved = 0
        return zlib.compress(json.dumps(self.agent.pack()).encode(), 1)

    @property
    def size(self) -> int:
        """Approximate size in bytes; 0 for a cohort, of which there is one per study."""
        return 0 if self.config.is_pooled else COPIES * self.config.state_size + 48 * self.config.max_delay

    def decide(self, unit: str, available: Sequence[str] | None, context: Sequence[float] | None) -> Decision:
        """Decide for a unit; raise ArithmeticError if the policy's numbers are not valid."""
        self.unsaved += 1
        self._check_state(unit)
        decision: Decision = self.agent.decide(*self._unit(unit), available, self._context(context))
        return validated(decision._replace(id=f"{self._prefix}{decision.id}"))

    def _check_state(self, unit: str) -> None:
        """Raise ArithmeticError if the State is not finite: then arms cannot be compared."""
        if self.config.is_pooled and unit not in self.agent.units:
            return
        state = self.agent.state(unit) if self.config.is_pooled else self.agent.state
        for array in self.config.finite_arrays(state):
            if not math.isfinite(np.vdot(array, array)) and not np.isfinite(array).all():  # a square may overflow
                raise ArithmeticError("the policy's State is not finite")

    def record(self, unit: str, arm: str | None, context: Sequence[float] | None) -> None:
        """Record an arm that was chosen outside the policy; None if no arm was available."""
        self.unsaved += 1
        self.agent.record(*self._unit(unit), arm, self._context(context))

    def observe(self, decision: str, value: float | None, arm: str | None) -> str:
        """Learn the reward of a decision; return its status."""
        self.unsaved += 1
        return str(self.agent.observe(decision.removeprefix(self._prefix), value, arm=arm))

    def learn(self, events: Iterable[Event]) -> "AgentHandle":
        """Learn from LEARNING_EVENTS of the journal; return the handle."""
        for event in events:
            try:
                self._learn(event)
            except (InvalidValue, KeyError) as error:
                raise DamagedRow(event.seq, f"it cannot be learnt ({error})") from error
            self.seq = max(self.seq, event.seq)
        return self

    def _learn(self, event: Event) -> None:
        if event.kind == EventKind.UNIT and self.config.is_pooled:
            self.agent.enter(event.unit)
        elif event.kind == EventKind.DECISION:
            self.record(event.unit or "", event.response["arm"], event.request.get("context"))
        elif event.kind in REWARD_EVENTS:
            request = event.request
            self.observe(event.ref or "", request["value"], request.get("arm"))

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
