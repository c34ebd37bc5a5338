"""Cohorts whose units share what they learn: the States of all units as one stacked State.

In a stacked State, every per-unit array has an additional first axis, the unit; shared arrays exist once.
`unit_view(stacked, u)` is the State of unit u: a view, so an update of its shared arrays is an update for all units.
"""

from collections.abc import Callable, Collection
from typing import Any, cast

import numpy as np
from numba import types
from numba.extending import overload

from larl._core.compile import INLINE, POLICY_NAMES, UNCOPIED
from larl._core.validation import InvalidValue
from larl.policies._contract import SHARED_FIELDS, Policy

POOLINGS = ("none", "full", "partial")
PARTIAL_STATES: dict[type, Callable[[Any], Any]] = {}  # from a State to that of partial pooling (_partial_pooling.py)


def pooled_state(policy: Policy, state: Any, pooling: str) -> Any:
    """Return the State of one unit for this kind of pooling; raise InvalidValue if the policy does not support it."""
    if pooling == "none":
        return state
    supported: Collection[type] = PARTIAL_STATES if pooling == "partial" else SHARED_FIELDS
    if not {type(state), type(getattr(state, "inner", state))} <= set(supported):
        names = ", ".join(sorted({POLICY_NAMES[kind] for kind in supported}))
        accepted = f"a policy whose units can share what they learn: {names} (LARL with radius = 'alpha')"
        raise InvalidValue(f"pooling {pooling!r}", "policy", policy, f"{accepted}; or pooling 'none'")
    return PARTIAL_STATES[type(state)](state) if pooling == "partial" else state


def stack_units(state: Any, units: int) -> Any:
    """Return a stacked State for `units` copies of a State; shared arrays are not copied."""
    return _mapped(state, lambda field: np.repeat(field[None], units, axis=0))


def unit_view(stacked: Any, unit: int) -> Any:
    """Return the State of one unit of a stacked State, as a view."""
    return _mapped(stacked, lambda field: field[unit])


def _mapped(state: Any, change: Callable[[Any], Any]) -> Any:
    """Return a State with `change` applied to its per-unit arrays."""
    shared = _shared_names(type(state))

    def changed(name: str, field: Any) -> Any:
        if name in shared:
            return field
        if isinstance(field, np.ndarray):
            return change(field)
        return _mapped(field, change) if isinstance(field, tuple) else field

    return type(state)(*(changed(*each) for each in zip(state._fields, state, strict=True)))


def _shared_names(state: type) -> tuple[str, ...]:
    """Return the fields that exist once for all units: those that units share, and those that no kernel changes."""
    return SHARED_FIELDS.get(state, ()) + UNCOPIED.get(state, ())


def unit_arrays(stacked: Any) -> list[Any]:
    """Return the per-unit arrays of a stacked State."""
    arrays: list[Any] = []
    _mapped(stacked, arrays.append)
    return arrays


def shared_arrays(stacked: Any) -> list[Any]:
    """Return the arrays that all units share."""
    own = {id(array) for array in unit_arrays(stacked)}
    return [array for array in _arrays(stacked) if id(array) not in own]


def _arrays(state: Any) -> list[Any]:
    """Return all arrays of a State, also those of NamedTuples in it."""
    parts = ([field] if isinstance(field, np.ndarray) else _arrays(field) for field in state if not np.isscalar(field))
    return [array for part in parts for array in part]


@overload(unit_view, jit_options=cast(Any, INLINE), strict=False)
def _unit_view(stacked: Any, unit: int) -> Callable[..., Any]:
    """Return `unit_view` for one type of State, for kernels."""

    def source(name: str, kind: Any) -> str:
        if name in _shared_names(stacked.instance_class):
            return f"stacked.{name}"
        if isinstance(kind, types.Array):
            return f"stacked.{name}[np.uintp(unit)]"
        return f"unit_view(stacked.{name}, unit)" if isinstance(kind, types.BaseNamedTuple) else f"stacked.{name}"

    arguments = ", ".join(source(name, kind) for name, kind in zip(stacked.fields, stacked.types, strict=True))
    scope: dict[str, Any] = {"Class": stacked.instance_class, "unit_view": unit_view, "np": np}
    exec(f"def implementation(stacked, unit):\n    return Class({arguments})", scope)
    return cast(Callable[..., Any], scope["implementation"])
