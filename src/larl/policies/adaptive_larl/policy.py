"""AdaptiveLARL: Bayesian model averaging of LARL over s = 0 … s_max (an ensemble that Trella et al. 2025 leave open).

A member of the ensemble has an order s, a sign pattern and a prior. It predicts the next reward of arm a by a Bayesian
linear regression of y = f_a(r − c) on the last s steps, x_j = f_b(r_{t−j} − c), where arm b was played at t − j:

- untied, as LARL: each arm has its own intercept, and a coefficient for every lag and arm played there;
- tied, the form that Lemma 2 gives these coefficients (β_a g_j/β_b, up to scale): one g_j for all arms, and one
  intercept per arm. f has a sign for each arm; there is one tied member per sign pattern, up to MAX_TIED_ARMS arms.

|f_a| gives the rewards of all arms the same variance. The member's centre c replaces the indicators of LARL's context.
An observed context adds a coefficient for each of its numbers in each arm; in a tied member, these have a common part.
Predictions multiply each number by its relevance (_relevance.py).
docs/theory.md derives this. Before step s a member of order s is inactive: it neither learns nor predicts, and gets the
active members' mean evidence, so that all members are compared on the same rewards.

The first reward is subtracted from all rewards, and penalties and priors are in units of their variance: neither an
offset nor a positive factor of the rewards changes a decision.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from larl._core.compile import inline, inner
from larl._core.random import Bits, pick
from larl._core.validation import checked, integer, number
from larl.policies._context_scale import check_context, context_scale_init
from larl.policies._contract import Policy
from larl.policies._linalg.ridge import Floats, Ridge, rank_one_update
from larl.policies._probabilities import Mask, argmax_probabilities, uniform_probabilities
from larl.policies._registry import register
from larl.policies._student_t import log_constant
from larl.policies.adaptive_larl.ensemble import (
    PRIOR_ROWS,
    Ensemble,
    bounds,
    coefficients,
    forget_lags,
    has_lost_digits,
    lag_penalty,
    mixture,
    scaled_square,
    update_members,
)
from larl.policies.adaptive_larl.lags import prepare_contexts, push_lag
from larl.policies.adaptive_larl.members import context_indices, empty_ridges, sign_patterns

if TYPE_CHECKING:
    from larl.worlds.base import World

PENALTIES = ((0.3, 1.0), (3.0, 10.0))  # of the first lag, in units of the rewards' variance, and of intercepts
PRIOR_SCALE_ROWS = 5.0  # number of rewards at which an arm's own variance has weight ½
EFFECT_PENALTIES = (0.5, 20.0)  # of an effect of the context, times p: of numbers with an effect, and without
MIN_VARIANCE = 1e-280  # of rewards; below it they count as equal, because the inverse of a penalty would overflow
UNIT_CHANGE = 4.0  # the unit follows the rewards' variance when that has changed by this factor
OUTLIER_CHANGE = 1e10  # factor above which the coefficients of lags are estimated anew


def act(state: Ensemble, bits: Bits) -> int:
    if state.unit[0] == 0.0:
        return pick(bits, state.arms)
    best, choice = -math.inf, np.int64(0)
    for arm in range(state.arms):
        mean, square = mixture(state, arm)
        bound = mean + state.alpha * math.sqrt(square)
        if bound > best:
            best, choice = bound, np.int64(arm)
    return choice  # type: ignore[return-value]


def update_missing(state: Ensemble, arm: int) -> None:
    """Push a lag without a reward; it counts as a reward equal to the centre."""
    push_lag(state, -1, 0.0)
    if state.reward_moments[state.arms, 0] > 0.0:  # before the first reward there is no centre
        prepare_contexts(state)


def predict(state: Ensemble, arm: int) -> tuple[float, float]:
    if state.unit[0] == 0.0:
        return math.nan, math.nan
    mean, square = mixture(state, arm)
    return state.first_reward[0] + mean, state.alpha * math.sqrt(square)


def action_probabilities(state: Ensemble, available: Mask, out: Floats) -> None:
    if state.unit[0] == 0.0:
        uniform_probabilities(available, out)
    else:
        score = np.empty(state.arms)
        for arm in range(state.arms):
            mean, square = mixture(state, arm)
            score[arm] = mean + state.alpha * math.sqrt(square)
        argmax_probabilities(score, available, out)


@inline
def change_penalties(state: Ensemble, member: int, ridge: Ridge, slot: int, unit: float) -> None:
    """Change a regression's penalties to `unit`, by adding a pseudo-row (√δ at index i, y = 0) for each coefficient."""
    per_lag, (size, fixed) = state.arms if state.sign_pattern[member] == 0 else 1, coefficients(state, member)
    old = state.unit[0] if state.unit[0] > 0.0 else 1.0
    for i in range(fixed, size):
        lag = (i - fixed) // per_lag
        old_penalty, penalty = lag_penalty(state, member, lag, old), lag_penalty(state, member, lag, unit)
        if ridge.inverse[slot, i, i] == 1.0 / old_penalty:  # all rows have 0 there
            ridge.inverse[slot, i, i] = 1.0 / penalty
        else:
            sign, root = 1.0 if penalty > old_penalty else -1.0, math.sqrt(abs(penalty - old_penalty))
            for j in range(size):
                ridge.column[j] = root * ridge.inverse[slot, i, j]
            growth, error = 1.0 + sign * root * ridge.column[i], -root * ridge.theta[slot, i]
            if sign > 0.0 and has_lost_digits(ridge, slot, size, growth):
                forget_lags(state, member, ridge, slot, unit)
                return
            growth = max(growth, penalty / old_penalty) if sign < 0.0 else growth  # rounding errors
            state.loss[member] += sign * scaled_square(error, growth)
            rank_one_update(ridge, slot, size, sign, growth, error)


