"""How much memory a comparison needs, checked before it starts."""

import itertools
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from larl._core.validation import InvalidValue
from larl.policies import Deployed, Policy

if TYPE_CHECKING:
    from larl.worlds.base import World

HINT = "fewer trials, or keep='summary', need less"
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


def checked_init(policy: Policy, arms: int, *, horizon: int, world: "World", copies: int) -> Any:
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


def memory_error(error: MemoryError | None = None, needed: int = 0) -> MemoryError:
    """Return a MemoryError whose message says what needs less memory."""
    if error is not None and HINT in str(error):
        return error
    reason = f"{error}" if error is not None else f"{format_bytes(needed)} are needed to keep every step"
    return MemoryError(f"not enough memory{f' ({reason})' if reason else ''}; {HINT}")
