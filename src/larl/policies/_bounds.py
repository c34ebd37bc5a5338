"""Bounds of the numbers in a State, checked when a State is read from a file.

Compiled code does not check indices: a number that is out of range there reads or writes other memory, or never ends a
loop. So every policy of the package declares the range of each array of whole numbers in its State
(`register(…, bounds=bounds)`): `bounds(initial, state)` returns, by the path of a field, the least and the largest
value. They are numbers or arrays of the field's shape, computed from the State of a new unit, `initial`, and where one
field decides the range of another, from the State that is checked.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from larl._core.states import leaves

MAX_STEPS = 2**48  # of a unit; every number that is computed from it fits into 64 bits
STEPS = (0, MAX_STEPS)
Bound = tuple[Any, Any]  # least and largest value
Bounds = Callable[[Any, Any], Mapping[str, Bound]]
BOUNDS: dict[type, Bounds] = {}


def state_arrays(state: Any) -> dict[str, Any]:
    """Return every array of a State that a step can change, by the path of its field."""
    return {each.path: each.array for each in leaves(state) if not each.is_constant}


def state_bounds(initial: Any, state: Any) -> Mapping[str, Bound]:
    """Return the declared bounds of a State by path; none for a State without a declaration."""
    return BOUNDS[type(initial)](initial, state) if type(initial) in BOUNDS else {}


def inner_bounds(initial: Any, state: Any, prefix: str) -> dict[str, Bound]:
    """Return the bounds of a State that is a field of another one."""
    return {f"{prefix}.{name}": bound for name, bound in state_bounds(initial, state).items()}


def check_state(initial: Any, state: Any) -> None:
    """Raise ValueError unless every number of a State, of one unit or stacked, is one that a policy can work with.

    A State from outside larl can contain infinities, and its whole numbers are only checked against declared bounds.
    """
    is_larl = type(initial).__module__.startswith("larl.")
    arrays = state_arrays(state)
    for name, array in arrays.items():
        if array.dtype.kind == "b" and (array.view(np.uint8) > 1).any():
            raise ValueError(f"state {name} has a byte that is neither true nor false")
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise ValueError(f"state {name} contains nan")
        if array.dtype.kind == "f" and is_larl and np.isinf(array).any():
            raise ValueError(f"state {name} contains an infinite number")
    for name, (low, high) in state_bounds(initial, state).items():
        is_outside = (arrays[name] < low) | (arrays[name] > high)
        for index in np.argwhere(is_outside)[:1].tolist():
            least, largest = (np.broadcast_to(limit, arrays[name].shape)[tuple(index)] for limit in (low, high))
            value = arrays[name][tuple(index)]
            raise ValueError(f"state {name}{index} = {value}, which is not between {least} and {largest}")
