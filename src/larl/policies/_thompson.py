"""What Gaussian Thompson samplers share: the posterior of a mean under known noise, and the draw from it."""

import math

from numpy import uint64

from larl._compile import inline
from larl._words import normal_pair


@inline
def posterior(count: float, total: float, sigma: float, prior_sd: float) -> tuple[float, float]:
    """Mean and sd of N(0, prior_sd²) after `count` observations with noise sd sigma that sum to `total`."""
    precision = 1.0 / prior_sd**2 + count / sigma**2
    return total / sigma**2 / precision, math.sqrt(1.0 / precision)


@inline
def sample(word: uint64, arm: int, count: float, total: float, sigma: float, prior_sd: float) -> float:
    """A draw from the posterior of one arm's mean."""
    mean, sd = posterior(count, total, sigma, prior_sd)
    draw, _ = normal_pair(word, arm)
    return mean + sd * draw
