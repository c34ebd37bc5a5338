"""The members of AdaptiveLARL: conjugate Bayesian linear regressions, weighted by their predictive densities.

A member regresses y = f_a(r − c) on the values x_j = f_b(r_{t−j} − c) of the last s steps. With a context, its numbers
are regressors too, each with a coefficient for each arm, and the effect that they had is subtracted from x_j. The prior
is normal–inverse-gamma: θ | σ² ~ N(0, σ²Λ⁻¹), with σ² common to its arms. After n rows, with V = Λ + Σxxᵀ and
loss = min_θ Σ(y − xᵀθ)² + θᵀΛθ, the next y has a Student-t distribution with n₀ + n degrees of freedom, mean xᵀθ and
squared scale (n₀v₀ + loss)/(n₀ + n) · (1 + xᵀV⁻¹x). policy.py defines the members.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl.policies._bounds import Bound
from larl.policies._linalg.ridge import Floats, Ridge, rank_one_update
from larl.policies._student_t import compiled_log_constant, student_t_loss

PRIOR_ROWS = 2.0  # n₀
PRIOR_SHARE = 0.3  # v₀, in units of the rewards' variance
LARGEST_SQUARED = 1e150  # a number whose square is far from overflowing
NEGLIGIBLE_LOG_WEIGHT = -14.0  # log weights below this count as −∞ in predictions


class Ensemble(NamedTuple):
    """The State of AdaptiveLARL: all members, and what they share."""

    untied: Ridge  # slots: member × arm
    tied: Ridge  # slots: member
    loss: Floats  # (members,) penalised sum of squares
    log_weight: Floats  # (members,) relative to the largest of the active members
    weight: Floats  # (members,) exp(log_weight), 0 where negligible
    order: NDArray[np.int64]  # (members,) s
    sign_pattern: NDArray[np.int64]  # (members,) row of `sign`; 0 is an untied member
    penalty_row: NDArray[np.int64]  # (members,) row of `penalties`
    centre: Floats  # (members, 3) c, and the numerator and denominator it is the ratio of
    value: Floats  # (members, p + s_max) the context of the next step times its relevance, then the x_j
    context_index: NDArray[np.int64]  # (2 or 1 + arms, p + s_max) index of each value, untied and tied: `index_row`
    context: Floats  # (p,) of the next step
    past_context: Floats  # (s_max, p) context of each lag
    relevance: Floats  # (members, p) probability that a number of the context has an effect
    past_arm: NDArray[np.int64]  # (s_max,) arm of each lag, latest first; −1 where its reward is missing
    past_reward: Floats  # (s_max,) reward of each lag
    sign: Floats  # (patterns, arms) sign of f_a; the first row, all ones, is for untied members
    arm_scale: Floats  # (arms,) |f_a|
    reward_moments: Floats  # (arms + 1, 3) count, mean and sum of squared deviations, by arm and for all rewards
    rows: Floats  # (s_max + 1,) number of rows of the members of each order
    log_constant: Floats  # (s_max + 1,) of the Student-t density of the next row, by order
    first_reward: Floats  # (1,) the first reward
    unit: Floats  # (1,) unit of the lag penalties: a variance of the rewards, 0 until two rewards differ
    penalties: Floats  # (choices, 2 or 3) penalty of the first lag, in units of `unit`, of an intercept, and of effects
    arms: int
    contexts: int  # p
    alpha: float


def bounds(initial: Ensemble, state: Ensemble) -> dict[str, Bound]:
    """Return the bounds of the whole numbers; a lag without a step has any index below that of its last arm."""
    fixed, last, p = initial.context_index, initial.context_index.copy(), initial.contexts
    last[0, p:] = p + initial.arms * np.arange(1, fixed.shape[1] - p + 1)
    return {
        "order": (initial.order, initial.order),
        "sign_pattern": (initial.sign_pattern, initial.sign_pattern),
        "penalty_row": (initial.penalty_row, initial.penalty_row),
        "context_index": (fixed, last),
        "past_arm": (-1, initial.arms - 1),
    }


@inline
def index_row(state: Ensemble, member: int, arm: int) -> int:
    """Return the row of `context_index`: 0 for an untied member, then one per arm, or one for all without a context."""
    return 0 if state.sign_pattern[member] == 0 else min(arm + 1, state.context_index.shape[0] - 1)


@inline
def coefficients(state: Ensemble, member: int) -> tuple[int, int]:
    """Return the number of coefficients of a member's regression, and how many of them come before the lags."""
    if state.sign_pattern[member] == 0:
        return 1 + state.contexts + state.order[member] * state.arms, 1 + state.contexts
    first = state.arms * (1 + state.contexts)
    return first + state.order[member], first