@inner
def set_unit(state: Ensemble, unit: float) -> None:
    """Change the unit, and with it the penalties of all members."""
    untied, is_outlier = state.rows.size * state.penalties.shape[0], unit > OUTLIER_CHANGE * state.unit[0] > 0.0
    for member in range(state.log_weight.size):
        ridge, first, count = state.tied, member - untied, 1
        if member < untied:
            ridge, first, count = state.untied, member * state.arms, state.arms
        for slot in range(first, first + count):
            change_penalties(state, member, ridge, slot, unit)
            if is_outlier:  # earlier rows say nothing about lags of this size, and differences would lose all digits
                forget_lags(state, member, ridge, slot, unit)
    state.unit[0] = unit


@inline
def update_moments(moments: Floats, row: int, reward: float) -> None:
    """Add a reward to count, mean and sum of squared deviations (Welford's algorithm)."""
    moments[row, 0] += 1.0
    deviation = reward - moments[row, 1]
    moments[row, 1] += deviation / moments[row, 0]
    moments[row, 2] += deviation * (reward - moments[row, 1])


@inner
def update_arm_scales(state: Ensemble, variance: float) -> None:
    """Set |f_a| = 1/sd of the arm's rewards, shrunk towards the sd of all rewards, with a geometric mean of 1."""
    log_mean = 0.0
    for arm in range(state.arms):
        own = (state.reward_moments[arm, 2] / variance + PRIOR_SCALE_ROWS) / (
            state.reward_moments[arm, 0] + PRIOR_SCALE_ROWS
        )
        state.arm_scale[arm] = -0.5 * math.log(own)
        log_mean += state.arm_scale[arm] / state.arms
    for arm in range(state.arms):
        state.arm_scale[arm] = math.exp(state.arm_scale[arm] - log_mean)


def set_context(state: Ensemble, context: Floats) -> None:
    for i in range(state.contexts):
        state.context[i] = context[i]
        for member in range(state.order.size):
            state.value[member, i] = state.relevance[member, i] * context[i]


