"""Distributions of a reward given a linear predictor η: mean, quantile and log-likelihood, for kernels.

η is limited so that every number is finite: a count's mean to `MAX_COUNT`, every other η to ±`MAX_ETA`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner, kernel

GAUSSIAN, LOGIT, PROBIT, POISSON, NEGATIVE_BINOMIAL, HURDLE = range(6)
MAX_COUNT = 1e6  # largest mean of a count; the time of a draw grows with it
MAX_ETA = 1e100
MAX_LOG_SHAPE = 30.0  # of the positive part of a hurdle reward
LEAST_SHARE = 1e-200  # of `upper`: the least positive reward
LEAST_SD = 1e-50  # of normal noise in a likelihood
NEGLIGIBLE = -100.0  # log-probability of a count far below the mean, from which a quantile is searched
LEAST_PROBABILITY = 1e-30  # of a count above its mean, at which the search ends
SQRT2, LOG_SQRT_2PI = math.sqrt(2.0), 0.5 * math.log(2.0 * math.pi)


Floats = NDArray[np.float64]


class RewardFamily(NamedTuple):
    """A distribution of rewards inside a kernel."""

    code: int  # GAUSSIAN … HURDLE
    dispersion: float  # of a NEGATIVE_BINOMIAL: variance = mean + dispersion · mean²
    upper: float  # of a HURDLE: the largest reward
    offset: float  # of a HURDLE: P(r > 0) = logistic(η + offset)


@inline
def limited(family: RewardFamily, eta: float) -> float:
    """Return η within the limits of the family."""
    if family.code == POISSON or family.code == NEGATIVE_BINOMIAL:
        return min(max(eta, -MAX_ETA), math.log(MAX_COUNT))
    return min(max(eta, -MAX_ETA), MAX_ETA)


@inline
def logistic(eta: float) -> float:
    """Return 1/(1 + exp(−η))."""
    if eta >= 0.0:
        return 1.0 / (1.0 + math.exp(-eta))
    odds = math.exp(eta)
    return odds / (1.0 + odds)


@inline
def log_logistic(eta: float) -> float:
    """Return log(1/(1 + exp(−η)))."""
    return -math.log1p(math.exp(-eta)) if eta >= 0.0 else eta - math.log1p(math.exp(eta))


@inline
def normal_cdf(x: float) -> float:
    """Return Φ(x)."""
    return 0.5 * math.erfc(-x / SQRT2)


@inline
def log_normal_cdf(x: float) -> float:
    """Return log Φ(x); below −20 by its asymptotic series."""
    if x > -20.0:
        return math.log(normal_cdf(x))
    inverse = 1.0 / (x * x)
    return -0.5 * x * x - math.log(-x) - LOG_SQRT_2PI + math.log1p(-inverse * (1.0 - 3.0 * inverse))


@inline
def log_shape(eta: float) -> float:
    """Return the logarithm of the shape of a hurdle reward's positive part: η, limited."""
    return min(max(eta, -MAX_LOG_SHAPE), MAX_LOG_SHAPE)


@inner
def mean_reward(family: RewardFamily, eta: float) -> float:
    """Return E[r | η]."""
    eta = limited(family, eta)
    if family.code == GAUSSIAN:
        return eta
    if family.code == LOGIT:
        return logistic(eta)
    if family.code == PROBIT:
        return normal_cdf(eta)
    if family.code == HURDLE:
        return family.upper * (logistic(eta + family.offset) * logistic(log_shape(eta)))
    return math.exp(eta)


@kernel
def mean_rewards(family: RewardFamily, eta: Floats, out: Floats) -> None:
    """Write E[r | η] for every η of a vector into `out`."""
    for i in range(eta.size):
        out[i] = mean_reward(family, eta[i])


