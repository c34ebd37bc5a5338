"""Cohorts whose units share what they learn: the States of all units as one stacked State.

In a stacked State, every per-unit array has an additional first axis, the unit; shared arrays exist once.
`unit_view(stacked, u)` is the State of unit u: a view, so an update of its shared arrays is an update for all units.
"""

from collections.abc import Callable, Collection
from typing import Any, cast

import numpy as np
from numba import types
from numba.extending import overload

from larl._core.compile import INLINE, POLICY_NAMES, UNCOPIED, copy_fields
from larl._core.validation import InvalidValue
from larl.policies._contract import SHARED_FIELDS, Policy

POOLINGS = ("none", "full", "partial")
UNSHARED: set[type] = set()  # NamedTuples of which every unit has its own copy, also of what units share elsewhere
POOLED_STATES: dict[type, Callable[[Any], Any]] = {}  # from the State of a unit alone to that of a unit that shares
PARTIAL_STATES: dict[type, Callable[[Any], Any]] = {}  # from a State to that of partial pooling (_partial_pooling.py)


def pooled_state(policy: Policy, state: Any, pooling: str) -> Any:
    """Return the State of one unit for this kind of pooling; raise InvalidValue if the policy does not support it."""
    if pooling == "none":
        return state
    if type(getattr(state, "frozen", None)) in UNSHARED:  # of a `Deployed` policy
        inner = pooled_state(policy, state.inner, pooling)
        return state._replace(inner=inner, frozen=type(state.frozen)(copy_fields(inner)))
    if type(state) in POOLED_STATES:
        state = POOLED_STATES[type(state)](state)
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


def _mapped(state: Any, change: Callable[[Any], Any], *, is_shared: bool = True) -> Any:
    """Return a State with `change` applied to its per-unit arrays; without `is_shared`, to all that kernels change."""
    is_shared = is_shared and type(state) not in UNSHARED
    shared = _shared_names(type(state), is_shared)

    def changed(name: str, field: Any) -> Any:
        if name in shared:
            return field
        if isinstance(field, np.ndarray):
            return change(field)
        return _mapped(field, change, is_shared=is_shared) if isinstance(field, tuple) else field

    return type(state)(*(changed(*each) for each in zip(state._fields, state, strict=True)))


def _shared_names(state: type, is_shared: bool) -> tuple[str, ...]:
    """Return the fields that exist once for all units: those that units share, and those that no kernel changes."""
    return (SHARED_FIELDS.get(state, ()) if is_shared else ()) + UNCOPIED.get(state, ())


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


def unshared_view(stacked: Any, unit: int) -> Any:
    """Return `unit_view` of a part of which every unit has its own copy."""
    return _mapped(stacked, lambda field: field[unit], is_shared=False)


def _view_implementation(stacked: Any, *, is_shared: bool) -> Callable[..., Any]:
    """Return `unit_view`, or without `is_shared` `unshared_view`, for one type of State, for kernels."""
    kind = stacked.instance_class
    is_shared = is_shared and kind not in UNSHARED
    shared, nested = _shared_names(kind, is_shared), "unit_view" if is_shared else "unshared_view"

    def source(name: str, field: Any) -> str:
        if name in shared:
            return f"stacked.{name}"
        if isinstance(field, types.Array):
            return f"stacked.{name}[np.uintp(unit)]"
        return f"{nested}(stacked.{name}, unit)" if isinstance(field, types.BaseNamedTuple) else f"stacked.{name}"

    arguments = ", ".join(source(name, field) for name, field in zip(stacked.fields, stacked.types, strict=True))
    scope: dict[str, Any] = {"Class": kind, "unit_view": unit_view, "unshared_view": unshared_view, "np": np}
    exec(f"def implementation(stacked, unit):\n    return Class({arguments})", scope)
    return cast(Callable[..., Any], scope["implementation"])


@overload(unit_view, jit_options=cast(Any, INLINE), strict=False)
def _unit_view(stacked: Any, unit: int) -> Callable[..., Any]:
    return _view_implementation(stacked, is_shared=True)


@overload(unshared_view, jit_options=cast(Any, INLINE), strict=False)
def _unshared_view(stacked: Any, unit: int) -> Callable[..., Any]:
    return _view_implementation(stacked, is_shared=False)
