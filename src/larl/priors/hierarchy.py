"""A hierarchical normal model of units whose log-likelihoods are expanded to second order.

u_i, the coordinates of unit i, are N(m, diag s); m is N(0, 1 − ρ) in each coordinate, and the prior of s is worth ν
units of variance ρ. So without units, the distribution of a new unit is N(0, 1): the default prior, in its own units.
"""

import math
from typing import NamedTuple

import numpy as np

from larl.priors.units import Floats

SPREAD_SHARE = 0.1  # ρ, the share of the default prior's variance that is between units
SPREAD_UNITS = 2.0  # ν, units that the prior of s is worth
MIN_SPREAD, MAX_SPREAD = 1e-4, 1.5  # of s
STEP = 0.1  # of the second differences


class Expansion(NamedTuple):
    """The log-likelihood of a unit to second order: constant + h·u − ½u·Λu."""

    constant: float
    h: Floats
    curvature: Floats  # Λ, with no negative eigenvalue


class PopulationFit(NamedTuple):
    """The fitted distribution of u over units."""

    mean: Floats  # m
    mean_cov: Floats  # posterior covariance of m
    spread: Floats  # s, variances between units


def stencil(size: int) -> Floats:
    """Return the points of the second differences in units of their step: 0, ±e_j, and ±(e_j + e_k)."""
    eye = np.eye(size)
    pairs = np.array([eye[j] + eye[k] for j in range(size) for k in range(j)]).reshape(-1, size)
    return np.vstack([np.zeros((1, size)), eye, -eye, pairs, -pairs])


def expand(values: Floats, u: Floats) -> Expansion:
    """Return the expansion around u from the log-likelihood at the points of `stencil`.

    A point at which the log-likelihood is not finite counts as the lowest of the others: far from the prior, the
    variances of a filter can overflow.
    """
    size, is_finite = u.size, np.isfinite(values)
    values = np.where(is_finite, values, values[is_finite].min() if is_finite.any() else 0.0)
    centre, up, down = values[0], values[1 : size + 1], values[size + 1 : 2 * size + 1]
    pairs = values[2 * size + 1 :].reshape(2, -1).sum(axis=0)
    gradient, hessian = (up - down) / (2.0 * STEP), np.diag((up + down - 2.0 * centre) / STEP**2)
    rows, columns = np.tril_indices(size, -1)
    single = up + down
    mixed = (pairs - single[rows] - single[columns] + 2.0 * centre) / (2.0 * STEP**2)
    hessian[rows, columns] = hessian[columns, rows] = mixed
    eigenvalues, vectors = np.linalg.eigh(-hessian)
    curvature = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    h = gradient + curvature @ u
    return Expansion(float(centre - h @ u + 0.5 * u @ curvature @ u), h, curvature)


def fit_population(expansions: list[Expansion], spread: Floats, rounds: int) -> PopulationFit:
    """Return m, its covariance and s after some rounds of EM, from a first value of s."""
    size, n = spread.size, len(expansions)
    h = np.array([each.h for each in expansions]).reshape(n, size)
    curvature = np.array([each.curvature for each in expansions]).reshape(n, size, size)
    for _ in range(rounds):
        within, mean_cov, mean = moments(curvature, h, spread)
        deviation = np.einsum("nij,nj->ni", within, h - curvature @ mean)
        gain = within @ curvature
        variance = np.einsum("nii->ni", within) + np.einsum("nij,jk,nik->ni", gain, mean_cov, gain)
        squares = (deviation**2 + variance).sum(axis=0)
        spread = np.clip((SPREAD_UNITS * SPREAD_SHARE + squares) / (SPREAD_UNITS + n), MIN_SPREAD, MAX_SPREAD)
    _, mean_cov, mean = moments(curvature, h, spread)
    return PopulationFit(mean, mean_cov, spread)


def log_unit_evidence(log_joint: float, expansions: list[Expansion], spread: Floats) -> float:
    """Return Σ_i log ∫ exp ℓ_i(u) N(u; m, S) du by Laplace's method.

    `log_joint` is Σ_i [ℓ_i(u_i) − ½(u_i − m)ᵀS⁻¹(u_i − m)] where the fit ended. If that is not the maximum, it is too
    low, and so is the evidence.
    """
    root = np.sqrt(spread)
    scaled = [np.eye(spread.size) + root[:, None] * each.curvature * root for each in expansions]
    return log_joint - 0.5 * sum(float(np.linalg.slogdet(each)[1]) for each in scaled)


def log_evidence(unit_evidence: float, n: int, fit: PopulationFit) -> float:
    """Return the logarithm of the evidence of n units, with m and s integrated out by Laplace's method.

    `unit_evidence` is Σ_i log ∫ exp ℓ_i(u) N(u; m, S) du at the fitted m and s.
    """
    size = fit.spread.size
    evidence = unit_evidence - 0.5 * float(fit.mean @ fit.mean) / (1.0 - SPREAD_SHARE)
    evidence += 0.5 * (float(np.linalg.slogdet(fit.mean_cov)[1]) - size * math.log(1.0 - SPREAD_SHARE))
    prior = -math.lgamma(0.5 * SPREAD_UNITS) + 0.5 * SPREAD_UNITS * math.log(0.5 * SPREAD_UNITS * SPREAD_SHARE)
    evidence += size * (
        prior + 0.5 * math.log(4.0 * math.pi / (SPREAD_UNITS + n))
    )  # of log s, whose sd is √(2/(ν + n))
    return evidence - 0.5 * SPREAD_UNITS * float((np.log(fit.spread) + SPREAD_SHARE / fit.spread).sum())


def moments(curvature: Floats, h: Floats, spread: Floats) -> tuple[Floats, Floats, Floats]:
    """Return D_i = (S⁻¹ + Λ_i)⁻¹ of each unit, and the posterior covariance and mean of m."""
    root = np.sqrt(spread)
    inner = np.linalg.inv(np.eye(spread.size) + root[:, None] * curvature * root)
    within = root[:, None] * inner * root
    shrink = within / spread[:, None]  # S⁻¹D_i = (I + Λ_iS)⁻¹
    precision = np.eye(spread.size) / (1.0 - SPREAD_SHARE) + (shrink @ curvature).sum(axis=0)
    mean_cov = np.linalg.inv(0.5 * (precision + precision.T))
    return within, mean_cov, mean_cov @ np.einsum("nij,nj->i", shrink, h)


def conditional_mode(expansion: Expansion, mean: Floats, spread: Floats) -> Floats:
    """Return the mode of a unit's u, given m and s."""
    return np.asarray(np.linalg.solve(np.diag(1.0 / spread) + expansion.curvature, mean / spread + expansion.h))
