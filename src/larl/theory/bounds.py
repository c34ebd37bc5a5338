"""Theorem 1: an upper bound on LARL's regret that is known before the trial."""

import math
from typing import NamedTuple

import numpy as np

from larl._core.validation import number, one_of
from larl.statespace.steady_state import measurement_variance, steady_state
from larl.theory.confidence import confidence_radius, context_bound
from larl.theory.decompose import floor_path
from larl.theory.reduction import bias_row, require_steady_start, validate_bound_arguments, validate_scalar_world
from larl.worlds.latent_ar import LatentAR

EVENTS = 6  # of equal probability; two of them are LARL's


class RegretBound(NamedTuple):
    """A bound on cumulative regret, term by term, in units of the reward.

    Parameters
    ----------
    nonstationarity : float
        Regret of the filter that knows all parameters.
    learning : float
        Cost of learning θ.
    bias : float
        Cost of using only the last s steps.
    start : float
        Cost of the first s random steps.
    trivial : float
        Regret that no policy exceeds over the horizon, with the same confidence.
    delta : float
        Value of ``delta`` to pass to ``LARL(s, radius="corrected", delta=…)``.
    reason : str
        Why the bound is infinite; empty if it is finite.

    Examples
    --------
    >>> import larl
    >>> world = larl.theory.steady_start(larl.worlds.paper(1))
    >>> bound = larl.theory.regret_bound(world, s=1, horizon=200)
    >>> bound.total == bound.nonstationarity + bound.learning + bound.bias + bound.start
    True
    """

    nonstationarity: float
    learning: float
    bias: float
    start: float
    trivial: float
    delta: float
    reason: str

    @property
    def total(self) -> float:
        """Sum of the terms."""
        return self.nonstationarity + self.learning + self.bias + self.start


def regret_bound(
    world: LatentAR, s: int, horizon: int, *, delta: float = 0.05, ridge: float = 1.0, form: str = "corrected"
) -> RegretBound:
    """Return a bound on the regret of LARL(s, radius="corrected", delta=bound.delta), valid with probability 1 − delta.

    This is Theorem 1, computed before the trial. "corrected" has the sum of floors and its deviation as first term, the
    corrected radius of Lemma 3, and an elliptical potential that is clipped at the largest gap. "printed" has the first
    term as printed, which uses ‖P‖ ≤ σ_z²/(1 − σ_max(Γ)²) and is infinite for every k ≥ 2, the printed radius, and the
    potential without a clip. So it is not the theorem as printed, whose other terms are known only after the run, and
    it holds for a LARL with the printed radius. `certificate` is far tighter, and known after the run.

    Parameters
    ----------
    world : LatentAR
        The world, with the start of `steady_start`.
    s : int, >= 0
        Number of past steps in the context.
    horizon : int, >= 1
        Number of steps.
    delta : float, in (0, 1), default 0.05
        Probability that the bound fails.
    ridge : float, > 0, default 1.0
        Penalty of the regression.
    form : {"corrected", "printed"}, default "corrected"
        Which terms to use.

    Returns
    -------
    RegretBound

    Raises
    ------
    InvalidValue
        If the world is not a LatentAR, has another start, or its filter has no steady state.

    Examples
    --------
    >>> import larl
    >>> world = larl.theory.steady_start(larl.worlds.paper(1))
    >>> bound = larl.theory.regret_bound(world, s=1, horizon=200)
    >>> round(bound.nonstationarity), round(bound.total), round(bound.trivial)
    (301, 5238, 4261)
    """
    world = require_steady_start("regret_bound", validate_scalar_world("regret_bound", world))
    s, delta, horizon = validate_bound_arguments("regret_bound", s, delta, horizon)
    ridge = number(above=0.0)("regret_bound", "ridge", ridge)
    form = one_of("corrected", "printed")("regret_bound", "form", form)
    beta, per_event = np.array(world.beta), delta / EVENTS
    tail = math.sqrt(2.0 * math.log(2.0 * horizon / per_event))
    bias = largest_bias(world, s, tail)
    largest_gap, largest_step_regret = (
        float(np.ptp(world.mu) + np.ptp(beta) * (abs(world.stationary_mean) + tail * math.sqrt(variance)))
        for variance in (world.stationary_var - float(steady_state(world).cov[0, 0]), world.stationary_var)
    )
    reason, learning = "", learning_term(world, s, horizon, bias, 2.0 * per_event, ridge, form, largest_gap)
    if form == "corrected":
        first = filter_regret(world, horizon, per_event)
        learning = min(learning, horizon * largest_gap)
    else:
        first, reason = printed_first_term(world, horizon, delta)
    return RegretBound(
        nonstationarity=first,
        learning=learning,
        bias=2.0 * float(np.abs(beta).max()) * bias * horizon,
        start=min(s, horizon) * largest_gap,
        trivial=horizon * largest_step_regret,
        delta=2.0 * per_event,
        reason=reason,
    )


