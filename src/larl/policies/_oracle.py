"""What policies that know the world's true parameters share."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from larl._check import InvalidValue
from larl._compile import inline
from larl.world import LatentAR

if TYPE_CHECKING:
    from larl.world import World

Floats = NDArray[np.float64]


def the_world(policy: str, world: "World | None", arms: int) -> LatentAR:
    """The world an oracle is built from, or a refusal. Of a world with heavy tails, it knows the one without."""
    known = getattr(world, "filterable", world)
    if not isinstance(known, LatentAR):
        raise InvalidValue(policy, "world", world, "a larl.LatentAR, whose parameters it knows")
    if arms != known.arms:
        raise InvalidValue(policy, "arms", arms, f"{known.arms}, as many as its world has")
    return known


@inline
def best_line(mu: Floats, beta: Floats, z: float) -> int:
    """The lowest arm with the largest μ_a + β_a z."""
    best, choice = -math.inf, 0
    for arm in range(mu.size):
        if mu[arm] + beta[arm] * z > best:
            best, choice = mu[arm] + beta[arm] * z, arm
    return choice
