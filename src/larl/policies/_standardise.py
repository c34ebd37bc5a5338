"""A policy that is shown standardised rewards: (r − c)/w, c the median and w the scale of the latest rewards.

The scale is the median absolute deviation from c, scaled to a normal's standard deviation. Both follow the rewards'
offset and unit, and a few outliers do not move them. If more than half of the latest rewards are equal, as binary
rewards often are, that deviation is 0, and the root mean square deviation from c is the scale instead: it is positive
whenever two of the rewards differ. A reward is included before it is shown. While all are equal, w = 0 and the policy
is shown zeros. What it expects is translated back.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits
from larl.policies._contract import act, action_probabilities, bind, predict, set_context, update, update_missing
from larl.policies._probabilities import Floats, Mask

LATEST = 101
NORMAL = 1.4826022185056018  # a normal's sd over its median distance from the median
NEGLIGIBLE = 1e-6  # a median deviation below this share of the root mean square counts as 0


class StandardState(NamedTuple):
    inner: Any  # the policy's own
    ring: Floats  # (LATEST,) the latest rewards
    ordered: Floats  # (LATEST,) the same, ascending
    seen: NDArray[np.int64]  # (1,) rewards
    standard: Floats  # (2,) c and w


def standard_init(inner: Any) -> StandardState:
    """A State that shows another standardised rewards."""
    return StandardState(inner, np.zeros(LATEST), np.zeros(LATEST), np.zeros(1, dtype=np.int64), np.zeros(2))


@inline
def take_in(state: StandardState, reward: float) -> None:
    """Put a reward in order among the latest, in place of the oldest where there is no room."""
    ring, ordered, seen = state.ring, state.ordered, state.seen[0]
    used, place = min(seen, ring.size), seen % ring.size
    if used == ring.size:
        at = 0
        while ordered[at] != ring[place]:
            at += 1
        for i in range(at, used - 1):
            ordered[i] = ordered[i + 1]
        used -= 1
    at = used
    while at > 0 and ordered[at - 1] > reward:
        ordered[at] = ordered[at - 1]
        at -= 1
    ordered[at], ring[place] = reward, reward
    state.seen[0] += 1
    _measure(state, used + 1)


@inline
def _measure(state: StandardState, used: int) -> None:
    """c, the middle of the ordered; w, from the `used // 2 + 1` nearest to it, found from the middle outwards.

    If that is negligible, w is the root mean square distance.
    """
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
    width, root_mean_square = NORMAL * distance, largest * math.sqrt(squares / used)
    state.standard[0] = centre
    state.standard[1] = width if width > NEGLIGIBLE * root_mean_square else root_mean_square


def standard_act(state: StandardState, bits: Bits) -> int:
    return act(state.inner, bits)


def standard_update(state: StandardState, arm: int, reward: float) -> None:
    take_in(state, reward)
    centre, width = state.standard[0], state.standard[1]
    update(state.inner, arm, (reward - centre) / width if width > 0.0 else 0.0)


def standard_update_missing(state: StandardState, arm: int) -> None:
    update_missing(state.inner, arm)


def standard_predict(state: StandardState, arm: int) -> tuple[float, float]:
    mean, width = predict(state.inner, arm)
    return state.standard[0] + state.standard[1] * mean, state.standard[1] * width


def standard_action_probabilities(state: StandardState, available: Mask, out: Floats) -> None:
    action_probabilities(state.inner, available, out)


def standard_set_context(state: StandardState, context: Floats) -> None:
    set_context(state.inner, context)


bind(
    StandardState,
    standard_act,
    standard_update,
    "a policy with standardise = True",
    ("ring", "ordered", "seen", "standard"),
    update_missing=standard_update_missing,
    predict=standard_predict,
    action_probabilities=standard_action_probabilities,
    set_context=standard_set_context,
)
