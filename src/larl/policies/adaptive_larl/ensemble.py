"""The members of AdaptiveLARL: Bayesian linear regressions that predict, are weighed by how well they did, and learn.

A member regresses y = f_a(r − c) on the values x_j = f_b(r_{t−j} − c) of the last s steps, with θ | σ² ~ N(0, σ²Λ⁻¹)
and σ² ~ inverse gamma, common to its arms. After n rows, with V = Λ + Σxxᵀ and loss = min_θ Σ(y − xᵀθ)² + θᵀΛθ, the
coming y is Student's t with n₀ + n degrees of freedom, mean xᵀθ and scale² (n₀v₀ + loss)/(n₀ + n) · (1 + xᵀV⁻¹x).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl.policies._linalg.ridge import Floats, Ridge, rank_one_update

PRIOR_ROWS = 2.0  # n₀
PRIOR_SHARE = 0.3  # v₀ in units of the rewards' variance
NEGLIGIBLE = -14.0  # a log weight


class Ensemble(NamedTuple):
    loose: Ridge  # slots: member × arm
    tied: Ridge  # slots: member
    loss: Floats  # (members,) penalised sum of squares
    log_weight: Floats  # (members,) relative to the largest of those awake
    weight: Floats  # (members,) its exponential, 0 where negligible
    order: NDArray[np.int64]  # (members,) s
    shape: NDArray[np.int64]  # (members,) row of `sign`
    level: NDArray[np.int64]  # (members,) row of `levels`
    centre: Floats  # (members, 3) c, and the sums whose ratio it is
    value: Floats  # (members, s_max) x_j of the coming step
    cell: NDArray[np.int64]  # (2, s_max) entry of x_j in a loose and in a tied context
    played: NDArray[np.int64]  # (s_max,) arm of each lag, latest first; −1 where its reward is missing
    past: Floats  # (s_max,) its reward
    sign: Floats  # (shapes, arms) the first shape is the loose one
    factor: Floats  # (arms,) |f_a|
    spread: Floats  # (arms + 1, 3) number, mean and sum of squares of each arm's rewards, and of all
    rows: Floats  # (s_max + 1,)
    constant: Floats  # (s_max + 1,) of the density of the next row
    first: Floats  # (1,) the first reward
    unit: Floats  # (1,) the variance that penalties are in, 0 until two rewards differ
    levels: Floats  # (levels, 2) penalty of the first lag, in units of `unit`, and of an intercept
    arms: int
    alpha: float


@inline
def lag_penalty(state: Ensemble, member: int, lag: int, unit: float) -> float:
    return state.levels[state.level[member], 0] * (1.0 + lag) * unit


@inline
def variance(state: Ensemble, member: int) -> float:
    """The estimate of the noise variance of y."""
    rows = state.rows[state.order[member]]
    return (PRIOR_ROWS * PRIOR_SHARE * state.unit[0] + state.loss[member]) / (PRIOR_ROWS + rows)


@inline
def predict_member(state: Ensemble, member: int, arm: int) -> tuple[float, float]:
    """The member's mean of the coming y of `arm`, and its leverage."""
    if state.shape[member] == 0:
        return score(state, member, state.loose, member * state.arms + arm, 0, 0)
    return score(state, member, state.tied, member - state.rows.size * state.levels.shape[0], arm, 1)


@inline
def score(state: Ensemble, member: int, ridge: Ridge, slot: int, first: int, kind: int) -> tuple[float, float]:
    """xᵀθ and the leverage xᵀV⁻¹x of the coming step; x has a one at `first` and x_j at cell j > first."""
    inverse, theta, cell, value = ridge.inverse, ridge.theta, state.cell, state.value
    mean, half = theta[slot, first], 0.5 * inverse[slot, first, first]
    for i in range(state.order[member]):
        row, x = cell[kind, i], value[member, i]
        mean += theta[slot, row] * x
        along = inverse[slot, row, first] + 0.5 * inverse[slot, row, row] * x
        for j in range(i):
            along += inverse[slot, row, cell[kind, j]] * value[member, j]
        half += along * x
    return mean, max(2.0 * half, 0.0)


@inner
def mixture(state: Ensemble, arm: int) -> tuple[float, float]:
    """Mean and variance of what the members awake believe of the coming mean reward of `arm`, less the first reward."""
    weight, mean, square = 0.0, 0.0, 0.0
    for member in range(state.log_weight.size):
        if state.order[member] <= state.spread[state.arms, 0] and state.weight[member] > 0.0:
            own, leverage = predict_member(state, member, arm)
            f = state.sign[state.shape[member], arm] * state.factor[arm]
            share, guess = state.weight[member], state.centre[member, 0] + own / f
            weight += share
            apart = guess - mean
            mean += apart * share / weight
            square += share * (variance(state, member) * leverage / (f * f) + apart * (guess - mean))
    return mean, square / weight


