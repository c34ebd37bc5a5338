"""Partial pooling: every unit's θ_u lies around a θ that all units share, as near as the data say (docs/cohort.md).

For each arm, in units of the noise: θ ~ N(0, I/λ), θ_u ~ N(θ, I/κ), r = xᵀθ_u + N(0, 1). With P = (κI + Σ x xᵀ)⁻¹ and
m = P Σ r x over the unit's own rows, a ridge regression of its own, θ_u given θ is N(m + κPθ, P). A new row with
u = Px, c = 1 + xᵀu and e = r − xᵀm says of θ what a row of ridge regression says:

    e/√c = (κu/√c)ᵀθ + N(0, 1).

So θ ~ N(t, Q) is a second ridge regression, on those rows, and the posterior of θ_u has mean m + κPt and covariance
P + κ²PQP: exact, in two changes of rank one. The forecast of r has variance c(1 + wᵀQw), w = κu/√c, so its density is
there for nothing. Several κ are carried along; the one under which all rewards so far are likeliest, σ integrated out,
is the one that decides.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl._core.random import Bits, pick
from larl.policies._contract import bind
from larl.policies._lags import lags_init, push
from larl.policies._linalg.packed_ridge import Pairs, Tiles, absorb, gather, score, squared_length, tiles_init
from larl.policies._linalg.ridge import row_variance
from larl.policies._linalg.simd4 import aligned
from larl.policies._pooling import PARTIAL
from larl.policies._probabilities import Floats
from larl.policies._standardise import StandardState
from larl.policies.larl import LARLState, set_context, update_missing
from larl.policies.ucb import UCBState

KAPPAS = (1000.0, 100.0, 10.0, 1.0)  # times λ


class PartialState(NamedTuple):
    own: Tiles  # row i|A| + a: P and m of arm a under κ_i
    pooled: Tiles  # the same for Q and t
    kappas: Floats
    evidence: Floats  # (κs, 2) the sums of log c(1 + wᵀQw) and of e²/c(1 + wᵀQw), e from the forecast
    rows: NDArray[np.int64]  # (1,) how many
    whole: Pairs  # every pair: scratch, zero between calls
    lags: Pairs
    time: NDArray[np.int64]  # (1,)
    s: int
    arms: int
    alpha: float


def partial_init(ridge: Tiles, lags: Pairs, s: int, alpha: float, kappas: tuple[float, ...] = KAPPAS) -> PartialState:
    """No rows yet, for LARL of these regressions; κ in multiples of their λ."""
    arms, size = ridge.theta.shape[0], ridge.column.size // 4
    precisions = ridge.penalty * np.array(kappas)
    own, pooled = (tiles_init(arms * len(kappas), size, ridge.penalty) for _ in range(2))
    for i in range(len(kappas)):
        own.inverse[i * arms : (i + 1) * arms] /= kappas[i]
    whole = Pairs(np.arange(size), aligned(4 * size))
    counts = (np.zeros(1, dtype=np.int64) for _ in range(2))
    return PartialState(
        own, pooled, precisions, np.zeros((len(kappas), 2)), next(counts), whole, lags, next(counts), s, arms, alpha
    )


@inline
def likeliest(state: PartialState) -> int:
    """Which κ: the largest of Πc^{−1/2} (Σe²/c)^{−n/2}, the density of n rewards with σ integrated out under 1/σ²."""
    best, choice = -math.inf, 0
    for i in range(state.kappas.size):
        squares = state.evidence[i, 1]
        if state.rows[0] > 0 and squares > 0.0:
            found = -0.5 * (state.evidence[i, 0] + state.rows[0] * math.log(squares))
            if found > best:
                best, choice = found, i
    return choice


@inner
def partial_score(state: PartialState, member: int, arm: int) -> tuple[float, float]:
    """Mean and sd of xᵀθ_u under one κ."""
    own, whole, size = state.own, state.whole, state.whole.place.size
    row, kappa = member * state.arms + arm, state.kappas[member]
    aside = Tiles(own.inverse, own.theta, whole.value, own.penalty)
    leverage, error = gather(aside, row, state.lags, state.lags.place.size, size, 0.0)
    for i in range(0, 4 * size, 4):  # two halves of a sum become κ(Px), a pair
        first, second = kappa * (whole.value[i] + whole.value[i + 2]), kappa * (whole.value[i + 1] + whole.value[i + 3])
        whole.value[i], whole.value[i + 1], whole.value[i + 2], whole.value[i + 3] = first, second, second, first
    mean, width = score(state.pooled, row, whole, size)
    _clear(whole)
    return mean - error, math.sqrt(leverage + width * width)


@inline
def _clear(whole: Pairs) -> None:
    for i in range(whole.value.size):
        whole.value[i] = 0.0


@inner
def partial_learn(state: PartialState, arm: int, reward: float) -> None:
    """Add a row to the unit's own regression, and what it says of θ to the pooled one, under every κ."""
    own, pooled, whole, size = state.own, state.pooled, state.whole, state.whole.place.size
    variance = row_variance(squared_length(state.lags, state.lags.place.size), own.penalty)
    for i in range(state.kappas.size):
        row = i * state.arms + arm
        leverage, error = gather(own, row, state.lags, state.lags.place.size, size, reward)
        growth = variance + leverage
        absorb(own, row, size, 1.0, growth, error)
        weight = state.kappas[i] / math.sqrt(growth)
        for j in range(4 * size):
            whole.value[j] = weight * own.column[j]
        leverage, error = gather(pooled, row, whole, size, size, error / math.sqrt(growth))
        absorb(pooled, row, size, 1.0, 1.0 + leverage, error)
        state.evidence[i, 0] += math.log(growth * (1.0 + leverage))
        state.evidence[i, 1] += error * error / (1.0 + leverage)
    state.rows[0] += 1
    _clear(whole)


def act(state: PartialState, bits: Bits) -> int:
    if state.time[0] < state.s:
        return pick(bits, state.arms)
    best, choice, member = -math.inf, 0, likeliest(state)
    for arm in range(state.arms):
        mean, width = partial_score(state, member, arm)
        if mean + state.alpha * width > best:
            best, choice = mean + state.alpha * width, arm
    return choice


def update(state: PartialState, arm: int, reward: float) -> None:
    if state.time[0] >= state.s:
        partial_learn(state, arm, reward)
    push(state.lags, state.s, state.arms, arm, reward)
    state.time[0] += 1


def predict(state: PartialState, arm: int) -> tuple[float, float]:
    if state.time[0] < state.s:
        return math.nan, math.nan
    mean, width = partial_score(state, likeliest(state), arm)
    return mean, state.alpha * width


bind(
    PartialState,
    act,
    update,
    "LARL",
    ("pooled", "kappas", "evidence", "rows", "whole"),
    update_missing=update_missing,
    predict=predict,
    set_context=set_context,
)


def _of_larl(state: LARLState) -> PartialState:
    return partial_init(state.ridge, state.lags, state.s, state.alpha)


def _of_ucb(state: UCBState) -> PartialState:
    """UCB is LARL with s = 0."""
    ridge, arms = float(state.weight[0]), state.weight.size
    return partial_init(tiles_init(arms, 1, ridge), lags_init(0, arms), 0, state.alpha)


def _of_standard(state: StandardState) -> Any:
    return state._replace(inner=PARTIAL[type(state.inner)](state.inner))


PARTIAL.update({LARLState: _of_larl, UCBState: _of_ucb, StandardState: _of_standard})
