"""Action probabilities: the distribution of the arm that `act` chooses among the available arms."""

import math

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]  # (arms,) whether each arm is available

BREAKPOINTS = np.array([-8.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 8.0])  # of the quadrature, in standard deviations
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


@inline
def uniform_probabilities(available: Mask, probabilities: Floats) -> None:
    """Give all available arms the same probability."""
    count = 0
    for arm in range(probabilities.size):
        count += available[arm]
    for arm in range(probabilities.size):
        probabilities[arm] = 1.0 / count if available[arm] else 0.0


@inline
def one_hot(choice: int, probabilities: Floats) -> None:
    """Give one arm probability 1 and all others 0; choice −1 sets all to 0."""
    for arm in range(probabilities.size):
        probabilities[arm] = 1.0 if arm == choice else 0.0


@inline
def argmax_probabilities(score: Floats, available: Mask, probabilities: Floats) -> None:
    """Give probability 1 to the first available arm with the largest score."""
    best, choice = -math.inf, -1
    for arm in range(probabilities.size):
        if available[arm] and (choice < 0 or score[arm] > best):
            best, choice = score[arm], arm
    one_hot(choice, probabilities)


@inline
def forced_arm(u: float, min_probability: float, available: Mask, count: int) -> int:
    """The arm of forced exploration, for u in [0, 1): `min_probability` for each of `count` available arms; else −1."""
    if u >= count * min_probability:
        return -1
    remaining = min(int(u / min_probability), count - 1)
    for arm in range(available.size):
        if available[arm]:
            if remaining == 0:
                return arm
            remaining -= 1
    return -1


@inline
def sample_arm(u: float, probabilities: Floats) -> int:
    """An arm drawn from `probabilities` by one uniform number u in [0, 1)."""
    chosen = -1
    for arm in range(probabilities.size):
        if probabilities[arm] > 0.0 and u >= 0.0:
            chosen = arm
        u -= probabilities[arm]
    return chosen


@inline
def normal_cdf(x: float, mean: float, sd: float) -> float:
    """Return P(N(mean, sd²) < x)."""
    return 0.5 * math.erfc((mean - x) / (sd * math.sqrt(2.0)))


@inner
def argmax_normal_probabilities(mean: Floats, sd: Floats, available: Mask, probabilities: Floats) -> None:
    """Write the probability that each available arm's N(mean, sd²) draw is the largest; all sd > 0.

    P_a = ∫ f_a(x) Π_{b≠a} F_b(x) dx, by Gauss–Legendre quadrature between the breakpoints of all arms.
    """
    count, arms, first, second = 0, probabilities.size, -1, -1
    for arm in range(arms):
        probabilities[arm] = 0.0
        if available[arm]:
            first, second, count = second, arm, count + 1
    if count == 1:
        probabilities[second] = 1.0
    if count == 2:
        probabilities[second] = normal_cdf(mean[second], mean[first], math.hypot(sd[first], sd[second]))
        probabilities[first] = normal_cdf(mean[first], mean[second], math.hypot(sd[first], sd[second]))
    if count <= 2:
        return
    breakpoints, at, low = np.empty(count * BREAKPOINTS.size), 0, -math.inf
    for arm in range(arms):
        if available[arm]:
            low = max(low, mean[arm] + BREAKPOINTS[0] * sd[arm])  # the largest draw is above this: P > 1 − 10⁻¹⁵
            for i in range(BREAKPOINTS.size):
                breakpoints[at] = mean[arm] + BREAKPOINTS[i] * sd[arm]
                at += 1
    insertion_sort(breakpoints)
    before, total = np.empty(arms), 0.0
    for i in range(breakpoints.size - 1):
        middle, half = 0.5 * (breakpoints[i] + breakpoints[i + 1]), 0.5 * (breakpoints[i + 1] - breakpoints[i])
        if half > 0.0 and breakpoints[i + 1] > low:
            for node in range(NODES.size):
                _add_quadrature_node(
                    middle + half * NODES[node], half * WEIGHTS[node], mean, sd, available, before, probabilities
                )
    for arm in range(arms):
        total += probabilities[arm]
    if total > 0.0:
        for arm in range(arms):
            probabilities[arm] /= total
    else:  # sd is below the rounding error of the means: no draw changes the choice
        argmax_probabilities(mean, available, probabilities)


@inline
def insertion_sort(values: Floats) -> None:
    """Sort in place. (numba's own sort takes seconds to compile.)"""
    for i in range(1, values.size):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@inline
def _add_quadrature_node(
    x: float, weight: float, mean: Floats, sd: Floats, available: Mask, before: Floats, probabilities: Floats
) -> None:
    """Add weight · f_a(x) Π_{b≠a} F_b(x) for every a, as product of F_b before a times product of F_b after a."""
    product = weight
    for arm in range(probabilities.size):
        before[arm] = product
        product *= normal_cdf(x, mean[arm], sd[arm]) if available[arm] else 1.0
    after = 1.0
    for arm in range(probabilities.size - 1, -1, -1):
        if available[arm]:
            deviation = (x - mean[arm]) / sd[arm]
            density = math.exp(-0.5 * deviation * deviation) / (sd[arm] * math.sqrt(2.0 * math.pi))
            probabilities[arm] += before[arm] * after * density
            after *= normal_cdf(x, mean[arm], sd[arm])


@inner
def argmax_line_probabilities(
    mu: Floats, beta: Floats, mean: float, sd: float, available: Mask, probabilities: Floats
) -> None:
    """Write the probability that μ_a + β_a z is the largest for each available arm (ties: first), z ~ N(mean, sd²)."""
    for arm in range(probabilities.size):
        probabilities[arm] = 0.0
        low, high = -math.inf, math.inf if available[arm] else -math.inf
        for other in range(probabilities.size):
            if available[other] and other != arm:
                beta_gap, mu_gap = beta[arm] - beta[other], mu[arm] - mu[other]
                if beta_gap > 0.0:
                    low = max(low, -mu_gap / beta_gap)
                elif beta_gap < 0.0:
                    high = min(high, -mu_gap / beta_gap)
                elif mu_gap < 0.0 or (mu_gap == 0.0 and other < arm):
                    high = -math.inf
        if high > low and sd > 0.0:  # a difference of small tail probabilities loses no digits
            if low > mean:
                probabilities[arm] = normal_cdf(-low, -mean, sd) - normal_cdf(-high, -mean, sd)
            else:
                probabilities[arm] = normal_cdf(high, mean, sd) - normal_cdf(low, mean, sd)
