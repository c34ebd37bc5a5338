"""How much memory a comparison needs, refused before the machine runs out of it."""

import itertools
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from larl._core.validation import InvalidValue
from larl.policies import Policy

if TYPE_CHECKING:
    from larl.worlds.base import World

HINT = "fewer trials, or keep='summary', need less"
LARGE = 4096  # settings above this are tried at small values first
POINTS = (16, 32, 48, 64, 80)  # those values
ENOUGH = 2**26  # bytes of a State at the first of them above which no more are tried


def machine_memory() -> int | None:
    """The bytes of this machine's memory; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def in_words(size: float) -> str:
    """A number of bytes for people: `1.3 TB`."""
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.0f} EB"


def state_bytes(state: Any) -> int:
    """The bytes of all arrays of a State."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    return sum(state_bytes(part) for part in state) if isinstance(state, tuple) else 0


def safe_init(policy: Policy, arms: int, *, horizon: int, world: "World", copies: int) -> Any:
    """`policy.init`, or an InvalidValue if so many copies of the State do not fit into this machine's memory."""
    limit = machine_memory() or math.inf
    sizes = {item.name: getattr(policy, item.name) for item in fields(policy)}
    sizes = {name: value for name, value in sizes.items() if isinstance(value, int)} | {"arms": arms}
    largest = max(sizes, key=sizes.__getitem__)

    def refusal(name: str, needed: float | None) -> InvalidValue:
        amount = "more memory than there is"
        if needed is not None:
            amount = f"about {in_words(needed)} of memory, in {copies} copies"
        machine = "" if math.isinf(limit) else f", and this machine has {in_words(limit)}"
        accepted = f"a smaller value: the State of {type(policy).__name__} needs {amount}{machine}"
        return InvalidValue(type(policy).__name__, name, sizes[name], accepted)

    def at(name: str) -> Callable[[int], int]:
        if name == "arms":
            return lambda value: state_bytes(policy.init(value, horizon=horizon, world=None))
        return lambda value: state_bytes(replace(policy, **{name: value}).init(arms, horizon=horizon, world=world))

    for name in [name for name, value in sizes.items() if value > LARGE]:
        needed = extrapolated(at(name), sizes[name])
        if needed is not None and needed * copies > limit:
            raise refusal(name, needed)
    try:
        state = policy.init(arms, horizon=horizon, world=world)
    except InvalidValue:
        raise
    except (MemoryError, ValueError, OverflowError) as error:
        if isinstance(error, ValueError) and not any(words in str(error) for words in ("too big", "Maximum allowed")):
            raise
        raise refusal(largest, None) from error
    if state_bytes(state) * copies > limit:
        raise refusal(largest, state_bytes(state))
    return state


def extrapolated(size: Callable[[int], int], value: int) -> float | None:
    """The size at a large value: by the cubic through the sizes at small ones, None where that is not exact.

    A State's arrays have sizes that are polynomials in a policy's settings. The last point is left out of the fit and
    has to be met.
    """
    found: list[int] = []
    try:
        for point in POINTS:
            found.append(size(point))
            if found[0] > ENOUGH:
                return float(found[0])
    except Exception:  # the policy does not accept a small value, or there is none without a world
        return None
    if _newton(found[:-1], POINTS[-1]) != found[-1]:
        return None
    return float(_newton(found[:-1], value))


def _newton(found: list[int], value: int) -> float:
    """The polynomial through the points, by forward differences: exact for whole numbers of steps."""
    steps, total = (value - POINTS[0]) / (POINTS[1] - POINTS[0]), 0.0
    for order, difference in enumerate(_leading_differences(found)):
        total += difference * math.prod((steps - i) / (i + 1) for i in range(order))
    return total


def _leading_differences(found: list[int]) -> Iterator[int]:
    while found:
        yield found[0]
        found = [after - before for before, after in itertools.pairwise(found)]


def not_enough(error: MemoryError | None = None, needed: int = 0) -> MemoryError:
    """A MemoryError that says what to do."""
    if error is not None and HINT in str(error):
        return error
    reason = f"{error}" if error is not None else f"{in_words(needed)} are needed for every step"
    return MemoryError(f"not enough memory{f' ({reason})' if reason else ''}; {HINT}")
