"""Units that are integrated out: against exact moments, and against quadrature for a skewed likelihood."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from larl.priors.hierarchy import SPREAD_SHARE, Expansion, PopulationFit, fit_population
from larl.priors.integration import Floats, integrate_units, make_draws, unit_moments

SIZE = 4


def quadratic(expansion: Expansion, u: Floats) -> Floats:
    """The log-likelihood that an expansion describes."""
    square = np.einsum("ni,ij,nj->n", u, expansion.curvature, u)
    return np.asarray(expansion.constant + u @ expansion.h - 0.5 * square)


@pytest.fixture
def normal_unit() -> Expansion:
    rng = np.random.default_rng(5)
    factor = rng.normal(size=(SIZE, SIZE))
    return Expansion(-3.0, 2.0 * rng.normal(size=SIZE), 3.0 * factor @ factor.T)


def test_moments_of_a_normal_unit_are_those_of_its_normal_posterior(normal_unit: Expansion) -> None:
    fit = PopulationFit(np.array([0.3, -0.2, 0.0, 1.0]), np.eye(SIZE), np.array([0.1, 0.4, 0.05, 1.0]))
    precision = np.diag(1.0 / fit.spread) + normal_unit.curvature
    covariance = np.linalg.inv(precision)
    mode = covariance @ (normal_unit.h + fit.mean / fit.spread)
    (draws,) = make_draws(SIZE, 1)
    found = unit_moments(lambda u: quadratic(normal_unit, u), mode, precision, fit, draws)
    error = 4.0 * math.sqrt(1.0 / found.effective)  # four standard errors, relative to the posterior's sd
    sd = np.sqrt(np.diag(covariance))
    assert found.effective > 100
    np.testing.assert_allclose(found.mean, mode - fit.mean, atol=1e-9)  # the draws are symmetric around the mode
    variance = found.square - found.mean**2
    np.testing.assert_allclose(variance / sd**2, 1.0, atol=math.sqrt(2.0) * error)
    # The evidence: rewards are N(…) in disguise, so it is that of a linear normal model.
    log_evidence = normal_unit.constant + 0.5 * (normal_unit.h + fit.mean / fit.spread) @ mode
    log_evidence -= 0.5 * (fit.mean**2 / fit.spread).sum() + 0.5 * np.log(fit.spread).sum()
    log_evidence -= 0.5 * np.linalg.slogdet(precision)[1]
    assert found.log_evidence == pytest.approx(log_evidence, abs=error)


def test_few_effective_draws_are_replaced_by_the_moments_at_the_mode(normal_unit: Expansion) -> None:
    fit = PopulationFit(np.zeros(SIZE), np.eye(SIZE), np.full(SIZE, 0.1))
    precision = np.diag(1.0 / fit.spread) + normal_unit.curvature
    (draws,) = make_draws(SIZE, 1)
    mode = np.full(SIZE, 0.5)
    found = unit_moments(lambda u: 1e6 * quadratic(normal_unit, u), mode, precision, fit, draws)
    np.testing.assert_allclose(found.mean, mode)
    np.testing.assert_allclose(found.square, mode**2 + np.diag(np.linalg.inv(precision)))


@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_draws_without_a_finite_likelihood_have_no_weight(normal_unit: Expansion, value: float, share: float) -> None:
    fit = PopulationFit(np.zeros(SIZE), np.eye(SIZE), np.full(SIZE, 0.1))
    precision = np.diag(1.0 / fit.spread) + normal_unit.curvature
    (draws,) = make_draws(SIZE, 1)

    def log_likelihood(u: Floats) -> Floats:
        return np.where(np.arange(len(u)) < share * len(u), value, quadratic(normal_unit, u))

    found = unit_moments(log_likelihood, np.zeros(SIZE), precision, fit, draws)
    assert all(np.isfinite(each).all() for each in found)
    assert (found.effective < 1e-6) == (share == 1.0)


def skewed(shape: float, rate: float, u: Floats) -> Floats:
    """The log-likelihood of a Poisson count `shape` with logarithmic rate u, up to a constant."""
    return np.asarray(shape * u[:, 0] - rate * np.exp(u[:, 0]))


def log_marginal(shape: float, rate: float, mean: float, spread: float) -> float:
    """The logarithm of a unit's evidence, by quadrature."""

    def density(u: float) -> float:
        return math.exp(float(skewed(shape, rate, np.array([[u]]))[0])) * stats.norm.pdf(u, mean, math.sqrt(spread))

    return math.log(integrate.quad(density, mean - 12.0, mean + 8.0, points=[mean], limit=200)[0])


def test_population_of_skewed_units_maximises_the_marginal_likelihood() -> None:
    rng = np.random.default_rng(7)
    counts = rng.poisson(0.8 * np.exp(rng.normal(0.2, 0.6, size=30))).astype(float)

    def log_likelihood(i: int, u: Floats) -> Floats:
        return skewed(counts[i], 0.8, u)

    start = PopulationFit(np.zeros(1), np.eye(1), np.full(1, 0.3))
    found = integrate_units(log_likelihood, np.zeros((30, 1)), start)
    mean, spread = found.population.mean[0], found.population.spread[0]

    def log_posterior(mean: float) -> float:
        return sum(log_marginal(c, 0.8, mean, spread) for c in counts) - 0.5 * mean**2 / (1.0 - SPREAD_SHARE)

    error = math.sqrt(found.population.mean_cov[0, 0])
    step = 0.2 * error
    slope = (log_posterior(mean + step) - log_posterior(mean - step)) / (2.0 * step)
    curvature = (2.0 * log_posterior(mean) - log_posterior(mean + step) - log_posterior(mean - step)) / step**2
    assert abs(slope) * error < 0.1  # the maximum is within a tenth of a standard error
    assert error == pytest.approx(1.0 / math.sqrt(curvature), rel=0.15)
    assert found.log_evidence == pytest.approx(sum(log_marginal(c, 0.8, mean, spread) for c in counts), abs=0.3)
    # Units at their modes, as in Laplace's method, lead elsewhere.
    modes = found.units.copy()
    for _ in range(50):
        modes = modes - (counts[:, None] - 0.8 * np.exp(modes) - (modes - mean) / spread) / (
            -0.8 * np.exp(modes) - 1.0 / spread
        )
    laplace = fit_population(
        [
            Expansion(0.0, c - 0.8 * math.exp(u) * (1.0 - u), np.array([[0.8 * math.exp(u)]]))
            for c, u in zip(counts[:, None], modes[:, 0], strict=True)
        ],
        found.population.spread,
        rounds=0,
    )
    assert abs(laplace.mean[0] - mean) > 0.15 * error


def test_units_without_information_leave_the_default_prior() -> None:
    start = PopulationFit(np.zeros(3), np.eye(3), np.full(3, SPREAD_SHARE))
    found = integrate_units(lambda _, u: np.zeros(len(u)), np.zeros((4, 3)), start)
    np.testing.assert_allclose(found.population.mean, 0.0, atol=1e-9)
    np.testing.assert_allclose(np.diag(found.population.mean_cov) + found.population.spread, 1.0, atol=0.03)
