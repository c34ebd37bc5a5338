"""A check that the State of a file's policy is not larger than the file, before its memory is allocated.

A State grows with the whole numbers in the policy's spec and with the number of arms. All of them are limited to a
number that doubles, until the State is larger than the one in the file or the numbers are complete.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from larl._core.validation import InvalidValue
from larl.policies import Policy
from larl.policies._bounds import state_arrays
from larl.worlds.base import World

FIRST_LIMIT = 16  # of the numbers
SMALL_STATE = 4 * 2**20  # bytes; the file of a cohort without units has no State


def check_state_size(policy: Policy, arms: int, horizon: int | None, world: World | None, packed: int) -> None:
    """Raise InvalidValue if the State takes more bytes than `packed`, the number of characters of the file's States."""
    numbers = _numbers(policy)
    limit, largest = FIRST_LIMIT, max([arms, *numbers.values()])
    while limit < largest:
        limited = _limited(policy, limit)
        size = _size(limited, min(arms, limit), horizon, world)
        if size is None and limit < arms:  # settings can require a number of arms, such as a prior of Auto
            size = _size(limited, arms, horizon, world)
        if (size or 0) > max(packed, SMALL_STATE):
            name = max(numbers, key=numbers.__getitem__, default="arms")
            accepted = f"a value whose State is in the file, which has {packed} characters of arrays"
            raise InvalidValue(type(policy).__name__, name, numbers.get(name, arms), accepted)
        limit *= 2


def packed_length(values: Mapping[str, Any]) -> int:
    """Return the number of characters of all arrays of States in a file."""
    parts = [values, *values.get("each", ())]
    return sum(len(array["data"]) for part in parts if "base" in part for array in part["base"]["state"].values())


def _size(policy: Policy, arms: int, horizon: int | None, world: World | None) -> int | None:
    """Return the bytes of a State; None if the policy cannot have it, as an oracle with fewer arms than its world."""
    try:
        state = policy.init(arms, horizon=horizon, world=world)
    except InvalidValue:
        return None
    return sum(int(array.nbytes) for array in state_arrays(state).values())


def _numbers(policy: Policy) -> dict[str, int]:
    """Return the whole numbers in a spec by field; of a sequence of them, the largest."""
    values = {item.name: getattr(policy, item.name) for item in fields(policy)}
    largest = {name: max(value, default=None) if isinstance(value, tuple) else value for name, value in values.items()}
    return {name: value for name, value in largest.items() if type(value) is int}


def _limited(policy: Policy, limit: int) -> Policy:
    """Return a spec whose whole numbers are at most `limit`, or a few times that where the policy accepts no less."""
    for name in 2 * list(_numbers(policy)):  # twice: one number can be a limit of another
        value = getattr(policy, name)
        for low in (limit, 2 * limit, 4 * limit):
            less = tuple(sorted({min(each, low) for each in value})) if isinstance(value, tuple) else min(value, low)
            try:
                policy = replace(policy, **{name: less})
                break
            except InvalidValue:
                continue
    return policy
