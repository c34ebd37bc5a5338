"""What agents of one policy share: machine code, looked up without numba, and the State before the first step.

numba's own look-up takes longer than everything else when an agent is created, and waits while any kernel is compiled.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

import numpy as np

from larl._core.compile import compiled_for
from larl.policies import Policy
from larl.policies._state_memory import checked_init
from larl.worlds.base import World

COPIES = 2  # of a State that a new agent holds: the shared one and its own
F = TypeVar("F", bound=Callable[..., Any])
_FOUND: dict[tuple[Any, Any], Any] = {}


def compiled_for_state(function: F, state: Any, *others: Any) -> F:
    """Return `compiled_for(function, state, *others)`. The types of `others` must be the same for every State."""
    key = function, _kind(state)
    if key not in _FOUND:
        _FOUND[key] = compiled_for(function, state, *others)
    return cast(F, _FOUND[key])


def _kind(field: Any) -> Any:
    """Return what decides the type of a field in a kernel."""
    if isinstance(field, tuple):
        return type(field), *map(_kind, field)
    if isinstance(field, np.ndarray):
        return field.dtype.str, field.ndim, field.flags.num
    return type(field)


def initial_state(policy: Policy, arms: int, horizon: int | None, world: World | None) -> Any:
    """Return the State before the first step, which must not be changed: agents share it.

    Raise InvalidValue if it does not fit into memory.
    """
    return _shared(policy, arms, horizon) if world is None else _create(policy, arms, horizon, world)


@lru_cache(maxsize=8)
def _shared(policy: Policy, arms: int, horizon: int | None) -> Any:
    return _create(policy, arms, horizon, None)


def _create(policy: Policy, arms: int, horizon: int | None, world: World | None) -> Any:
    return checked_init(policy, arms, horizon=horizon, world=world, copies=COPIES)
