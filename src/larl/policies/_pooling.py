"""Units that learn together: what they share of a policy's State, and the States of many of them as one.

A `crowd` is a State of all units: its personal arrays have one axis more, the first, which is the unit; what is shared
is there once. `unit_of(crowd, u)` is the State of unit u, a view: what it learns, all have learnt.
"""

from collections.abc import Callable, Collection
from typing import Any, cast

import numpy as np
from numba import types
from numba.extending import overload

from larl._core.compile import INLINE, POLICY_NAMES
from larl._core.validation import InvalidValue
from larl.policies._contract import SHARED, Policy

POOLINGS = ("none", "full", "partial")
PARTIAL: dict[type, Callable[[Any], Any]] = {}  # from a State to that of partial pooling (_partial.py)


def pooled(policy: Policy, state: Any, pooling: str) -> Any:
    """The State of one unit among others, from that of a unit of its own; refused where nothing can be shared."""
    if pooling == "none":
        return state
    able: Collection[type] = PARTIAL if pooling == "partial" else SHARED
    if not {type(state), type(getattr(state, "inner", state))} <= set(able):
        names = ", ".join(sorted({POLICY_NAMES[kind] for kind in able}))
        accepted = f"a policy whose units can share what they learn: {names} (LARL where radius = 'alpha')"
        raise InvalidValue(f"pooling {pooling!r}", "policy", policy, f"{accepted}; or pooling 'none'")
    return PARTIAL[type(state)](state) if pooling == "partial" else state


def stacked(state: Any, units: int) -> Any:
    """So many units in the State of one; what they share is that State's own."""
    return _mapped(state, lambda field: np.repeat(field[None], units, axis=0))


def unit_view(stacked: Any, unit: int) -> Any:
    """The State of one unit of a crowd: a view."""
    return _mapped(stacked, lambda field: field[unit])


def _mapped(state: Any, change: Callable[[Any], Any]) -> Any:
    """A State with its personal arrays changed."""
    shared = SHARED.get(type(state), ())

    def changed(name: str, field: Any) -> Any:
        if name in shared:
            return field
        if isinstance(field, np.ndarray):
            return change(field)
        return _mapped(field, change) if isinstance(field, tuple) else field

    return type(state)(*(changed(*each) for each in zip(state._fields, state, strict=True)))


def personal(stacked: Any) -> list[Any]:
    """The personal arrays of a crowd."""
    found: list[Any] = []
    _mapped(stacked, found.append)
    return found


def common(stacked: Any) -> list[Any]:
    """The arrays that all units share."""
    mine = {id(array) for array in personal(stacked)}
    return [array for array in _arrays(stacked) if id(array) not in mine]


def _arrays(state: Any) -> list[Any]:
    parts = ([field] if isinstance(field, np.ndarray) else _arrays(field) for field in state if not np.isscalar(field))
    return [array for part in parts for array in part]


@overload(unit_view, jit_options=cast(Any, INLINE), strict=False)
def _unit_of(stacked: Any, unit: int) -> Callable[..., Any]:
    def source(name: str, kind: Any) -> str:
        if name in SHARED.get(stacked.instance_class, ()):
            return f"crowd.{name}"
        if isinstance(kind, types.Array):
            return f"crowd.{name}[np.uintp(unit)]"
        return f"unit_of(crowd.{name}, unit)" if isinstance(kind, types.BaseNamedTuple) else f"crowd.{name}"

    arguments = ", ".join(source(name, kind) for name, kind in zip(stacked.fields, stacked.types, strict=True))
    scope: dict[str, Any] = {"Class": stacked.instance_class, "unit_of": unit_view, "np": np}
    exec(f"def implementation(crowd, unit):\n    return Class({arguments})", scope)
    return cast(Callable[..., Any], scope["implementation"])
