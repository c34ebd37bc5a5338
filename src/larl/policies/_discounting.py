"""Discounted counts and sums of rewards."""

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline


@inline
def discount_and_add(
    plays: NDArray[np.float64], total: NDArray[np.float64], discount: float, arm: int, reward: float
) -> None:
    """Multiply all counts and sums by `discount`, then add a play of `arm` (−1: none)."""
    for other in range(plays.size):
        plays[other] *= discount
        total[other] *= discount
    if arm >= 0:
        plays[arm] += 1.0
        total[arm] += reward
