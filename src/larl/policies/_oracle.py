"""Shared by policies that use the world's true parameters."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from larl._core.validation import InvalidValue
from larl.worlds.base import LinearGaussianWorld

if TYPE_CHECKING:
    from larl.worlds.base import World

Floats = NDArray[np.float64]


def known_world(policy: str, world: "World | None", arms: int) -> LinearGaussianWorld:
    """Return the linear Gaussian world of an oracle; for a world with heavy tails, the one without them."""
    known = getattr(world, "filterable", world)
    if not isinstance(known, LinearGaussianWorld):
        raise InvalidValue(policy, "world", world, "a larl.LatentAR or larl.LatentVAR, whose parameters it knows")
    if arms != known.arms:
        raise InvalidValue(policy, "arms", arms, f"{known.arms}, as many as its world has")
    return known
