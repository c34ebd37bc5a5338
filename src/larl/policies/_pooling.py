"""Cohorts whose units share what they learn: which fields of their States exist once for all units."""

from collections.abc import Callable, Collection
from typing import Any

from larl._core.compile import POLICY_NAMES
from larl._core.validation import InvalidValue
from larl.policies._contract import SHARED_FIELDS, Policy

POOLINGS = ("none", "full", "partial")
POOLED_STATES: dict[type, Callable[[Any], Any]] = {}  # from the State of a unit alone to that of a unit that shares
PARTIAL_STATES: dict[type, Callable[[Any], Any]] = {}  # from a State to that of partial pooling (_partial_pooling.py)


def shared_fields(state: type) -> tuple[str, ...]:
    """Return the fields of a State that the units of a cohort share."""
    return SHARED_FIELDS.get(state, ())


def pooled_state(policy: Policy, state: Any, pooling: str) -> Any:
    """Return the State of one unit for this kind of pooling; raise InvalidValue if the policy does not support it."""
    if pooling == "none":
        return state
    if type(state) in POOLED_STATES:
        state = POOLED_STATES[type(state)](state)
    supported: Collection[type] = PARTIAL_STATES if pooling == "partial" else SHARED_FIELDS
    if not {type(state), type(getattr(state, "inner", state))} <= set(supported):
        names = ", ".join(sorted({POLICY_NAMES[kind] for kind in supported}))
        accepted = f"a policy whose units can share what they learn: {names} (LARL with radius = 'alpha')"
        raise InvalidValue(f"pooling {pooling!r}", "policy", policy, f"{accepted}; or pooling 'none'")
    return PARTIAL_STATES[type(state)](state) if pooling == "partial" else state
