"""What units that learn together have seen, and their States: one log, in order of decisions.

A late or corrected reward changes what everybody has learnt since. So it is noted, and mended when a State is next
asked for: whatever came in meanwhile is mended in one go, from a `Mark`, a copy of everything at an earlier moment.
A copy of 10,000 units is not made at every step: marks lie `gap` decisions apart, at least as many as there are units,
which is at most one unit's State a decision; and of old ones few are kept, the fewer the older. To go back to a mark
costs as many units as have decided since.
"""

import math
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from larl._core.compile import compiled_for, copy_fields
from larl.live import files as _file
from larl.live.cohort_kernels import go_together
from larl.live.history import Past
from larl.policies._pooling import common, personal, stacked, unit_view

FIRST_ROOM = 16  # units, and rows of the log
GAP, FEWER = 64, 4
LOG = ("unit", "arm", "reward", "pending", "context")


class Mark(NamedTuple):
    """What units share and what is their own before step `time` of the cohort."""

    time: int
    common: list[Any]
    personal: list[Any]  # of the units that there were


class Together:
    """All units' States, and the steps since the first mark: step i of the cohort is in row i − marks[0].time."""

    def __init__(self, state: Any, max_delay: int, width: int, units: int = 0) -> None:
        """No steps yet; `state` is that of a unit that has seen nothing."""
        self.max_delay, self.units = max_delay, units
        self._one = copy_fields(state)  # its own part stays as it is
        self._room = max(FIRST_ROOM, units)
        self.crowd = stacked(self._one, self._room)
        self._counts = [0] * units  # decisions of each unit
        self._steps: list[deque[int]] = [deque(maxlen=max_delay) for _ in range(units)]  # its latest decisions
        self._begin(0)
        room = FIRST_ROOM
        self.unit, self.arm = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
        self.reward, self.pending = np.full(room, math.nan), np.zeros(room, dtype=np.bool_)
        self.context = np.zeros((room, width))
        self._go = compiled_for(go_together, self.crowd, self.unit, self.context, self.arm, self.reward, 0, 0)

    def _begin(self, time: int) -> None:
        self.time = self.end = self.closed = time  # gone through; there are; before which nothing is mended any more
        self._right = time  # how many of the steps gone through are as they are known now
        self.marks = [self._mark()]

    def row(self, step: int) -> int:
        return step - self.marks[0].time

    def count(self, unit: int) -> int:
        """Decisions of a unit."""
        return self._counts[unit]

    def enter(self) -> None:
        """One more unit."""
        if self.units == self._room:
            self._room *= 2
            larger = stacked(self._one, self._room)
            for target, source in zip(personal(larger), personal(self.crowd), strict=True):
                target[: self.units] = source
            self.crowd = larger
        self.units += 1
        self._counts.append(0)
        self._steps.append(deque(maxlen=self.max_delay))

    def state(self, unit: int) -> Any:
        """A unit's State before its coming step."""
        self.catch_up()
        return unit_view(self.crowd, unit)

    def states(self) -> list[Any]:
        """All units' States in one, as far as they have gone."""
        return [self.crowd]

    def add(self, unit: int, arm: int, context: Any, *, pending: bool) -> None:
        """A new step, its reward still to come."""
        row = self.row(self.end)
        if row == self.unit.size:
            for name in LOG:
                rows = getattr(self, name)
                setattr(self, name, np.concatenate([rows, np.zeros_like(rows)]))
        self.unit[row], self.arm[row], self.reward[row], self.pending[row] = unit, arm, math.nan, pending
        if self.context.shape[1]:
            self.context[row] = context
        self._steps[unit].append(self.end)
        self._counts[unit] += 1
        self.end += 1
        self.closed = max(self.closed, self.end - self.max_delay * self.units)

    def place(self, unit: int, t: int) -> "tuple[Past | Together, int] | None":
        """Where step t of a unit is to be noted; None if it is too late for that."""
        back = self._counts[unit] - t
        steps = self._steps[unit]
        if back > len(steps) or steps[-back] < self.closed:
            return None
        return self, steps[-back]

    def known(self, step: int) -> tuple[int, float, bool]:
        """Arm and reward of a step, and whether a reward may still come."""
        row = self.row(step)
        return int(self.arm[row]), float(self.reward[row]), bool(self.pending[row])

    def set(self, step: int, arm: int, reward: float) -> None:
        """Now it is known what happened at a step (reward nan: there is none)."""
        row = self.row(step)
        played, before, _ = self.known(step)
        self.arm[row], self.reward[row], self.pending[row] = arm, reward, False
        if played != arm or not (before == reward or (math.isnan(before) and math.isnan(reward))):
            self._right = min(self._right, step)

    def catch_up(self) -> None:
        """Mend what has changed, and go through the steps up to now; a reward that did not come is missing so far."""
        if self._right < self.time:
            while self.marks[-1].time > self._right:
                self.marks.pop()
            self._go_back(self.marks[-1])
        gap = self._gap()
        while self.time < self.end:
            stop = min(self.end, (self.time // gap + 1) * gap)
            self._go(self.crowd, self.unit, self.context, self.arm, self.reward, self.row(self.time), self.row(stop))
            self.time = stop
            if stop % gap == 0:
                self.marks.append(self._mark())
                self._thin(gap)
        self._right = self.time

    def _mark(self) -> Mark:
        own = [array[: self.units].copy() for array in personal(self.crowd)]
        return Mark(self.time, [array.copy() for array in common(self.crowd)], own)

    def _go_back(self, mark: Mark) -> None:
        """Everything as it was; of the units, those that have decided since."""
        for target, source in zip(common(self.crowd), mark.common, strict=True):
            target[...] = source
        moved = np.unique(self.unit[self.row(mark.time) : self.row(self.time)])
        fresh = personal(stacked(self._one, 1))
        for target, source, first in zip(personal(self.crowd), mark.personal, fresh, strict=True):
            there = moved[moved < source.shape[0]]
            target[there] = source[there]
            target[moved[moved >= source.shape[0]]] = first
        self.time = mark.time

    def _gap(self) -> int:
        gap = GAP
        while gap < self.units:
            gap *= FEWER
        return gap

    def _thin(self, gap: int) -> None:
        """Of every spacing gap, 4 gap, 16 gap, … the last two marks, of the widest all; the first that is needed."""
        spacing, kept = gap, set()
        while spacing * FEWER <= self.max_delay * self.units:
            kept |= {mark.time for mark in [mark for mark in self.marks if mark.time % spacing == 0][-2:]}
            spacing *= FEWER
        needed = max(i for i, mark in enumerate(self.marks) if mark.time <= self.closed or i == 0)
        gone = self.marks[needed].time - self.marks[0].time
        if gone:
            left = self.row(self.end) - gone
            for rows in (getattr(self, name) for name in LOG):
                rows[:left] = rows[gone : gone + left].copy()
        first, *others = self.marks[needed:]
        self.marks = [first, *(mark for mark in others if mark.time % spacing == 0 or mark.time in kept)]

    def pack(self) -> dict[str, Any]:
        """As JSON types: the first mark, and what happened since."""
        base, rows = self.marks[0], slice(0, self.row(self.end))
        state = stacked(copy_fields(self._one), self.units)
        for target, source in zip(common(state), base.common, strict=True):
            target[...] = source
        for target, source in zip(personal(state), base.personal, strict=True):
            target[: source.shape[0]] = source
        return {
            "base": {"time": base.time, "state": _file.pack(state)},
            "closed": self.closed,
            "decisions": self._counts,
            "past": {
                "unit": self.unit[rows].tolist(),
                "arm": self.arm[rows].tolist(),
                "reward": _file.floats(self.reward[rows]),
                "pending": self.pending[rows].tolist(),
                "context": self.context[rows].tolist(),
            },
        }

    @classmethod
    def unpack(cls, values: Any, state: Any, max_delay: int, width: int, units: int) -> "Together":
        """What `pack` wrote, for a policy whose fresh State is `state`."""
        new = cls(state, max_delay, width, units)
        base = stacked(copy_fields(state), units)
        _file.unpack(values["base"]["state"], base)
        for target, source in zip(common(new.crowd), common(base), strict=True):
            target[...] = source
        for target, source in zip(personal(new.crowd), personal(base), strict=True):
            target[:units] = source
        new._begin(values["base"]["time"])
        past = values["past"]
        if not all(0 <= unit < units for unit in past["unit"]):
            raise ValueError("a step is of a unit that there is not")
        last = new.end + len(past["unit"]) - 1
        for unit, arm, reward, pending, context in zip(*(past[name] for name in LOG), strict=True):
            if new.end == last:
                new.catch_up()  # as when it was decided: its reward may come in time
            new.add(unit, arm, context, pending=pending)
            new.reward[new.row(new.end - 1)] = math.nan if reward is None else reward
        new.closed = values["closed"]
        new._counts = [int(count) for count in values["decisions"]]
        return new
