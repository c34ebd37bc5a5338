"""The prior of SharedLARL's parameters, and where they are in the parameter vector (model.py defines them).

The effects of a context's number j have the prior h_j ~ N(0, v_j) and η_aj ~ N(h_j, w_j). Every scale is in units of
e^{mean ℓ}, the sd of an innovation in units of the reward. The densities lack the factors e^{−mean ℓ} that this would
add: without them, the mode in ℓ is the one after integrating over the other parameters.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl.policies._student_t import irls_weight, unit_scale_loss

Floats = NDArray[np.float64]

START_LOG_SD, START_PRECISION = 0.5, 1.0  # ζ ~ N(0.5, 1)
MEAN_SPREAD, MEAN_SPREAD_NU = 0.7, 2.0  # (m_a − o)e^{−mean ℓ}/MEAN_SPREAD ~ t₂: heavy tails allow distant means
EFFECT_VARIANCE, EFFECT_VARIANCE_WEIGHT = (
    0.15,
    2.0,
)  # of each kind of effect of all p numbers together, and in estimates
SCALE_PRECISION = 4.0  # prior precision of ℓ_a around their mean
ANCHOR_PRECISION = 0.01  # prior precision of that mean around `Prior.log_scale`
SMALL_SCALE_PENALTY = 1e-6  # keeps every e^{ℓ_a} above about 1e-3 e^{log_scale}


class Prior(NamedTuple):
    precision: Floats  # (s,) of g
    log_scale: Floats  # (1,) prior mean of the mean of ℓ


@inline
def arm_offset(s: int, contexts: int, slot: int) -> int:
    """Return the index of m_a in the parameters; ℓ_a and η_a follow. The one of slot |A| is their number."""
    return s + 2 + contexts + (2 + contexts) * slot


@inline
def mean_log_scale(theta: Floats, known: int, s: int, contexts: int) -> float:
    """Return the mean of ℓ_a over the arms played so far."""
    total = 0.0
    for a in range(known):
        total += theta[arm_offset(s, contexts, a) + 1]
    return total / known


@inline
def variance_loss(variance: float, effects: int, contexts: int) -> float:
    """Return the negative log prior of the variance of some effects, and the normaliser of their density."""
    share, weight = variance * contexts / EFFECT_VARIANCE, EFFECT_VARIANCE_WEIGHT
    return 0.5 * ((weight + effects) * math.log(share) + weight / share)


@inline
def prior_loss(prior: Prior, theta: Floats, variance: Floats, known: int, s: int) -> float:
    """Return the negative log prior. It contains −mean ℓ, which integrating over the free offset o leaves."""
    contexts = variance.shape[0]
    mean = mean_log_scale(theta, known, s, contexts)
    total = (
        0.5 * ANCHOR_PRECISION * (mean - prior.log_scale[0]) ** 2
        + 0.5 * START_PRECISION * (theta[s + 1] - START_LOG_SD) ** 2
        - mean
    )
    for j in range(s):
        total += 0.5 * prior.precision[j] * theta[j] ** 2
    for a in range(known):
        p = arm_offset(s, contexts, a)
        total += unit_scale_loss((theta[p] - theta[s]) * math.exp(-mean) / MEAN_SPREAD, MEAN_SPREAD_NU)
        total += 0.5 * SCALE_PRECISION * (theta[p + 1] - mean) ** 2
        total += 0.5 * SMALL_SCALE_PENALTY * math.exp(2.0 * (prior.log_scale[0] - theta[p + 1]))
    for j in range(contexts):
        common = theta[s + 2 + j]
        total += 0.5 * (common * math.exp(-mean)) ** 2 / variance[j, 0]
        total += variance_loss(variance[j, 0], 1, contexts) + variance_loss(variance[j, 1], known, contexts)
        for a in range(known):
            own = theta[arm_offset(s, contexts, a) + 2 + j] - common
            total += 0.5 * (own * math.exp(-mean)) ** 2 / variance[j, 1]
    return total


@inline
def add_outer_product(curvature: Floats, gradient: Floats, row: Floats, weight: float, e: float, d: int) -> None:
    """Add weight·row·rowᵀ to `curvature` and weight·e·row to `gradient`."""
    for p in range(d):
        scaled = weight * row[p]
        gradient[p] += e * scaled
        for q in range(d):
            curvature[p, q] += scaled * row[q]


@inline
def write_scaled_gradient(row: Floats, distance: float, known: int, s: int, contexts: int) -> None:
    """Write the gradient in ℓ of a distance in units of e^{mean ℓ}, and zeros elsewhere, into `row`."""
    for q in range(arm_offset(s, contexts, known)):
        row[q] = 0.0
    for b in range(known):
        row[arm_offset(s, contexts, b) + 1] = -distance / known


@inline
def add_prior(
    prior: Prior,
    theta: Floats,
    variance: Floats,
    row: Floats,
    curvature: Floats,
    gradient: Floats,
    known: int,
    s: int,
) -> None:
    """Add the gradient and curvature of the negative log prior."""
    contexts = variance.shape[0]
    mean, d = mean_log_scale(theta, known, s, contexts), arm_offset(s, contexts, known)
    unit = math.exp(-mean) / MEAN_SPREAD
    gradient[s + 1] += START_PRECISION * (theta[s + 1] - START_LOG_SD)
    curvature[s + 1, s + 1] += START_PRECISION
    for j in range(s):
        gradient[j] += prior.precision[j] * theta[j]
        curvature[j, j] += prior.precision[j]
    for a in range(known):
        p = arm_offset(s, contexts, a)
        distance = (theta[p] - theta[s]) * unit
        write_scaled_gradient(row, distance, known, s, contexts)
        for b in range(known):
            curvature[p + 1, arm_offset(s, contexts, b) + 1] += (ANCHOR_PRECISION / known - SCALE_PRECISION) / known
        row[s], row[p] = -unit, unit
        add_outer_product(curvature, gradient, row, irls_weight(distance, MEAN_SPREAD_NU), distance, d)
        low = SMALL_SCALE_PENALTY * math.exp(2.0 * (prior.log_scale[0] - theta[p + 1]))
        gradient[p + 1] += (
            SCALE_PRECISION * (theta[p + 1] - mean)
            - low
            + (ANCHOR_PRECISION * (mean - prior.log_scale[0]) - 1.0) / known
        )
        curvature[p + 1, p + 1] += SCALE_PRECISION + 2.0 * low
    add_effect_prior(theta, variance, row, curvature, gradient, known, s)


@inline
def add_effect_prior(
    theta: Floats, variance: Floats, row: Floats, curvature: Floats, gradient: Floats, known: int, s: int
) -> None:
    """Add the gradient and curvature of the negative log prior of the contexts' effects."""
    contexts = variance.shape[0]
    unit, d = math.exp(-mean_log_scale(theta, known, s, contexts)), arm_offset(s, contexts, known)
    for j in range(contexts):
        for a in range(-1, known):  # −1: the common effect
            common, scale = s + 2 + j, unit / math.sqrt(variance[j, 0 if a < 0 else 1])
            p = common if a < 0 else arm_offset(s, contexts, a) + 2 + j
            distance = (theta[p] - (theta[common] if a >= 0 else 0.0)) * scale
            write_scaled_gradient(row, distance, known, s, contexts)
            row[common], row[p] = -scale, scale
            add_outer_product(curvature, gradient, row, 1.0, distance, d)
