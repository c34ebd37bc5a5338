"""Upper confidence bounds of success probabilities from the Kullback–Leibler divergence (Garivier & Cappé 2011)."""

import math

from larl._core.compile import inline

BISECTIONS = 50  # of the bound: the error is below 10⁻¹⁵
TINY = 1e-15  # distance of a probability from 0 and 1


@inline
def bernoulli_kl(p: float, q: float) -> float:
    """Return the Kullback–Leibler divergence of a Bernoulli variable with mean p from one with mean q."""
    p, q = min(max(p, 0.0), 1.0), min(max(q, TINY), 1.0 - TINY)  # rounding errors do not reach the logarithms
    failure = (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else 0.0
    return (p * math.log(p / q) if p > 0.0 else 0.0) + failure


@inline
def bernoulli_upper_bound(mean: float, level: float) -> float:
    """Return the largest q with kl(mean, q) ≤ level."""
    low, high = mean, 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if bernoulli_kl(mean, middle) <= level:
            low = middle
        else:
            high = middle
    return low
