"""LARL with the confidence radius of Lemma 3 (Trella et al. 2025), which needs the world's true parameters.

Corrected: β_{a,t} = R_a √(d log(1 + n_a L/(λd)) + 2 log(2|A|/δ)) + √λ ‖θ_a‖ + √(Σ_j b_j(a,s)²).
Printed: β_{a,t} = R_a √(d log((1 + n_a L/λ)/(δ/2))) + √λ ‖θ_a‖ + τ √(Σ_j b_j(a,s)²), with
τ² = Σ_j ‖Φ_j‖²_{V_a⁻¹} = d − λ tr V_a⁻¹.

Sums are over the n_a rows of arm a. The biases b_j come from a steady-state filter that runs in parallel.
docs/theory.md, section 5, derives the corrected radius.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import assign, inline, inner
from larl._core.random import Bits, pick
from larl._core.validation import InvalidValue
from larl.policies._bounds import STEPS, Bound
from larl.policies._lags import dimension, lag_bounds, pair_count, push, push_missing
from larl.policies._linalg.packed_ridge import PackedRidge, SparseContext, add_row, inverse_trace, predict_arm
from larl.policies._linalg.simd4 import Floats
from larl.policies._registry import bind
from larl.statespace.steady_state import steady_state, steady_state_step
from larl.worlds.latent_ar import LatentAR

if TYPE_CHECKING:
    from larl.worlds.base import World


class TheoryState(NamedTuple):
    ridge: PackedRidge
    lags: SparseContext
    time: NDArray[np.int64]  # (1,)
    rows: Floats  # (arms,) n_a
    squared_bias: Floats  # (arms,) Σ_j b_j(a, s)²
    predictions: Floats  # (s+1, k) z̃_t, z̃_{t−1} … z̃_{t−s}
    next: Floats  # (k,) scratch
    closed: Floats  # (k, k) Γ − ΓKC
    push: Floats  # (k,) ΓK
    drift: Floats  # (k,) constant term of the filter
    bias_row: Floats  # (k,) b_j(a, s)/β_a = bias_row · z̃_{j−s}
    beta: Floats  # (arms,)
    mu: Floats  # (arms,)
    noise: Floats  # (arms,) R_a
    size: Floats  # (arms,) ‖θ_a‖
    bound: float  # L(s, δ/2)
    delta: float
    is_corrected: bool


def bounds(initial: TheoryState, state: TheoryState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    s, arms = initial.lags.indices.size - 1, initial.beta.size
    return {"lags.indices": lag_bounds(initial.lags, s, arms), "time": STEPS}


@inner
def radius(state: TheoryState, arm: int) -> float:
    """Return β_{a,t}(δ) of Lemma 3; corrected, it holds for all arms at once."""
    d, penalty = dimension(state.lags.indices.size - 1, state.beta.size), state.ridge.penalty
    if state.is_corrected:
        squared = d * math.log(1.0 + state.rows[arm] * state.bound / (penalty * d))
        squared += 2.0 * math.log(2.0 * state.beta.size / state.delta)
        bias = math.sqrt(state.squared_bias[arm])
    else:
        squared = d * math.log((1.0 + state.rows[arm] * state.bound / penalty) / (state.delta / 2.0))
        bias = math.sqrt(max(d - penalty * inverse_trace(state.ridge, arm), 0.0) * state.squared_bias[arm])
    return state.noise[arm] * math.sqrt(squared) + math.sqrt(penalty) * state.size[arm] + bias


def act(state: TheoryState, bits: Bits) -> int:
    s, arms = state.lags.indices.size - 1, state.beta.size
    if state.time[0] < s:
        return pick(bits, arms)
    best, choice = -math.inf, 0
    for arm in range(arms):
        mean, width = predict_arm(state.ridge, arm, state.lags, s + 1)
        bound = mean + radius(state, arm) * width
        if bound > best:
            best, choice = bound, arm
    return choice


def update(state: TheoryState, arm: int, reward: float) -> None:
    s, arms, k = state.lags.indices.size - 1, state.beta.size, state.drift.size
    if state.time[0] >= s:
        bias = 0.0
        for i in range(k):
            bias += state.bias_row[i] * state.predictions[s, i]
        state.squared_bias[arm] += (state.beta[arm] * bias) ** 2
        state.rows[arm] += 1.0
        add_row(state.ridge, arm, state.lags, s + 1, pair_count(s, arms), reward)
    push(state.lags, s, arms, arm, reward)
    update_predictions(state, (reward - state.mu[arm]) / state.beta[arm])


@inline
def update_predictions(state: TheoryState, measurement: float) -> None:
    """Advance the filter by one step."""
    for lag in range(state.lags.indices.size - 1, 0, -1):
        assign(state.predictions[lag], state.predictions[lag - 1])
    steady_state_step(state.predictions[0], state.next, state.closed, state.push, state.drift, measurement)
    assign(state.predictions[0], state.next)
    state.time[0] += 1


def update_missing(state: TheoryState, arm: int) -> None:
    """Push an empty lag; advance the filter with the predicted value in place of the measurement."""
    push_missing(state.lags, state.lags.indices.size - 1, state.beta.size)
    update_predictions(state, state.predictions[0, 0])


def predict(state: TheoryState, arm: int) -> tuple[float, float]:
    s = state.lags.indices.size - 1
    if state.time[0] < s:
        return math.nan, math.nan
    mean, width = predict_arm(state.ridge, arm, state.lags, s + 1)
    return mean, radius(state, arm) * width


bind(TheoryState, act, update, "LARL", bounds=bounds, update_missing=update_missing, predict=predict)


def init(
    ridge: PackedRidge,
    lags: SparseContext,
    time: NDArray[np.int64],
    delta: float,
    horizon: int | None,
    world: "World | None",
    *,
    radius: str,
) -> TheoryState:
    """Return the State of LARL with a radius of Lemma 3; raise InvalidValue without a LatentAR and a horizon."""
    from larl.theory import bias_row, context_bound, noise_scale, reward_parameters

    if horizon is None or not isinstance(world, LatentAR):
        accepted = f"'alpha', or {radius!r} in a larl.LatentAR with a known horizon"
        raise InvalidValue("LARL", "radius", radius, accepted)
    if ridge.theta.shape[0] != world.arms:
        raise InvalidValue("LARL", "arms", ridge.theta.shape[0], f"{world.arms}, as many as its world has")
    s, steady, arms = lags.indices.size - 1, steady_state(world), world.arms
    predictions = np.full((s + 1, world.k), world.stationary_mean)
    size = np.linalg.norm(reward_parameters(world, s), axis=1)
    return TheoryState(
        ridge=ridge,
        lags=lags,
        time=time,
        rows=np.zeros(arms),
        squared_bias=np.zeros(arms),
        predictions=predictions,
        next=np.zeros(world.k),
        closed=steady.closed_loop,
        push=steady.predictor_gain,
        drift=steady.drift,
        bias_row=bias_row(world, s),
        beta=np.array(world.beta),
        mu=np.array(world.mu),
        noise=noise_scale(world),
        size=size,
        bound=context_bound(world, s, delta / 2.0, horizon),
        delta=delta,
        is_corrected=radius == "corrected",
    )
