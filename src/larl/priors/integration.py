"""The population's distribution with the parameters of every unit integrated out, by importance sampling.

Laplace's method puts every unit at its mode. In short logs, noise and partial autocorrelations are hardly told apart:
the distribution of a unit's parameters is skewed, its mode is not its mean, and the population's mean inherits the
difference from every unit. Here each round draws from a t distribution around every unit's mode, weights the draws, and
updates m by scoring and s by EM from their moments. All rounds use the same underlying draws, so they converge.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from larl.priors.hierarchy import (
    MAX_SPREAD,
    MIN_SPREAD,
    SPREAD_SHARE,
    SPREAD_UNITS,
    STEP,
    Expansion,
    PopulationFit,
    conditional_mode,
    expand,
    moments,
    stencil,
)
from larl.priors.units import Floats

ROUNDS = 16
DRAWS = 256  # for each unit, in pairs that are symmetric around the mode
FREEDOM = 6.0  # degrees of freedom of the t distribution
WIDTH = 1.2  # its squared scale, relative to the covariance at the mode
MIN_EFFECTIVE = 10.0  # effective number of draws below which the moments at the mode are used
LARGEST, TINY = 1e300, 1e-300  # limits of finite results if no draw has a finite likelihood
MAX_MODE_SHIFT = 0.5  # of each coordinate of a unit's mode in one round
MAX_LOG_SPREAD_SHIFT = 0.4
CONVERGED = 0.01  # largest change of m and of log s in a round
LogLikelihood = Callable[[int, Floats], Floats]  # of a unit, by its number, at points (·, coordinates)


class Integrated(NamedTuple):
    """The population, and what is known about its units given m and s."""

    population: PopulationFit
    units: Floats  # (units, coordinates) posterior means
    log_evidence: float  # Σ_i log ∫ exp ℓ_i(u) N(u; m, S) du
    effective: Floats  # (units,) effective numbers of draws


class UnitMoments(NamedTuple):
    """Moments of u − m of one unit."""

    mean: Floats
    square: Floats  # expected squares
    log_evidence: float
    effective: float


class Draws(NamedTuple):
    """Draws from the t distribution with covariance scale 1."""

    points: Floats  # (draws, coordinates)
    log_density: Floats


def make_draws(size: int, units: int) -> list[Draws]:
    """Return the draws for each unit, from a fixed stream."""
    generator = np.random.default_rng(0)
    degrees, pairs = FREEDOM + size, DRAWS // 2
    constant = math.lgamma(degrees / 2.0) - math.lgamma(FREEDOM / 2.0) - 0.5 * size * math.log(FREEDOM * math.pi)
    found = []
    for _ in range(units):
        normal = generator.standard_normal((pairs, size))
        half = normal / np.sqrt(generator.chisquare(FREEDOM, (pairs, 1)) / FREEDOM)
        points = np.vstack([half, -half])
        log_density = constant - 0.5 * degrees * np.log1p((points**2).sum(axis=1) / FREEDOM)
        found.append(Draws(points, log_density))
    return found


def unit_moments(
    log_likelihood: Callable[[Floats], Floats], mode: Floats, precision: Floats, fit: PopulationFit, draws: Draws
) -> UnitMoments:
    """Return the moments of a unit's u − m, given m and s; `precision` is that at the mode."""
    factor = np.linalg.cholesky(precision / WIDTH)
    u = mode + np.linalg.solve(factor.T, draws.points.T).T
    deviation = u - fit.mean
    log_prior = -0.5 * (deviation**2 / fit.spread).sum(axis=1) - 0.5 * float(np.log(2.0 * math.pi * fit.spread).sum())
    log_weight = log_likelihood(u) + log_prior - draws.log_density - float(np.log(np.diag(factor)).sum())
    log_weight = np.where(np.isfinite(log_weight), log_weight, -np.inf)  # far draws can overflow
    top = max(float(log_weight.max()), -LARGEST)
    weight = np.exp(log_weight - top)
    total = max(float(weight.sum()), TINY)
    effective = total**2 / max(float((weight**2).sum()), TINY)
    log_evidence = top + math.log(total / weight.size)
    if effective < MIN_EFFECTIVE:
        centre = mode - fit.mean
        return UnitMoments(centre, centre**2 + np.diag(np.linalg.inv(precision)), log_evidence, effective)
    weight /= total
    return UnitMoments(weight @ deviation, weight @ deviation**2, log_evidence, effective)


def integrate_units(
    log_likelihood: LogLikelihood, units: Floats, start: PopulationFit, advance: Callable[[], None] = lambda: None
) -> Integrated:
    """Return the population that explains the rewards best, from modes of the units and a first population.

    `advance` is called `ROUNDS` times.
    """
    fit, modes, change = start, units.copy(), math.inf
    draws, offsets = make_draws(units.shape[1], len(units)), STEP * stencil(units.shape[1])
    for _ in range(ROUNDS):
        if change >= CONVERGED:
            expansions, found = [], []
            for i, each in enumerate(draws):
                expansion = expand(log_likelihood(i, modes[i] + offsets), modes[i])
                mode = conditional_mode(expansion, fit.mean, fit.spread)
                modes[i] = np.clip(mode, modes[i] - MAX_MODE_SHIFT, modes[i] + MAX_MODE_SHIFT)
                precision = np.diag(1.0 / fit.spread) + expansion.curvature
                found.append(unit_moments(partial(log_likelihood, i), modes[i], precision, fit, each))
                expansions.append(expansion)
            after, change = update_population(fit, expansions, found)
            result = Integrated(
                population=fit._replace(mean_cov=after.mean_cov),
                units=fit.mean + np.array([each.mean for each in found]),
                log_evidence=sum(each.log_evidence for each in found),
                effective=np.array([each.effective for each in found]),
            )
            fit = after
        advance()
    return result


def update_population(
    fit: PopulationFit, expansions: list[Expansion], found: list[UnitMoments]
) -> tuple[PopulationFit, float]:
    """Return the population after one step, with the covariance of the mean before it, and the largest change."""
    n, size = len(found), fit.spread.size
    curvature = np.array([each.curvature for each in expansions])
    within, mean_cov, _ = moments(curvature, np.zeros((n, size)), fit.spread)
    means = np.array([each.mean for each in found])
    gradient = means.sum(axis=0) / fit.spread - fit.mean / (1.0 - SPREAD_SHARE)
    shift, limit = mean_cov @ gradient, np.sqrt(fit.spread)
    shift *= min(1.0, 1.5 * float((limit / np.maximum(np.abs(shift), 1e-12)).min()))
    shift = np.clip(shift, -limit, limit)
    gain = within @ curvature
    squares = np.array([each.square for each in found]) + np.einsum("nij,jk,nik->ni", gain, mean_cov, gain)
    spread = (SPREAD_UNITS * SPREAD_SHARE + squares.sum(axis=0)) / (SPREAD_UNITS + n)
    # EM moves s slowly, so its step is doubled.
    log_shift = np.clip(2.0 * np.log(spread / fit.spread), -MAX_LOG_SPREAD_SHIFT, MAX_LOG_SPREAD_SHIFT)
    spread = np.clip(fit.spread * np.exp(log_shift), MIN_SPREAD, MAX_SPREAD)
    change = max(float(np.abs(shift).max()), float(np.abs(np.log(spread / fit.spread)).max()))
    return PopulationFit(fit.mean + shift, mean_cov, spread), change
