"""The histories of units that learn independently (pooling "none")."""

from typing import Any

from larl._core.compile import copy_fields
from larl.live import files
from larl.live.history import History
from larl.live.log_checks import LogSizes


class IndependentHistory:
    """One State and one `History` for every unit."""

    def __init__(self, state: Any, max_delay: int, context_size: int) -> None:
        """Start without units; `state` is the State of a new unit."""
        self._initial_state, self._max_delay, self._context_size = state, max_delay, context_size
        self.histories: list[History] = []

    @property
    def _like(self) -> History | None:
        """A History to share the compiled function with, if there is one."""
        return self.histories[0] if self.histories else None

    def count(self, unit: int) -> int:
        """Number of decisions of a unit."""
        return self.histories[unit].end

    def add_unit(self) -> None:
        """Add a unit."""
        state = copy_fields(self._initial_state)
        self.histories.append(History(state, self._max_delay, self._context_size, 0, self._like))

    def state(self, unit: int) -> Any:
        """A unit's State before its next step."""
        self.histories[unit].catch_up()
        return self.histories[unit].state

    def states(self) -> list[Any]:
        """The States of all units, without catching up."""
        return [history.state for history in self.histories]

    def add(self, unit: int, arm: int, context: Any, *, pending: bool) -> None:
        """Add a step without a reward."""
        self.histories[unit].add(arm, context, pending=pending)

    def locate(self, unit: int, t: int) -> tuple[History, int] | None:
        """The history that contains step t of a unit, and the step's number in it; None if it can no longer change."""
        history = self.histories[unit]
        return None if history.end - t > self._max_delay else (history, t)

    def pack(self) -> dict[str, Any]:
        """All histories as JSON types."""
        return {"each": [files.pack_history(history) for history in self.histories]}

    @classmethod
    def unpack(cls, values: Any, state: Any, sizes: LogSizes, units: int) -> "IndependentHistory":
        """The inverse of `pack`; `state` is the State of a new unit."""
        new = cls(state, sizes.max_delay, sizes.context)
        for _, each in zip(range(units), values["each"], strict=True):
            new.histories.append(files.unpack_history(each, copy_fields(state), sizes, new._like))
        return new
