"""LARL for every s from 0 to s_max at once, mixed by evidence: the ensemble over s that the paper leaves open.

A member of the ensemble has an order s, a shape and a prior, and predicts the coming reward of arm a by a Bayesian
linear regression of y = f_a(r − c) on the last s steps, x_j = f_b(r_{t−j} − c), where arm b was played at t − j:
- loose, LARL's own shape: each arm has its own intercept, and a coefficient for every lag and arm played there;
- tied, what Lemma 2 says of those coefficients (β_a g_j/β_b, up to scale): one g_j for all arms, and an intercept for
  each. f has a sign for each arm; there is a tied member for every choice of signs, up to MOST_TIED arms.
|f_a| makes the arms' rewards equally spread. The member's own centre c takes the place of the context's indicators.
docs/theory.md derives it. Before step s order s sleeps: it neither learns nor predicts, and its evidence for those
steps is that of the members awake, so all are compared on the same observations.
Rewards are taken relative to the first one, and penalties and priors in units of their variance: neither an offset
nor a factor of the rewards changes a decision.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from larl._core.compile import inline, inner
from larl._core.random import Bits, pick
from larl._core.validation import checked, integer, number
from larl.policies._contract import Policy, register
from larl.policies._linalg.ridge import Floats, Ridge, rank_one_update
from larl.policies._probabilities import Mask, evenly, first_best
from larl.policies.adaptive_larl.ensemble import PRIOR_ROWS, Ensemble, lag_penalty, learn_all, mixture

LEVELS = ((0.3, 1.0), (3.0, 10.0))  # penalties of the first lag, in units of the rewards' variance, and of intercepts
MOST_TIED = 5  # 2⁴ choices of signs
PRIOR_SPREAD = 5.0  # rows at which an arm's own spread counts half
LADDER = 4.0  # penalties follow the rewards' variance once it has changed by this factor


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
    """The lags move on by one whose value is not known: it counts as the centre."""
    remember(state, -1, 0.0)
    if state.spread[state.arms, 0] > 0.0:  # before any reward there is no centre
        prepare(state)


def predict(state: Ensemble, arm: int) -> tuple[float, float]:
    if state.unit[0] == 0.0:
        return math.nan, math.nan
    mean, square = mixture(state, arm)
    return state.first[0] + mean, state.alpha * math.sqrt(square)


def action_probabilities(state: Ensemble, available: Mask, out: Floats) -> None:
    if state.unit[0] == 0.0:
        evenly(available, out)
    else:
        score = np.empty(state.arms)
        for arm in range(state.arms):
            mean, square = mixture(state, arm)
            score[arm] = mean + state.alpha * math.sqrt(square)
        first_best(score, available, out)


@inline
def repenalise(state: Ensemble, member: int, ridge: Ridge, slot: int, size: int, fixed: int, unit: float) -> None:
    """Change a regression's penalties from the old unit to `unit`: one pseudo-row (√δ at entry i, y = 0) an entry."""
    per_lag = state.arms if state.shape[member] == 0 else 1
    old = state.unit[0] if state.unit[0] > 0.0 else 1.0
    for i in range(fixed, size):
        lag = (i - fixed) // per_lag
        was, now = lag_penalty(state, member, lag, old), lag_penalty(state, member, lag, unit)
        if ridge.inverse[slot, i, i] == 1.0 / was:  # no row has had this entry
            ridge.inverse[slot, i, i] = 1.0 / now
        else:
            sign, root = 1.0 if now > was else -1.0, math.sqrt(abs(now - was))
            for j in range(size):
                ridge.column[j] = root * ridge.inverse[slot, i, j]
            growth, error = 1.0 + sign * root * ridge.column[i], -root * ridge.theta[slot, i]
            state.loss[member] += sign * error * error / growth
            rank_one_update(ridge, slot, size, sign, growth, error)


@inner
def change_unit(state: Ensemble, unit: float) -> None:
    loose = state.rows.size * state.levels.shape[0]
    for member in range(state.log_weight.size):
        s = state.order[member]
        if member < loose:
            for arm in range(state.arms):
                slot = member * state.arms + arm
                repenalise(state, member, state.loose, slot, 1 + s * state.arms, 1, unit)
        else:
            repenalise(state, member, state.tied, member - loose, state.arms + s, state.arms, unit)
    state.unit[0] = unit


@inline
def observe(spread: Floats, row: int, reward: float) -> None:
    spread[row, 0] += 1.0
    apart = reward - spread[row, 1]
    spread[row, 1] += apart / spread[row, 0]
    spread[row, 2] += apart * (reward - spread[row, 1])


@inner
def equalise(state: Ensemble, integer: float) -> None:
    """|f_a| = 1/sd of the arm's rewards, each drawn towards that of all, scaled to a geometric mean of 1."""
    middle = 0.0
    for arm in range(state.arms):
        own = (state.spread[arm, 2] / integer + PRIOR_SPREAD) / (state.spread[arm, 0] + PRIOR_SPREAD)
        state.factor[arm] = -0.5 * math.log(own)
        middle += state.factor[arm] / state.arms
    for arm in range(state.arms):
        state.factor[arm] = math.exp(state.factor[arm] - middle)


@inline
def shift(state: Ensemble, member: int, ridge: Ridge, slot: int, entry: int, size: int, by: float) -> None:
    """Take `by` off y in every row with a one at `entry`, an intercept: θ ← θ − by(e − λV⁻¹e)."""
    inverse, theta = ridge.inverse, ridge.theta
    penalty = state.levels[state.level[member], 1]
    pull = by * penalty
    state.loss[member] += pull * (by - 2.0 * theta[slot, entry] - pull * inverse[slot, entry, entry])
    theta[slot, entry] -= by
    for j in range(size):
        theta[slot, j] += pull * inverse[slot, entry, j]


