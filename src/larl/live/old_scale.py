"""Files of earlier versions with `standardise=True`, whose median and scale were those of the latest rewards."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl.policies._bounds import state_arrays
from larl.policies._shared_scale import SharedScaleState
from larl.policies._standardise import STORED, StandardState


def has_running_scale(values: Mapping[str, Any], initial: Any) -> bool:
    """Return whether the arrays of a file are those of a State with a running scale."""
    if isinstance(initial, StandardState):
        return "ring" in values
    return isinstance(initial, SharedScaleState) and values["ring"]["shape"] != list(initial.ring.shape)


def fix_scale(values: Mapping[str, Any], state: Any, initial: Any, unpack: Callable[..., NDArray[Any]]) -> None:
    """Write the last median and scale of a file into a State, where they stay fixed.

    A State without rewards stays as it is. ValueError if they are not two finite numbers, the second not below 0.
    """
    if unpack("seen", values["seen"]["data"], np.zeros(1, dtype="<i8"))[0] == 0:
        return
    centre, width = unpack("standard", values["standard"]["data"], np.zeros(2)).tolist()
    if not (np.isfinite(centre) and 0.0 <= width < np.inf):
        raise ValueError(f"state standard is {[centre, width]}, not a median and a scale")
    arrays = state_arrays(state)
    if isinstance(initial, StandardState):
        arrays["scale"][...] = arrays["first.standard"][...] = centre, width
        arrays["first.ring"][0] = arrays["first.ordered"][0] = centre
        arrays["first.seen"][0], arrays["time"][0] = 1, STORED
    elif width > 0.0:  # otherwise all rewards were equal, and the first rewards are collected again
        arrays["standard"][...] = centre, width
        arrays["seen"][0] = initial.ring.size
