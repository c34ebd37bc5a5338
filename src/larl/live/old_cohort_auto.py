"""Files of earlier versions with the policy `CohortAuto`, in which every unit had an Auto that learnt alone."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl.live.old_auto import learn_again
from larl.policies._pooling import unit_view
from larl.policies.auto.pooled_state import PooledAutoState
from larl.policies.cohort_auto import CohortAutoState

PREFIX = "alone."
NEEDED = ("smc.history.arm", "smc.history.reward", "smc.offset", "smc.time")  # arrays that hold the rewards


def has_auto_alone(values: Mapping[str, Any], initial: Any) -> bool:
    """Return whether the arrays of a file are those of units whose Autos learnt alone, and now learn together."""
    is_pooled = isinstance(initial, CohortAutoState) and isinstance(initial.alone, PooledAutoState)
    return is_pooled and f"{PREFIX}smc.time" in values


def learn_together(
    values: Mapping[str, Any],
    state: Any,
    pack: Callable[[Any], dict[str, Any]],
    unpack: Callable[..., NDArray[Any]],
) -> None:
    """Let the Auto of each unit learn again from the rewards in its earlier State, one unit after another.

    `state` is that of new units, of one or stacked. ValueError if `values` are not those of such a State.
    """
    is_stacked = state.changes.ndim == 2
    arrays = {}
    for name in NEEDED:
        packed = values[PREFIX + name]
        arrays[name] = unpack(name, packed["data"], np.zeros(packed["shape"], dtype=packed["type"]))
    for unit in range(len(state.changes) if is_stacked else 1):
        own = {name: pack(np.array(array[unit] if is_stacked else array)) for name, array in arrays.items()}
        alone = unit_view(state, unit).alone if is_stacked else state.alone
        learn_again(own, alone, alone.auto.smc, unpack)
