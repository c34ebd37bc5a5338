"""The size of a policy's State, found without creating a large one.

A State grows with the whole numbers in the policy's spec and with the number of arms. `checked_init` refuses a State
that does not fit into memory. `limited_size` measures a State whose numbers are limited, for other limits.
"""

import itertools
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from larl._core.validation import InvalidValue
from larl.policies._bounds import state_arrays
from larl.policies._contract import Policy
from larl.policies._pooling import pooled_state
from larl.policies.deployed import Deployed
from larl.worlds.base import World

LARGE_SETTING = 4096  # the State's size for larger settings is extrapolated first
SMALL_SETTINGS = (16, 32, 48, 64, 80)  # equally spaced values to extrapolate from
LARGE_STATE = 2**26  # bytes; if the State is larger at the first small value, the others are not tried


def machine_memory() -> int | None:
    """Return the memory of this machine in bytes, or None where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def format_bytes(size: float) -> str:
    """Return a number of bytes with a unit: `1.3 TB`."""
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.0f} EB"


def state_bytes(state: Any) -> int:
    """Return the bytes of all arrays of a State."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    return sum(state_bytes(part) for part in state) if isinstance(state, tuple) else 0


def checked_init(policy: Policy, arms: int, *, horizon: int | None, world: World | None, copies: int) -> Any:
    """Return `policy.init(…)`, or raise InvalidValue if `copies` of the State do not fit into memory."""
    limit = machine_memory() or math.inf
    if isinstance(policy, Deployed):  # its State has two of the policy's
        checked_init(policy.policy, arms, horizon=horizon, world=world, copies=2 * copies)
    settings = {item.name: getattr(policy, item.name) for item in fields(policy)}
    settings = {name: value for name, value in settings.items() if isinstance(value, int)} | {"arms": arms}
    largest = max(settings, key=settings.__getitem__)

    def too_large(name: str, needed: float | None) -> InvalidValue:
        amount = "more memory than there is"
        if needed is not None:
            amount = f"about {format_bytes(needed)} of memory, in {copies} copies"
        machine = "" if math.isinf(limit) else f", and this machine has {format_bytes(limit)}"
        accepted = f"a smaller value: the State of {type(policy).__name__} needs {amount}{machine}"
        return InvalidValue(type(policy).__name__, name, settings[name], accepted)

    def size_by(name: str) -> Callable[[int], int]:
        if name == "arms":
            return lambda value: state_bytes(policy.init(value, horizon=horizon, world=None))
        return lambda value: state_bytes(replace(policy, **{name: value}).init(arms, horizon=horizon, world=world))

    for name in [name for name, value in settings.items() if value > LARGE_SETTING]:
        needed = extrapolate_size(size_by(name), settings[name])
        if needed is not None and needed * copies > limit:
            raise too_large(name, needed)
    try:
        state = policy.init(arms, horizon=horizon, world=world)
    except InvalidValue:
        raise
    except (MemoryError, ValueError, OverflowError) as error:
        if isinstance(error, ValueError) and not any(part in str(error) for part in ("too big", "Maximum allowed")):
            raise
        raise too_large(largest, None) from error
    if state_bytes(state) * copies > limit:
        raise too_large(largest, state_bytes(state))
    return state


def extrapolate_size(size: Callable[[int], int], value: int) -> float | None:
    """Return the size at a large value by the cubic through the sizes at small ones, or None if it is not a cubic.

    The sizes of a State's arrays are polynomials in the policy's settings. The last small value is not used for the
    fit; the polynomial must be exact there.
    """
    sizes: list[int] = []
    try:
        for setting in SMALL_SETTINGS:
            sizes.append(size(setting))
            if sizes[0] > LARGE_STATE:
                return float(sizes[0])
    except Exception:  # the policy does not accept a small value, or needs a world
        return None
    if _interpolate(sizes[:-1], SMALL_SETTINGS[-1]) != sizes[-1]:
        return None
    return float(_interpolate(sizes[:-1], value))


def _interpolate(sizes: list[int], value: int) -> float:
    """Evaluate Newton's polynomial through the sizes; it is exact at whole multiples of the spacing."""
    position, total = (value - SMALL_SETTINGS[0]) / (SMALL_SETTINGS[1] - SMALL_SETTINGS[0]), 0.0
    for order, difference in enumerate(_leading_differences(sizes)):
        total += difference * math.prod((position - i) / (i + 1) for i in range(order))
    return total


def _leading_differences(values: list[int]) -> Iterator[int]:
    while values:
        yield values[0]
        values = [after - before for before, after in itertools.pairwise(values)]


def whole_numbers(policy: Policy) -> dict[str, int]:
    """Return the whole numbers in a spec by field; of a sequence of them, the largest."""
    values = {item.name: getattr(policy, item.name) for item in fields(policy)}
    largest = {name: max(value, default=None) if isinstance(value, tuple) else value for name, value in values.items()}
    return {name: value for name, value in largest.items() if type(value) is int}


def limit_numbers(policy: Policy, limit: int, only: str | None = None) -> Policy:
    """Return a spec whose whole numbers, or only those of one field, are at most `limit`, if they may be so small."""
    for name, largest in 2 * list(whole_numbers(policy).items()):  # twice: one number can be a limit of another
        low = limit
        while largest > low and only in (None, name):
            value = getattr(policy, name)
            try:
                less = tuple(sorted({min(each, low) for each in value})) if isinstance(value, tuple) else low
                policy = replace(policy, **{name: less})
                break
            except InvalidValue:  # below the smallest accepted value
                low *= 2
    return policy


def limited_size(
    policy: Policy, arms: int, limit: int, horizon: int | None, world: World | None = None, pooling: str = "none"
) -> int | None:
    """Return the bytes of a State with at most `limit` arms; None if the policy cannot have it.

    Settings can require a number of arms, such as a prior of Auto: then the State has all arms.
    """
    for count in dict.fromkeys((min(arms, limit), arms)):
        try:
            state = pooled_state(policy, policy.init(count, horizon=horizon, world=world), pooling)
        except InvalidValue:
            continue
        return sum(int(array.nbytes) for array in state_arrays(state).values())
    return None
