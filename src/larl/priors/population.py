"""The distribution of a model's parameters over units: a hierarchical normal model, fitted by Laplace's method.

θ_i, the coordinates of unit i, are N(m, diag s); m is N(m₀, (1 − ρ)S₀), and the prior of s is worth ν units of variance
ρS₀, where N(m₀, S₀) is the default prior of Auto. So without units, the distribution of a new unit is that prior. Each
iteration expands the log-likelihood of every unit to second order, updates m and s by the EM algorithm, which has a
closed form given the expansions, and moves every unit to its new conditional mode.

All coordinates are in units of the default prior: u = (θ − m₀)/√S₀.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from larl.policies.auto.layout import BINARY, ModelKind
from larl.policies.auto.parameters import prior_of
from larl.priors.units import MAX_ALL_SIGNS, Floats, Likelihood, Unit, evaluate, sign_patterns

SPREAD_SHARE = 0.1  # ρ, the share of the default prior's variance that is between units
SPREAD_UNITS = 2.0  # ν, units that the prior of s is worth
ITERATIONS = 8
START_ITERATIONS = 3  # before the best start is chosen
EM_ROUNDS, LAST_EM_ROUNDS = 2, 20  # of each iteration, and of the last one
SAME_SIGN = 0.01, 0.99  # limits of the probability that two arms have the same sign of β
MIN_SPREAD, MAX_SPREAD = 1e-4, 1.5  # of s
MAX_MEAN_SHIFT = 1.0  # of each coordinate of m in one iteration
STEP = 0.1  # of the second differences
CONVERGED = 0.05  # largest change of a unit's mode in the last iteration
MAX_SHIFT = 4.0  # of a unit in one iteration, as a distance
MAX_ALL_STARTS = 4  # order up to which all patterns of signs are starts, if there are more than two
FRACTIONS = np.array([0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
LEVEL_STEP = 0.1  # of the differences in expected levels, relative to the spread of rewards
LEVEL_DAMPING = 0.6


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


class MovedUnits(NamedTuple):
    """Units after a step towards their conditional modes."""

    u: Floats
    shock_variance: Floats
    log_joint: float  # log density of all rewards, units and m, up to terms that depend only on s


class ModelFit(NamedTuple):
    """The fit of one model."""

    kind: ModelKind
    population: PopulationFit
    log_evidence: float
    units: Floats  # (units, coordinates) conditional mode of each unit
    signs: Floats  # (units, arms)
    same_sign: Floats  # (arms,) probability of the sign of the first arm
    level: Floats  # (arms,) expected levels
    shock_variance: Floats  # (units,) σ² at the mode


def default_prior(kind: ModelKind) -> tuple[Floats, Floats]:
    """Return mean and sd of the default prior of a model's coordinates."""
    mean, sd = np.array(prior_of(kind).coordinates).T
    return mean, sd


def stencil(size: int) -> Floats:
    """Return the points of the second differences in units of their step: 0, ±e_j, and ±(e_j + e_k)."""
    eye = np.eye(size)
    pairs = np.array([eye[j] + eye[k] for j in range(size) for k in range(j)]).reshape(-1, size)
    return np.vstack([np.zeros((1, size)), eye, -eye, pairs, -pairs])


def expand(values: Floats, u: Floats) -> Expansion:
    """Return the expansion around u from the log-likelihood at the points of `stencil`."""
    size = u.size
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


def log_evidence(log_joint: float, expansions: list[Expansion], fit: PopulationFit) -> float:
    """Return the logarithm of the evidence by Laplace's method.

    `log_joint` is Σ_i [ℓ_i(u_i) − ½(u_i − m)ᵀS⁻¹(u_i − m)] − ½mᵀm/(1 − ρ) where the fit ended. If that is not the
    maximum, it is too low, and so is the evidence.
    """
    size, n = fit.spread.size, len(expansions)
    root = np.sqrt(fit.spread)
    scaled = [np.eye(size) + root[:, None] * each.curvature * root for each in expansions]
    evidence = log_joint - 0.5 * sum(float(np.linalg.slogdet(each)[1]) for each in scaled)
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