@inner
def quantile(family: RewardFamily, eta: float, noise: float) -> float:
    """Return the reward whose distribution function has the value Φ(noise)."""
    eta = limited(family, eta)
    above = normal_cdf(-noise)  # the probability of a larger reward
    if family.code == LOGIT:
        return 1.0 if above < logistic(eta) else 0.0
    if family.code == PROBIT:
        return 1.0 if above < normal_cdf(eta) else 0.0
    if family.code == HURDLE:
        positive = logistic(eta + family.offset)
        if above >= positive:
            return 0.0
        share = math.exp(math.log1p(-above / positive) * math.exp(-log_shape(eta)))
        return family.upper * max(share, LEAST_SHARE)
    return count_quantile(math.exp(eta), family.dispersion if family.code == NEGATIVE_BINOMIAL else 0.0, noise)


@inline
def log_count_probability(count: float, mean: float, dispersion: float) -> float:
    """Return the log-probability of a count: Poisson, or negative binomial if the dispersion is positive."""
    if count == 0.0:
        return -mean if dispersion == 0.0 else -math.log1p(dispersion * mean) / dispersion
    constant = math.lgamma(count + 1.0)
    if dispersion == 0.0:
        return count * math.log(mean) - mean - constant
    size = 1.0 / dispersion
    ways = math.lgamma(count + size) - math.lgamma(size) - constant
    return ways + count * math.log(mean / (mean + size)) - size * math.log1p(dispersion * mean)


@inline
def first_count(mean: float, dispersion: float) -> float:
    """Return 0, or a count below the mode below which the distribution function is 0 to all digits.

    It is the least count whose log-probability is `NEGLIGIBLE` or more: below the mode, probabilities increase.
    """
    low, high = 0.0, max(math.floor(mean * (1.0 - dispersion)), 0.0)  # high is at most the mode
    if log_count_probability(low, mean, dispersion) >= NEGLIGIBLE:
        return low
    while high - low > 1.0:
        middle = math.floor(0.5 * (low + high))
        if log_count_probability(middle, mean, dispersion) >= NEGLIGIBLE:
            high = middle
        else:
            low = middle
    return high


@inner
def count_quantile(mean: float, dispersion: float, noise: float) -> float:
    """Return the least count whose distribution function exceeds Φ(noise), by adding up probabilities."""
    level, count = normal_cdf(noise), first_count(mean, dispersion)
    probability = math.exp(log_count_probability(count, mean, dispersion))
    total = probability
    while total <= level and (count < mean or probability > LEAST_PROBABILITY):
        # The ratio of two successive probabilities; without dispersion it is mean/(count + 1).
        probability *= mean * (1.0 + dispersion * count) / ((count + 1.0) * (1.0 + dispersion * mean))
        count += 1.0
        total += probability
    return count


@inner
def log_likelihood(family: RewardFamily, eta: float, sd: float, reward: float) -> float:
    """Return log p(reward | η) up to a term that does not depend on η; −∞ if the family has no such reward.

    `sd` is the standard deviation of normal noise; other families do not use it.
    """
    eta = limited(family, eta)
    if family.code == GAUSSIAN:
        deviation = (reward - eta) / max(sd, LEAST_SD)
        return -0.5 * deviation * deviation
    if family.code == LOGIT or family.code == PROBIT:
        if reward != 0.0 and reward != 1.0:
            return -math.inf
        signed = eta if reward == 1.0 else -eta
        return log_logistic(signed) if family.code == LOGIT else log_normal_cdf(signed)
    if family.code == HURDLE:
        if reward == 0.0:
            return log_logistic(-eta - family.offset)
        if reward < 0.0 or reward > family.upper:
            return -math.inf
        shape, share = log_shape(eta), max(reward / family.upper, LEAST_SHARE)
        return log_logistic(eta + family.offset) + shape + math.exp(shape) * math.log(share)
    if reward < 0.0 or reward != math.floor(reward):
        return -math.inf
    mean = math.exp(eta)
    if family.code == POISSON:
        return reward * eta - mean
    size = 1.0 / family.dispersion
    return reward * (eta - math.log(mean + size)) - size * math.log1p(family.dispersion * mean)
