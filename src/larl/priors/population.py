"""The distribution of a model's parameters over units: the hierarchical normal model of hierarchy.py.

Its coordinates are u = (θ − m₀)/√S₀, where N(m₀, S₀) is the default prior of Auto. Each iteration expands the
log-likelihood of every unit to second order, updates m and s by the EM algorithm, which has a closed form given the
expansions, and moves every unit to its new conditional mode (Laplace's method). In the end, the units are integrated
out: see integration.py.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from larl.policies.auto.layout import BINARY, ModelKind
from larl.policies.auto.parameters import prior_of
from larl.priors.hierarchy import (
    SPREAD_SHARE,
    STEP,
    Expansion,
    PopulationFit,
    conditional_mode,
    expand,
    fit_population,
    log_evidence,
    log_unit_evidence,
    stencil,
)
from larl.priors.integration import ROUNDS, integrate_units
from larl.priors.units import MAX_ALL_SIGNS, Floats, Likelihood, Unit, evaluate, sign_patterns

ITERATIONS = 8
START_ITERATIONS = 3  # before the best start is chosen
EM_ROUNDS, LAST_EM_ROUNDS = 2, 20  # of each iteration, and of the last one
SAME_SIGN = 0.01, 0.99  # limits of the probability that two arms have the same sign of β
MAX_MEAN_SHIFT = 1.0  # of each coordinate of m in one iteration
CONVERGED = 0.05  # largest change of a unit's mode in the last iteration
MAX_SHIFT = 4.0  # of a unit in one iteration, as a distance
MAX_ALL_STARTS = 4  # order up to which all patterns of signs are starts, if there are more than two
FRACTIONS = np.array([0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
LEVEL_STEP = 0.1  # of the differences in expected levels, relative to the spread of rewards
LEVEL_DAMPING = 0.6
FIT_STEPS = 1 + ITERATIONS + ROUNDS  # of progress


class MovedUnits(NamedTuple):
    """Units after a step towards their conditional modes."""

    u: Floats
    shock_variance: Floats
    log_joint: float  # log density of all rewards and units, up to terms that depend only on s


class ModelFit(NamedTuple):
    """The fit of one model."""

    kind: ModelKind
    population: PopulationFit
    log_evidence: float
    units: Floats  # (units, coordinates) mean of each unit, given the population
    signs: Floats  # (units, arms)
    same_sign: Floats  # (arms,) probability of the sign of the first arm
    level: Floats  # (arms,) expected levels
    shock_variance: Floats  # (units,) σ² there


def default_prior(kind: ModelKind) -> tuple[Floats, Floats]:
    """Return mean and sd of the default prior of a model's coordinates."""
    mean, sd = np.array(prior_of(kind).coordinates).T
    return mean, sd


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
        penalty = [0.5 * float(mean @ mean) / (1.0 - SPREAD_SHARE) for mean in means]
        best = int(np.argmax([each.log_joint - cost for each, cost in zip(found, penalty, strict=True)]))
        self.change = float(max(np.abs(found[best].u - self.u).max(), np.abs(means[best] - self.mean).max()))
        self.mean, self.u, self.shock_variance = means[best], found[best].u, found[best].shock_variance
        self.population = fitted._replace(mean=self.mean)
        unit_evidence = log_unit_evidence(found[best].log_joint, expansions, self.spread)
        self.log_evidence = log_evidence(unit_evidence, len(self.units), self.population)
        self.fit_levels()

    def integrate(self, advance: Callable[[], None]) -> None:
        """Update the population with the units integrated out, and put every unit at its mean."""
        found = integrate_units(lambda i, u: self.evaluate(i, u).value, self.u, self.population, advance)
        self.population, self.u = found.population, found.units
        self.mean, self.spread = found.population.mean, found.population.spread
        self.log_evidence = log_evidence(found.log_evidence, len(self.units), self.population)
        each = (self.evaluate(i, u[None, :]).shock_variance[0] for i, u in enumerate(self.u))
        self.shock_variance = np.fromiter(each, dtype=np.float64)
        self.fit_levels()

    def move_units(self, expansions: list[Expansion], mean: Floats) -> "MovedUnits":
        """Return all units on the way to their conditional modes, each at the best of some points."""
        u, variance, total = self.u.copy(), self.shock_variance.copy(), 0.0
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
    """Fit the distribution of a model's parameters over units; `advance` is called `FIT_STEPS` times.

    `smaller` is the fit of a smaller order, from which one of the starts is made.
    """
    fitters = starts(kind, units, smaller)
    for fitter in fitters:
        for _ in range(START_ITERATIONS):
            fitter.iterate(EM_ROUNDS, has_free_signs=False)
    best = max(fitters, key=lambda fitter: fitter.log_evidence)
    advance()
    for _ in range(ITERATIONS):
        if best.change >= CONVERGED:
            best.iterate(EM_ROUNDS, has_free_signs=True)
        advance()
    best.iterate(LAST_EM_ROUNDS, has_free_signs=True)
    best.integrate(advance)
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
