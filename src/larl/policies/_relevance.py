"""How likely it is that a number of the context has an effect at all.

A policy estimates the effects of a number on all arms, a vector with the prior N(0, σ²Λ) and, given the variance σ² of
the noise, the posterior N(μ, σ²C). The evidence of "there are effects" against "all are 0" is the ratio of the
densities of the rewards under both, with σ² integrated out. With equal prior odds this gives the probability of an
effect, the number's relevance, by which predictions multiply the number. So a number without an effect costs little,
although its effects are estimated.
"""

import math

from larl._core.compile import inline, inner
from larl.policies._linalg.cholesky import Floats, cholesky, solve_lower


@inline
def log_ratio(square: float, log_det: float, prior_log_det: float, degrees: float) -> float:
    """Return the log evidence of effects, from μᵀC⁻¹μ/σ² at the estimate of σ², log det C and log det Λ.

    `degrees` are those of the estimate of σ², which is integrated out: without the effects, the sum of squared errors
    is larger by the factor 1 + `square` / `degrees`.
    """
    return 0.5 * (degrees * math.log1p(square / degrees) + log_det - prior_log_det)


@inline
def relevance(log_ratio: float) -> float:
    """Return the probability of an effect from its log evidence."""
    return 1.0 / (1.0 + math.exp(-log_ratio)) if log_ratio > -700.0 else 0.0


@inner
def block_log_ratio(cov: Floats, mean: Floats, size: int, prior_log_det: float, degrees: float) -> float:
    """Return `log_ratio` of effects with a posterior covariance and mean; both are overwritten."""
    log_det = cholesky(cov, size)
    return log_ratio(solve_lower(cov, mean, size), log_det, prior_log_det, degrees)
