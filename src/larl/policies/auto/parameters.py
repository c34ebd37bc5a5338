"""Coordinates of a particle, the parameters that they stand for, and their priors.

All coordinates are normal under the prior. In this order:

- ψ_1 … ψ_p: tanh ψ_j is the j-th partial autocorrelation of z, so z is stable. INDEPENDENT_AR1 does not use its ψ_1;
  DAMPED_ROTATION has the logarithms of its decay rate and of its angle instead.
- b_a for each arm: β_a = ±b_a; the signs are stored separately.
- log q and logit w: the noise variance is q(wβ_a² + 1 − w), with β_a² + κ_a² in place of β_a² for DAMPED_ROTATION.
- the logarithms of the sd of the start and of the sd of the levels.
- INDEPENDENT_AR1: the logarithm of the decay rate. DAMPED_ROTATION: κ_a for each arm.

Continuous rewards have no scale of their own: everything is in units of the latent shock. Binary rewards have one, that
of the linear predictor: there log q is the logarithm of a factor of all loadings, in units of the state's stationary
standard deviation, and w is not used. Their state starts from its stationary variance.

Parameters are bounded far outside the range that the priors make likely. Without bounds, the likelihood of repeated
equal rewards grows without limit as the noise shrinks, and a filter loses all digits if its variances differ too much.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from larl._core.compile import inline, inner
from larl.policies.auto.layout import (
    AR_STATE,
    BINARY,
    CONTINUOUS,
    DAMPED_ROTATION,
    INDEPENDENT_AR1,
    FieldOffsets,
    ModelKind,
)
from larl.policies.auto.soa import LANES, Floats

MIN_NOISE, MAX_NOISE = 1e-6, 1e6  # bounds of the noise variance
MAX_LOG_SD = 7.0  # of the start and of the levels
MAX_LOADING = 30.0  # of |β| and |κ|
MAX_PARTIAL_AUTOCORRELATION = 1.0 - 1e-7

Normal = tuple[float, float]  # mean and sd
LOADING: Normal = (1.0, 0.5)
NOISE_SHARE: Normal = (1.0, 3.0)
START: Normal = (1.0, 1.0)
ANGLE: Normal = (-2.0, 1.5)
KAPPA: Normal = (0.0, 1.0)


class PopulationPrior(NamedTuple):
    """The prior of a population."""

    log_weight: float
    coordinates: Sequence[Normal]


class Priors(NamedTuple):
    """Prior distributions that depend on the observation model."""

    noise: Normal
    constant_noise: Normal  # narrow for continuous rewards: only the ratio of level differences to noise matters
    rotation_noise: Normal
    level_sd: Normal  # arms that share a state differ mostly in β, so their levels are close
    constant_level_sd: Normal  # constant arms differ only in their levels
    moving_level_sd: Normal
    rate: Normal
    first_partial: Normal
    partial: Normal


PRIORS = {
    CONTINUOUS: Priors(
        noise=(0.0, 1.0),
        constant_noise=(0.0, 0.3),
        rotation_noise=(1.0, 1.5),
        level_sd=(-3.0, 2.0),
        constant_level_sd=(-0.5, 0.5),
        moving_level_sd=(-2.0, 1.5),
        rate=(-3.5, 1.2),
        first_partial=(0.0, 1.0),
        partial=(0.0, 0.7),
    ),
    BINARY: Priors(
        noise=(0.6, 0.4),
        constant_noise=(0.0, 0.3),
        rotation_noise=(0.2, 0.7),
        level_sd=(-1.2, 0.9),
        constant_level_sd=(-0.6, 0.9),
        moving_level_sd=(-0.3, 0.8),
        rate=(-2.5, 1.0),
        first_partial=(1.0, 0.8),
        partial=(0.0, 0.7),
    ),
}


def prior_of(kind: ModelKind) -> PopulationPrior:
    """Return the prior of a population.

    Larger orders have more prior weight: they contain the smaller ones and need more rewards to be recognised.
    """
    p, arms, priors = kind.p, kind.arms, PRIORS[kind.rewards]
    loadings = [LOADING] * arms
    if kind.form == INDEPENDENT_AR1:
        end = [priors.noise, NOISE_SHARE, START, priors.moving_level_sd, priors.rate]
        return PopulationPrior(-1.0 if kind.rewards == BINARY else -2.0, [(0.0, 1.0), *loadings, *end])
    if kind.form == DAMPED_ROTATION:
        end = [priors.rotation_noise, NOISE_SHARE, START, priors.moving_level_sd, *[KAPPA] * arms]
        return PopulationPrior(-1.0 if kind.rewards == BINARY else 0.0, [priors.rate, ANGLE, *loadings, *end])
    if p == 0:
        end = [priors.constant_noise, NOISE_SHARE, START, priors.constant_level_sd]
        return PopulationPrior(-2.0 if kind.rewards == BINARY else -0.2, [*loadings, *end])
    end = [priors.noise, NOISE_SHARE, START, priors.level_sd]
    if kind.rewards == BINARY:
        later = [(priors.partial[0], priors.partial[1] / math.sqrt(max(j - 1, 1))) for j in range(1, p)]
        return PopulationPrior(-max(p - 2.0, 0.0) / 2.0, [priors.first_partial, *later, *loadings, *end])
    partials = [priors.first_partial] if p == 1 else [(priors.partial[0], priors.partial[1] / math.sqrt(p))] * p
    return PopulationPrior(math.log(p / 4), [*partials, *loadings, *end])


@inline
def clip_loading(size: float) -> float:
    """Return `size` limited to ±MAX_LOADING."""
    return min(max(size, -MAX_LOADING), MAX_LOADING)


@inner
def to_parameters(x: Floats, fields: FieldOffsets, kind: ModelKind) -> None:
    """Compute the parameters of every particle in a block from its coordinates."""
    p, phi, b, is_binary = kind.p, fields.phi, fields.theta + kind.p, kind.rewards == BINARY
    rest = b + kind.arms
    for lane in range(LANES):
        shock_share = 1.0  # variance of a shock / stationary variance of the state
        if kind.form == DAMPED_ROTATION:
            shrink, angle = math.exp(-math.exp(x[fields.theta, lane])), math.exp(x[fields.theta + 1, lane])
            x[phi, lane], x[phi + 1, lane] = shrink * math.cos(angle), shrink * math.sin(angle)
            shock_share = max(1.0 - shrink * shrink, 1e-7)
        elif kind.form == AR_STATE:
            # Durbin–Levinson recursion, from partial autocorrelations to AR coefficients. It is separate from the one
            # in larl.statespace because it works in place on one column of the block: a call on vectors would copy
            # each particle's coefficients out of the structure of arrays and back, at every move.
            for j in range(p):
                partial = math.tanh(x[fields.theta + j, lane])
                partial = min(max(partial, -MAX_PARTIAL_AUTOCORRELATION), MAX_PARTIAL_AUTOCORRELATION)
                for i in range((j + 1) // 2):
                    low, high = x[phi + i, lane], x[phi + j - 1 - i, lane]
                    x[phi + i, lane] = low - partial * high
                    x[phi + j - 1 - i, lane] = high - partial * low
                x[phi + j, lane] = partial
                shock_share *= 1.0 - partial * partial
        noise, share = math.exp(x[rest, lane]), 1.0 / (1.0 + math.exp(-x[rest + 1, lane]))
        shock_share = max(shock_share, 1e-7)
        factor = math.exp(min(x[rest, lane], 3.0)) * math.sqrt(shock_share) if is_binary else 1.0
        for arm in range(kind.arms):
            size, other = clip_loading(factor * x[b + arm, lane]), 0.0
            if kind.form == DAMPED_ROTATION:
                other = clip_loading(factor * x[rest + 4 + arm, lane])
                x[fields.kappa + arm, lane] = other
            x[fields.beta + arm, lane] = 1.0 if kind.form == INDEPENDENT_AR1 else x[fields.sign + arm, lane] * size
            variance = noise * (share * (size * size + other * other) + 1.0 - share)
            x[fields.noise_variance + arm, lane] = min(max(variance, MIN_NOISE), MAX_NOISE)
        start = 1.0 / shock_share if is_binary else math.exp(2.0 * min(x[rest + 2, lane], MAX_LOG_SD))
        x[fields.start_variance, lane] = start
        x[fields.level_variance, lane] = math.exp(2.0 * min(x[rest + 3, lane], 2.0 if is_binary else MAX_LOG_SD))
        x[fields.persistence, lane] = math.exp(-math.exp(x[rest + 4, lane])) if kind.form == INDEPENDENT_AR1 else 1.0
