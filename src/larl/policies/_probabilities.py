"""With which probabilities a policy chooses among the arms that are open: the law of its `act`, written down."""

import math

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]  # (arms,) which arms can be chosen

CUTS = np.array([-8.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 8.0])  # standard deviations
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


@inline
def evenly(available: Mask, probabilities: Floats) -> None:
    """All open arms alike."""
    count = 0
    for arm in range(probabilities.size):
        count += available[arm]
    for arm in range(probabilities.size):
        probabilities[arm] = 1.0 / count if available[arm] else 0.0


@inline
def surely(choice: int, probabilities: Floats) -> None:
    """One arm for certain."""
    for arm in range(probabilities.size):
        probabilities[arm] = 1.0 if arm == choice else 0.0


@inline
def first_best(score: Floats, available: Mask, probabilities: Floats) -> None:
    """The lowest of the open arms with the largest score."""
    best, choice = -math.inf, -1
    for arm in range(probabilities.size):
        if available[arm] and (choice < 0 or score[arm] > best):
            best, choice = score[arm], arm
    surely(choice, probabilities)


@inline
def below(x: float, mean: float, sd: float) -> float:
    """P(N(mean, sd²) < x)."""
    return 0.5 * math.erfc((mean - x) / (sd * math.sqrt(2.0)))


@inner
def largest_draw(mean: Floats, sd: Floats, available: Mask, probabilities: Floats) -> None:
    """The probability of each open arm that its N(mean, sd²) is the largest; all sd > 0.

    P_a = ∫ f_a(x) Π_{b≠a} F_b(x) dx, by Gauss–Legendre between points where some f_b may begin, turn or end.
    """
    count, arms, first, second = 0, probabilities.size, -1, -1
    for arm in range(arms):
        probabilities[arm] = 0.0
        if available[arm]:
            first, second, count = second, arm, count + 1
    if count == 1:
        probabilities[second] = 1.0
    if count == 2:
        probabilities[second] = below(mean[second], mean[first], math.hypot(sd[first], sd[second]))
        probabilities[first] = below(mean[first], mean[second], math.hypot(sd[first], sd[second]))
    if count <= 2:
        return
    cuts, at, low = np.empty(count * CUTS.size), 0, -math.inf
    for arm in range(arms):
        if available[arm]:
            low = max(low, mean[arm] + CUTS[0] * sd[arm])  # below it this arm is never the largest, nor any other
            for i in range(CUTS.size):
                cuts[at] = mean[arm] + CUTS[i] * sd[arm]
                at += 1
    _sort(cuts)
    before, total = np.empty(arms), 0.0
    for i in range(cuts.size - 1):
        middle, half = 0.5 * (cuts[i] + cuts[i + 1]), 0.5 * (cuts[i + 1] - cuts[i])
        if half > 0.0 and cuts[i + 1] > low:
            for node in range(NODES.size):
                _at_point(middle + half * NODES[node], half * WEIGHTS[node], mean, sd, available, before, probabilities)
    for arm in range(arms):
        total += probabilities[arm]
    if total > 0.0:
        for arm in range(arms):
            probabilities[arm] /= total
    else:  # the means are so far apart that mean + sd is the mean: no draw changes the choice
        first_best(mean, available, probabilities)


@inline
def _sort(values: Floats) -> None:
    """By insertion. (numba's own sort takes seconds to compile.)"""
    for i in range(1, values.size):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@inline
def _at_point(
    x: float, weight: float, mean: Floats, sd: Floats, available: Mask, before: Floats, probabilities: Floats
) -> None:
    """Add weight · f_a(x) Π_{b≠a} F_b(x) for every a: the product of those before a times that of those behind."""
    product = weight
    for arm in range(probabilities.size):
        before[arm] = product
        product *= below(x, mean[arm], sd[arm]) if available[arm] else 1.0
    behind = 1.0
    for arm in range(probabilities.size - 1, -1, -1):
        if available[arm]:
            away = (x - mean[arm]) / sd[arm]
            density = math.exp(-0.5 * away * away) / (sd[arm] * math.sqrt(2.0 * math.pi))
            probabilities[arm] += before[arm] * behind * density
            behind *= below(x, mean[arm], sd[arm])


@inner
def largest_line(mu: Floats, beta: Floats, mean: float, sd: float, available: Mask, probabilities: Floats) -> None:
    """The probability of each open arm that its μ_a + β_a z is the largest (ties: the lowest), z ~ N(mean, sd²)."""
    for arm in range(probabilities.size):
        probabilities[arm] = 0.0
        low, high = -math.inf, math.inf if available[arm] else -math.inf
        for other in range(probabilities.size):
            if available[other] and other != arm:
                steeper, ahead = beta[arm] - beta[other], mu[arm] - mu[other]
                if steeper > 0.0:
                    low = max(low, -ahead / steeper)
                elif steeper < 0.0:
                    high = min(high, -ahead / steeper)
                elif ahead < 0.0 or (ahead == 0.0 and other < arm):
                    high = -math.inf
        if high > low and sd > 0.0:  # of two tails, the difference of the small ends
            if low > mean:
                probabilities[arm] = below(-low, -mean, sd) - below(-high, -mean, sd)
            else:
                probabilities[arm] = below(high, mean, sd) - below(low, mean, sd)
