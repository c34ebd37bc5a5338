"""Counts and sums that fade by one factor a step."""

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline


@inline
def fade(plays: NDArray[np.float64], total: NDArray[np.float64], discount: float, arm: int, reward: float) -> None:
    """Multiply all counts and sums by `discount`, then add a play of `arm`; none if it is −1."""
    for other in range(plays.size):
        plays[other] *= discount
        total[other] *= discount
    if arm >= 0:
        plays[arm] += 1.0
        total[arm] += reward
