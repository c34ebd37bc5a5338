"""What units that learn each on its own have seen: the past of an agent for each."""

from typing import Any

from larl._core.compile import copy_fields
from larl.live import files as _file
from larl.live.history import Past


class Apart:
    """A State and a past for every unit."""

    def __init__(self, state: Any, max_delay: int, width: int) -> None:
        """No units yet; `state` is that of one that has seen nothing."""
        self._fresh, self._max_delay, self._width = state, max_delay, width
        self.pasts: list[Past] = []

    @property
    def _like(self) -> Past | None:
        return self.pasts[0] if self.pasts else None

    def count(self, unit: int) -> int:
        """Decisions of a unit."""
        return self.pasts[unit].end

    def enter(self) -> None:
        """One more unit."""
        self.pasts.append(Past(copy_fields(self._fresh), self._max_delay, self._width, 0, self._like))

    def state(self, unit: int) -> Any:
        """A unit's State before its coming step."""
        self.pasts[unit].catch_up()
        return self.pasts[unit].state

    def states(self) -> list[Any]:
        """All units' States, as far as they have gone."""
        return [past.state for past in self.pasts]

    def add(self, unit: int, arm: int, context: Any, *, pending: bool) -> None:
        """A new step, its reward still to come."""
        self.pasts[unit].add(arm, context, pending=pending)

    def place(self, unit: int, t: int) -> tuple[Past, int] | None:
        """Where step t of a unit is to be noted; None if it is too late for that."""
        past = self.pasts[unit]
        return None if past.end - t > self._max_delay else (past, t)

    def pack(self) -> dict[str, Any]:
        """As JSON types."""
        return {"each": [_file.pack_past(past) for past in self.pasts]}

    @classmethod
    def unpack(cls, values: Any, state: Any, max_delay: int, width: int, units: int) -> "Apart":
        """What `pack` wrote, for a policy whose fresh State is `state`."""
        new = cls(state, max_delay, width)
        for _, each in zip(range(units), values["each"], strict=True):
            new.pasts.append(_file.unpack_past(each, copy_fields(state), max_delay, width, new._like))
        return new
