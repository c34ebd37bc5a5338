"""A fixed offset and unit for the units of a cohort, from the first rewards of all units.

The first rewards come from random arms. The policy gets nothing from them but a step without a reward. Their median c
and scale w (`_latest_rewards.py`) are then fixed for all units, and the policy gets (r − c)/w: the rows of a regression
all have the same scale. While the latest rewards are all equal, more are collected: w is never 0.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits, pick
from larl.policies._bounds import Bound, inner_bounds
from larl.policies._contract import act, action_probabilities, predict, set_context, update, update_missing
from larl.policies._latest_rewards import LatestRewards, insert_reward, latest_rewards_bounds
from larl.policies._pooling import PARTIAL_STATES
from larl.policies._probabilities import Floats, Mask, uniform_probabilities
from larl.policies._registry import bind

FIRST, FIRST_PER_ARM = 16, 4  # rewards that c and w are computed from: the larger number
LARGEST = 1e100  # of a standardised reward, as of a reward


class SharedScaleState(NamedTuple):
    inner: Any  # the State of the policy
    ring: Floats  # (number of first rewards,) the latest rewards until c and w are fixed, ring buffer
    ordered: Floats  # the same, sorted
    seen: NDArray[np.int64]  # (1,) number of rewards until c and w are fixed
    standard: Floats  # (2,) c and w
    arms: int


def shared_scale_init(inner: Any, arms: int) -> SharedScaleState:
    """Return a State that passes standardised rewards to the State `inner`."""
    size = max(FIRST, FIRST_PER_ARM * arms)
    return SharedScaleState(
        inner=inner,
        ring=np.zeros(size),
        ordered=np.zeros(size),
        seen=np.zeros(1, dtype=np.int64),
        standard=np.zeros(2),
        arms=arms,
    )


def bounds(initial: SharedScaleState, state: SharedScaleState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers, and of `ordered`."""
    first = LatestRewards(state.ring, state.ordered, state.seen, state.standard)
    return inner_bounds(initial.inner, state.inner, "inner") | latest_rewards_bounds(first)


@inline
def is_fixed(state: SharedScaleState) -> bool:
    """Return whether c and w are fixed."""
    return state.seen[0] >= state.ring.size and state.standard[1] > 0.0


def shared_scale_act(state: SharedScaleState, bits: Bits) -> int:
    return act(state.inner, bits) if is_fixed(state) else pick(bits, state.arms)


def shared_scale_update(state: SharedScaleState, arm: int, reward: float) -> None:
    if is_fixed(state):
        standard = (reward - state.standard[0]) / state.standard[1]
        update(state.inner, arm, min(max(standard, -LARGEST), LARGEST))
    else:
        insert_reward(LatestRewards(state.ring, state.ordered, state.seen, state.standard), reward)
        update_missing(state.inner, arm)


def shared_scale_update_missing(state: SharedScaleState, arm: int) -> None:
    update_missing(state.inner, arm)


def shared_scale_predict(state: SharedScaleState, arm: int) -> tuple[float, float]:
    if not is_fixed(state):
        return math.nan, math.nan
    mean, width = predict(state.inner, arm)
    return state.standard[0] + state.standard[1] * mean, state.standard[1] * width


def shared_scale_action_probabilities(state: SharedScaleState, available: Mask, out: Floats) -> None:
    if is_fixed(state):
        action_probabilities(state.inner, available, out)
    else:
        uniform_probabilities(available, out)


def shared_scale_set_context(state: SharedScaleState, context: Floats) -> None:
    set_context(state.inner, context)


bind(
    SharedScaleState,
    shared_scale_act,
    shared_scale_update,
    "a policy with standardise = True in a cohort",
    ("ring", "ordered", "seen", "standard"),
    bounds,
    update_missing=shared_scale_update_missing,
    predict=shared_scale_predict,
    action_probabilities=shared_scale_action_probabilities,
    set_context=shared_scale_set_context,
)


def _partial_shared_scale(state: SharedScaleState) -> SharedScaleState:
    """Return the State of partial pooling."""
    return state._replace(inner=PARTIAL_STATES[type(state.inner)](state.inner))


PARTIAL_STATES[SharedScaleState] = _partial_shared_scale
