"""Thompson sampling of success probabilities: Beta posteriors, choice by draws, and its exact probabilities."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl._core.random import Bits
from larl._core.validation import InvalidValue, numbers
from larl.policies._beta import log_peak, log_ratio, logit_cdf, logit_draw
from larl.policies._probabilities import NODES, WEIGHTS, Mask, argmax_probabilities, insertion_sort

Floats = NDArray[np.float64]

MIN_PRIOR, MAX_PRIOR = 1e-3, 1e6
NEGLIGIBLE = -36.0  # log of the density over its peak, at the ends of the quadrature
MAX_POINTS = 48  # breakpoints of an arm; the steps double, so 20 a side reach the ends with the least prior


def prior_pair(owner: str, name: str, value: Any) -> tuple[float, float]:
    """Check that a value is (successes, failures) of a Beta prior."""
    result: tuple[float, ...] = numbers(2)(owner, name, value)
    if len(result) != 2 or min(result) < MIN_PRIOR or max(result) > MAX_PRIOR:
        accepted = f"two numbers (successes, failures), each from {MIN_PRIOR:g} to {MAX_PRIOR:g}"
        raise InvalidValue(owner, name, result, accepted)
    return result[0], result[1]


@inline
def shapes(count: float, total: float, successes: float, failures: float) -> tuple[float, float]:
    """Return the parameters of the posterior after `count` rewards with sum `total`; rounding leaves none negative."""
    return successes + max(total, 0.0), failures + max(count - total, 0.0)


@inline
def moments(
    count: float, total: float, successes: float, failures: float, low: float, high: float
) -> tuple[float, float]:
    """Return posterior mean and sd of the mean reward, in units of the reward."""
    a, b = shapes(count, total, successes, failures)
    mean = a / (a + b)
    return low + (high - low) * mean, (high - low) * math.sqrt(mean * (1.0 - mean) / (a + b + 1.0))


@inline
def best_beta_sample(bits: Bits, plays: Floats, total: Floats, successes: float, failures: float) -> int:
    """Draw every arm's success probability from its posterior; return the arm with the largest draw."""
    best, choice = -math.inf, 0
    for arm in range(plays.size):
        a, b = shapes(plays[arm], total[arm], successes, failures)
        draw = logit_draw(bits, a, b)
        if draw > best:
            best, choice = draw, arm
    return choice


@inline
def first_step(a: float, b: float) -> float:
    """Return the smaller of the standard deviation at the mode, and 1, the scale of the bend between mode and tail."""
    return min(math.sqrt((a + b) / a / b), 1.0)


@inner
def set_breakpoints(a: float, b: float, out: Floats) -> tuple[int, float, float]:
    """Write breakpoints of the quadrature of one arm into `out`; return their number, the lowest and the highest.

    From the mode, steps double until the density is negligible.
    """
    mode, count, lowest, y = math.log(a / b), 1, 0.0, 0.0
    out[0] = mode
    for side in (-1.0, 1.0):
        step, lowest, y = first_step(a, b), y, mode
        while log_ratio(y, a, b) > NEGLIGIBLE and count < out.size:
            y += side * step
            out[count] = y
            step, count = 2.0 * step, count + 1
    return count, lowest, y


@inner
def beta_sample_probabilities(
    plays: Floats, total: Floats, successes: float, failures: float, available: Mask, probabilities: Floats
) -> None:
    """Write the probability that `best_beta_sample` chooses each available arm.

    P_i = ∫ f_i(y) Π_{j≠i} F_j(y) dy over logits, by Gauss–Legendre quadrature between the breakpoints of all arms.
    """
    arms, count, low, gap, mass = probabilities.size, 0, -math.inf, 0.5, 0.0
    a, b, peak, highest = np.empty(arms), np.empty(arms), np.empty(arms), np.empty(arms)
    breakpoints = np.empty(arms * MAX_POINTS)
    for arm in range(arms):
        probabilities[arm] = 0.0
        if available[arm]:
            a[arm], b[arm] = shapes(plays[arm], total[arm], successes, failures)
            peak[arm] = log_peak(a[arm], b[arm])
            used, lowest, highest[arm] = set_breakpoints(a[arm], b[arm], breakpoints[count : count + MAX_POINTS])
            count, low = count + used, max(low, lowest)  # the largest draw is above `low`: P > 1 − 10⁻¹⁵
            gap = min(gap, 0.5 * first_step(a[arm], b[arm]))
    insertion_sort(breakpoints[:count])
    density, cdf, start = np.empty(arms), np.empty(arms), low
    for i in range(count):
        end = breakpoints[i]
        if end < start + gap and (i < count - 1 or end <= start):
            continue  # breakpoints of other arms are close
        middle, half = 0.5 * (start + end), 0.5 * (end - start)
        start = end
        for node in range(NODES.size):
            y = middle + half * NODES[node]
            for arm in range(arms):
                density[arm], cdf[arm] = 0.0, 1.0
                if available[arm] and y < highest[arm]:
                    density[arm] = math.exp(peak[arm] + log_ratio(y, a[arm], b[arm]))
                    cdf[arm] = logit_cdf(y, a[arm], b[arm], density[arm])
            mass += add_node(half * WEIGHTS[node], density, cdf, probabilities)
    if mass > 0.0:
        for arm in range(arms):
            probabilities[arm] /= mass
    else:  # the posteriors are narrower than the rounding error of their modes: no draw changes the choice
        for arm in range(arms):
            cdf[arm] = a[arm] / b[arm]
        argmax_probabilities(cdf, available, probabilities)


@inline
def add_node(weight: float, density: Floats, cdf: Floats, probabilities: Floats) -> float:
    """Add weight · f_i Π_{j≠i} F_j to the probability of every arm i; return the sum of what was added."""
    product, added = weight, 0.0
    for arm in range(cdf.size):
        rest = product
        for other in range(arm + 1, cdf.size):
            rest *= cdf[other]
        probabilities[arm] += rest * density[arm]
        added += rest * density[arm]
        product *= cdf[arm]
    return added
