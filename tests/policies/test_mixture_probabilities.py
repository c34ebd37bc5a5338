"""The probability that a draw from a mixture of normal distributions is the largest, against scipy's integrals."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

import larl
from larl._core.compile import kernel
from larl.policies._mixture_probabilities import argmax_mixture_probabilities
from larl.policies._probabilities import argmax_normal_probabilities


@kernel
def mixture_kernel(weight, mean, sd, used, available, out):
    argmax_mixture_probabilities(weight, mean, sd, used, available, out)


@kernel
def normal_kernel(mean, sd, available, out):
    argmax_normal_probabilities(mean, sd, available, out)


def computed(weight, mean, sd, available=None):
    arms, count = weight.shape
    out = np.full(arms, math.nan)
    mask = np.ones(arms, dtype=np.bool_) if available is None else np.array(available)
    mixture_kernel(weight, mean, sd.copy(), np.full(arms, count), mask, out)
    return out


def integrated(weight, mean, sd, available):
    """Return P_a by adaptive quadrature between quantiles of all components; rows can have different lengths."""
    arms = np.flatnonzero(available)
    edges = np.unique(np.concatenate([mean[a] + k * sd[a] for a in arms for k in (-8, -3, 0, 3, 8)]))

    def integrand(x, arm):
        value = np.sum(weight[arm] * np.exp(-0.5 * ((x - mean[arm]) / sd[arm]) ** 2) / sd[arm])
        return value * math.prod(weight[b] @ ndtr((x - mean[b]) / sd[b]) for b in arms if b != arm)

    result = np.zeros(len(weight))
    for arm in arms:
        for low, high in itertools.pairwise(edges):
            result[arm] += quad(integrand, low, high, (arm,), epsabs=1e-12)[0] / math.sqrt(2.0 * math.pi)
    return result


def draw_mixtures(seed, arms, count, spread):
    rng = np.random.default_rng(seed)
    weight = rng.dirichlet(np.full(count, 0.5), arms)
    sd = 1.0 / np.sqrt(1.0 + 10.0 ** rng.uniform(-1, 3, (arms, count)))
    return weight, spread * rng.normal(size=(arms, count)), sd


@pytest.mark.parametrize(("arms", "count", "spread"), [(2, 3, 1.0), (3, 1, 0.3), (3, 3, 0.1), (3, 3, 2.0), (5, 2, 0.5)])
def test_probabilities_are_the_integrals(arms, count, spread):
    mixtures = draw_mixtures(arms + count, arms, count, spread)
    everything = [True] * arms
    assert computed(*mixtures) == pytest.approx(integrated(*mixtures, everything), abs=1e-9)
    without = [arm != 1 for arm in range(arms)]
    assert computed(*mixtures, without) == pytest.approx(integrated(*mixtures, without), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_equal_components_are_one_normal_distribution(seed):
    weight, mean, sd = draw_mixtures(seed, 6, 4, 0.5)
    mean[:], sd[:], out = mean[:, :1], sd[:, :1], np.zeros(6)
    normal_kernel(mean[:, 0].copy(), sd[:, 0].copy(), np.ones(6, dtype=np.bool_), out)
    assert computed(weight, mean, sd) == pytest.approx(out, abs=1e-11)


def test_identical_arms_have_equal_probabilities():
    weight, mean, sd = (np.repeat(array, 7, axis=0) for array in draw_mixtures(3, 1, 5, 1.0))
    assert computed(weight, mean, sd) == pytest.approx(np.full(7, 1.0 / 7.0), abs=1e-12)


def test_components_below_the_rounding_error_count_with_their_weight():
    # Arm 0 is at 10¹⁰⁰ with weight ¼; otherwise all arms are alike.
    weight, mean, sd = np.tile([0.25, 0.75], (3, 1)), np.zeros((3, 2)), np.full((3, 2), 0.1)
    mean[0, 0] = 1e100
    assert computed(weight, mean, sd) == pytest.approx([0.5, 0.25, 0.25], abs=1e-8)


@pytest.mark.parametrize("spec", [larl.ResetThompson(prior_sd=1e-50), larl.ResetThompson(sigma=1e-50)], ids=str)
def test_probabilities_are_valid_with_the_smallest_sd(spec):
    agent = larl.Agent(spec, arms=3)
    for reward in (1.0, 0.0, 2.0, 1.0):
        decision = agent.decide()
        assert sum(decision.probabilities.values()) == pytest.approx(1.0)
        agent.observe(decision, reward)
    with pytest.raises(larl.InvalidValue, match="1e-50"):
        larl.ResetThompson(sigma=1e-60)
