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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._check import checked, number, whole
from larl._compile import inline, inner
from larl._words import pick
from larl.policies._contract import Policy, register
from larl.policies._ridge import Floats, Ridge, absorb

LEVELS = ((0.3, 1.0), (3.0, 10.0))  # penalties of the first lag, in units of the rewards' variance, and of intercepts
MOST_TIED = 5  # 2⁴ choices of signs
PRIOR_ROWS, PRIOR_SHARE = 2.0, 0.3  # the noise is expected to be this share of the rewards' variance, worth so many rows
PRIOR_SPREAD = 5.0  # rows at which an arm's own spread counts half
LADDER = 4.0  # penalties follow the rewards' variance once it has changed by this factor
NEGLIGIBLE = -14.0  # a log weight


class AdaptiveLARLState(NamedTuple):
    loose: Ridge  # slots: member × arm
    tied: Ridge  # slots: member
    loss: Floats  # (members,) penalised sum of squares
    log_weight: Floats  # (members,) relative to the largest
    centre: Floats  # (members, 3) c, and the sums whose ratio it is
    value: Floats  # (members, s_max) x_j of the coming step
    cell: NDArray[np.int64]  # (2, s_max) entry of x_j in a loose and in a tied context
    played: NDArray[np.int64]  # (s_max,) arm of each lag, latest first
    past: Floats  # (s_max,) its reward
    sign: Floats  # (shapes, arms) the first shape is the loose one
    factor: Floats  # (arms,) |f_a|
    spread: Floats  # (arms + 1, 3) number, mean and sum of squares of each arm's rewards, and of all
    rows: Floats  # (s_max + 1,)
    first: Floats  # (1,) the first reward
    unit: Floats  # (1,) the variance that penalties are in, 0 until two rewards differ
    levels: Floats  # (levels, 2)
    arms: int
    alpha: float


@inline
def order_of(state: AdaptiveLARLState, member: int) -> int:
    return member % state.rows.size


@inline
def shape_of(state: AdaptiveLARLState, member: int) -> int:
    return member // (state.rows.size * state.levels.shape[0])


