"""The steps of one unit and its State. A late or corrected reward rebuilds the State as if it had come in time.

Every policy's update is deterministic, so the State is a function of the steps. To rebuild it, the steps are replayed
from a checkpoint before the change. Three checkpoints are kept: `base`, between `max_delay` and 2 × `max_delay` steps
ago, before which nothing can change; `middle`, `max_delay` steps after it, which becomes the next base; and
`first_pending`, before the oldest step that waits for its reward, where most changes happen.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
from numba import types
from numpy.typing import NDArray

from larl._core.compile import is_larl, naming_own_functions
from larl._core.states import Memory, Words
from larl.live import kernels
from larl.live.kernels import direct

Ints = NDArray[np.int64]


@cache
def _replay() -> Any:
    """The compiled function, which most agents do not need."""
    return direct(kernels.replay, types.int64, types.int64, types.int64)


class Checkpoint(NamedTuple):
    """A copy of the State before step `time`."""

    time: int
    block: Words  # of `Memory.own`


class History:
    """The State now, and the steps since `base`: step t is in row t − base.time.

    Its record has the addresses of both for compiled functions (kernels.py).
    """

    def __init__(self, initial: Memory, record: Ints, max_delay: int, context_size: int) -> None:
        """Start before the first step; `initial` is the State of a new unit, `record` has what all units have."""
        self.max_delay, self.memory, self.record = max_delay, initial.copy(), record
        rows = 2 * max_delay + 1
        self.arm = np.full(rows, -1, dtype=np.int64)
        self.reward = np.full(rows, math.nan)
        self.pending = np.zeros(rows, dtype=np.bool_)  # whether the step waits for its reward
        self.context = np.zeros((rows, context_size))
        self._columns: tuple[NDArray[Any], ...] = self.arm, self.reward, self.pending, self.context
        words = kernels.LOG_ARM, kernels.LOG_REWARD, kernels.LOG_PENDING, kernels.LOG_CONTEXT
        record[list(words)] = [column.ctypes.data for column in self._columns]
        record[kernels.STATE] = record[kernels.DECIDING] = self.memory.address()
        record[kernels.ROWS], record[kernels.MAX_DELAY] = rows, max_delay
        self.address = int(record.ctypes.data)
        self._words: Any = memoryview(cast(Any, record))
        self.start_at(Checkpoint(0, initial.own[0]))

    def start_at(self, base: Checkpoint) -> None:
        """Begin before the step of a checkpoint of the State as it is now, with an empty log."""
        self.base = base
        self.time = self.end = base.time
        self.middle: Checkpoint | None = None
        self.first_pending: Checkpoint | None = None

    @property
    def time(self) -> int:
        """Number of steps that the State contains."""
        return int(self._words[kernels.TIME])

    @time.setter
    def time(self, value: int) -> None:
        self._words[kernels.TIME] = value

    @property
    def end(self) -> int:
        """Number of steps that were added: time + 1 while the last decision waits for its reward."""
        return int(self._words[kernels.END])

    @end.setter
    def end(self, value: int) -> None:
        self._words[kernels.END] = value

    @property
    def base(self) -> Checkpoint:
        """The first checkpoint, before which nothing can change."""
        return self._base

    @base.setter
    def base(self, value: Checkpoint) -> None:
        self._base, self._words[kernels.BASE] = value, value.time

    @property
    def state(self) -> Any:
        """The State itself: it changes with the next step."""
        return self.memory.state()

    def checkpoint(self) -> Checkpoint:
        """Return a copy of the State now."""
        return Checkpoint(self.time, self.memory.own[0].copy())

    def row(self, t: int) -> int:
        """The row of step t."""
        return t - self._base.time

    def recorded(self, t: int) -> tuple[int, float, bool]:
        """Arm and reward of step t, and whether it waits for its reward."""
        row = self.row(t)
        return int(self.arm[row]), float(self.reward[row]), bool(self.pending[row])

    def add(self, arm: int, context: Any, *, pending: bool) -> None:
        """Add a step without a reward. The State must contain all earlier steps (`catch_up`)."""
        row = self.row(self.end)
        self.arm[row], self.reward[row], self.pending[row] = arm, math.nan, pending
        if self.context.shape[1]:
            self.context[row] = context
        self.end += 1

    def catch_up(self) -> None:
        """Update the State with all steps; a reward that has not come yet counts as missing."""
        while self.time < self.end:
            row = self.row(self.time)
            is_first = self.first_pending is None or self.end - self.first_pending.time > self.max_delay
            if self.pending[row] and is_first:
                self.first_pending = self.checkpoint()
            self._learn_rows(row, row + 1)
            self.time += 1
            if (row + 1) % self.max_delay == 0:
                self.keep_checkpoint()

    def _learn_rows(self, first: int, end: int) -> None:
        """Update the State with rows of the log."""
        with naming_own_functions(type(self.state)):
            _replay()(self.address, first, end)

    def forget_reward(self, t: int) -> None:
        """Let step t wait for its reward again: the State could not learn it."""
        row = self.row(t)
        self.reward[row], self.pending[row] = math.nan, True

    def keep_checkpoint(self) -> None:
        """Keep the State `max_delay` steps after the base; after twice as many, drop the steps before `middle`.

        These can no longer change: `middle` becomes the base.
        """
        if self.row(self.time) == self.max_delay:
            self.middle = self.checkpoint()
            return
        assert self.middle is not None
        kept, dropped = self.row(self.end) - self.max_delay, self.max_delay
        for rows in self._columns:
            rows[:kept] = rows[dropped : dropped + kept].copy()
        self.base, self.middle = self.middle, self.checkpoint()
        if self.first_pending is not None and self.first_pending.time < self.base.time:
            self.first_pending = None

    def set(self, t: int, arm: int, reward: float) -> None:
        """Set arm and reward of step t (nan: no reward); the State is rebuilt as if they had come in time."""
        row = self.row(t)
        old_arm, old_reward, was_pending = self.arm[row], self.reward[row], self.pending[row]
        # The next step is learnt by one call, which only an own policy can refuse: then nothing need be copied.
        is_safe = t == self.time and is_larl(type(self.state))
        block = self.memory.own[0] if is_safe else self.memory.own[0].copy()
        before = block, self.time, self.middle, self.first_pending
        self.arm[row], self.reward[row], self.pending[row] = arm, reward, False
        is_same = old_arm == arm and (old_reward == reward or (math.isnan(old_reward) and math.isnan(reward)))
        try:
            if t == self.time:
                self.catch_up()
            elif not is_same:
                self._replay_from(t)
            elif self.first_pending is not None and self.first_pending.time == t:
                self.first_pending = None  # the step had no reward: the next replay creates another checkpoint
        except BaseException:  # of an own policy, or an interrupt: nothing has changed
            self.arm[row], self.reward[row], self.pending[row] = old_arm, old_reward, was_pending
            self.memory.own[0], self.time, self.middle, self.first_pending = before
            raise

    def _replay_from(self, t: int) -> None:
        """Replay all steps from the last checkpoint before step t, and create the later checkpoints again."""
        checkpoints = [each for each in (self.base, self.middle, self.first_pending) if each is not None]
        source = max((each for each in checkpoints if each.time <= t), key=lambda each: each.time)
        now = self.time
        rows = range(max(self.row(t), self.row(now) - self.max_delay), self.row(now))
        oldest = next((row + self.base.time for row in rows if self.pending[row]), None)
        pending = self.first_pending
        if pending is not None and not (pending.time <= t and self.pending[self.row(pending.time)]):
            self.first_pending = None
        self.memory.own[0], self.time = source.block, source.time
        stops = {self.middle.time} if self.middle is not None and self.middle.time > t else set()
        if self.first_pending is None and oldest is not None:
            stops.add(oldest)
        for stop in [*sorted(stops), now]:
            self._learn_rows(self.row(self.time), self.row(stop))
            self.time = stop
            if self.middle is not None and stop == self.middle.time and self.middle.time > t:
                self.middle = self.checkpoint()
            if self.first_pending is None and stop == oldest:
                self.first_pending = self.checkpoint()


class IndependentHistory:
    """One `History` for every unit (pooling "none")."""

    def __init__(self, new_history: Callable[[int], History]) -> None:
        """Start without units; `new_history` returns the history of a unit, by its number."""
        self.new_history = new_history
        self.histories: list[History] = []

    def count(self, unit: int) -> int:
        """Number of decisions of a unit."""
        return self.histories[unit].end

    def add_unit(self) -> None:
        """Add a unit."""
        self.histories.append(self.new_history(len(self.histories)))

    def state(self, unit: int) -> Any:
        """A unit's State before its next step."""
        self.catch_up(unit)
        return self.histories[unit].state

    def states(self) -> list[Any]:
        """The States of all units, without catching up."""
        return [history.state for history in self.histories]

    def catch_up(self, unit: int) -> None:
        """Update the State of a unit with all steps."""
        self.histories[unit].catch_up()

    def record(self, unit: int) -> Ints:
        """The record of a unit."""
        return self.histories[unit].record

    def copy_state(self, unit: int) -> Memory:
        """A copy of the State of a unit."""
        return self.histories[unit].memory.copy()

    def add(self, unit: int, arm: int, context: Any, *, pending: bool) -> None:
        """Add a step without a reward."""
        self.histories[unit].add(arm, context, pending=pending)

    def locate(self, unit: int, t: int) -> tuple[History, int] | None:
        """The history that contains step t of a unit, and the step's number in it; None if it can no longer change."""
        history = self.histories[unit]
        return None if history.end - t > history.max_delay else (history, t)
