"""Standardised rewards for a policy: (r − c)/w, with c the median and w the scale of the latest rewards.

The scale is the median absolute deviation from c, multiplied so that it estimates the sd of a normal distribution. Both
follow the rewards' offset and unit, and a few outliers change them little. If more than half of the latest rewards are
equal, as binary rewards often are, that deviation is 0; then the scale is the root mean square deviation from c, which
is positive whenever two rewards differ. c and w include the reward that is standardised. While all rewards are equal,
w = 0 and the policy gets zeros. Predictions are transformed back.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits
from larl.policies._bounds import STEPS, Bound, inner_bounds
from larl.policies._contract import act, action_probabilities, predict, set_context, update, update_missing
from larl.policies._probabilities import Floats, Mask
from larl.policies._registry import bind

LATEST = 101  # number of rewards that c and w are computed from
MAD_TO_SD = 1.4826022185056018  # sd of a normal distribution / its median absolute deviation
NEGLIGIBLE_SHARE = 1e-6  # a median deviation below this share of the root mean square is treated as 0


class StandardState(NamedTuple):
    inner: Any  # the State of the policy
    ring: Floats  # (LATEST,) the latest rewards, ring buffer
    ordered: Floats  # (LATEST,) the same, sorted
    seen: NDArray[np.int64]  # (1,) number of rewards
    standard: Floats  # (2,) c and w


def bounds(initial: StandardState, state: StandardState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers, and of `ordered`: `insert_reward` finds every reward of `ring` there."""
    latest = state.ordered.copy()
    used = min(max(int(state.seen[0]), 0), latest.size)
    latest[:used] = np.sort(state.ring[:used])
    inner = inner_bounds(initial.inner, state.inner, "inner")
    return inner | {"seen": STEPS, "ordered": (latest, latest)}


def standard_init(inner: Any) -> StandardState:
    """Return a State that passes standardised rewards to the State `inner`."""
    return StandardState(
        inner=inner,
        ring=np.zeros(LATEST),
        ordered=np.zeros(LATEST),
        seen=np.zeros(1, dtype=np.int64),
        standard=np.zeros(2),
    )


@inline
def insert_reward(state: StandardState, reward: float) -> None:
    """Insert a reward into the latest ones, in place of the oldest if there are LATEST, and update c and w."""
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
def _set_standard(state: StandardState, used: int) -> None:
    """Set c to the median and w to the scaled median absolute deviation, found from the middle outwards.

    If that is negligible, w is the root mean square deviation.
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
    width, root_mean_square = MAD_TO_SD * distance, largest * math.sqrt(squares / used)
    state.standard[0] = centre
    state.standard[1] = width if width > NEGLIGIBLE_SHARE * root_mean_square else root_mean_square


def standard_act(state: StandardState, bits: Bits) -> int:
    return act(state.inner, bits)


def standard_update(state: StandardState, arm: int, reward: float) -> None:
    insert_reward(state, reward)
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
    bounds,
    update_missing=standard_update_missing,
    predict=standard_predict,
    action_probabilities=standard_action_probabilities,
    set_context=standard_set_context,
)
