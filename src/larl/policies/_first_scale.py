"""A fixed offset and unit for a policy, from its first rewards.

The first rewards come from random arms. Their median c and scale w (`_latest_rewards.py`) are then fixed, and the
policy gets (r − c)/w, beginning with these first rewards. Unlike a running scale, c and w do not follow a state that
stays the same for long. While the latest rewards are all equal, more are collected: w is never 0.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.random import Bits, pick
from larl.policies._bounds import Bound, inner_bounds
from larl.policies._contract import act, action_probabilities, predict, update, update_missing
from larl.policies._latest_rewards import LatestRewards, insert_reward, latest_rewards_bounds, latest_rewards_init
from larl.policies._probabilities import Floats, Mask, uniform_probabilities
from larl.policies._registry import bind

FIRST, FIRST_PER_ARM = 8, 2  # rewards that c and w are computed from: the larger number
LARGEST = 1e100  # of a standardised reward, as of a reward


class FirstScaleState(NamedTuple):
    inner: Any  # the State of the policy
    first: LatestRewards  # the latest rewards until c and w are fixed
    first_arm: NDArray[np.int64]  # (size of the ring,) their arms
    is_fixed: NDArray[np.int64]  # (1,) 1 if c and w are fixed
    arms: int


def first_scale_init(inner: Any, arms: int) -> FirstScaleState:
    """Return a State that passes standardised rewards to the State `inner`."""
    size = max(FIRST, FIRST_PER_ARM * arms)
    return FirstScaleState(
        inner=inner,
        first=latest_rewards_init(size),
        first_arm=np.zeros(size, dtype=np.int64),
        is_fixed=np.zeros(1, dtype=np.int64),
        arms=arms,
    )


def bounds(initial: FirstScaleState, state: FirstScaleState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    first = latest_rewards_bounds(state.first, "first.")
    own = {"first_arm": (0, initial.arms - 1), "is_fixed": (0, 1)}
    return inner_bounds(initial.inner, state.inner, "inner") | first | own


def first_scale_act(state: FirstScaleState, bits: Bits) -> int:
    return act(state.inner, bits) if state.is_fixed[0] else pick(bits, state.arms)


def first_scale_update(state: FirstScaleState, arm: int, reward: float) -> None:
    """Collect the reward until c and w are fixed; then pass it, or all collected ones, to the policy."""
    first, size = state.first, state.first_arm.size
    slot, count = first.seen[0] % size, 1
    if not state.is_fixed[0]:
        state.first_arm[slot] = arm
        insert_reward(first, reward)
        if first.seen[0] < size or first.standard[1] == 0.0:
            return
        state.is_fixed[0], count = 1, size
    for i in range(count):
        index = (slot + 1 + i) % size
        played, value = (arm, reward) if count == 1 else (state.first_arm[index], first.ring[index])
        width = first.standard[1]
        standard = (value - first.standard[0]) / width if width > 0.0 else 0.0  # 0: only in a damaged file
        update(state.inner, played, min(max(standard, -LARGEST), LARGEST))


def first_scale_update_missing(state: FirstScaleState, arm: int) -> None:
    """Pass the step to the policy; until c and w are fixed it is left out."""
    if state.is_fixed[0]:
        update_missing(state.inner, arm)


def first_scale_predict(state: FirstScaleState, arm: int) -> tuple[float, float]:
    if not state.is_fixed[0]:
        return math.nan, math.nan
    mean, width = predict(state.inner, arm)
    return state.first.standard[0] + state.first.standard[1] * mean, state.first.standard[1] * width


def first_scale_action_probabilities(state: FirstScaleState, available: Mask, out: Floats) -> None:
    if state.is_fixed[0]:
        action_probabilities(state.inner, available, out)
    else:
        uniform_probabilities(available, out)


bind(
    FirstScaleState,
    first_scale_act,
    first_scale_update,
    "a policy with a fixed scale",
    (),
    bounds,
    update_missing=first_scale_update_missing,
    predict=first_scale_predict,
    action_probabilities=first_scale_action_probabilities,
)
