"""What an agent has seen, and its State: rewards may come late, or again with another value, and the State is mended.

A State is a fold over steps, and every policy's update is deterministic. So to mend the State, go through the steps
anew from a copy of it that is older than the change. Copies are kept of three moments: `base`, between `max_delay` and
twice that many steps ago, before which nothing is mended any more; `middle`, `max_delay` steps after it, the next base;
and `waiting`, before the oldest step whose reward may still come, as that is where most changes are.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from larl._core.compile import compiled_for, copy_fields
from larl.live.kernels import go_through


class Moment(NamedTuple):
    """A copy of the State, before step `time`."""

    time: int
    state: Any


class Past:
    """The State now, and the steps since `base`: step t is in row t − base.time."""

    def __init__(self, state: Any, max_delay: int, width: int, time: int = 0, like: "Past | None" = None) -> None:
        """Before step `time`, with contexts of `width` numbers. `like`, a Past of the same policy, saves time."""
        self.max_delay = max_delay
        self.state = state
        self.time = time  # steps that the State has gone through
        self.end = time  # steps there are: one more than that while the last decision has no reward
        self.base = Moment(time, copy_fields(state))
        self.middle: Moment | None = None
        self.waiting: Moment | None = None
        rows = 2 * max_delay + 1
        self.arm = np.full(rows, -1, dtype=np.int64)
        self.reward = np.full(rows, math.nan)
        self.pending = np.zeros(rows, dtype=np.bool_)  # a reward may still come
        self.context = np.zeros((rows, width))
        self._go: Any = like._go if like else compiled_for(go_through, state, self.context, self.arm, self.reward, 0, 0)

    def row(self, t: int) -> int:
        return t - self.base.time

    def known(self, t: int) -> tuple[int, float, bool]:
        """Arm and reward of step t, and whether a reward may still come."""
        row = self.row(t)
        return int(self.arm[row]), float(self.reward[row]), bool(self.pending[row])

    def add(self, arm: int, context: Any, *, pending: bool) -> None:
        """A new step, its reward still to come. The State must have gone through all steps before it (`catch_up`)."""
        row = self.row(self.end)
        self.arm[row], self.reward[row], self.pending[row] = arm, math.nan, pending
        if self.context.shape[1]:
            self.context[row] = context
        self.end += 1

    def catch_up(self) -> None:
        """Go through the steps up to now; a reward that did not come yet is missing so far."""
        if self.time == self.end:
            return
        row = self.row(self.time)
        if self.pending[row] and (self.waiting is None or self.end - self.waiting.time > self.max_delay):
            self.waiting = Moment(self.time, copy_fields(self.state))
        self._go(self.state, self.context, self.arm, self.reward, row, row + 1)
        self.time += 1
        if self.row(self.time) == self.max_delay:
            self.middle = Moment(self.time, copy_fields(self.state))
        elif self.row(self.time) == 2 * self.max_delay:
            self._forget()

    def _forget(self) -> None:
        """The middle becomes the base: nothing before it is mended any more."""
        assert self.middle is not None
        kept, gone = self.row(self.end) - self.max_delay, self.max_delay
        for rows in (self.arm, self.reward, self.pending, self.context):
            rows[:kept] = rows[gone : gone + kept].copy()
        self.base, self.middle = self.middle, Moment(self.time, copy_fields(self.state))
        if self.waiting is not None and self.waiting.time < self.base.time:
            self.waiting = None

    def set(self, t: int, arm: int, reward: float) -> None:
        """Now it is known what happened at step t (reward nan: there is none); the State is as if it had been known."""
        row = self.row(t)
        before = self.arm[row], self.reward[row]
        self.arm[row], self.reward[row], self.pending[row] = arm, reward, False
        same = before[0] == arm and (before[1] == reward or (math.isnan(before[1]) and math.isnan(reward)))
        if t == self.time:
            self.catch_up()
        elif not same:
            self._mend(t)
        elif self.waiting is not None and self.waiting.time == t:
            self.waiting = None  # nothing came: the next change makes another copy

    def _mend(self, t: int) -> None:
        """Go anew through all steps from t on, and make the copies of later moments anew."""
        copies = [moment for moment in (self.base, self.middle, self.waiting) if moment is not None]
        source = max((moment for moment in copies if moment.time <= t), key=lambda moment: moment.time)
        rows = range(max(self.row(t), self.row(self.time) - self.max_delay), self.row(self.time))
        oldest = next((row + self.base.time for row in rows if self.pending[row]), None)
        if self.waiting is not None and not (self.waiting.time <= t and self.pending[self.row(self.waiting.time)]):
            self.waiting = None
        state, time = copy_fields(source.state), source.time
        stops = {self.middle.time} if self.middle is not None and self.middle.time > t else set()
        if self.waiting is None and oldest is not None:
            stops.add(oldest)
        for stop in [*sorted(stops), self.time]:
            self._go(state, self.context, self.arm, self.reward, self.row(time), self.row(stop))
            time = stop
            if self.middle is not None and stop == self.middle.time and self.middle.time > t:
                self.middle = Moment(stop, copy_fields(state))
            if self.waiting is None and stop == oldest:
                self.waiting = Moment(stop, copy_fields(state))
        self.state = state