class Fitter:
    """The iterations of one model's fit, from one start."""

    def __init__(self, kind: ModelKind, units: list[Unit], u: Floats, signs: Floats, level: Floats) -> None:
        self.kind, self.units, self.level = kind, units, level.copy()
        self.m0, self.sd0 = default_prior(kind)
        self.u, self.signs, self.mean = u.copy(), signs.copy(), u.mean(axis=0)
        self.same_sign, self.shock_variance = np.full(kind.arms, 0.5), np.ones(len(units))
        self.population = PopulationFit(self.mean, np.eye(self.m0.size), np.ones(self.m0.size))
        self.log_evidence = -math.inf
        self.change = math.inf  # largest change of a coordinate in the last iteration
        self.spread = np.full(self.m0.size, SPREAD_SHARE)
        self.offsets = STEP * stencil(self.m0.size)
        rewards = np.concatenate([unit.history.reward[unit.history.arm >= 0] for unit in units])
        self.scale = 1.0 if kind.rewards == BINARY else max(float(rewards.std()), 1e-12)

    def theta(self, u: Floats) -> Floats:
        """Return coordinates in their own units."""
        return np.asarray(self.m0 + self.sd0 * u)

    def evaluate(self, i: int, u: Floats) -> Likelihood:
        """Return the likelihood of unit i at several points."""
        signs = np.tile(self.signs[i], (len(u), 1))
        return evaluate(self.kind, self.units[i], self.theta(u), signs, self.level)

    def iterate(self, rounds: int, has_free_signs: bool) -> None:
        """Expand all likelihoods, update the population by EM, and move every unit to its conditional mode."""
        if has_free_signs:
            self.choose_signs()
        expansions = [expand(self.evaluate(i, u + self.offsets).value, u) for i, u in enumerate(self.u)]
        fitted = fit_population(expansions, self.spread, rounds)
        self.spread = fitted.spread
        # m of the expansions can be far from the optimum where they do not hold. So it is compared with safer steps.
        shift = np.clip(fitted.mean - self.mean, -MAX_MEAN_SHIFT, MAX_MEAN_SHIFT)
        average = self.u.sum(axis=0) / (len(self.u) + self.spread / (1.0 - SPREAD_SHARE))
        means = [self.mean + shift, self.mean + 0.3 * shift, average, self.mean]
        found = [self.move_units(expansions, mean) for mean in means]
        best = int(np.argmax([each.log_joint for each in found]))
        self.change = float(max(np.abs(found[best].u - self.u).max(), np.abs(means[best] - self.mean).max()))
        self.mean, self.u, self.shock_variance = means[best], found[best].u, found[best].shock_variance
        self.population = fitted._replace(mean=self.mean)
        self.log_evidence = log_evidence(found[best].log_joint, expansions, self.population)
        self.fit_levels()

    def move_units(self, expansions: list[Expansion], mean: Floats) -> "MovedUnits":
        """Return all units on the way to their conditional modes, each at the best of some points."""
        u, variance, total = self.u.copy(), self.shock_variance.copy(), -0.5 * float(mean @ mean) / (1.0 - SPREAD_SHARE)
        for i, expansion in enumerate(expansions):
            shift = conditional_mode(expansion, mean, self.spread) - u[i]
            shift *= min(1.0, MAX_SHIFT / max(float(np.linalg.norm(shift)), 1e-12))
            line = u[i] + FRACTIONS[:, None] * shift
            likelihood = self.evaluate(i, line)
            value = likelihood.value - 0.5 * ((line - mean) ** 2 / self.spread).sum(axis=1)
            best = int(np.where(np.isfinite(value), value, -np.inf).argmax())
            u[i], variance[i], total = line[best], likelihood.shock_variance[best], total + float(value[best])
        return MovedUnits(u, variance, total)

    def choose_signs(self) -> None:
        """Set the signs of β of every unit to the most likely ones."""
        log_odds = np.log(self.same_sign) - np.log1p(-self.same_sign)
        total = np.ones(self.kind.arms)
        for i, unit in enumerate(self.units):
            patterns = sign_patterns(self.kind.arms)
            if self.kind.arms > MAX_ALL_SIGNS:
                patterns = patterns * self.signs[i] * self.signs[i, 0]
            theta = np.tile(self.theta(self.u[i]), (len(patterns), 1))
            values = evaluate(self.kind, unit, theta, patterns, self.level).value + 0.5 * patterns[:, 1:] @ log_odds[1:]
            weight = np.exp(values - values.max())
            self.signs[i] = patterns[values.argmax()]
            total += weight @ (patterns > 0.0) / weight.sum()
        self.same_sign = np.clip(total / (2.0 + len(self.units)), *SAME_SIGN)

    def fit_levels(self) -> None:
        """Move the expected levels by a Newton step for each arm, as if one more unit had expected levels of 0.

        The likelihood of continuous rewards depends only on differences of levels, so that of the first arm stays 0.
        """
        step, level = LEVEL_STEP * self.scale, self.level.copy()
        for arm in range(0 if self.kind.rewards == BINARY else 1, self.kind.arms):
            slope = curvature = 0.0
            for i, unit in enumerate(self.units):
                theta, signs = self.theta(self.u[i : i + 1]), self.signs[i : i + 1]
                shifted = [self.level + step * shift * np.eye(self.kind.arms)[arm] for shift in (-1.0, 0.0, 1.0)]
                below, here, above = (evaluate(self.kind, unit, theta, signs, each).value[0] for each in shifted)
                slope += (above - below) / (2.0 * step)
                curvature += max(0.0, (2.0 * here - below - above) / step**2)
            one = curvature / len(self.units)
            if one > 0.0:
                level[arm] += LEVEL_DAMPING * (slope - one * self.level[arm]) / (curvature + one)
        self.level = level


