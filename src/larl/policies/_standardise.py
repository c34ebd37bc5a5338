"""Standardised rewards for a policy: (r − c)/w, with c the median and w the scale of its first rewards.

c and w are computed again after 2, 4, 8, 16 and 32 steps, and as soon as two rewards differ; the policy then learns
again from all steps so far, with the new c and w. Later they are fixed. All rewards that the policy has learnt from so
have the same origin and unit. With a running median they would not: the means of two arms that were played at different
times could not be compared. While all rewards are equal, w = 0 and the policy gets zeros; if that lasts for more than
32 steps, the first other reward sets w to its distance from c. Predictions are transformed back.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import copy_fields, inline, inner, share_fields
from larl._core.random import Bits
from larl.policies._bounds import STEPS, Bound, inner_bounds
from larl.policies._contract import act, action_probabilities, predict, set_context, update, update_missing
from larl.policies._frozen import assign_fields
from larl.policies._latest_rewards import LatestRewards, insert_reward, latest_rewards_bounds, latest_rewards_init
from larl.policies._pooling import POOLED_STATES
from larl.policies._probabilities import Floats, Mask
from larl.policies._registry import bind
from larl.policies._shared_scale import SharedScaleState, shared_scale_init

FIRST = 32  # steps whose rewards decide c and w
LARGEST = 1e100  # of a standardised reward, as of a reward


class StandardState(NamedTuple):
    inner: Any  # the State of the policy, which gets standardised rewards
    initial: Any  # the same before the first step
    first: LatestRewards  # the rewards of the first steps
    scale: Floats  # (2,) c and w
    context: Floats  # (p,) of this step
    first_context: Floats  # (FIRST + 1, p) of the first steps; the last row is that of the latest step
    first_arm: NDArray[np.int64]  # (FIRST + 1,) their arms, −1: none
    first_reward: Floats  # (FIRST + 1,) their rewards
    is_missing: NDArray[np.bool_]  # (FIRST + 1,) whether they have no reward
    time: NDArray[np.int64]  # (1,)
    arms: int


share_fields(StandardState, ("initial",))


def standard_init(inner: Any, arms: int, context: int = 0) -> StandardState:
    """Return a State that passes standardised rewards to the State `inner`, whose contexts have a length."""
    return StandardState(
        inner=inner,
        initial=copy_fields(inner),
        first=latest_rewards_init(FIRST),
        scale=np.zeros(2),
        context=np.zeros(context),
        first_context=np.zeros((FIRST + 1, context)),
        first_arm=np.zeros(FIRST + 1, dtype=np.int64),
        first_reward=np.zeros(FIRST + 1),
        is_missing=np.zeros(FIRST + 1, dtype=np.bool_),
        time=np.zeros(1, dtype=np.int64),
        arms=arms,
    )


def bounds(initial: StandardState, state: StandardState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers, and of sorted rewards."""
    lowest = np.where(state.is_missing, -1, 0)  # only a step without a reward can have no arm
    own = {"first_arm": (lowest, initial.arms - 1), "is_missing": (0, 1), "time": STEPS}
    return inner_bounds(initial.inner, state.inner, "inner") | latest_rewards_bounds(state.first, "first.") | own


@inline
def _update_scale(state: StandardState, reward: float, is_missing: bool) -> bool:
    """Learn c and w from this step; return whether they have changed for earlier rewards."""
    count, scale = state.time[0] + 1, state.scale
    is_first = count <= FIRST
    if not is_missing and (is_first or state.first.seen[0] == 0):
        insert_reward(state.first, reward)
        is_due = count & (count - 1) == 0 or scale[1] == 0.0
        is_new = is_due and (scale[0] != state.first.standard[0] or scale[1] != state.first.standard[1])
        if is_new:
            scale[0], scale[1] = state.first.standard[0], state.first.standard[1]
        return is_new and is_first
    if not is_missing and scale[1] == 0.0:  # all earlier rewards are equal to c, whatever w is
        scale[1] = abs(reward - scale[0])
    return False


@inner
def _learn(state: StandardState, arm: int, reward: float, is_missing: bool) -> None:
    """Update the policy with this step; if c and w have changed, with all steps so far."""
    last = min(state.time[0], FIRST)
    for j in range(state.context.size):
        state.first_context[last, j] = state.context[j]
    state.first_arm[last], state.first_reward[last], state.is_missing[last] = arm, reward, is_missing
    begin = last
    if _update_scale(state, reward, is_missing):
        begin = 0
        assign_fields(state.inner, state.initial)
    centre, width = state.scale[0], state.scale[1]
    for i in range(begin, last + 1):
        set_context(state.inner, state.first_context[i])
        if state.is_missing[i]:
            update_missing(state.inner, state.first_arm[i])
        else:
            standard = (state.first_reward[i] - centre) / width if width > 0.0 else 0.0
            update(state.inner, state.first_arm[i], min(max(standard, -LARGEST), LARGEST))
    state.time[0] += 1


def standard_act(state: StandardState, bits: Bits) -> int:
    return act(state.inner, bits)


def standard_update(state: StandardState, arm: int, reward: float) -> None:
    _learn(state, arm, reward, False)


def standard_update_missing(state: StandardState, arm: int) -> None:
    _learn(state, arm, 0.0, True)


def standard_predict(state: StandardState, arm: int) -> tuple[float, float]:
    mean, width = predict(state.inner, arm)
    return state.scale[0] + state.scale[1] * mean, state.scale[1] * width


def standard_action_probabilities(state: StandardState, available: Mask, out: Floats) -> None:
    action_probabilities(state.inner, available, out)


def standard_set_context(state: StandardState, context: Floats) -> None:
    for j in range(min(state.context.size, context.size)):
        state.context[j] = context[j]
    set_context(state.inner, state.context)


bind(
    StandardState,
    standard_act,
    standard_update,
    "a policy with standardise = True",
    (),
    bounds,
    update_missing=standard_update_missing,
    predict=standard_predict,
    action_probabilities=standard_action_probabilities,
    set_context=standard_set_context,
)


def _pooled_standard(state: StandardState) -> SharedScaleState:
    """Return the State of a unit that shares what it learns: the first rewards of all units decide c and w."""
    return shared_scale_init(state.inner, state.arms)


POOLED_STATES[StandardState] = _pooled_standard
