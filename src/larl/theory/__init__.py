"""The paper's theory in numbers, corrected: numbers in, numbers out. docs/theory.md derives every one of them.

Lemma 2: θ_a and the bias. Lemma 3: the confidence radius. Lemma 4: the bound on contexts. Theorem 1: the regret bound.
And what the paper does not print: the floor, the regret that even the best informed policy pays.

Lemma 2 is for every world whose filter has a steady state, also with a vector state; Lemmas 3 and 4 and Theorem 1 are
for a LatentAR; the floor is for every LatentAR and LatentVAR.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.validation import instance, integer, number, one_of
from larl.statespace.kalman import linear, steady_state
from larl.theory.regret_floor import best_mean as best_mean
from larl.theory.regret_floor import floor_bound as floor_bound
from larl.theory.regret_floor import greedy_regret as greedy_regret
from larl.theory.regret_floor import predictability as predictability
from larl.theory.regret_floor import random_cost as random_cost
from larl.theory.regret_floor import regret_floor as regret_floor
from larl.worlds.base import LinearGaussianWorld
from larl.worlds.latent_ar import LatentAR

Floats = NDArray[np.float64]


def _scalar(world: object, asked: str) -> LatentAR:
    accepted = "a larl.LatentAR: the paper's bounds are for a scalar latent state"
    found: LatentAR = instance(LatentAR, accepted)(asked, "world", world)
    return found


def _common(asked: str, s: object, delta: object, horizon: object) -> tuple[int, float, int]:
    return (
        integer(0)(asked, "s", s),
        number(above=0.0, below=1.0)(asked, "delta", delta),
        integer(1)(asked, "horizon", horizon),
    )


def reward_parameters(world: LinearGaussianWorld, s: int) -> Floats:
    """θ_a for every arm, shape (arms, 2s|A|+1), in the order of Φ_t(s) = [R_t, A_t, 1], oldest lag first (Lemma 2).

    With g_j = C(Γ−ΓKC)^j ΓK: R's entry of lag j under arm b is β_a g_j/β_b, A's is −β_a g_j μ_b/β_b, and the
    intercept is μ_a + β_a C Σ_{j<s} (Γ−ΓKC)^j drift. C is e₁ᵀ; where z is a vector and β_a = b_a u, it is (uᵀ, 0 …)
    and b stands for β.
    """
    return _reward_parameters(
        linear("reward_parameters", "world", world), integer(0)("reward_parameters", "s", s)
    ).copy()


@lru_cache(maxsize=256)
def _reward_parameters(world: LinearGaussianWorld, s: int) -> Floats:
    steady = steady_state(world)
    beta, mu = steady.scale, world.system.mu
    power, weights, drift = steady.c, np.empty(s), 0.0
    for j in range(s):
        weights[j] = power @ steady.push
        drift += float(power @ steady.drift)
        power = power @ steady.closed
    rewards = np.kron(weights[::-1], 1.0 / beta)
    actions = np.kron(weights[::-1], -mu / beta)
    return np.concatenate([np.outer(beta, rewards), np.outer(beta, actions), (mu + beta * drift)[:, None]], axis=1)


def bias_row(world: LinearGaussianWorld, s: int) -> Floats:
    """C(Γ−ΓKC)^s: the bias of Lemma 2 is b_t(a, s) = β_a · bias_row · z̃_{t−s} (b_a for β_a where z is a vector)."""
    steady, s = steady_state(linear("bias_row", "world", world)), integer(0)("bias_row", "s", s)
    row: Floats = steady.c @ np.linalg.matrix_power(steady.closed, s)
    return row


def noise_scale(world: LinearGaussianWorld) -> Floats:
    """R_a = √(β_a² CPCᵀ + sd_a²), the standard deviation of r_t(a) around its steady-state prediction."""
    steady = steady_state(linear("noise_scale", "world", world))
    result: Floats = np.sqrt(np.square(steady.scale) * float(steady.c @ steady.cov @ steady.c) + world.sd**2)
    return result


def context_bound(world: LatentAR, s: int, delta: float, horizon: int) -> float:
    """L with ‖Φ_t(s)‖² ≤ L for all t ≤ horizon with probability ≥ 1 − delta (Lemma 4, corrected).

    Each reward is normal; its variance counts Var z_t and the union is over all steps:
    |r_t| ≤ |μ_a + β_a E z_t| + √(2(β_a² Var z_t + sd_a²) log(2T|A|/δ)), the worst over arms and steps;
    L = s(r² + 1) + 1. The arms are counted because which of them is played depends on the past.
    """
    world, s, delta, horizon = _scalar(world, "context_bound"), *_common("context_bound", s, delta, horizon)
    return _context_bound(world, s, delta, horizon)


@lru_cache(maxsize=256)
def _context_bound(world: LatentAR, s: int, delta: float, horizon: int) -> float:
    mean, cov = world.start_moments
    beta, mu, tail = np.array(world.beta), np.array(world.mu), 2.0 * math.log(2.0 * horizon * world.arms / delta)
    means, variances = list(mean), list(np.diag(cov))
    state, spread = mean[::-1], cov[::-1, ::-1]
    system = world.system
    for _ in range(world.k, horizon):
        state, spread = system.gamma @ state + system.drift, system.gamma @ spread @ system.gamma.T + system.noise
        means.append(state[0])
        variances.append(spread[0, 0])
        if np.allclose(spread, world.stationary_cov, rtol=1e-12) and np.allclose(state, world.stationary_mean):
            break
    centre = np.abs(mu + np.outer(means, beta))
    largest = float((centre + np.sqrt(tail * (np.outer(variances, beta**2) + world.sd**2))).max())
    return float(s * (largest**2 + 1.0) + 1.0)


def steady_start(world: LatentAR) -> LatentAR:
    """The same world, begun where a filter has long been running: z⃗_0 ~ N(stationary mean, P) given that past.

    Here the steady-state filter is exact from the first step, which the paper's proofs take for granted.
    """
    k, mean = _scalar(world, "steady_start").k, world.stationary_mean
    maps = [np.eye(k, 2 * k - 1)]  # z⃗_0 as a map of (z_0 … z_{1−k}, ξ_1 … ξ_{k−1})
    for t in range(1, k):
        shock = np.zeros((k, 2 * k - 1))
        shock[0, k - 1 + t] = world.sigma_z
        maps.append(world.system.gamma @ maps[-1] + shock)
    rows = np.array([each[0] for each in maps])
    sources = np.eye(2 * k - 1)
    sources[:k, :k] = steady_state(world).cov
    cov = rows @ sources @ rows.T
    values = world.to_dict() | {"start": {"mean": [mean] * k, "cov": ((cov + cov.T) / 2.0).tolist()}}
    return LatentAR.from_dict(values)


def confidence_radius(
    world: LatentAR,
    s: int,
    rows: int,
    horizon: int,
    *,
    squared_bias: float,
    tau: float = 1.0,
    arm: int = 0,
    delta: float = 0.05,
    ridge: float = 1.0,
    form: str = "corrected",
) -> float:
    """The radius β_{a,t}(δ) of arm a's confidence ellipsoid after `rows` rows (Lemma 3).

    "printed": R√(d log((1 + nL/λ)/(δ/2))) + √λ‖θ_a‖ + τ√Σb², which holds for one arm. "corrected", for all arms at
    once: R√(d log(1 + nL/(λd)) + 2 log(2|A|/δ)) + √λ‖θ_a‖ + √Σb². As ‖V^{−½}Xᵀb‖ ≤ ‖b‖, τ is not needed.
    """
    asked = "confidence_radius"
    world, form = _scalar(world, asked), one_of("corrected", "printed")(asked, "form", form)
    s, delta, horizon = _common(asked, s, delta, horizon)
    rows, arm = integer(0)(asked, "rows", rows), integer(0, world.arms - 1)(asked, "arm", arm)
    squared_bias, tau = number(0.0)(asked, "squared_bias", squared_bias), number(0.0)(asked, "tau", tau)
    ridge = number(above=0.0)(asked, "ridge", ridge)
    d, bound = 2 * s * world.arms + 1, context_bound(world, s, delta / 2.0, horizon)
    if form == "printed":
        spread = d * math.log((1.0 + rows * bound / ridge) / (delta / 2.0))
    else:
        spread = d * math.log(1.0 + rows * bound / (ridge * d)) + 2.0 * math.log(2.0 * world.arms / delta)
    theta = float(np.linalg.norm(reward_parameters(world, s)[arm]))
    bias = (tau if form == "printed" else 1.0) * math.sqrt(squared_bias)
    return float(noise_scale(world)[arm]) * math.sqrt(spread) + math.sqrt(ridge) * theta + bias


class RegretBound(NamedTuple):
    """A bound on regret, term by term; `reason` says why it is infinite, where it is."""

    nonstationarity: float  # what the filter that knows all parameters may lose
    learning: float  # what learning θ may cost
    bias: float  # what looking back only s steps may cost
    start: float  # what the first s random steps may cost
    trivial: float  # what anyone at all may lose over the horizon, with the same confidence
    delta: float  # the confidence level that LARL's own radius must have
    reason: str

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return self.nonstationarity + self.learning + self.bias + self.start


def regret_bound(
    world: LatentAR, s: int, horizon: int, *, delta: float = 0.05, ridge: float = 1.0, form: str = "corrected"
) -> RegretBound:
    """Theorem 1 before the trial: what LARL(s, radius="theory", delta=bound.delta) exceeds with probability ≤ δ.

    "printed" has ‖P‖ ≤ σ_z²/(1 − σ_max(Γ)²) in its first term, which is infinite for every k ≥ 2. "corrected" has the
    P₁₁ of the Riccati equation and a union over steps. Both share the other terms, made explicit by the elliptical
    potential and by the law of z̃, with the printed radius of Lemma 3, which that LARL plays with. So "printed" is not
    the theorem as printed, whose other terms are known only after the run. δ is shared out evenly among 4 events and
    one more for each arm. The bound is far above `trivial` at every horizon.
    """
    world, (s, delta, horizon) = _scalar(world, "regret_bound"), _common("regret_bound", s, delta, horizon)
    ridge = number(above=0.0)("regret_bound", "ridge", ridge)
    form = one_of("corrected", "printed")("regret_bound", "form", form)
    beta, steady, part = np.array(world.beta), steady_state(world), delta / (4.0 + world.arms)
    tail = math.sqrt(2.0 * math.log(2.0 * horizon / part))
    swing = _swing(world, s, tail)
    reach = abs(world.stationary_mean) + tail * math.sqrt(world.stationary_var)
    worst = float(np.ptp(world.mu) + np.ptp(beta) * reach)
    reason = ""
    if form == "corrected":
        moving = horizon * float(np.ptp(beta)) * tail * math.sqrt(float(steady.cov[0, 0]))
    else:
        moving, reason = _printed_first_term(world, horizon, delta)
    return RegretBound(
        nonstationarity=moving,
        learning=_learning_term(world, s, horizon, swing, 2.0 * part, ridge),
        bias=2.0 * float(np.abs(beta).max()) * swing * horizon,
        start=min(s, horizon) * worst,
        trivial=horizon * worst,
        delta=2.0 * part,
        reason=reason,
    )


def _swing(world: LatentAR, s: int, tail: float) -> float:
    """A bound on |e₁ᵀ(Γ−ΓKC)^s z̃_t|: its mean and `tail` standard deviations, Var z̃ = S − P."""
    row, known = bias_row(world, s), world.stationary_cov - steady_state(world).cov
    return abs(float(row.sum()) * world.stationary_mean) + tail * math.sqrt(max(float(row @ known @ row), 0.0))


def _printed_first_term(world: LatentAR, horizon: int, delta: float) -> tuple[float, str]:
    """8 max‖c_a‖ √(σ_z²/(1 − σ_max(Γ)²)) √(2(k + log(3/δ))) T, or infinity and why."""
    singular = float(np.linalg.norm(world.system.gamma, 2))
    if singular >= 1.0:
        return math.inf, f"σ_max(Γ) = {singular:.3f} ≥ 1, and the bound divides by 1 − σ_max(Γ)²"
    size = math.sqrt(world.sigma_z**2 / (1.0 - singular**2) * 2.0 * (world.k + math.log(3.0 / delta)))
    return 8.0 * float(np.abs(world.beta).max()) * size * horizon, ""


def _learning_term(world: LatentAR, s: int, horizon: int, swing: float, delta: float, ridge: float) -> float:
    """2 β_T √(T Σ‖Φ_t‖²), with Σ‖Φ_t‖² ≤ (L/λ)/log(1 + L/λ) · |A|d log(1 + TL/(λd|A|)), the elliptical potential."""
    d, bound = 2 * s * world.arms + 1, context_bound(world, s, delta / 2.0, horizon) / ridge
    radius = max(
        confidence_radius(
            world,
            s,
            horizon,
            horizon,
            squared_bias=horizon * (world.beta[arm] * swing) ** 2,
            tau=math.sqrt(d),
            arm=arm,
            delta=delta,
            ridge=ridge,
            form="printed",
        )
        for arm in range(world.arms)
    )
    potential = bound / math.log1p(bound) * world.arms * d * math.log1p(horizon * bound / (d * world.arms))
    return 2.0 * radius * math.sqrt(horizon * potential)
