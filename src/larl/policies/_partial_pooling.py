"""Partial pooling of LARL in a cohort: each unit's θ_u shrinks towards a θ that all units share (docs/cohort.md).

For each arm, in units of the noise: θ ~ N(0, I/λ), θ_u ~ N(θ, I/κ), r = xᵀθ_u + N(0, 1). Let P = (κI + Σ x xᵀ)⁻¹ and
m = P Σ r x over the unit's rows, a ridge regression per unit. Then θ_u given θ is N(m + κPθ, P). A new row with u = Px,
c = 1 + xᵀu and e = r − xᵀm gives one row of a ridge regression for θ:

    e/√c = (κu/√c)ᵀθ + N(0, 1).

So θ ~ N(t, Q) is a second ridge regression on these rows, and the posterior of θ_u has mean m + κPt and covariance
P + κ²PQP: exact, with two rank-one updates per reward. The predictive variance of r is c(1 + wᵀQw) with w = κu/√c, so
its density needs no further work. Several κ are updated in parallel; the one with the largest likelihood of all rewards
so far, with σ integrated out, is used for decisions. A κ whose log likelihood falls DROP_GAP behind is not updated any
more: its regressions would take most of the time.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl._core.random import Bits, pick
from larl.policies._bounds import STEPS, Bound
from larl.policies._lags import lag_bounds, lags_init, push
from larl.policies._linalg.packed_ridge import (
    PackedRidge,
    SparseContext,
    packed_ridge_init,
    predict_arm,
    rank_one_update,
    solve,
    squared_norm,
)
from larl.policies._linalg.ridge import row_variance
from larl.policies._linalg.simd4 import aligned_zeros
from larl.policies._pooling import PARTIAL_STATES
from larl.policies._probabilities import Floats
from larl.policies._registry import bind
from larl.policies.larl import LARLState, set_context, update_missing
from larl.policies.ucb import UCBState

KAPPAS = (1000.0, 100.0, 10.0, 1.0)  # candidates for κ, in multiples of λ
DROP_GAP = 50.0  # difference of the log likelihood
DROPPED = 1e300  # in the place of the sum of log variances


class PartialState(NamedTuple):
    own: PackedRidge  # slot i|A| + a: P and m of arm a under κ_i
    pooled: PackedRidge  # slot i|A| + a: Q and t
    kappas: Floats
    evidence: Floats  # (κs, 2) sums of log c(1 + wᵀQw) and of e²/c(1 + wᵀQw), e the prediction error
    rows: NDArray[np.int64]  # (1,) number of rows
    dense: SparseContext  # a context with every pair: scratch, zero between calls
    lags: SparseContext
    time: NDArray[np.int64]  # (1,)
    s: int
    arms: int
    alpha: float


def bounds(initial: PartialState, state: PartialState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    lags, dense = lag_bounds(initial.lags, initial.s, initial.arms), initial.dense.indices
    return {"lags.indices": lags, "dense.indices": (dense, dense), "rows": STEPS, "time": STEPS}


def partial_init(
    ridge: PackedRidge, lags: SparseContext, s: int, alpha: float, kappas: tuple[float, ...] = KAPPAS
) -> PartialState:
    """Return the State without data for a LARL with these regressions; `kappas` are multiples of their λ."""
    arms, size = ridge.theta.shape[0], ridge.column.size // 4
    precisions = ridge.penalty * np.array(kappas)
    own, pooled = (packed_ridge_init(arms * len(kappas), size, ridge.penalty) for _ in range(2))
    for i in range(len(kappas)):
        own.inverse[i * arms : (i + 1) * arms] /= kappas[i]
    return PartialState(
        own=own,
        pooled=pooled,
        kappas=precisions,
        evidence=np.zeros((len(kappas), 2)),
        rows=np.zeros(1, dtype=np.int64),
        dense=SparseContext(np.arange(size), aligned_zeros(4 * size)),
        lags=lags,
        time=np.zeros(1, dtype=np.int64),
        s=s,
        arms=arms,
        alpha=alpha,
    )


@inline
def log_likelihood(evidence: Floats, rows: int) -> float:
    """Return log Πc^{−1/2} (Σe²/c)^{−n/2}: the density of n rewards with the prior 1/σ²; −∞ before it is defined."""
    return -0.5 * (evidence[0] + rows * math.log(evidence[1])) if rows > 0 and evidence[1] > 0.0 else -math.inf


@inline
def most_likely(evidence: Floats, rows: int) -> int:
    """Return the index of the κ with the largest likelihood."""
    best, choice = -math.inf, 0
    for i in range(evidence.shape[0]):
        value = log_likelihood(evidence[i], rows)
        if value > best:
            best, choice = value, i
    return choice


@inline
def drop_unlikely(evidence: Floats, rows: int) -> None:
    """Mark the κ that are DROP_GAP behind the best, so that they are not updated any more."""
    best = log_likelihood(evidence[most_likely(evidence, rows)], rows)
    for i in range(evidence.shape[0]):
        if evidence[i, 1] > 0.0 and best - log_likelihood(evidence[i], rows) > DROP_GAP:
            evidence[i, 0] = DROPPED


@inline
def precision_of(kappas: Floats, pair: int) -> float:
    """Return κ of a pair of coefficients; a single number is that of all pairs."""
    return kappas[np.uintp(min(pair, kappas.size - 1))]


@inner
def predict_unit(
    own: PackedRidge, pooled: PackedRidge, dense: SparseContext, lags: Any, row: int, kappas: Floats
) -> tuple[float, float]:
    """Return mean and sd of xᵀθ_u; `row` is the slot of the arm under the candidate with precisions `kappas`."""
    size = dense.indices.size
    scratch = PackedRidge(own.inverse, own.theta, dense.value, own.penalty)
    leverage, error = solve(scratch, row, lags, lags.indices.size, size, 0.0)
    for i in range(0, 4 * size, 4):  # `solve` leaves two halves of a sum: turn them into the pair κ(Px)
        kappa = precision_of(kappas, i >> 2)
        first, second = kappa * (dense.value[i] + dense.value[i + 2]), kappa * (dense.value[i + 1] + dense.value[i + 3])
        dense.value[i], dense.value[i + 1], dense.value[i + 2], dense.value[i + 3] = first, second, second, first
    mean, width = predict_arm(pooled, row, dense, size)
    _clear(dense)
    return mean - error, math.sqrt(leverage + width * width)


@inline
def _clear(dense: SparseContext) -> None:
    """Set all values of a context to 0."""
    for i in range(dense.value.size):
        dense.value[i] = 0.0


@inner
def add_unit_row(
    own: PackedRidge,
    pooled: PackedRidge,
    dense: SparseContext,
    lags: Any,
    row: int,
    kappas: Floats,
    reward: float,
    evidence: Floats,
) -> None:
    """Add a row to the unit's regression, the row for θ to the pooled one, and its density to `evidence`."""
    size = dense.indices.size
    variance = row_variance(squared_norm(lags, lags.indices.size), own.penalty)
    leverage, error = solve(own, row, lags, lags.indices.size, size, reward)
    growth = variance + leverage
    rank_one_update(own, row, size, 1.0, growth, error)
    root = math.sqrt(growth)
    for j in range(4 * size):
        dense.value[j] = precision_of(kappas, j >> 2) / root * own.column[j]
    leverage, error = solve(pooled, row, dense, size, size, error / root)
    rank_one_update(pooled, row, size, 1.0, 1.0 + leverage, error)
    evidence[0] += math.log(growth * (1.0 + leverage))
    evidence[1] += error * error / (1.0 + leverage)
    _clear(dense)