@inline
def move_centre(state: Ensemble, member: int) -> None:
    """Bring c up to date, and with it the y of past rows (not their contexts)."""
    centre = state.centre[member, 1] / state.centre[member, 2]
    by, s = centre - state.centre[member, 0], state.order[member]
    loose = state.rows.size * state.levels.shape[0]
    for arm in range(state.arms):
        f = state.sign[state.shape[member], arm] * state.factor[arm]
        if member < loose:
            shift(state, member, state.loose, member * state.arms + arm, 0, 1 + s * state.arms, f * by)
        else:
            shift(state, member, state.tied, member - loose, arm, state.arms + s, f * by)
    state.centre[member, 0] = centre


@inline
def remember(state: Ensemble, arm: int, reward: float) -> None:
    """Put a step in front of the lags; arm −1 where its reward is missing."""
    for j in range(state.past.size - 1, 0, -1):
        state.cell[0, j], state.played[j] = state.cell[0, j - 1] + state.arms, state.played[j - 1]
        state.past[j] = state.past[j - 1]
    if state.past.size > 0:
        state.cell[0, 0], state.played[0], state.past[0] = 1 + max(arm, 0), arm, reward


@inner
def prepare(state: Ensemble) -> None:
    """The centres and contexts of the coming step. A member that wakes begins with the centre of order 0."""
    time = state.spread[state.arms, 0]
    for member in range(state.log_weight.size):
        s = state.order[member]
        if s == time and s > 0:
            state.centre[member, 1], state.centre[member, 2] = state.centre[member - s, 0], 1.0
        if s <= time:
            move_centre(state, member)
            for j in range(s):
                arm = state.played[j]
                f = state.sign[state.shape[member], arm] * state.factor[arm] if arm >= 0 else 0.0
                state.value[member, j] = f * (state.past[j] - state.centre[member, 0])


def update(state: Ensemble, arm: int, reward: float) -> None:
    arms = state.arms
    if state.spread[arms, 0] == 0.0:
        state.first[0] = reward
    reward -= state.first[0]
    learn_all(state, arm, reward)
    observe(state.spread, arm, reward)
    observe(state.spread, arms, reward)
    remember(state, arm, reward)
    integer = state.spread[arms, 2] / state.spread[arms, 0]
    if integer > 0.0:
        equalise(state, integer)
        if integer > LADDER * state.unit[0] or integer * LADDER < state.unit[0]:
            change_unit(state, integer)
    prepare(state)


def signs(arms: int) -> Floats:
    """One row a shape: ones for the loose, then every choice of signs with the first positive."""
    choices = 2 ** (arms - 1) if arms <= MOST_TIED else 0
    tied = [[1.0] + [1.0 - 2.0 * (choice >> a & 1) for a in range(arms - 1)] for choice in range(choices)]
    return np.array([[1.0] * arms, *tied])


def blank(level: Any, intercepts: int, lags: int, per_lag: int) -> Ridge:
    """Regressions without rows, one a slot with its (lag, intercept) penalties, the unit 1: V = Λ."""
    lag = 1.0 + np.arange(lags * per_lag) // per_lag
    penalty = np.array([[of_intercept] * intercepts + (of_lag * lag).tolist() for of_lag, of_intercept in level])
    penalty = penalty.reshape(len(level), intercepts + lags * per_lag)
    return Ridge(
        np.eye(penalty.shape[1]) / penalty[:, None, :], np.zeros_like(penalty), np.zeros(penalty.shape[1]), 0.0
    )


@register(
    Ensemble, act, update, update_missing=update_missing, predict=predict, action_probabilities=action_probabilities
)
@dataclass(frozen=True)
class AdaptiveLARL(Policy):
    """LARL for every s from 0 to `s_max`, weighed by how well each predicted so far; no exploration phase.

    The arm with the largest mean + `alpha` · sd wins, both of the mixture: the sd holds what each member does not know
    of its coefficients and how far the members differ. Nothing depends on the offset or the unit of the rewards.
    """

    s_max: int = checked(integer(0), 10)
    alpha: float = checked(number(0.0), 1.0)

    def init(self, arms: int, **_: Any) -> Ensemble:
        s_max, levels, sign = self.s_max, np.array(LEVELS), signs(arms)
        shape, level, order = (each.ravel() for each in np.indices((len(sign), len(levels), s_max + 1)))
        weight = np.where(shape == 0, 1.0, 1.0 / max(len(sign) - 1, 1))
        loose = blank(levels[np.repeat(level[shape == 0], arms)], 1, s_max, arms)
        tied = blank(levels[level[shape > 0]], arms, s_max, 1)
        cell = np.array([np.zeros(s_max), arms + np.arange(s_max)]).astype(np.int64)
        constant = math.lgamma(0.5 * (PRIOR_ROWS + 1.0)) - math.lgamma(0.5 * PRIOR_ROWS) - 0.5 * math.log(PRIOR_ROWS)
        return Ensemble(
            loose,
            tied,
            np.zeros(order.size),
            np.log(weight),
            weight,
            order,
            shape,
            level,
            np.zeros((order.size, 3)),
            np.zeros((order.size, s_max)),
            cell,
            np.zeros(s_max, dtype=np.int64),
            np.zeros(s_max),
            sign,
            np.ones(arms),
            np.zeros((arms + 1, 3)),
            np.zeros(s_max + 1),
            np.full(s_max + 1, constant),
            np.zeros(1),
            np.zeros(1),
            levels,
            arms,
            self.alpha,
        )