@inline
def gather(state: Ensemble, member: int, ridge: Ridge, slot: int, first: int, kind: int, size: int) -> float:
    """Put u = V⁻¹x into `ridge.column`; returns the leverage xᵀu."""
    inverse, column, cell, value = ridge.inverse, ridge.column, state.cell, state.value
    for j in range(size):
        column[j] = inverse[slot, first, j]
    for i in range(state.order[member]):
        row, x = cell[kind, i], value[member, i]
        for j in range(size):
            column[j] += x * inverse[slot, row, j]
    leverage = column[first]
    for i in range(state.order[member]):
        leverage += value[member, i] * column[cell[kind, i]]
    return max(leverage, 0.0)


@inline
def student_constant(degrees: float) -> float:
    """What of the log density of Student's t (but −½ log π) depends on its degrees of freedom alone."""
    return math.lgamma(0.5 * (degrees + 1.0)) - math.lgamma(0.5 * degrees) - 0.5 * math.log(degrees)


@inner
def weigh(state: Ensemble, time: float) -> None:
    """The weights after a step. Who sleeps is credited with what those awake gained together."""
    before, after, top = 0.0, 0.0, -math.inf
    for member in range(state.log_weight.size):
        if state.order[member] <= time:
            before += state.weight[member]
            top = max(top, state.log_weight[member])
    for member in range(state.log_weight.size):
        state.log_weight[member] -= top
        if state.order[member] <= time:
            known = state.log_weight[member] > NEGLIGIBLE
            state.weight[member] = math.exp(state.log_weight[member]) if known else 0.0
            after += state.weight[member]
    for member in range(state.log_weight.size):
        if state.order[member] > time:
            state.log_weight[member] += top + math.log(after / before)
            state.weight[member] = math.exp(state.log_weight[member])


@inner
def learn_all(state: Ensemble, arm: int, reward: float) -> None:
    """Every member awake predicts `reward`, is weighed by how well it did, learns it, and moves its centre.

    r_t = c + Σ_j θ_j f_b/f_a (r_{t−j} − c) + noise is linear in c: with h = Σ_j θ_j f_b/f_a it says
    r_t − Σ_j θ_j f_b/f_a r_{t−j} = (1 − h)c + noise. c is its least squares, a row's weight growing with time.
    """
    orders, time, unit = state.rows.size, state.spread[state.arms, 0], state.unit[0]
    fade = time / (time + 1.0)
    for member in range(state.log_weight.size):
        s, shape = state.order[member], state.shape[member]
        if s > time:
            continue
        ridge, slot, first, kind = state.tied, member - orders * state.levels.shape[0], arm, 1
        if shape == 0:
            ridge, slot, first, kind = state.loose, member * state.arms + arm, 0, 0
        centre, f = state.centre[member, 0], state.sign[shape, arm] * state.factor[arm]
        lags, slope, degrees, square = 0.0, 0.0, PRIOR_ROWS + state.rows[s], variance(state, member)
        for j in range(s):
            weight, past = ridge.theta[slot, state.cell[kind, j]], state.played[j]
            lags += weight * state.value[member, j]
            slope += weight * state.sign[shape, past] * state.factor[past] if past >= 0 else 0.0
        error = f * (reward - centre) - ridge.theta[slot, first] - lags
        size = 1 + s * state.arms if kind == 0 else state.arms + s
        growth = 1.0 + gather(state, member, ridge, slot, first, kind, size)
        rank_one_update(ridge, slot, size, 1.0, growth, error)
        state.loss[member] += error * error / growth
        tell = 1.0 - slope / f
        state.centre[member, 1] = fade * state.centre[member, 1] + tell * (reward - (lags + slope * centre) / f)
        state.centre[member, 2] = fade * state.centre[member, 2] + tell * tell
        if unit > 0.0:
            square *= growth
            tail = 0.5 * (degrees + 1.0) * math.log1p(error * error / (degrees * square))
            density = state.constant[s] - 0.5 * math.log(square / unit) - tail
            state.log_weight[member] += density
    if unit > 0.0:
        weigh(state, time)
    for s in range(orders):
        state.rows[s] += 1.0 if s <= time else 0.0
        state.constant[s] = student_constant(PRIOR_ROWS + state.rows[s])
