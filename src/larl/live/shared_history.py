"""The history of units that share what they learn: one log in order of decisions, and the stacked State of all units.

A late or corrected reward changes what all units have learnt since. It is written to the log at once, and the State is
rebuilt when it is next needed: all changes are then replayed together, from a `SharedCheckpoint` before the first
of them. A checkpoint copies the States of all units, so checkpoints are at least as many decisions apart as there are
units: that costs at most one unit's State per decision. Older checkpoints are further apart. Going back to a
checkpoint restores only the units that have decided since.
"""

import math
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from larl._core.compile import naming_own_functions
from larl._core.states import Memory, Words
from larl.live import files
from larl.live.history import History, Ints
from larl.live.kernels import STATE, replay_shared
from larl.live.log_checks import LogSizes, check_integers, check_log, check_time
from larl.policies._entry import Handle
from larl.policies._pooling import shared_fields

INITIAL_CAPACITY = 16  # units, and rows of the log
CHECKPOINT_INTERVAL, INTERVAL_FACTOR = 64, 4  # decisions; ratio of two successive spacings of checkpoints
LOG_COLUMNS = ("unit", "arm", "reward", "pending", "context")


class SharedCheckpoint(NamedTuple):
    """Copies of the blocks of the State (`Memory`) before step `time` of the cohort."""

    time: int
    shared: Words
    own: Words  # of the units that existed


