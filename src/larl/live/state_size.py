"""A check that the State of a file's policy is not larger than the file, before its memory is allocated.

A State grows with the whole numbers in the policy's spec and with the number of arms. All of them are limited to a
number that doubles, until the State is larger than the one in the file or the numbers are complete.
"""

from collections.abc import Mapping
from typing import Any

from larl._core.validation import InvalidValue
from larl.policies import Policy
from larl.policies._state_memory import limit_numbers, limited_size, whole_numbers
from larl.worlds.base import World

FIRST_LIMIT = 16  # of the numbers
SMALL_STATE = 4 * 2**20  # bytes; the file of a cohort without units has no State


def check_state_size(policy: Policy, arms: int, horizon: int | None, world: World | None, packed: int) -> None:
    """Raise InvalidValue if the State takes more bytes than `packed`, the number of characters of the file's States."""
    numbers = whole_numbers(policy)
    limit, largest = FIRST_LIMIT, max([arms, *numbers.values()])
    while limit < largest:
        size = limited_size(limit_numbers(policy, limit), arms, limit, horizon, world)
        if (size or 0) > max(packed, SMALL_STATE):
            name = max(numbers, key=numbers.__getitem__, default="arms")
            accepted = f"a value whose State is in the file, which has {packed} characters of arrays"
            raise InvalidValue(type(policy).__name__, name, numbers.get(name, arms), accepted)
        limit *= 2


def packed_length(values: Mapping[str, Any]) -> int:
    """Return the number of characters of all arrays of States in a file."""
    parts = [values, *values.get("each", ())]
    return sum(len(array["data"]) for part in parts if "base" in part for array in part["base"]["state"].values())
