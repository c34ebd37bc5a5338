"""What agents of one policy share: machine code, looked up without numba, and the State before the first step.

numba's own look-up takes longer than everything else when an agent is created, and waits while any kernel is compiled.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

import numpy as np

from larl._core.compile import compiled_for
from larl.policies import Policy
from larl.worlds.base import World

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
    """Return the State before the first step, which must not be changed: agents share it."""
    return _shared(policy, arms, horizon) if world is None else policy.init(arms, horizon=horizon, world=world)


@lru_cache(maxsize=8)
def _shared(policy: Policy, arms: int, horizon: int | None) -> Any:
    return policy.init(arms, horizon=horizon, world=None)
