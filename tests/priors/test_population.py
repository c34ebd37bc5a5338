"""The hierarchical fit against dense normal distributions, and what it finds in simulated pilots."""

import math

import numpy as np
import pytest

from larl.priors.hierarchy import (
    SPREAD_SHARE,
    SPREAD_UNITS,
    STEP,
    Expansion,
    conditional_mode,
    expand,
    fit_population,
    log_evidence,
    log_unit_evidence,
    stencil,
)


def random_expansions(n: int, size: int) -> list[Expansion]:
    rng = np.random.default_rng(3)
    factors = rng.normal(size=(n, size, size))
    return [Expansion(float(rng.normal()), 3.0 * rng.normal(size=size), 4.0 * f @ f.T) for f in factors]


def test_second_differences_of_a_quadratic_are_exact():
    (expected,) = random_expansions(1, 4)
    u = np.array([0.3, -1.0, 0.2, 2.0])
    points = u + STEP * stencil(4)
    values = (
        expected.constant + points @ expected.h - 0.5 * np.einsum("ni,ij,nj->n", points, expected.curvature, points)
    )
    found = expand(values, u)
    np.testing.assert_allclose(found.curvature, expected.curvature, atol=1e-8)
    np.testing.assert_allclose(found.h, expected.h, atol=1e-8)
    assert found.constant == pytest.approx(expected.constant, abs=1e-8)


def test_curvature_of_a_saddle_has_no_negative_eigenvalue():
    points = STEP * stencil(2)
    found = expand(points[:, 0] ** 2 - points[:, 1] ** 2, np.zeros(2))
    np.testing.assert_allclose(found.curvature, np.diag([0.0, 2.0]), atol=1e-8)


@pytest.mark.parametrize("bad", [-np.inf, np.inf, np.nan])
def test_expansion_is_finite_if_the_likelihood_is_not(bad: float) -> None:
    points = STEP * stencil(3)
    values = -((points - 0.1) ** 2).sum(axis=1)
    for each in [0, 1, len(points) - 1]:
        changed = values.copy()
        changed[each] = bad
        found = expand(changed, np.zeros(3))
        assert np.isfinite([found.constant, *found.h, *found.curvature.ravel()]).all()
    nothing = expand(np.full(len(points), bad), np.zeros(3))
    assert not nothing.h.any()
    assert not nothing.curvature.any()


def test_moments_and_evidence_given_the_spread_equal_those_of_the_joint_distribution():
    n, size = 5, 3
    expansions = random_expansions(n, size)
    fit = fit_population(expansions, np.array([0.2, 0.5, 0.1]), rounds=4)
    # The joint density of (m, θ_1 … θ_n), a normal one: precision and linear term.
    total = np.zeros(((n + 1) * size, (n + 1) * size))
    linear, inverse = np.zeros((n + 1) * size), np.diag(1.0 / fit.spread)
    top = slice(0, size)
    total[top, top] = np.eye(size) / (1.0 - SPREAD_SHARE) + n * inverse
    for i, each in enumerate(expansions, 1):
        own = slice(i * size, (i + 1) * size)
        total[own, own] = inverse + each.curvature
        total[own, top] = total[top, own] = -inverse
        linear[own] = each.h
    mean, cov = np.linalg.solve(total, linear), np.linalg.inv(total)
    np.testing.assert_allclose(fit.mean, mean[top], rtol=1e-8)
    np.testing.assert_allclose(fit.mean_cov, cov[top, top], rtol=1e-8)
    evidence = sum(each.constant for each in expansions) + 0.5 * linear @ mean - 0.5 * np.linalg.slogdet(total)[1]
    evidence -= 0.5 * (size * math.log(1.0 - SPREAD_SHARE) + n * np.log(fit.spread).sum())
    a, b = SPREAD_UNITS / 2.0, SPREAD_UNITS * SPREAD_SHARE / 2.0  # inverse gamma prior of s, as a density of log s
    densities = a * math.log(b) - math.lgamma(a) - a * np.log(fit.spread) - b / fit.spread
    evidence += densities.sum() + size * 0.5 * math.log(2.0 * math.pi * 2.0 / (SPREAD_UNITS + n))
    units = [conditional_mode(each, fit.mean, fit.spread) for each in expansions]
    log_joint = 0.0
    for u, each in zip(units, expansions, strict=True):
        log_joint += each.constant + each.h @ u - 0.5 * u @ each.curvature @ u
        log_joint -= 0.5 * (u - fit.mean) @ inverse @ (u - fit.mean)
    unit_evidence = log_unit_evidence(log_joint, expansions, fit.spread)
    assert log_evidence(unit_evidence, n, fit) == pytest.approx(evidence, rel=1e-10)


def test_spread_is_a_fixed_point_of_the_em_algorithm():
    expansions = random_expansions(40, 2)
    fit = fit_population(expansions, np.full(2, 0.1), rounds=3000)
    again = fit_population(expansions, fit.spread, rounds=1)
    np.testing.assert_allclose(again.spread, fit.spread, rtol=1e-4)
    assert not np.allclose(fit.spread, SPREAD_SHARE, rtol=0.1)


def test_without_information_the_distribution_is_the_default_prior():
    nothing = Expansion(0.0, np.zeros(3), np.zeros((3, 3)))
    fit = fit_population([nothing] * 4, np.full(3, SPREAD_SHARE), rounds=20)
    np.testing.assert_allclose(fit.mean, 0.0)
    np.testing.assert_allclose(np.diag(fit.mean_cov) + fit.spread, 1.0, rtol=1e-9)


def test_conditional_mode_is_between_the_unit_and_the_population():
    own = Expansion(0.0, np.array([4.0]), np.array([[2.0]]))  # on its own, 2 with variance ½
    assert conditional_mode(own, np.array([0.0]), np.array([0.5])) == pytest.approx(1.0)
