"""The plays of the last `size` steps: how often each arm was played and what it gave."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline


class Window(NamedTuple):
    arm: NDArray[np.int64]  # (size,) a ring, −1 where there is no reward
    reward: NDArray[np.float64]  # (size,)
    plays: NDArray[np.float64]  # (arms,) of each arm
    total: NDArray[np.float64]  # (arms,)
    time: NDArray[np.int64]  # (1,)


def window_init(size: int, arms: int) -> Window:
    ring = np.full(size, -1, dtype=np.int64)
    return Window(ring, np.zeros(size), np.zeros(arms), np.zeros(arms), np.zeros(1, dtype=np.int64))


@inline
def slide(window: Window, arm: int, reward: float) -> None:
    """Add a play, none if `arm` is −1; the one `size` steps ago leaves."""
    place = window.time[0] % window.arm.size
    oldest = window.arm[place]
    if oldest >= 0:
        window.plays[oldest] -= 1.0
        window.total[oldest] -= window.reward[place]
    window.arm[place], window.reward[place] = arm, reward
    if arm >= 0:
        window.plays[arm] += 1.0
        window.total[arm] += reward
    window.time[0] += 1
    if place == window.arm.size - 1:  # once a round, sum afresh: what was rounded away does not pile up
        for other in range(window.total.size):
            window.total[other] = 0.0
        for i in range(window.arm.size):
            if window.arm[i] >= 0:
                window.total[window.arm[i]] += window.reward[i]
