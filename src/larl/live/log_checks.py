"""Checks of the logged steps and counts of a file, before compiled functions use them."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from larl._core.validation import LARGEST, integer
from larl.policies._bounds import MAX_STEPS

STEP_COLUMNS = ("arm", "reward", "pending", "context")


class LogSizes(NamedTuple):
    """What limits the logged steps of a unit."""

    arms: int
    max_delay: int
    context: int


def check_time(name: str, value: Any, low: int = 0, high: int = MAX_STEPS) -> int:
    """Return a number of steps; ValueError unless it is a whole number from `low` to `high`."""
    return int(integer(low, high)("file", name, value))


def check_log(log: Mapping[str, Any], sizes: LogSizes, units: int | None = None) -> int:
    """Return the number of logged steps; ValueError unless every step is one that an agent or a cohort can make.

    `units` is the number of units of a cohort that share the log; otherwise it has at most 2 × max_delay steps.
    """
    longest = 2 * sizes.max_delay if units is None else MAX_STEPS
    names = STEP_COLUMNS if units is None else ("unit", *STEP_COLUMNS)
    lengths = {len(_list(f"past.{name}", log[name])) for name in names}
    if len(lengths) > 1 or max(lengths) > longest:
        raise ValueError(f"past has columns of {sorted(lengths)} steps, not of one length up to {longest}")
    if units is not None:
        check_integers("past.unit", log["unit"], 0, units - 1)
    check_integers("past.arm", log["arm"], -1, sizes.arms - 1)
    _check_numbers("past.reward", [reward for reward in log["reward"] if reward is not None])
    if set(map(type, log["pending"])) - {bool}:
        raise ValueError("past.pending has a value that is neither true nor false")
    for i, (arm, reward, pending) in enumerate(zip(log["arm"], log["reward"], log["pending"], strict=True)):
        if (pending or arm < 0) and (reward is not None or (pending and arm < 0)):
            raise ValueError(f"past step {i} cannot have arm {arm}, reward {reward} and pending {pending}")
    if {len(_list("past.context", context)) for context in log["context"]} - {sizes.context}:
        raise ValueError(f"past.context has a step without {sizes.context} numbers")
    _check_numbers("past.context", list(chain.from_iterable(log["context"])))
    return max(lengths)


def check_counts(counts: Any, statuses: Sequence[str]) -> dict[str, int]:
    """Return the number of reports by status; ValueError unless each is a whole number >= 0."""
    if not isinstance(counts, Mapping) or set(counts) != set(statuses):
        raise ValueError(f"counts must have the keys {', '.join(statuses)}")
    return {status: check_time(f"counts.{status}", counts[status]) for status in statuses}


def check_names(name: str, values: Any) -> list[str]:
    """Return names, of units or arms; ValueError unless they are different strings that are not empty."""
    names = _list(name, values)
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise ValueError(f"{name} must be different names")
    return names


def check_integers(name: str, values: Any, low: int, high: int) -> None:
    """Raise ValueError unless a value is a list of whole numbers from `low` to `high`."""
    if set(map(type, _list(name, values))) - {int} or (values and not low <= min(values) <= max(values) <= high):
        raise ValueError(f"{name} has a value that is not a whole number from {low} to {high}")


def _check_numbers(name: str, values: list[Any]) -> None:
    if set(map(type, values)) - {int, float} or not all(-LARGEST <= value <= LARGEST for value in values):
        raise ValueError(f"{name} has a value that is not a number up to {LARGEST:g} in size")


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    return value
