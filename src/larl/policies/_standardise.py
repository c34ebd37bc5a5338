"""Standardised rewards for a policy: (r − c)/w, with c the median and w the scale of its first rewards.

c and w are computed again when there are 2, 4, 8, 16 and 32 rewards, and as soon as two rewards differ; the policy then
learns again from all steps since the first reward, with the new c and w. Later they are fixed. All rewards that the
policy has learnt from so have the same origin and unit. With a running median they would not: the means of two arms
that were played at different times could not be compared. While all rewards are equal, w = 0 and the policy gets zeros;
if that lasts for more than 32 rewards, everything begins again at the first other reward: it can be an outlier. c and w
are fixed after 64 steps, if many rewards are missing. Predictions are transformed back.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl._core.random import Bits
from larl._core.states import assign_fields, copy_state, share_fields
from larl.policies._bounds import Bound, inner_bounds
from larl.policies._contract import act, action_probabilities, predict, set_context, update, update_missing
from larl.policies._latest_rewards import LatestRewards, insert_reward, latest_rewards_bounds, latest_rewards_init
from larl.policies._pooling import POOLED_STATES
from larl.policies._probabilities import Floats, Mask
from larl.policies._registry import bind
from larl.policies._shared_scale import SharedScaleState, shared_scale_init

FIRST = 32  # rewards that decide c and w
STORED = 64  # steps in which they are awaited
LARGEST = 1e100  # of a standardised reward, as of a reward


class StandardState(NamedTuple):
    inner: Any  # the State of the policy, which gets standardised rewards
    initial: Any  # the same before the first step
    first: LatestRewards  # the first rewards
    scale: Floats  # (2,) c and w
    context: Floats  # (p,) of this step
    first_context: Floats  # (STORED + 1, p) of the steps since the first reward; the last row is that of a later step
    first_arm: NDArray[np.int64]  # (STORED + 1,) their arms, −1: none
    first_reward: Floats  # (STORED + 1,) their rewards
    is_missing: NDArray[np.bool_]  # (STORED + 1,) whether they have no reward
    time: NDArray[np.int64]  # (1,) number of stored steps
    arms: int


share_fields(StandardState, ("initial",))


def standard_init(inner: Any, arms: int, context: int = 0) -> StandardState:
    """Return a State that passes standardised rewards to the State `inner`, whose contexts have a length."""
    return StandardState(
        inner=inner,
        initial=copy_state(inner),
        first=latest_rewards_init(FIRST),
        scale=np.zeros(2),
        context=np.zeros(context),
        first_context=np.zeros((STORED + 1, context)),
        first_arm=np.zeros(STORED + 1, dtype=np.int64),
        first_reward=np.zeros(STORED + 1),
        is_missing=np.zeros(STORED + 1, dtype=np.bool_),
        time=np.zeros(1, dtype=np.int64),
        arms=arms,
    )


def bounds(initial: StandardState, state: StandardState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers, and of sorted rewards."""
    lowest = np.where(state.is_missing, -1, 0)  # only a step without a reward can have no arm
    own = {"first_arm": (lowest, initial.arms - 1), "is_missing": (0, 1), "time": (0, STORED)}
    return inner_bounds(initial.inner, state.inner, "inner") | latest_rewards_bounds(state.first, "first.") | own


@inline
def _update_scale(state: StandardState, reward: float) -> bool:
    """Learn c and w from one of the first rewards; return whether they have changed."""
    insert_reward(state.first, reward)
    scale, standard, count = state.scale, state.first.standard, state.first.seen[0]
    is_due = count & (count - 1) == 0 or scale[1] == 0.0
    if not is_due or (scale[0] == standard[0] and scale[1] == standard[1]):
        return False
    scale[0], scale[1] = standard[0], standard[1]
    return True


@inner
def _learn(state: StandardState, arm: int, reward: float, is_missing: bool) -> None:
    """Update the policy with this step; if c and w have changed, with all steps since the first reward."""
    seen, scale, time = state.first.seen, state.scale, state.time
    if is_missing and seen[0] == 0:
        return
    if not is_missing and scale[1] == 0.0 and reward != scale[0] and (seen[0] >= FIRST or time[0] >= STORED):
        seen[0], time[0] = 0, 0
    is_first = seen[0] < FIRST and time[0] < STORED
    last = time[0] if is_first else STORED
    for j in range(state.context.size):
        state.first_context[last, j] = state.context[j]
    state.first_arm[last], state.first_reward[last], state.is_missing[last] = arm, reward, is_missing
    begin = last
    if is_first and not is_missing and _update_scale(state, reward):
        begin = 0
        assign_fields(state.inner, state.initial)
    for i in range(begin, last + 1):
        set_context(state.inner, state.first_context[i])
        if state.is_missing[i]:
            update_missing(state.inner, state.first_arm[i])
        else:
            standard = (state.first_reward[i] - scale[0]) / scale[1] if scale[1] > 0.0 else 0.0
            update(state.inner, state.first_arm[i], min(max(standard, -LARGEST), LARGEST))
    if is_first:
        time[0] += 1


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
