"""Lemmas 3 and 4: the confidence radius of LARL's regression, and the bound on its contexts."""

import math
from functools import lru_cache

import numpy as np

from larl._core.validation import integer, number, one_of
from larl.theory.reduction import noise_scale, reward_parameters, validate_bound_arguments, validate_scalar_world
from larl.worlds.latent_ar import LatentAR


def context_bound(world: LatentAR, s: int, delta: float, horizon: int) -> float:
    """Return L such that ‖Φ_t(s)‖² ≤ L for all t ≤ horizon with probability ≥ 1 − delta (Lemma 4, corrected).

    Each reward is normal. Its variance includes Var z_t, and the union bound covers all steps and all arms, because the
    played arm depends on the past: |r_t| ≤ |μ_a + β_a E z_t| + √(2(β_a² Var z_t + sd_a²) log(2T|A|/δ)), the largest
    over arms and steps, and L = s(r² + 1) + 1.

    Parameters
    ----------
    world : LatentAR
        The world.
    s : int, >= 0
        Number of past steps in the context.
    delta : float, in (0, 1)
        Probability that the bound fails.
    horizon : int, >= 1
        Number of steps.

    Returns
    -------
    float

    Examples
    --------
    >>> import larl
    >>> round(larl.theory.context_bound(larl.worlds.paper(1), s=1, delta=0.05, horizon=200), 1)
    1957.4
    """
    world = validate_scalar_world("context_bound", world)
    return _context_bound(world, *validate_bound_arguments("context_bound", s, delta, horizon))


@lru_cache(maxsize=256)
def _context_bound(world: LatentAR, s: int, delta: float, horizon: int) -> float:
    """Compute `context_bound` once per set of arguments."""
    mean, cov = world.start_moments
    beta, mu, tail = np.array(world.beta), np.array(world.mu), 2.0 * math.log(2.0 * horizon * world.arms / delta)
    means, variances = list(mean), list(np.diag(cov))
    state_mean, state_cov = mean[::-1], cov[::-1, ::-1]
    system = world.system
    for _ in range(world.k, horizon):
        state_mean = system.gamma @ state_mean + system.drift
        state_cov = system.gamma @ state_cov @ system.gamma.T + system.noise
        means.append(state_mean[0])
        variances.append(state_cov[0, 0])
        if np.allclose(state_cov, world.stationary_cov, rtol=1e-12) and np.allclose(state_mean, world.stationary_mean):
            break
    centre = np.abs(mu + np.outer(means, beta))
    largest = float((centre + np.sqrt(tail * (np.outer(variances, beta**2) + world.sd**2))).max())
    return float(s * (largest**2 + 1.0) + 1.0)


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
    """Return the radius β_{a,t}(δ) of arm a's confidence ellipsoid after `rows` rows (Lemma 3).

    "printed" is the paper's: R√(d log((1 + nL/λ)/(δ/2))) + √λ‖θ_a‖ + τ√Σb². It holds for one arm. "corrected" holds for
    all arms at once: R√(d log(1 + nL/(λd)) + 2 log(2|A|/δ)) + √λ‖θ_a‖ + √Σb². It needs no τ, as ‖V^{−½}Xᵀb‖ ≤ ‖b‖.

    Parameters
    ----------
    world : LatentAR
        The world.
    s : int, >= 0
        Number of past steps in the context.
    rows : int, >= 0
        n, the number of rows in the arm's regression.
    horizon : int, >= 1
        Number of steps.
    squared_bias : float, >= 0
        Σb², the sum of the squared biases of those rows.
    tau : float, >= 0, default 1.0
        Factor of the bias in the printed form.
    arm : int, 0 to arms − 1, default 0
        The arm a.
    delta : float, in (0, 1), default 0.05
        Probability that the ellipsoid misses θ_a.
    ridge : float, > 0, default 1.0
        λ, the penalty of the regression.
    form : {"corrected", "printed"}, default "corrected"
        Which formula to use.

    Returns
    -------
    float

    Examples
    --------
    >>> import larl
    >>> radius = larl.theory.confidence_radius(larl.worlds.paper(1), s=1, rows=50, horizon=200, squared_bias=0.1)
    >>> round(radius, 2)
    13.13
    """
    function = "confidence_radius"
    world, form = validate_scalar_world(function, world), one_of("corrected", "printed")(function, "form", form)
    s, delta, horizon = validate_bound_arguments(function, s, delta, horizon)
    rows, arm = integer(0)(function, "rows", rows), integer(0, world.arms - 1)(function, "arm", arm)
    squared_bias, tau = number(0.0)(function, "squared_bias", squared_bias), number(0.0)(function, "tau", tau)
    ridge = number(above=0.0)(function, "ridge", ridge)
    d, bound = 2 * s * world.arms + 1, context_bound(world, s, delta / 2.0, horizon)
    if form == "printed":
        log_term = d * math.log((1.0 + rows * bound / ridge) / (delta / 2.0))
    else:
        log_term = d * math.log(1.0 + rows * bound / (ridge * d)) + 2.0 * math.log(2.0 * world.arms / delta)
    theta = float(np.linalg.norm(reward_parameters(world, s)[arm]))
    bias = (tau if form == "printed" else 1.0) * math.sqrt(squared_bias)
    return float(noise_scale(world)[arm]) * math.sqrt(log_term) + math.sqrt(ridge) * theta + bias