def filter_regret(world: LatentAR, horizon: int, delta: float) -> float:
    """Return a bound on Regret − Σ gap_t of any policy, which fails with probability ≤ 2·delta.

    Given the past, regret_t − gap_t is a function of z_t with slopes of at most max β − min β, and Var z_t = P₁₁. So
    its deviations from h(z̃_t) sum to at most (max β − min β)√(2TP₁₁ log(1/δ)). h is at most
    (max β − min β)√(P₁₁/2π); Σ h(z̃_t) has the mean Σ floor_t and deviates by at most
    (max β − min β) √T Σ|w| √(2 log(1/δ)), where w are the weights of past innovations in z̃_t.
    """
    steady, spread, tail = steady_state(world), float(np.ptp(world.beta)), math.sqrt(2.0 * math.log(1.0 / delta))
    error = float(steady.cov[0, 0])
    innovation_sd = math.sqrt(error + measurement_variance(world))
    row, weights = steady.c, 0.0
    while np.abs(row).max() > 1e-12:
        weights += innovation_sd * abs(float(row @ steady.predictor_gain))
        row = row @ world.system.gamma
    expected = float(floor_path(world, horizon).sum()) + spread * math.sqrt(horizon) * weights * tail
    largest = horizon * spread * math.sqrt(error / (2.0 * math.pi))
    return min(expected, largest) + spread * math.sqrt(horizon * error) * tail


def largest_bias(world: LatentAR, s: int, tail: float) -> float:
    """Return a bound on |e₁ᵀ(Γ−ΓKC)^s z̃_t|: its mean plus `tail` standard deviations, with Var z̃ ≤ S − P."""
    row, cov = bias_row(world, s), world.stationary_cov - steady_state(world).cov
    return abs(float(row.sum()) * world.stationary_mean) + tail * math.sqrt(max(float(row @ cov @ row), 0.0))


def printed_first_term(world: LatentAR, horizon: int, delta: float) -> tuple[float, str]:
    """Return 8 max‖c_a‖ √(σ_z²/(1 − σ_max(Γ)²)) √(2(k + log(3/δ))) T, or infinity and the reason."""
    singular = float(np.linalg.norm(world.system.gamma, 2))
    if singular >= 1.0:
        return math.inf, f"σ_max(Γ) = {singular:.3f} ≥ 1, and the bound divides by 1 − σ_max(Γ)²"
    size = math.sqrt(world.sigma_z**2 / (1.0 - singular**2) * 2.0 * (world.k + math.log(3.0 / delta)))
    return 8.0 * float(np.abs(world.beta).max()) * size * horizon, ""


def learning_term(
    world: LatentAR, s: int, horizon: int, bias: float, delta: float, ridge: float, form: str, largest_gap: float = 0.0
) -> float:
    """Return a bound on Σ 2β_a‖Φ_t‖_{V⁻¹} from the elliptical potential, with the radius after `horizon` rows.

    "printed": 2 radius √(T Σ‖Φ_t‖²), Σ‖Φ_t‖² ≤ (L/λ)/log(1 + L/λ) · log det. "corrected": a gap is ≤ `largest_gap`, so
    Σ min(gap, 2 radius ‖Φ_t‖) ≤ max(gap, 2 radius) √(T Σ min(1, ‖Φ_t‖²)), and Σ min(1, ‖Φ_t‖²) ≤ 2 log det. Here
    log det is Σ_a log(det V_a/λ^d) ≤ |A|d log(1 + TL/(λd|A|)).
    """
    d, bound = 2 * s * world.arms + 1, context_bound(world, s, delta / 2.0, horizon) / ridge
    radius = max(
        confidence_radius(
            world,
            s,
            rows=horizon,
            horizon=horizon,
            squared_bias=horizon * (world.beta[arm] * bias) ** 2,
            tau=math.sqrt(d),
            arm=arm,
            delta=delta,
            ridge=ridge,
            form=form,
        )
        for arm in range(world.arms)
    )
    log_det = world.arms * d * math.log1p(horizon * bound / (d * world.arms))
    if form == "printed":
        return 2.0 * radius * math.sqrt(horizon * bound / math.log1p(bound) * log_det)
    return max(2.0 * radius, largest_gap) * math.sqrt(2.0 * horizon * log_det)