def update(state: Ensemble, arm: int, reward: float) -> None:
    arms = state.arms
    if state.reward_moments[arms, 0] == 0.0:
        state.first_reward[0] = reward
    reward -= state.first_reward[0]
    update_members(state, arm, reward)
    update_moments(state.reward_moments, arm, reward)
    update_moments(state.reward_moments, arms, reward)
    push_lag(state, arm, reward)
    variance = state.reward_moments[arms, 2] / state.reward_moments[arms, 0]
    if variance > MIN_VARIANCE:
        update_arm_scales(state, variance)
        if variance > UNIT_CHANGE * state.unit[0] or variance * UNIT_CHANGE < state.unit[0]:
            set_unit(state, variance)
    prepare_contexts(state)


@register(
    Ensemble,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
    set_context=set_context,
)
@dataclass(frozen=True)
class AdaptiveLARL(Policy):
    """LARL for every s from 0 to `s_max`, weighted by how well each predicted the rewards so far.

    It has no exploration phase. It plays the arm with the largest mean + `alpha` · sd of the mixture; the sd contains
    the uncertainty of each member's coefficients and the disagreement between members. Neither a constant added to all
    rewards nor a positive factor changes a decision.

    Parameters
    ----------
    s_max : int, >= 0, default 10
        Largest number of past steps in the context.
    alpha : float, >= 0, default 1.0
        Width of the confidence interval, in standard deviations of the predicted mean.
    context : int, >= 0, default 0
        Length of the observed context of a step, in any unit: its numbers are standardised. Each arm has a coefficient
        for each number; they shrink towards 0, and in some members towards each other. Numbers without an effect are
        recognised.

    Examples
    --------
    >>> import larl
    >>> larl.policies.from_json('{"policy": "AdaptiveLARL", "s_max": 3}')
    AdaptiveLARL(s_max=3, alpha=1.0, context=0)
    """

    s_max: int = checked(integer(0), 10)
    alpha: float = checked(number(0.0), 1.0)
    context: int = checked(integer(0), 0)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        check_context("AdaptiveLARL", self.context, world)
        s_max, p, penalties, sign = self.s_max, self.context, np.array(PENALTIES), sign_patterns(arms)
        if p:
            penalties = np.array([(*row, p * effect) for row in PENALTIES for effect in EFFECT_PENALTIES])
        pattern, penalty_row, order = (each.ravel() for each in np.indices((len(sign), len(penalties), s_max + 1)))
        weight = np.where(pattern == 0, 1.0, 1.0 / max(len(sign) - 1, 1))
        untied, tied = np.repeat(penalty_row[pattern == 0], arms), pattern > 0
        state = Ensemble(
            untied=empty_ridges(penalties[untied], np.ones((untied.size, 1)), s_max, arms, p),
            tied=empty_ridges(penalties[penalty_row[tied]], sign[pattern[tied]], s_max, 1, p),
            loss=np.zeros(order.size),
            log_weight=np.log(weight),
            weight=weight,
            order=order,
            sign_pattern=pattern,
            penalty_row=penalty_row,
            centre=np.zeros((order.size, 3)),
            value=np.zeros((order.size, p + s_max)),
            context_index=context_indices(arms, p, s_max),
            context=np.zeros(p),
            past_context=np.zeros((s_max, p)),
            relevance=np.full((order.size, p), 0.5),
            past_arm=np.zeros(s_max, dtype=np.int64),
            past_reward=np.zeros(s_max),
            sign=sign,
            arm_scale=np.ones(arms),
            reward_moments=np.zeros((arms + 1, 3)),
            rows=np.zeros(s_max + 1),
            log_constant=np.full(s_max + 1, log_constant(PRIOR_ROWS)),
            first_reward=np.zeros(1),
            unit=np.zeros(1),
            penalties=penalties,
            arms=arms,
            contexts=p,
            alpha=self.alpha,
        )
        return context_scale_init(state, p, arms) if p else state
