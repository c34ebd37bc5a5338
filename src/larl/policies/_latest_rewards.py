"""Median and scale of the latest rewards.

The scale is the median absolute deviation from the median, multiplied so that it estimates the sd of a normal
distribution: a few outliers change it little. If more than half of the rewards are equal, as binary rewards often are,
that deviation is 0; then the scale is the median of the other deviations, multiplied by the root of their share. It is
positive whenever two rewards differ, and the root mean square deviation of rewards with two values.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl.policies._bounds import STEPS, Bound
from larl.policies._probabilities import Floats

MAD_TO_SD = 1.4826022185056018  # sd of a normal distribution / its median absolute deviation
NEGLIGIBLE_SHARE = 1e-12  # a deviation below this share of the largest is a rounding error


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
    """Compute median and scale; deviations are visited from the smallest to the largest, from the middle outwards."""
    ordered, equal = state.ordered, 0
    centre = 0.5 * (ordered[(used - 1) // 2] + ordered[used // 2])
    negligible = NEGLIGIBLE_SHARE * max(centre - ordered[0], ordered[used - 1] - centre)
    for i in range(used):
        equal += abs(ordered[i] - centre) <= negligible
    state.standard[0], state.standard[1] = centre, 0.0
    if equal == used:
        return
    is_spread = equal <= used // 2
    rank = used // 2 if is_spread else equal + (used - equal) // 2
    low, high, deviation = (used - 1) // 2, (used - 1) // 2 + 1, 0.0
    for _ in range(rank + 1):
        below = centre - ordered[low] if low >= 0 else math.inf
        above = ordered[high] - centre if high < used else math.inf
        deviation = min(below, above)
        if below <= above:
            low -= 1
        else:
            high += 1
    state.standard[1] = deviation * (MAD_TO_SD if is_spread else math.sqrt((used - equal) / used))
