"""Scheduled learning: the State that a unit decides with between two updates.

An update copies the State of the unit as it is then, with every reward that has come so far. Until the next one the
unit decides with this copy. A reward that comes later, late or corrected, changes the history at once and the decisions
from the next update on.
"""

from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

from larl._core.states import Memory
from larl._core.validation import InvalidValue


class Update(NamedTuple):
    """A copy of the State of an update and its number, which rises: with "night" the number of the day."""

    number: int
    memory: Memory

    @property
    def state(self) -> Any:
        """The State."""
        return self.memory.state()


class Schedule:
    """The last update of every unit."""

    def __init__(self, every: int | str | None, warm_up: int) -> None:
        """Start without updates; `every` is a number of decisions, "night", or None to learn at every decision."""
        self.every, self._warm_up = every, warm_up
        self.updates: dict[int, Update] = {}  # by the number of the unit

    def check_day(self, day: Any) -> int:
        """Return the number of a day, 0 if the schedule needs none; raise InvalidValue if it does not fit."""
        if self.every != "night" and day is None:
            return 0
        if self.every != "night" or not isinstance(day, date):
            needed = "the date of the decision: update_every is 'night'"
            raise InvalidValue("decide", "day", day, needed if self.every == "night" else "None without 'night'")
        return day.toordinal()

    def update(self, unit: int, t: int, day: int, copy_state: Callable[[], Memory]) -> Update | None:
        """Return the update with which a unit decides step t: the last one, or if one is due a copy of its State.

        None if every decision uses all that is known: without a schedule, and during the warm-up.
        """
        if self.every is None or t < self._warm_up:
            return None
        last, number = self.updates.get(unit), (t - self._warm_up) // self.every if isinstance(self.every, int) else day
        return last if last is not None and last.number >= number else Update(number, copy_state())

    def keep(self, unit: int, update: Update | None) -> None:
        """Note that a unit has decided with an update."""
        if update is not None:
            self.updates[unit] = update