def starts(kind: ModelKind, units: list[Unit], smaller: ModelFit | None) -> list[Fitter]:
    """Return where a fit starts: the default prior with each pattern of signs, and the fit of a smaller order.

    With three arms or more, large orders use only the most common signs of the smaller order: their fits take long.
    """
    shape = (len(units), kind.p + kind.arms + 4)
    patterns = sign_patterns(kind.arms)
    if smaller is not None and kind.p > MAX_ALL_STARTS and kind.arms > 2:
        relative = (smaller.signs * smaller.signs[:, :1]).mean(axis=0)
        patterns = np.where(relative >= 0.0, 1.0, -1.0)[None, :]
    found = [
        Fitter(kind, units, np.zeros(shape), np.tile(signs, (len(units), 1)), np.zeros(kind.arms)) for signs in patterns
    ]
    if smaller is not None:
        m0, sd0 = default_prior(kind)
        p, theta = smaller.kind.p, np.tile(m0, (len(units), 1))
        theta[:, :p], theta[:, kind.p :] = smaller.units[:, :p], smaller.units[:, p:]
        found.append(Fitter(kind, units, (theta - m0) / sd0, smaller.signs, smaller.level))
    return found


def fit_model(
    kind: ModelKind, units: list[Unit], smaller: ModelFit | None = None, advance: Callable[[], None] = lambda: None
) -> ModelFit:
    """Fit the distribution of a model's parameters over units; `advance` is called after the starts and iterations.

    `smaller` is the fit of a smaller order, from which one of the starts is made.
    """
    fitters = starts(kind, units, smaller)
    for fitter in fitters:
        for _ in range(START_ITERATIONS):
            fitter.iterate(EM_ROUNDS, has_free_signs=False)
    best = max(fitters, key=lambda fitter: fitter.log_evidence)
    advance()
    for _ in range(ITERATIONS):
        best.iterate(EM_ROUNDS, has_free_signs=True)
        advance()
        if best.change < CONVERGED:
            break
    best.iterate(LAST_EM_ROUNDS, has_free_signs=True)
    return ModelFit(
        kind,
        best.population,
        best.log_evidence,
        best.theta(best.u),
        best.signs,
        best.same_sign,
        best.level,
        best.shock_variance,
    )
