"""Gaussian Thompson sampling: posterior of a mean with known noise, choice by draws, and its probabilities."""

import math

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl._core.random import Bits, normal
from larl.policies._probabilities import Mask, argmax_normal_probabilities

Floats = NDArray[np.float64]

MIN_SD = 1e-50  # of a setting; the square of a smaller number may be 0


@inline
def posterior(count: float, total: float, sigma: float, prior_sd: float) -> tuple[float, float]:
    """Return posterior mean and sd: prior N(0, prior_sd²), `count` rewards with noise sd `sigma` and sum `total`."""
    precision = 1.0 / prior_sd**2 + count / sigma**2
    return total / sigma**2 / precision, math.sqrt(1.0 / precision)


@inline
def best_sample(bits: Bits, plays: Floats, total: Floats, sigma: float, prior_sd: float) -> int:
    """Draw every arm's mean from its posterior; return the arm with the largest draw."""
    best, choice = -math.inf, 0
    for arm in range(plays.size):
        mean, sd = posterior(plays[arm], total[arm], sigma, prior_sd)
        draw = mean + sd * normal(bits)
        if draw > best:
            best, choice = draw, arm
    return choice


@inner
def sample_action_probabilities(
    plays: Floats, total: Floats, sigma: float, prior_sd: float, weight: float, available: Mask, out: Floats
) -> None:
    """Add `weight` times the probability that `best_sample` chooses each available arm."""
    mean, sd, probabilities = np.empty(plays.size), np.empty(plays.size), np.empty(plays.size)
    for arm in range(plays.size):
        mean[arm], sd[arm] = posterior(plays[arm], total[arm], sigma, prior_sd)
    argmax_normal_probabilities(mean, sd, available, probabilities)
    for arm in range(plays.size):
        out[arm] += weight * probabilities[arm]


@inline
def drawn_hypothesis(weight: Floats, used: int, u: float) -> int:
    """Return one of the first `used` hypotheses, with their weights as probabilities, for u uniform in [0, 1)."""
    for i in range(used):
        u -= weight[i]
        if u < 0.0:
            return i
    return used - 1


@inline
def condition_hypotheses(
    weight: Floats, plays: Floats, total: Floats, used: int, reward: float, sigma: float, prior_sd: float
) -> float:
    """Update the first `used` hypotheses with a reward; return the sum of their weights, which are not normalised."""
    largest, mass = -math.inf, 0.0
    for i in range(used):  # the weights are logarithms until the second loop
        mean, sd = posterior(plays[i], total[i], sigma, prior_sd)
        variance = sd**2 + sigma**2
        log_density = -0.5 * (reward - mean) ** 2 / variance - 0.5 * math.log(variance)
        weight[i] = (math.log(weight[i]) if weight[i] > 0.0 else -math.inf) + log_density
        largest = max(largest, weight[i])
        plays[i] += 1.0
        total[i] += reward
    for i in range(used):
        weight[i] = math.exp(weight[i] - largest)
        mass += weight[i]
    return mass


@inline
def mixture_moments(
    weight: Floats, plays: Floats, total: Floats, used: int, sigma: float, prior_sd: float
) -> tuple[float, float]:
    """Return mean and sd of the mixture of the posteriors of the first `used` hypotheses."""
    mean, square = 0.0, 0.0
    for i in range(used):
        own, sd = posterior(plays[i], total[i], sigma, prior_sd)
        mean += weight[i] * own
        square += weight[i] * (own * own + sd * sd)
    return mean, math.sqrt(max(square - mean * mean, 0.0))
