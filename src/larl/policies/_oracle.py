"""What policies that know the world's true parameters share."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from larl._core.validation import InvalidValue
from larl.worlds.base import LinearGaussianWorld

if TYPE_CHECKING:
    from larl.worlds.base import World

Floats = NDArray[np.float64]


def the_world(policy: str, world: "World | None", arms: int) -> LinearGaussianWorld:
    """The world an oracle is built from, or a refusal. Of a world with heavy tails, it knows the one without."""
    known = getattr(world, "filterable", world)
    if not isinstance(known, LinearGaussianWorld):
        raise InvalidValue(policy, "world", world, "a larl.LatentAR or larl.LatentVAR, whose parameters it knows")
    if arms != known.arms:
        raise InvalidValue(policy, "arms", arms, f"{known.arms}, as many as its world has")
    return known
