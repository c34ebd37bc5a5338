"""Theorem 1: an upper bound on LARL's regret."""

import math
from typing import NamedTuple

import numpy as np

from larl._core.validation import number, one_of
from larl.statespace.steady_state import steady_state
from larl.theory.confidence import confidence_radius, context_bound
from larl.theory.reduction import bias_row, validate_bound_arguments, validate_scalar_world
from larl.worlds.latent_ar import LatentAR


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
        Value of ``delta`` to pass to ``LARL(s, radius="theory", delta=…)``.
    reason : str
        Why the bound is infinite; empty if it is finite.

    Examples
    --------
    >>> import larl
    >>> bound = larl.theory.regret_bound(larl.worlds.paper(1), s=1, horizon=200)
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
    """Return a bound that the regret of LARL(s, radius="theory", delta=bound.delta) exceeds with probability ≤ delta.

    This is Theorem 1, computed before the trial. The first term of "printed" uses ‖P‖ ≤ σ_z²/(1 − σ_max(Γ)²), which is
    infinite for every k ≥ 2. "corrected" uses P₁₁ of the Riccati equation and a union bound over steps. Both share the
    other terms: the printed radius of Lemma 3, which this LARL uses, with the elliptical potential and the distribution
    of z̃. So "printed" is not the theorem as printed, whose other terms are known only after the run. δ is divided
    equally between 4 events and one event per arm. The bound is far above `trivial` at every horizon.

    Parameters
    ----------
    world : LatentAR
        The world.
    s : int, >= 0
        Number of past steps in the context.
    horizon : int, >= 1
        Number of steps.
    delta : float, in (0, 1), default 0.05
        Probability that the bound fails.
    ridge : float, > 0, default 1.0
        Penalty of the regression.
    form : {"corrected", "printed"}, default "corrected"
        Which first term to use.

    Returns
    -------
    RegretBound

    Raises
    ------
    InvalidValue
        If the world is not a LatentAR or its filter has no steady state.

    Examples
    --------
    >>> import larl
    >>> bound = larl.theory.regret_bound(larl.worlds.paper(1), s=1, horizon=200)
    >>> round(bound.total), round(bound.trivial)
    (607512, 4261)
    """
    world = validate_scalar_world("regret_bound", world)
    s, delta, horizon = validate_bound_arguments("regret_bound", s, delta, horizon)
    ridge = number(above=0.0)("regret_bound", "ridge", ridge)
    form = one_of("corrected", "printed")("regret_bound", "form", form)
    beta, steady, delta_per_event = np.array(world.beta), steady_state(world), delta / (4.0 + world.arms)
    tail = math.sqrt(2.0 * math.log(2.0 * horizon / delta_per_event))
    largest_bias = _largest_bias(world, s, tail)
    largest_z = abs(world.stationary_mean) + tail * math.sqrt(world.stationary_var)
    largest_step_regret = float(np.ptp(world.mu) + np.ptp(beta) * largest_z)
    reason = ""
    if form == "corrected":
        nonstationarity = horizon * float(np.ptp(beta)) * tail * math.sqrt(float(steady.cov[0, 0]))
    else:
        nonstationarity, reason = _printed_first_term(world, horizon, delta)
    return RegretBound(
        nonstationarity=nonstationarity,
        learning=_learning_term(world, s, horizon, largest_bias, 2.0 * delta_per_event, ridge),
        bias=2.0 * float(np.abs(beta).max()) * largest_bias * horizon,
        start=min(s, horizon) * largest_step_regret,
        trivial=horizon * largest_step_regret,
        delta=2.0 * delta_per_event,
        reason=reason,
    )


def _largest_bias(world: LatentAR, s: int, tail: float) -> float:
    """Return a bound on |e₁ᵀ(Γ−ΓKC)^s z̃_t|: its mean plus `tail` standard deviations, with Var z̃ = S − P."""
    row, cov = bias_row(world, s), world.stationary_cov - steady_state(world).cov
    return abs(float(row.sum()) * world.stationary_mean) + tail * math.sqrt(max(float(row @ cov @ row), 0.0))


def _printed_first_term(world: LatentAR, horizon: int, delta: float) -> tuple[float, str]:
    """Return 8 max‖c_a‖ √(σ_z²/(1 − σ_max(Γ)²)) √(2(k + log(3/δ))) T, or infinity and the reason."""
    singular = float(np.linalg.norm(world.system.gamma, 2))
    if singular >= 1.0:
        return math.inf, f"σ_max(Γ) = {singular:.3f} ≥ 1, and the bound divides by 1 − σ_max(Γ)²"
    size = math.sqrt(world.sigma_z**2 / (1.0 - singular**2) * 2.0 * (world.k + math.log(3.0 / delta)))
    return 8.0 * float(np.abs(world.beta).max()) * size * horizon, ""


def _learning_term(world: LatentAR, s: int, horizon: int, largest_bias: float, delta: float, ridge: float) -> float:
    """Return 2 β_T √(T Σ‖Φ_t‖²).

    The elliptical potential bounds Σ‖Φ_t‖² by (L/λ)/log(1 + L/λ) · |A|d log(1 + TL/(λd|A|)).
    """
    d, bound = 2 * s * world.arms + 1, context_bound(world, s, delta / 2.0, horizon) / ridge
    radius = max(
        confidence_radius(
            world,
            s,
            rows=horizon,
            horizon=horizon,
            squared_bias=horizon * (world.beta[arm] * largest_bias) ** 2,
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
