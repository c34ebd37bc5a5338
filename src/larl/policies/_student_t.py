"""The Student-t log density, as separate terms.

With ν degrees of freedom and squared scale σ², log p(e) = log_constant(ν) − ½ log(πσ²) − student_t_loss(e², ν, σ²).
The terms are separate because kernels compute the constant once per step, and optimisers need only the loss.
"""

import math

from larl._core.compile import inline


def log_constant(degrees: float) -> float:
    """Return the term of the log density that depends only on the degrees of freedom, without −½ log π."""
    return math.lgamma(0.5 * (degrees + 1.0)) - math.lgamma(0.5 * degrees) - 0.5 * math.log(degrees)


compiled_log_constant = inline(log_constant)  # for kernels


@inline
def student_t_loss(squared_error: float, degrees: float, squared_scale: float) -> float:
    """Return the term of the negative log density that depends on the error."""
    return 0.5 * (degrees + 1.0) * math.log1p(squared_error / (degrees * squared_scale))


@inline
def unit_scale_loss(e: float, degrees: float) -> float:
    """Return the loss of an error at scale 1."""
    return student_t_loss(e * e, degrees, 1.0)


@inline
def irls_weight(e: float, degrees: float) -> float:
    """Return loss′(e)/e at scale 1: the weight of a row in iteratively reweighted least squares."""
    return (degrees + 1.0) / (degrees + e * e)
