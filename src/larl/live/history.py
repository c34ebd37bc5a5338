"""The steps of one unit and its State. A late or corrected reward rebuilds the State as if it had come in time.

Every policy's update is deterministic, so the State is a function of the steps. To rebuild it, the steps are replayed
from a checkpoint before the change. Three checkpoints are kept: `base`, between `max_delay` and 2 × `max_delay` steps
ago, before which nothing can change; `middle`, `max_delay` steps after it, which becomes the next base; and
`first_pending`, before the oldest step that waits for its reward, where most changes happen.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from larl._core.compile import copy_fields
from larl.live.compiled import compiled_for_state
from larl.live.kernels import replay


class Checkpoint(NamedTuple):
    """A copy of the State before step `time`."""

    time: int
    state: Any


class History:
    """The State now, and the steps since `base`: step t is in row t − base.time."""

    def __init__(
        self,
        state: Any,
        max_delay: int,
        context_size: int,
        time: int = 0,
        like: "History | None" = None,
        is_shared: bool = False,
    ) -> None:
        """Start before step `time`, with contexts of `context_size` numbers; `like`: a History of the same policy.

        `like` saves the look-up of the compiled function. A State that is shared with others is copied.
        """
        self.max_delay = max_delay
        self.state = copy_fields(state) if is_shared else state
        self.time = time  # steps that the State contains
        self.end = time  # steps that were added: time + 1 while the last decision waits for its reward
        self.base = Checkpoint(time, state if is_shared else copy_fields(state))
        self.middle: Checkpoint | None = None
        self.first_pending: Checkpoint | None = None
        rows = 2 * max_delay + 1
        self.arm = np.full(rows, -1, dtype=np.int64)
        self.reward = np.full(rows, math.nan)
        self.pending = np.zeros(rows, dtype=np.bool_)  # whether the step waits for its reward
        self.context = np.zeros((rows, context_size))
        self._replay: Any = (
            like._replay if like else compiled_for_state(replay, state, self.context, self.arm, self.reward, 0, 0)
        )

    def row(self, t: int) -> int:
        """The row of step t."""
        return t - self.base.time

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
        if self.time == self.end:
            return
        row = self.row(self.time)
        if self.pending[row] and (self.first_pending is None or self.end - self.first_pending.time > self.max_delay):
            self.first_pending = Checkpoint(self.time, copy_fields(self.state))
        self._replay(self.state, self.context, self.arm, self.reward, row, row + 1)
        self.time += 1
        if self.row(self.time) == self.max_delay:
            self.middle = Checkpoint(self.time, copy_fields(self.state))
        elif self.row(self.time) == 2 * self.max_delay:
            self._advance_base()

    def _advance_base(self) -> None:
        """Make `middle` the base and drop the steps before it, which can no longer change."""
        assert self.middle is not None
        kept, dropped = self.row(self.end) - self.max_delay, self.max_delay
        for rows in (self.arm, self.reward, self.pending, self.context):
            rows[:kept] = rows[dropped : dropped + kept].copy()
        self.base, self.middle = self.middle, Checkpoint(self.time, copy_fields(self.state))
        if self.first_pending is not None and self.first_pending.time < self.base.time:
            self.first_pending = None

    def set(self, t: int, arm: int, reward: float) -> None:
        """Set arm and reward of step t (nan: no reward); the State is rebuilt as if they had come in time."""
        row = self.row(t)
        old_arm, old_reward = self.arm[row], self.reward[row]
        self.arm[row], self.reward[row], self.pending[row] = arm, reward, False
        is_same = old_arm == arm and (old_reward == reward or (math.isnan(old_reward) and math.isnan(reward)))
        if t == self.time:
            self.catch_up()
        elif not is_same:
            self._replay_from(t)
        elif self.first_pending is not None and self.first_pending.time == t:
            self.first_pending = None  # the step had no reward: the next replay creates another checkpoint

    def _replay_from(self, t: int) -> None:
        """Replay all steps from the last checkpoint before step t, and create the later checkpoints again."""
        checkpoints = [each for each in (self.base, self.middle, self.first_pending) if each is not None]
        source = max((each for each in checkpoints if each.time <= t), key=lambda each: each.time)
        rows = range(max(self.row(t), self.row(self.time) - self.max_delay), self.row(self.time))
        oldest = next((row + self.base.time for row in rows if self.pending[row]), None)
        pending = self.first_pending
        if pending is not None and not (pending.time <= t and self.pending[self.row(pending.time)]):
            self.first_pending = None
        state, time = copy_fields(source.state), source.time
        stops = {self.middle.time} if self.middle is not None and self.middle.time > t else set()
        if self.first_pending is None and oldest is not None:
            stops.add(oldest)
        for stop in [*sorted(stops), self.time]:
            self._replay(state, self.context, self.arm, self.reward, self.row(time), self.row(stop))
            time = stop
            if self.middle is not None and stop == self.middle.time and self.middle.time > t:
                self.middle = Checkpoint(stop, copy_fields(state))
            if self.first_pending is None and stop == oldest:
                self.first_pending = Checkpoint(stop, copy_fields(state))
        self.state = state