class SharedHistory:
    """The stacked State, and the steps since the first checkpoint: step i of the cohort is in row(i) of the log."""

    def __init__(self, state: Any, record: Ints, max_delay: int, context_size: int) -> None:
        """Start without units; `state` is the State of a new one, `record` has what all decisions have in common."""
        self.max_delay, self.units, self._record = max_delay, 0, record
        self.memory = Memory(state, INITIAL_CAPACITY, shared_fields)
        self._new_unit = self.memory.own[0].copy()
        self._handle = Handle.of(self.memory.state(), 0)
        self._counts: list[int] = []  # decisions of each unit
        self._steps: list[deque[int]] = []  # latest decisions of each unit
        self._start_at(0)
        rows = INITIAL_CAPACITY
        self.unit, self.arm = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
        self.reward, self.pending = np.full(rows, math.nan), np.zeros(rows, dtype=np.bool_)
        self.context = np.zeros((rows, context_size))

    def _start_at(self, time: int) -> None:
        """Start with an empty log before step `time`, with one checkpoint of the State there."""
        self.time = time  # steps that the State contains
        self.end = time  # steps in the log
        self.final = time  # steps before this one can no longer change
        self._valid = time  # steps before this one are in the State as the log has them
        self.checkpoints = [self._checkpoint()]

    def row(self, step: int) -> int:
        """The row of a step of the cohort in the log."""
        return step - self.checkpoints[0].time

    def count(self, unit: int) -> int:
        """Number of decisions of a unit."""
        return self._counts[unit]

    def add_unit(self) -> None:
        """Add a unit."""
        if self.units == self.memory.units:
            larger = Memory(self.memory.state(), 2 * self.units, shared_fields)
            larger.own[: self.units], larger.own[self.units :] = self.memory.own, self._new_unit
            self.memory = larger
        self.units += 1
        self._counts.append(0)
        self._steps.append(deque(maxlen=self.max_delay))

    def state(self, unit: int) -> Any:
        """A unit's State before its next step."""
        self.catch_up()
        return self.memory.state(unit)

    def states(self) -> list[Any]:
        """The stacked State of all units, without catching up."""
        return [self.memory.stacked()]

    def record(self, unit: int) -> Ints:
        """The record for a decision of a unit."""
        self._record[STATE] = self.memory.address(unit)
        return self._record

    def copy_state(self, unit: int) -> Memory:
        """A copy of the State of a unit, also of what units share."""
        return Memory(self.memory.state(unit))

    def add(self, unit: int, arm: int, context: Any, *, pending: bool) -> None:
        """Add a step without a reward."""
        row = self.row(self.end)
        if row == self.unit.size:
            for name in LOG_COLUMNS:
                rows = getattr(self, name)
                setattr(self, name, np.concatenate([rows, np.zeros_like(rows)]))
        self.unit[row], self.arm[row], self.reward[row], self.pending[row] = unit, arm, math.nan, pending
        if self.context.shape[1]:
            self.context[row] = context
        self._steps[unit].append(self.end)
        self._counts[unit] += 1
        self.end += 1
        self.final = max(self.final, self.end - self.max_delay * self.units)

    def locate(self, unit: int, t: int) -> "tuple[History | SharedHistory, int] | None":
        """The history that contains step t of a unit, and the step's number in it; None if it can no longer change."""
        back = self._counts[unit] - t
        steps = self._steps[unit]
        if back > len(steps) or steps[-back] < self.final:
            return None
        return self, steps[-back]

    def recorded(self, step: int) -> tuple[int, float, bool]:
        """Arm and reward of a step, and whether it waits for its reward."""
        row = self.row(step)
        return int(self.arm[row]), float(self.reward[row]), bool(self.pending[row])

    def set(self, step: int, arm: int, reward: float) -> None:
        """Set arm and reward of a step (nan: no reward); `catch_up` rebuilds the State if they changed."""
        row = self.row(step)
        old_arm, old_reward, _ = self.recorded(step)
        self.arm[row], self.reward[row], self.pending[row] = arm, reward, False
        if old_arm != arm or not (old_reward == reward or (math.isnan(old_reward) and math.isnan(reward))):
            self._valid = min(self._valid, step)

    def catch_up(self, unit: int = 0) -> None:  # noqa: ARG002
        """Replay changed steps and update the State with all steps; a reward that has not come counts as missing."""
        if self._valid < self.time:
            while self.checkpoints[-1].time > self._valid:
                self.checkpoints.pop()
            self._restore(self.checkpoints[-1])
        interval = self._interval()
        while self.time < self.end:
            stop = min(self.end, (self.time // interval + 1) * interval)
            first, end = self.row(self.time), self.row(stop)
            state, stride = self._handle._replace(words=self.memory.address()), self.memory.words.strides[0]
            with naming_own_functions(type(self.memory.state())):
                replay_shared(state, stride, self.unit, self.context, self.arm, self.reward, first, end)
            self.time = stop
            if stop % interval == 0:
                self.checkpoints.append(self._checkpoint())
                self._thin(interval)
        self._valid = self.time

    def _checkpoint(self) -> SharedCheckpoint:
        """A copy of the State now."""
        return SharedCheckpoint(self.time, self.memory.shared.copy(), self.memory.own[: self.units].copy())

    def _restore(self, checkpoint: SharedCheckpoint) -> None:
        """Go back to a checkpoint; only units that have decided since are copied."""
        self.memory.shared[...] = checkpoint.shared
        changed = np.unique(self.unit[self.row(checkpoint.time) : self.row(self.time)])
        existed = changed[changed < len(checkpoint.own)]
        self.memory.own[existed] = checkpoint.own[existed]
        self.memory.own[changed[changed >= len(checkpoint.own)]] = self._new_unit
        self.time = checkpoint.time

    def _interval(self) -> int:
        """Decisions between two checkpoints: at least the number of units."""
        interval = CHECKPOINT_INTERVAL
        while interval < self.units:
            interval *= INTERVAL_FACTOR
        return interval

    def _thin(self, interval: int) -> None:
        """Keep the last two checkpoints of each spacing (interval, 4 × interval, …), all of the widest, and the base.

        The base is the last checkpoint before all steps that can still change; the log before it is dropped.
        """
        spacing, kept = interval, set()
        while spacing * INTERVAL_FACTOR <= self.max_delay * self.units:
            kept |= {each.time for each in [each for each in self.checkpoints if each.time % spacing == 0][-2:]}
            spacing *= INTERVAL_FACTOR
        base = max(i for i, each in enumerate(self.checkpoints) if each.time <= self.final or i == 0)
        dropped = self.checkpoints[base].time - self.checkpoints[0].time
        if dropped:
            remaining = self.row(self.end) - dropped
            for rows in (getattr(self, name) for name in LOG_COLUMNS):
                rows[:remaining] = rows[dropped : dropped + remaining].copy()
        first, *others = self.checkpoints[base:]
        self.checkpoints = [first, *(each for each in others if each.time % spacing == 0 or each.time in kept)]

    def pack(self) -> dict[str, Any]:
        """The first checkpoint and the log since then, as JSON types."""
        base, rows = self.checkpoints[0], slice(0, self.row(self.end))
        return {
            "base": {"time": base.time, "state": files.pack_state(self.memory_at(base).stacked())},
            "closed": self.final,
            "decisions": self._counts,
            "past": {
                "unit": self.unit[rows].tolist(),
                "arm": self.arm[rows].tolist(),
                "reward": files.nan_to_none(self.reward[rows]),
                "pending": self.pending[rows].tolist(),
                "context": self.context[rows].tolist(),
            },
        }

    def memory_at(self, checkpoint: SharedCheckpoint) -> Memory:
        """The States of all units at a checkpoint; units that did not exist are new ones."""
        memory = Memory(self.memory.state(), self.units, shared_fields)
        memory.shared[...], memory.own[...] = checkpoint.shared, self._new_unit
        memory.own[: len(checkpoint.own)] = checkpoint.own
        return memory

    def unpack(self, values: Any, sizes: LogSizes) -> None:
        """The inverse of `pack`, into a history that has all units and no steps."""
        time, log, counts = check_time("base.time", values["base"]["time"]), values["past"], values["decisions"]
        end = time + check_log(log, sizes, self.units)
        final = check_time("closed", values["closed"], time, end)
        check_integers("decisions", counts, 0, end)
        logged = np.bincount(np.array(log["unit"], dtype=np.int64), minlength=self.units)
        if len(counts) != self.units or sum(counts) != end or np.any(np.array(counts, dtype=np.int64) < logged):
            raise ValueError(f"decisions must be the number of steps of each of {self.units} units, {end} together")
        base = self.memory_at(self._checkpoint())
        files.unpack_state(values["base"]["state"], base.stacked(), self.memory.state())
        self.memory.shared[...], self.memory.own[: self.units] = base.shared, base.own
        self._start_at(time)
        for unit, arm, reward, pending, context in zip(*(log[name] for name in LOG_COLUMNS), strict=True):
            if self.end == end - 1:
                self.catch_up()  # as when the last step was decided: its reward may come in time
            self.add(unit, arm, context, pending=pending)
            self.reward[self.row(self.end - 1)] = math.nan if reward is None else reward
        self.final, self._counts = final, list(counts)
