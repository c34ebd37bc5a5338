"""Contexts in any unit for a policy: (x − c)/w, with c the mean and w the sd of the first contexts.

c and w are set again whenever the number of contexts is a power of two, until there are FIRST; then the policy learns
again from its first steps, with all contexts on the new scale. Later they are fixed: unlike running ones, they do not
follow a context that stays the same for long. While a number has not changed, w = 0 and the policy gets 0 for it. The
first other value then sets w to its distance from c, which changes no earlier context.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl._core.random import Bits
from larl._core.states import assign_fields, copy_state, share_fields
from larl._core.validation import InvalidValue
from larl.policies._bounds import STEPS, Bound, inner_bounds
from larl.policies._contract import act, action_probabilities, predict, set_context, update, update_missing
from larl.policies._probabilities import Floats, Mask
from larl.policies._registry import bind

if TYPE_CHECKING:
    from larl.worlds.base import World

FIRST = 32  # steps whose contexts decide c and w
LARGEST = 1e100  # of a context, as of a reward
MIN_WIDTH = 1e-9  # of w relative to c; a smaller one is 0
LARGEST_STANDARD = 100.0  # of a standardised context


class ContextScaleState(NamedTuple):
    inner: Any  # the State of the policy, which gets standardised contexts
    initial: Any  # the same before the first step
    context: Floats  # (p,) of the next step
    standard: Floats  # (p,) the same, standardised
    scale: Floats  # (p, 2) c and w
    moments: Floats  # (p, 2) mean and sum of squared deviations
    first_context: Floats  # (FIRST + 1, p) of the first steps; the last row is that of the latest step
    first_arm: NDArray[np.int64]  # (FIRST + 1,) their arms, −1: none
    first_reward: Floats  # (FIRST + 1,) their rewards
    is_missing: NDArray[np.bool_]  # (FIRST + 1,) whether they have no reward
    time: NDArray[np.int64]  # (1,)
    arms: int


share_fields(ContextScaleState, ("initial",))


def check_context(policy: str, context: int, world: "World | None") -> None:
    """Raise InvalidValue if a policy takes contexts of another length than its world's."""
    given = getattr(world, "context", 0)
    if context not in (0, given) and world is not None:
        raise InvalidValue(policy, "context", context, f"0 or {given}, the length of the world's context")


def context_scale_init(inner: Any, size: int, arms: int) -> ContextScaleState:
    """Return a State that passes standardised contexts of `size` numbers to the State `inner`."""
    return ContextScaleState(
        inner=inner,
        initial=copy_state(inner),
        context=np.zeros(size),
        standard=np.zeros(size),
        scale=np.zeros((size, 2)),
        moments=np.zeros((size, 2)),
        first_context=np.zeros((FIRST + 1, size)),
        first_arm=np.zeros(FIRST + 1, dtype=np.int64),
        first_reward=np.zeros(FIRST + 1),
        is_missing=np.zeros(FIRST + 1, dtype=np.bool_),
        time=np.zeros(1, dtype=np.int64),
        arms=arms,
    )


def bounds(initial: ContextScaleState, state: ContextScaleState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    lowest = np.where(state.is_missing, -1, 0)  # only a step without a reward can have no arm
    own = {"first_arm": (lowest, initial.arms - 1), "is_missing": (0, 1), "time": STEPS}
    return inner_bounds(initial.inner, state.inner, "inner") | own


@inline
def _standardise(state: ContextScaleState, context: Floats) -> None:
    """Write a context on the present scale into `standard`."""
    for j in range(context.size):
        centre, width = state.scale[j, 0], state.scale[j, 1]
        standard = (context[j] - centre) / width if width > 0.0 else 0.0
        state.standard[j] = min(max(standard, -LARGEST_STANDARD), LARGEST_STANDARD)


@inline
def _update_scale(state: ContextScaleState) -> bool:
    """Learn from the context of this step; return whether the scale of earlier contexts has changed."""
    count = state.time[0] + 1
    is_new = count <= FIRST and count & (count - 1) == 0
    for j in range(state.context.size):
        mean, squares = state.moments[j, 0], state.moments[j, 1]
        deviation = state.context[j] - mean
        mean += deviation / count
        state.moments[j, 0], state.moments[j, 1] = mean, squares + deviation * (state.context[j] - mean)
        if is_new:
            state.scale[j, 0], state.scale[j, 1] = mean, math.sqrt(state.moments[j, 1] / count)
        elif state.scale[j, 1] == 0.0:
            state.scale[j, 1] = abs(state.context[j] - state.scale[j, 0])
        if state.scale[j, 1] < MIN_WIDTH * abs(state.scale[j, 0]):  # rounding errors of a constant
            state.scale[j, 1] = 0.0
    return is_new and count > 1


@inner
def _learn(state: ContextScaleState, arm: int, reward: float, is_missing: bool) -> None:
    """Update the policy with this step; if the scale has changed, with all steps so far."""
    last = min(state.time[0], FIRST)
    for j in range(state.context.size):
        state.first_context[last, j] = state.context[j]
    state.first_arm[last], state.first_reward[last], state.is_missing[last] = arm, reward, is_missing
    first = last
    if _update_scale(state):
        first = 0
        assign_fields(state.inner, state.initial)
    for i in range(first, last + 1):
        _standardise(state, state.first_context[i])
        set_context(state.inner, state.standard)
        if state.is_missing[i]:
            update_missing(state.inner, state.first_arm[i])
        else:
            update(state.inner, state.first_arm[i], state.first_reward[i])
    state.time[0] += 1


def scaled_act(state: ContextScaleState, bits: Bits) -> int:
    return act(state.inner, bits)


def scaled_update(state: ContextScaleState, arm: int, reward: float) -> None:
    _learn(state, arm, reward, False)


def scaled_update_missing(state: ContextScaleState, arm: int) -> None:
    _learn(state, arm, 0.0, True)


def scaled_predict(state: ContextScaleState, arm: int) -> tuple[float, float]:
    return predict(state.inner, arm)


def scaled_action_probabilities(state: ContextScaleState, available: Mask, out: Floats) -> None:
    action_probabilities(state.inner, available, out)


def scaled_set_context(state: ContextScaleState, context: Floats) -> None:
    for j in range(min(state.context.size, context.size)):
        state.context[j] = min(max(context[j], -LARGEST), LARGEST)
    _standardise(state, state.context)
    set_context(state.inner, state.standard)


bind(
    ContextScaleState,
    scaled_act,
    scaled_update,
    "a policy with context > 0",
    (),
    bounds,
    update_missing=scaled_update_missing,
    predict=scaled_predict,
    action_probabilities=scaled_action_probabilities,
    set_context=scaled_set_context,
    checked=("inner",),
)
