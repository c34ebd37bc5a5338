"""Median and scale of the latest rewards.

The scale is the median absolute deviation from the median, multiplied so that it estimates the sd of a normal
distribution: a few outliers change it little. If more than half of the rewards are equal, as binary rewards often are,
that deviation is 0; then the scale is the root mean square deviation, which is positive whenever two rewards differ.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl.policies._bounds import STEPS, Bound
from larl.policies._probabilities import Floats

MAD_TO_SD = 1.4826022185056018  # sd of a normal distribution / its median absolute deviation
NEGLIGIBLE_SHARE = 1e-6  # a median deviation below this share of the root mean square is treated as 0


class LatestRewards(NamedTuple):
    ring: Floats  # (size,) the latest rewards, ring buffer
    ordered: Floats  # (size,) the same, sorted
    seen: NDArray[np.int64]  # (1,) number of rewards
    standard: Floats  # (2,) their median and scale


def latest_rewards_init(size: int) -> LatestRewards:
    """Return room for `size` rewards."""
    return LatestRewards(np.zeros(size), np.zeros(size), np.zeros(1, dtype=np.int64), np.zeros(2))


def latest_rewards_bounds(state: LatestRewards, prefix: str = "") -> dict[str, Bound]:
    """Return the bounds of `seen`, and of `ordered`: `insert_reward` finds every reward of `ring` there."""
    latest = state.ordered.copy()
    used = min(max(int(state.seen[0]), 0), latest.size)
    latest[:used] = np.sort(state.ring[:used])
    return {f"{prefix}seen": STEPS, f"{prefix}ordered": (latest, latest)}


@inline
def insert_reward(state: LatestRewards, reward: float) -> None:
    """Insert a reward, in place of the oldest if there is no room, and update median and scale."""
    ring, ordered, seen = state.ring, state.ordered, state.seen[0]
    used, slot = min(seen, ring.size), seen % ring.size
    if used == ring.size:
        at = 0
        while ordered[at] != ring[slot]:
            at += 1
        for i in range(at, used - 1):
            ordered[i] = ordered[i + 1]
        used -= 1
    at = used
    while at > 0 and ordered[at - 1] > reward:
        ordered[at] = ordered[at - 1]
        at -= 1
    ordered[at], ring[slot] = reward, reward
    state.seen[0] += 1
    _set_standard(state, used + 1)


@inline
def _set_standard(state: LatestRewards, used: int) -> None:
    """Compute median and scale; the median absolute deviation is found from the middle outwards."""
    ordered = state.ordered
    centre = 0.5 * (ordered[(used - 1) // 2] + ordered[used // 2])
    low, high, distance = (used - 1) // 2, (used - 1) // 2 + 1, 0.0
    for _ in range(used // 2 + 1):
        below = centre - ordered[low] if low >= 0 else math.inf
        above = ordered[high] - centre if high < used else math.inf
        distance = min(below, above)
        if below <= above:
            low -= 1
        else:
            high += 1
    largest, squares = max(centre - ordered[0], ordered[used - 1] - centre), 0.0
    for i in range(used):
        share = (ordered[i] - centre) / largest if largest > 0.0 else 0.0
        squares += share * share
    width, root_mean_square = MAD_TO_SD * distance, largest * math.sqrt(squares / used)
    state.standard[0] = centre
    state.standard[1] = width if width > NEGLIGIBLE_SHARE * root_mean_square else root_mean_square
