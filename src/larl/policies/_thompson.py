"""What Gaussian Thompson samplers share: the posterior of a mean under known noise, and the choice by draws from it."""

import math

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl._core.random import Bits, normal
from larl.policies._probabilities import Mask, largest_draw

Floats = NDArray[np.float64]


@inline
def posterior(count: float, total: float, sigma: float, prior_sd: float) -> tuple[float, float]:
    """Mean and sd of N(0, prior_sd²) after `count` observations with noise sd sigma that sum to `total`."""
    precision = 1.0 / prior_sd**2 + count / sigma**2
    return total / sigma**2 / precision, math.sqrt(1.0 / precision)


@inline
def best_sample(bits: Bits, plays: Floats, total: Floats, sigma: float, prior_sd: float) -> int:
    """Draw every arm's mean from its posterior; the arm with the largest draw."""
    best, choice = -math.inf, 0
    for arm in range(plays.size):
        mean, sd = posterior(plays[arm], total[arm], sigma, prior_sd)
        draw = mean + sd * normal(bits)
        if draw > best:
            best, choice = draw, arm
    return choice


@inner
def sample_action_probabilities(
    plays: Floats, total: Floats, sigma: float, prior_sd: float, share: float, available: Mask, out: Floats
) -> None:
    """Add `share` of the probability that `best_sample` chooses each of the open arms."""
    mean, sd, chances = np.empty(plays.size), np.empty(plays.size), np.empty(plays.size)
    for arm in range(plays.size):
        mean[arm], sd[arm] = posterior(plays[arm], total[arm], sigma, prior_sd)
    largest_draw(mean, sd, available, chances)
    for arm in range(plays.size):
        out[arm] += share * chances[arm]
