"""Counts and sums of rewards over a sliding window."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl.policies._bounds import STEPS, Bound


class Window(NamedTuple):
    arm: NDArray[np.int64]  # (size,) ring buffer, −1 where there is no reward
    reward: NDArray[np.float64]  # (size,)
    plays: NDArray[np.float64]  # (arms,) number of plays in the window
    total: NDArray[np.float64]  # (arms,) sum of rewards in the window
    time: NDArray[np.int64]  # (1,)


def window_init(size: int, arms: int) -> Window:
    """Return an empty window of `size` steps."""
    return Window(
        arm=np.full(size, -1, dtype=np.int64),
        reward=np.zeros(size),
        plays=np.zeros(arms),
        total=np.zeros(arms),
        time=np.zeros(1, dtype=np.int64),
    )


def window_bounds(initial: Window) -> dict[str, Bound]:
    """Return the bounds of the whole numbers of a window that is the field `window` of a State."""
    return {"window.arm": (-1, initial.plays.size - 1), "window.time": STEPS}


@inline
def slide(window: Window, arm: int, reward: float) -> None:
    """Add a play (arm −1: none) and remove that of `size` steps ago."""
    slot = window.time[0] % window.arm.size
    oldest = window.arm[slot]
    if oldest >= 0:
        window.plays[oldest] -= 1.0
        window.total[oldest] -= window.reward[slot]
    window.arm[slot], window.reward[slot] = arm, reward
    if arm >= 0:
        window.plays[arm] += 1.0
        window.total[arm] += reward
    window.time[0] += 1
    if slot == window.arm.size - 1:  # once per window, sum again: rounding errors do not accumulate
        for other in range(window.total.size):
            window.total[other] = 0.0
        for i in range(window.arm.size):
            if window.arm[i] >= 0:
                window.total[window.arm[i]] += window.reward[i]