@inline
def lag_penalty(state: AdaptiveLARLState, member: int, lag: int, unit: float) -> float:
    return state.levels[member // state.rows.size % state.levels.shape[0], 0] * (1.0 + lag) * unit


@inline
def variance(state: AdaptiveLARLState, member: int) -> float:
    """The estimate of the noise variance of y."""
    rows = state.rows[order_of(state, member)]
    return (PRIOR_ROWS * PRIOR_SHARE * state.unit[0] + state.loss[member]) / (PRIOR_ROWS + rows)


@inline
def score(ridge: Ridge, slot: int, first: int, cell: Any, value: Any, s: int) -> tuple[float, float]:
    """xᵀθ and the leverage xᵀV⁻¹x; x has a one at `first` and value[j] at cell[j] > first."""
    inverse, theta = ridge.inverse, ridge.theta
    mean, half = theta[slot, first], 0.5 * inverse[slot, first, first]
    for i in range(s):
        row, x = cell[i], value[i]
        mean += theta[slot, row] * x
        along = inverse[slot, row, first] + 0.5 * inverse[slot, row, row] * x
        for j in range(i):
            along += inverse[slot, row, cell[j]] * value[j]
        half += along * x
    return mean, max(2.0 * half, 0.0)


@inline
def predict(state: AdaptiveLARLState, member: int, arm: int) -> tuple[float, float]:
    """The member's mean of the coming y of `arm`, and its leverage."""
    s, shape = order_of(state, member), shape_of(state, member)
    if shape == 0:
        return score(state.loose, member * state.arms + arm, 0, state.cell[0], state.value[member], s)
    slot = member - state.rows.size * state.levels.shape[0]
    return score(state.tied, slot, arm, state.cell[1], state.value[member], s)


@inner
def mixture(state: AdaptiveLARLState, arm: int) -> tuple[float, float]:
    """Mean and variance of what the members awake believe of the coming mean reward of `arm`, less the first reward."""
    weight, mean, square = 0.0, 0.0, 0.0
    for member in range(state.log_weight.size):
        if order_of(state, member) <= state.spread[state.arms, 0] and state.log_weight[member] > NEGLIGIBLE:
            own, leverage = predict(state, member, arm)
            f = state.sign[shape_of(state, member), arm] * state.factor[arm]
            share, guess = math.exp(state.log_weight[member]), state.centre[member, 0] + own / f
            weight += share
            apart = guess - mean
            mean += apart * share / weight
            square += share * (variance(state, member) * leverage / (f * f) + apart * (guess - mean))
    return mean, square / weight


def act(state: AdaptiveLARLState, word: np.uint64) -> int:
    if state.unit[0] == 0.0:
        return pick(word, state.arms)
    best, choice = -math.inf, np.int64(0)
    for arm in range(state.arms):
        mean, square = mixture(state, arm)
        bound = mean + state.alpha * math.sqrt(square)
        if bound > best:
            best, choice = bound, np.int64(arm)
    return choice  # type: ignore[return-value]


@inline
def gather(ridge: Ridge, slot: int, first: int, cell: Any, value: Any, s: int, size: int) -> float:
    """Put u = V⁻¹x into `ridge.column`; returns the leverage xᵀu."""
    inverse, column = ridge.inverse, ridge.column
    for j in range(size):
        column[j] = inverse[slot, first, j]
    for i in range(s):
        for j in range(size):
            column[j] += value[i] * inverse[slot, cell[i], j]
    leverage = column[first]
    for i in range(s):
        leverage += value[i] * column[cell[i]]
    return max(leverage, 0.0)


@inner
def learn_row(
    state: AdaptiveLARLState, member: int, ridge: Ridge, slot: int, first: int, kind: int, arm: int, reward: float
) -> tuple[float, float]:
    """Add the row of this step; returns the error of y as it was predicted, and 1 + leverage. Moves the centre too.

    r_t = c + Σ_j θ_j f_b/f_a (r_{t−j} − c) + noise is linear in c: with h = Σ_j θ_j f_b/f_a it says
    r_t − Σ_j θ_j f_b/f_a r_{t−j} = (1 − h)c + noise. c is its least squares, a row's weight growing with time.
    """
    s, sign, cell, value = order_of(state, member), state.sign[shape_of(state, member)], state.cell[kind], state.value
    centre, f = state.centre[member, 0], sign[arm] * state.factor[arm]
    size = 1 + s * state.arms if kind == 0 else state.arms + s
    lags, slope = 0.0, 0.0
    for j in range(s):
        lags += ridge.theta[slot, cell[j]] * value[member, j]
        slope += ridge.theta[slot, cell[j]] * sign[state.played[j]] * state.factor[state.played[j]]
    error = f * (reward - centre) - ridge.theta[slot, first] - lags
    growth = 1.0 + gather(ridge, slot, first, cell, value[member], s, size)
    absorb(ridge, slot, size, 1.0, growth, error)
    state.loss[member] += error * error / growth
    time = state.spread[state.arms, 0]
    fade, tell = time / (time + 1.0), 1.0 - slope / f
    state.centre[member, 1] = fade * state.centre[member, 1] + tell * (reward - (lags + slope * centre) / f)
    state.centre[member, 2] = fade * state.centre[member, 2] + tell * tell
    return error, growth


@inline
def log_student(error: float, square: float, degrees: float) -> float:
    """log density, but for −½ log π, of Student's t with scale² `square` at `error`."""
    shape = math.lgamma(0.5 * (degrees + 1.0)) - math.lgamma(0.5 * degrees)
    return (
        shape
        - 0.5 * math.log(degrees * square)
        - 0.5 * (degrees + 1.0) * math.log1p(error * error / (degrees * square))
    )


@inner
def learn_all(state: AdaptiveLARLState, arm: int, reward: float) -> None:
    """Every member awake predicts `reward`, is weighed by how well it did, and learns it."""
    orders, time, unit = state.rows.size, state.spread[state.arms, 0], state.unit[0]
    loose, total, mixed, top = orders * state.levels.shape[0], 0.0, 0.0, -math.inf
    for member in range(state.log_weight.size):
        if order_of(state, member) <= time:
            before, degrees = variance(state, member), PRIOR_ROWS + state.rows[order_of(state, member)]
            if member < loose:
                slot = member * state.arms + arm
                error, growth = learn_row(state, member, state.loose, slot, 0, 0, arm, reward)
            else:
                error, growth = learn_row(state, member, state.tied, member - loose, arm, 1, arm, reward)
            if unit > 0.0:
                density = log_student(error / math.sqrt(unit), before * growth / unit, degrees)
                total += math.exp(state.log_weight[member])
                state.log_weight[member] += density
                mixed += math.exp(state.log_weight[member])
    for member in range(state.log_weight.size):
        if order_of(state, member) > time and unit > 0.0:
            state.log_weight[member] += math.log(mixed / total)
        top = max(top, state.log_weight[member])
    for member in range(state.log_weight.size):
        state.log_weight[member] -= top
    for s in range(orders):
        state.rows[s] += 1.0 if s <= time else 0.0


@inline
def repenalise(state: AdaptiveLARLState, member: int, ridge: Ridge, slot: int, size: int, fixed: int, unit: float) -> None:
    """Change a regression's penalties from the old unit to `unit`: one pseudo-row (√δ at entry i, y = 0) an entry."""
    per_lag = state.arms if fixed == 1 and shape_of(state, member) == 0 else 1
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
            absorb(ridge, slot, size, sign, growth, error)


@inner
def change_unit(state: AdaptiveLARLState, unit: float) -> None:
    loose = state.rows.size * state.levels.shape[0]
    for member in range(state.log_weight.size):
        s = order_of(state, member)
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
def equalise(state: AdaptiveLARLState, whole: float) -> None:
    """|f_a| = 1/sd of the arm's rewards, each drawn towards that of all, scaled to a geometric mean of 1."""
    middle = 0.0
    for arm in range(state.arms):
        own = (state.spread[arm, 2] / whole + PRIOR_SPREAD) / (state.spread[arm, 0] + PRIOR_SPREAD)
        state.factor[arm] = -0.5 * math.log(own)
        middle += state.factor[arm] / state.arms
    for arm in range(state.arms):
        state.factor[arm] = math.exp(state.factor[arm] - middle)


@inner
def prepare(state: AdaptiveLARLState) -> None:
    """The centres and contexts of the coming step. A member that wakes begins with the centre of order 0."""
    time = state.spread[state.arms, 0]
    for member in range(state.log_weight.size):
        s = order_of(state, member)
        if s == time and s > 0:
            state.centre[member, 1], state.centre[member, 2] = state.centre[member - s, 0], 1.0
        if s <= time:
            state.centre[member, 0] = state.centre[member, 1] / state.centre[member, 2]
            sign = state.sign[shape_of(state, member)]
            for j in range(s):
                f = sign[state.played[j]] * state.factor[state.played[j]]
                state.value[member, j] = f * (state.past[j] - state.centre[member, 0])


def update(state: AdaptiveLARLState, arm: int, reward: float) -> None:
    s_max, arms = state.past.size, state.arms
    if state.spread[arms, 0] == 0.0:
        state.first[0] = reward
    reward -= state.first[0]
    learn_all(state, arm, reward)
    observe(state.spread, arm, reward)
    observe(state.spread, arms, reward)
    for j in range(s_max - 1, 0, -1):
        state.cell[0, j], state.played[j] = state.cell[0, j - 1] + arms, state.played[j - 1]
        state.past[j] = state.past[j - 1]
    if s_max > 0:
        state.cell[0, 0], state.played[0], state.past[0] = 1 + arm, arm, reward
    whole = state.spread[arms, 2] / state.spread[arms, 0]
    if whole > 0.0:
        equalise(state, whole)
        if whole > LADDER * state.unit[0] or whole * LADDER < state.unit[0]:
            change_unit(state, whole)
    prepare(state)


def signs(arms: int) -> Floats:
    """One row a shape: ones for the loose, then every choice of signs with the first positive."""
    choices = 2 ** (arms - 1) if arms <= MOST_TIED else 0
    tied = [[1.0] + [1.0 - 2.0 * (choice >> a & 1) for a in range(arms - 1)] for choice in range(choices)]
    return np.array([[1.0] * arms, *tied])


def blank(slots: int, size: int, levels: Any, arms: int, orders: int, fixed: int, per_lag: int) -> Ridge:
    """No rows yet, the unit 1: V = Λ. `slots` are levels × orders × arms, or shapes × levels × orders."""
    inverse, lag = np.zeros((slots, size, size)), np.maximum(np.arange(size) - fixed, 0) // per_lag
    for slot in range(slots):
        member = slot // arms
        of_lag, of_intercept = levels[member // orders % len(levels)]
        np.fill_diagonal(inverse[slot], 1.0 / np.where(np.arange(size) < fixed, of_intercept, of_lag * (1.0 + lag) * 1.0))
    return Ridge(inverse, np.zeros((slots, size)), np.zeros(size), 0.0)


@register(AdaptiveLARLState, act, update)
@dataclass(frozen=True)
class AdaptiveLARL(Policy):
    """LARL for every s from 0 to `s_max`, weighed by how well each predicted so far; no exploration phase.

    The arm with the largest mean + `alpha` · sd wins, both of the mixture: the sd holds what each member does not know
    of its coefficients and how far the members differ. Nothing depends on the offset or the unit of the rewards.
    """

    s_max: int = checked(whole(0), 10)
    alpha: float = checked(number(0.0), 1.0)

    def init(self, arms: int, **_: Any) -> AdaptiveLARLState:
        orders, levels, sign = self.s_max + 1, np.array(LEVELS), signs(arms)
        groups = len(sign) * len(levels)
        weight = np.repeat([1.0] + [1.0 / max(len(sign) - 1, 1)] * (len(sign) - 1), len(levels) * orders)
        centre = np.zeros((groups * orders, 3))
        cell = np.array([np.zeros(self.s_max), arms + np.arange(self.s_max)], dtype=np.int64).reshape(2, self.s_max)
        loose = blank(len(levels) * orders * arms, 1 + self.s_max * arms, levels, arms, orders, 1, arms)
        tied = blank((groups - len(levels)) * orders, arms + self.s_max, levels, 1, orders, arms, 1)
        return AdaptiveLARLState(
            loose, tied, np.zeros(groups * orders), np.log(weight), centre, np.zeros((groups * orders, self.s_max)),
            cell, np.zeros(self.s_max, dtype=np.int64), np.zeros(self.s_max), sign, np.ones(arms),
            np.zeros((arms + 1, 3)), np.zeros(orders), np.zeros(1), np.zeros(1), levels, arms, self.alpha,
        )  # fmt: skip
