"""A check that the State of a file's policy is not much larger than the file, before its memory is allocated."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from larl._core.validation import InvalidValue
from larl.policies import Policy
from larl.policies._bounds import state_arrays
from larl.worlds.base import World

SMALL_NUMBER = 4096  # in a spec; its State can be allocated
TRIED = [2**power for power in range(5, 13)]


def check_spec_size(policy: Policy, arms: int, horizon: int | None, world: World | None, packed: int) -> None:
    """Raise InvalidValue if a whole number of a spec that its State grows with exceeds `packed`, the file's length.

    A State with an array of n numbers needs more than n characters in a file.
    """
    for item in fields(policy):
        value = getattr(policy, item.name)
        largest = max(value, default=0) if isinstance(value, tuple) else value
        if type(largest) is int and largest > max(packed, SMALL_NUMBER):
            sizes = (_size(policy, item.name, number, arms, horizon, world) for number in TRIED)
            if _differ(size for size in sizes if size is not None):
                accepted = "a value whose State is in the file"
                raise InvalidValue(type(policy).__name__, item.name, value, accepted)


def _differ(sizes: Iterable[int]) -> bool:
    """Return whether there are two sizes, without computing larger ones."""
    first = None
    for size in sizes:
        if first is not None and size != first:
            return True
        first = size
    return False


def _size(policy: Policy, name: str, number: int, arms: int, horizon: int | None, world: World | None) -> int | None:
    """Return the bytes of the State with another number in the spec; None if the policy does not accept it."""
    try:
        smaller = replace(policy, **{name: (number,) if isinstance(getattr(policy, name), tuple) else number})
        return sum(
            int(array.nbytes) for array in state_arrays(smaller.init(arms, horizon=horizon, world=world)).values()
        )
    except InvalidValue:
        return None


def packed_length(values: Mapping[str, Any]) -> int:
    """Return the number of characters of all arrays of States in a file."""
    parts = [values, *values.get("each", ())]
    return sum(len(array["data"]) for part in parts if "base" in part for array in part["base"]["state"].values())