@inline
def lag_penalty(state: Ensemble, member: int, lag: int, unit: float) -> float:
    """Return the penalty of a lag's coefficient; it grows with the lag."""
    return state.penalties[state.penalty_row[member], 0] * (1.0 + lag) * unit


@inline
def scaled_square(error: float, growth: float) -> float:
    """Return error²/growth, also if error² would overflow."""
    return error * error / growth if abs(error) < LARGEST_SQUARED else error * (error / growth)


@inline
def noise_variance(state: Ensemble, member: int) -> float:
    """Return the estimated noise variance of y."""
    rows = state.rows[state.order[member]]
    return (PRIOR_ROWS * PRIOR_SHARE * state.unit[0] + state.loss[member]) / (PRIOR_ROWS + rows)


@inline
def predict_member(state: Ensemble, member: int, arm: int) -> tuple[float, float]:
    """Return a member's predicted mean of the next y of `arm`, and the leverage."""
    kind = index_row(state, member, arm)
    if kind == 0:
        return predict_slot(state, member, state.untied, member * state.arms + arm, 0, kind)
    return predict_slot(state, member, state.tied, member - state.rows.size * state.penalties.shape[0], arm, kind)


@inline
def predict_slot(state: Ensemble, member: int, ridge: Ridge, slot: int, first: int, kind: int) -> tuple[float, float]:
    """Return xᵀθ and the leverage xᵀV⁻¹x of the next step; x is 1 at `first`, and has the values at `context_index`.

    The leverage omits the context: contexts that vary explore by themselves.
    """
    inverse, theta, index, value = ridge.inverse, ridge.theta, state.context_index, state.value
    mean, half = theta[slot, first], 0.5 * inverse[slot, first, first]
    for i in range(state.contexts):
        mean += theta[slot, index[kind, i]] * value[member, i]
    for i in range(state.contexts, state.contexts + state.order[member]):
        row, x = index[kind, i], value[member, i]
        mean += theta[slot, row] * x
        along = inverse[slot, row, first] + 0.5 * inverse[slot, row, row] * x
        for j in range(state.contexts, i):
            along += inverse[slot, row, index[kind, j]] * value[member, j]
        half += along * x
    return mean, max(2.0 * half, 0.0)


@inner
def mixture(state: Ensemble, arm: int) -> tuple[float, float]:
    """Return mean and variance of the next mean reward of `arm`, minus the first reward, over the active members."""
    weight, mean, square = 0.0, 0.0, 0.0
    for member in range(state.log_weight.size):
        if state.order[member] <= state.reward_moments[state.arms, 0] and state.weight[member] > 0.0:
            own, leverage = predict_member(state, member, arm)
            f = state.sign[state.sign_pattern[member], arm] * state.arm_scale[arm]
            share, guess = state.weight[member], state.centre[member, 0] + own / f
            weight += share
            gap = guess - mean
            mean += gap * share / weight
            square += share * (noise_variance(state, member) * leverage / (f * f) + gap * (guess - mean))
    return mean, square / weight


@inline
def solve(state: Ensemble, member: int, ridge: Ridge, slot: int, first: int, kind: int, size: int) -> float:
    """Write u = V⁻¹x into `ridge.column`; return the leverage xᵀu."""
    inverse, column, index, value = ridge.inverse, ridge.column, state.context_index, state.value
    for j in range(size):
        column[j] = inverse[slot, first, j]
    for i in range(state.contexts + state.order[member]):
        row, x = index[kind, i], value[member, i]
        for j in range(size):
            column[j] += x * inverse[slot, row, j]
    leverage = column[first]
    for i in range(state.contexts + state.order[member]):
        leverage += value[member, i] * column[index[kind, i]]
    return max(leverage, 0.0)


@inline
def has_lost_digits(ridge: Ridge, slot: int, size: int, growth: float) -> bool:
    """Return whether rounding errors have spoilt V⁻¹: c ≥ 1 + u_j²/V⁻¹_jj for every j, with u in `ridge.column`."""
    for j in range(size):
        diagonal = ridge.inverse[slot, j, j]
        if not (diagonal > 0.0 and ridge.column[j] * (ridge.column[j] / diagonal) < 1.5 * growth):
            return True
    return False


