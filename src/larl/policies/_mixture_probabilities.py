"""The probability that each arm's draw from its own mixture of normal distributions is the largest."""

import math

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl.policies._probabilities import NODES, WEIGHTS, Floats, Mask, normal_cdf

REACH = 7.5  # a normal distribution is 0 beyond so many standard deviations: the error is below 10⁻¹³
PANEL = 4.0  # largest panel of the quadrature, in standard deviations of every component that it meets
RESOLUTION = 1e-9  # least sd of a component, relative to its mean: less would be lost in rounding errors


@inner
def argmax_mixture_probabilities(
    weight: Floats, mean: Floats, sd: Floats, used: NDArray[np.int64], available: Mask, probabilities: Floats
) -> None:
    """Write the probability that each available arm's draw is the largest; changes `sd`.

    Arm a has the components i < used[a] of the rows a of `weight`, `mean` and `sd` > 0; the weights of a row sum to 1.
    P_a = ∫ f_a(x) Π_{b≠a} F_b(x) dx, by Gauss–Legendre quadrature; a double sum over the components for two arms.
    """
    count, arms, first, second = 0, probabilities.size, -1, -1
    for arm in range(arms):
        probabilities[arm] = 0.0
        if available[arm]:
            first, second, count = second, arm, count + 1
    if count == 1:
        probabilities[second] = 1.0
    elif count == 2:
        for i in range(used[first]):
            for j in range(used[second]):
                pair = weight[first, i] * weight[second, j]
                width = math.hypot(sd[first, i], sd[second, j])
                probabilities[first] += pair * normal_cdf(mean[first, i], mean[second, j], width)
        probabilities[second] = max(1.0 - probabilities[first], 0.0)
    else:
        _integrate(weight, mean, sd, used, available, probabilities)
    total = 0.0
    for arm in range(arms):
        total += probabilities[arm]
    for arm in range(arms):
        probabilities[arm] /= total


@inline
def _integrate(
    weight: Floats, mean: Floats, sd: Floats, used: NDArray[np.int64], available: Mask, probabilities: Floats
) -> None:
    """Add the integrals of all panels."""
    low, high = -math.inf, -math.inf
    for arm in range(available.size):
        if available[arm]:
            lowest = math.inf
            for i in range(used[arm]):
                sd[arm, i] = max(sd[arm, i], RESOLUTION * abs(mean[arm, i]))
                lowest = min(lowest, mean[arm, i] - REACH * sd[arm, i])
                high = max(high, mean[arm, i] + REACH * sd[arm, i])
            low = max(low, lowest)  # the largest draw is above this
    density, cdf = np.empty(available.size), np.empty(available.size)
    while low < high:
        length = high - low
        for arm in range(available.size):
            for i in range(used[arm] if available[arm] else 0):
                if mean[arm, i] + REACH * sd[arm, i] > low:
                    length = min(length, max(mean[arm, i] - REACH * sd[arm, i] - low, PANEL * sd[arm, i]))
        for node in range(NODES.size):
            x = low + 0.5 * length * (1.0 + NODES[node])
            for arm in range(available.size):
                if available[arm]:
                    density[arm], cdf[arm] = _density_and_cdf(x, weight[arm], mean[arm], sd[arm], used[arm])
            _add_products(0.5 * length * WEIGHTS[node], density, cdf, available, probabilities)
        low += length


@inline
def _density_and_cdf(x: float, weight: Floats, mean: Floats, sd: Floats, used: int) -> tuple[float, float]:
    """Return the density and the distribution function of a mixture at x."""
    density, cdf = 0.0, 0.0
    for i in range(used):
        deviation = (x - mean[i]) / sd[i]
        if deviation >= REACH:
            cdf += weight[i]
        elif deviation > -REACH:
            cdf += weight[i] * 0.5 * math.erfc(-deviation / math.sqrt(2.0))
            density += weight[i] * math.exp(-0.5 * deviation * deviation) / (sd[i] * math.sqrt(2.0 * math.pi))
    return density, cdf


@inline
def _add_products(weight: float, density: Floats, cdf: Floats, available: Mask, probabilities: Floats) -> None:
    """Add weight · f_a Π_{b≠a} F_b for every a."""
    for arm in range(probabilities.size):
        if available[arm]:
            product = weight * density[arm]
            for other in range(probabilities.size):
                if available[other] and other != arm:
                    product *= cdf[other]
            probabilities[arm] += product
