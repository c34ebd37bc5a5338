"""The Beta distribution in kernels, for the logit y = log(x/(1 − x)) of a Beta(a, b) variable x.

Probabilities near 0 and 1 differ as logits where they are equal as floats, so small parameters need no special case.
The density of y is x^a (1 − x)^b / B(a, b). Its mode is log(a/b), its tails are exponential with the rates a and b.
"""

import math

from larl._core.compile import inline, inner
from larl._core.random import Bits, normal, uniform

LARGE = 16.0  # from here on Stirling's series has an error below 10⁻¹⁵
LARGEST_EXPONENT = 700.0  # exp of it is finite
TINY = 1e-300  # in place of a denominator of 0 in the continued fraction
PRECISION = 1e-15  # of the continued fraction
MAX_TERMS = 100_000  # of the continued fraction: it takes about √(a + b) near the mode


@inline
def stirling_error(z: float) -> float:
    """Return log Γ(z) minus Stirling's formula, (z − ½) log z − z + ½ log 2π."""
    if z < LARGE:
        return math.lgamma(z) - ((z - 0.5) * math.log(z) - z + 0.5 * math.log(2.0 * math.pi))
    inverse = 1.0 / (z * z)
    return (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / z


@inline
def log_peak(a: float, b: float) -> float:
    """Return the log density of the logit at its mode; large terms of log B(a, b) cancel analytically."""
    rest = stirling_error(a + b) - stirling_error(a) - stirling_error(b)
    return 0.5 * math.log(a / (a + b) * b / (2.0 * math.pi)) + rest


@inline
def log_ratio(y: float, a: float, b: float) -> float:
    """Return the log density of the logit at y minus that at its mode."""
    distance = y - math.log(a / b)
    if a > b:  # by symmetry, a/(a + b) ≤ ½: the logarithms lose no digits
        a, b, distance = b, a, -distance
    share = a / (a + b)
    if distance < LARGEST_EXPONENT:
        growth = math.log1p(share * math.expm1(distance))
    else:
        growth = distance + math.log(share + (1.0 - share) * math.exp(-distance))
    return a * distance - (a + b) * growth


@inner
def continued_fraction(x: float, a: float, b: float) -> float:
    """Return a B(a, b) I_x(a, b) / (x^a (1 − x)^b) by Lentz's method, for x < (a + 1)/(a + b + 2)."""
    value, numerator, denominator = 1.0, 1.0, 0.0
    for term in range(1, MAX_TERMS):
        m = term // 2
        if term % 2 == 0:
            factor = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        else:
            factor = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        denominator = 1.0 + factor * denominator
        denominator = 1.0 / (denominator if denominator != 0.0 else TINY)
        numerator = 1.0 + factor / numerator
        numerator = numerator if numerator != 0.0 else TINY
        value *= numerator * denominator
        if abs(numerator * denominator - 1.0) < PRECISION:
            break
    return 1.0 / value


@inline
def logit_cdf(y: float, a: float, b: float, density: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) at the logit y of x, given the density of y."""
    x = 1.0 / (1.0 + math.exp(min(-y, LARGEST_EXPONENT)))
    if x < (a + 1.0) / (a + b + 2.0):
        return min(density * continued_fraction(x, a, b) / a, 1.0)
    x = 1.0 / (1.0 + math.exp(min(y, LARGEST_EXPONENT)))
    return max(1.0 - density * continued_fraction(x, b, a) / b, 0.0)


@inner
def log_gamma_draw(bits: Bits, shape: float) -> float:
    """Draw the logarithm of a Gamma(shape, 1) variable (Marsaglia & Tsang 2000)."""
    boost = 0.0
    if shape < 1.0:  # G(a) has the distribution of G(a + 1) U^(1/a)
        boost = math.log(1.0 - uniform(bits)) / shape
        shape += 1.0
    d = shape - 1.0 / 3.0
    while True:
        z = normal(bits)
        root = 1.0 + z / math.sqrt(9.0 * d)
        if root > 0.0:
            cube = root * root * root
            if math.log(1.0 - uniform(bits)) < 0.5 * z * z + d * (1.0 - cube) + d * math.log(cube):
                return boost + math.log(d * cube)


@inline
def logit_draw(bits: Bits, a: float, b: float) -> float:
    """Draw the logit of a Beta(a, b) variable."""
    return log_gamma_draw(bits, a) - log_gamma_draw(bits, b)