@inner
def forget_lags(state: Ensemble, member: int, ridge: Ridge, slot: int, unit: float) -> None:
    """Set the coefficients of lags to 0 with their prior variances, as if their penalties had been without bound."""
    per_lag, (size, fixed) = state.arms if state.sign_pattern[member] == 0 else 1, coefficients(state, member)
    for i in range(size):
        is_spoilt = not ridge.inverse[slot, i, i] > 0.0  # an intercept
        if i >= fixed or is_spoilt:
            for j in range(size):
                ridge.inverse[slot, i, j] = ridge.inverse[slot, j, i] = 0.0
            lag, intercept = (i - fixed) // per_lag, state.penalties[state.penalty_row[member], 1]
            ridge.inverse[slot, i, i] = 1.0 / (lag_penalty(state, member, lag, unit) if i >= fixed else intercept)
            ridge.theta[slot, i] = 0.0


@inner
def reweight(state: Ensemble, time: float) -> None:
    """Normalise the weights after a step. Inactive members get the active members' mean evidence gain."""
    before, after, top = 0.0, 0.0, -math.inf
    for member in range(state.log_weight.size):
        if state.order[member] <= time:
            before += state.weight[member]
            top = max(top, state.log_weight[member])
    for member in range(state.log_weight.size):
        state.log_weight[member] -= top
        if state.order[member] <= time:
            is_relevant = state.log_weight[member] > NEGLIGIBLE_LOG_WEIGHT
            state.weight[member] = math.exp(state.log_weight[member]) if is_relevant else 0.0
            after += state.weight[member]
    for member in range(state.log_weight.size):
        if state.order[member] > time:
            state.log_weight[member] += top + math.log(after / before)
            state.weight[member] = math.exp(state.log_weight[member])


@inner
def update_members(state: Ensemble, arm: int, reward: float) -> None:
    """Update every active member with `reward`: its weight by the predictive density, its regression and its centre.

    r_t = c + Σ_j θ_j f_b/f_a (r_{t−j} − c) + noise is linear in c: with h = Σ_j θ_j f_b/f_a it is
    r_t − Σ_j θ_j f_b/f_a r_{t−j} = (1 − h)c + noise. c is the least-squares solution, with weights that grow with time.
    `lags` includes the effect of the context.
    """
    orders, time, unit, p = state.rows.size, state.reward_moments[state.arms, 0], state.unit[0], state.contexts
    discount = time / (time + 1.0)
    for member in range(state.log_weight.size):
        s, pattern = state.order[member], state.sign_pattern[member]
        if s > time:  # not active yet
            continue
        ridge, slot, first = state.tied, member - orders * state.penalties.shape[0], arm
        if pattern == 0:
            ridge, slot, first = state.untied, member * state.arms + arm, 0
        kind, (size, _) = index_row(state, member, arm), coefficients(state, member)
        centre, f = state.centre[member, 0], state.sign[pattern, arm] * state.arm_scale[arm]
        lags, slope, degrees, square = 0.0, 0.0, PRIOR_ROWS + state.rows[s], noise_variance(state, member)
        for j in range(p):
            state.value[member, j] = state.context[j]
        growth = 1.0 + solve(state, member, ridge, slot, first, kind, size)
        if has_lost_digits(ridge, slot, size, growth):
            forget_lags(state, member, ridge, slot, unit if unit > 0.0 else 1.0)
            growth = 1.0 + solve(state, member, ridge, slot, first, kind, size)
        for j in range(p):
            lags += ridge.theta[slot, state.context_index[kind, j]] * state.value[member, j]
        for j in range(s):
            weight, past_arm = ridge.theta[slot, state.context_index[kind, p + j]], state.past_arm[j]
            lags += weight * state.value[member, p + j]
            slope += weight * state.sign[pattern, past_arm] * state.arm_scale[past_arm] if past_arm >= 0 else 0.0
        error = f * (reward - centre) - ridge.theta[slot, first] - lags
        rank_one_update(ridge, slot, size, 1.0, growth, error)
        state.loss[member] += scaled_square(error, growth)
        coefficient = 1.0 - slope / f
        without_centre = reward - (lags + slope * centre) / f
        state.centre[member, 1] = discount * state.centre[member, 1] + coefficient * without_centre
        state.centre[member, 2] = discount * state.centre[member, 2] + coefficient * coefficient
        if unit > 0.0:
            square *= growth
            loss = student_t_loss(error * error, degrees, square)
            log_density = state.log_constant[s] - 0.5 * math.log(square / unit) - loss
            state.log_weight[member] += log_density
    if unit > 0.0:
        reweight(state, time)
    for s in range(orders):
        state.rows[s] += 1.0 if s <= time else 0.0
        state.log_constant[s] = compiled_log_constant(PRIOR_ROWS + state.rows[s])