@inline
def partial_predict(state: PartialState, candidate: int, arm: int) -> tuple[float, float]:
    """Return mean and sd of xᵀθ_u under one κ."""
    kappas, row = state.kappas[candidate : candidate + 1], candidate * state.arms + arm
    return predict_unit(state.own, state.pooled, state.dense, state.lags, row, kappas)


@inner
def partial_add_row(state: PartialState, arm: int, reward: float) -> None:
    """Add a row to the regressions under every κ."""
    for i in range(state.kappas.size):
        if state.evidence[i, 0] < DROPPED:
            row, kappas = i * state.arms + arm, state.kappas[i : i + 1]
            add_unit_row(state.own, state.pooled, state.dense, state.lags, row, kappas, reward, state.evidence[i])
    state.rows[0] += 1
    drop_unlikely(state.evidence, state.rows[0])


def act(state: PartialState, bits: Bits) -> int:
    if state.time[0] < state.s:
        return pick(bits, state.arms)
    best, choice, candidate = -math.inf, 0, most_likely(state.evidence, state.rows[0])
    for arm in range(state.arms):
        mean, width = partial_predict(state, candidate, arm)
        if mean + state.alpha * width > best:
            best, choice = mean + state.alpha * width, arm
    return choice


def update(state: PartialState, arm: int, reward: float) -> None:
    if state.time[0] >= state.s:
        partial_add_row(state, arm, reward)
    push(state.lags, state.s, state.arms, arm, reward)
    state.time[0] += 1


def predict(state: PartialState, arm: int) -> tuple[float, float]:
    if state.time[0] < state.s:
        return math.nan, math.nan
    mean, width = partial_predict(state, most_likely(state.evidence, state.rows[0]), arm)
    return mean, state.alpha * width


bind(
    PartialState,
    act,
    update,
    "LARL",
    ("pooled", "kappas", "evidence", "rows", "dense"),
    bounds,
    update_missing=update_missing,
    predict=predict,
    set_context=set_context,
)


def _partial_larl(state: LARLState) -> PartialState:
    """Return the State of partial pooling for LARL."""
    return partial_init(state.ridge, state.lags, state.s, state.alpha)


def _partial_ucb(state: UCBState) -> PartialState:
    """Return the State of partial pooling for UCB, which is LARL with s = 0."""
    ridge, arms = float(state.weight[0]), state.weight.size
    return partial_init(packed_ridge_init(arms, 1, ridge), lags_init(0, arms), 0, state.alpha)


PARTIAL_STATES.update({LARLState: _partial_larl, UCBState: _partial_ucb})
