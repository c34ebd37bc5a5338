"""Coordinates of a particle, the parameters that they stand for, and their priors.

All coordinates are normal under the prior. In this order:

- ψ_1 … ψ_p: tanh ψ_j is the j-th partial autocorrelation of z, so z is stable. INDEPENDENT_AR1 does not use its ψ_1;
  DAMPED_ROTATION has the logarithms of its decay rate and of its angle instead.
- b_a for each arm: β_a = ±b_a; the signs are stored separately.
- log q and logit w: the noise variance is q(wβ_a² + 1 − w), with β_a² + κ_a² in place of β_a² for DAMPED_ROTATION.
- the logarithms of the sd of the start and of the sd of the levels; STATIONARY_AR: the logarithm of the sd of the start
  relative to the stationary sd.
- INDEPENDENT_AR1: the logarithm of the decay rate. DAMPED_ROTATION: κ_a for each arm.
- for each number of the context, the logarithm of the sd of its effects, in units of the sd of an innovation.

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
    BINARY,
    CONTINUOUS,
    DAMPED_ROTATION,
    INDEPENDENT_AR1,
    STATIONARY_AR,
    FieldOffsets,
    ModelKind,
    coordinate_count,
)
from larl.policies.auto.soa import (
    LANES,
    Floats,
    Row,
    broadcast,
    exp,
    load,
    maximum,
    minimum,
    square_root,
    store,
)

MIN_NOISE, MAX_NOISE = 1e-6, 1e6  # bounds of the noise variance
MAX_LOG_SD = 7.0  # of the start and of the levels
MAX_LOG_EFFECT_SD = 3.0  # of the effects of contexts
MAX_LOADING = 30.0  # of |β| and |κ|
MAX_PARTIAL_AUTOCORRELATION = 1.0 - 1e-7
MIN_SHOCK_SHARE = 1e-7  # of the variance of a shock in the stationary variance of the state
MAX_LOG_FACTOR, MAX_LOG_LEVEL_SD_BINARY = 3.0, 2.0  # binary rewards: of all loadings, and of the levels

Normal = tuple[float, float]  # mean and sd
LOADING: Normal = (1.0, 0.5)
NOISE_SHARE: Normal = (1.0, 3.0)
START: Normal = (1.0, 1.0)
STATIONARY_START: Normal = (0.0, 0.5)
ANGLE: Normal = (-2.0, 1.5)
KAPPA: Normal = (0.0, 1.0)
EFFECT_LOG_SD: Normal = (-1.2, 1.2)  # of a single number of the context


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
    start = STATIONARY_START if kind.form == STATIONARY_AR else START
    end = [priors.noise, NOISE_SHARE, start, priors.level_sd]
    if kind.rewards == BINARY:
        later = [(priors.partial[0], priors.partial[1] / math.sqrt(max(j - 1, 1))) for j in range(1, p)]
        return PopulationPrior(-max(p - 2.0, 0.0) / 2.0, [priors.first_partial, *later, *loadings, *end])
    partials = [priors.first_partial] if p == 1 else [(priors.partial[0], priors.partial[1] / math.sqrt(p))] * p
    return PopulationPrior(math.log(p / 4), [*partials, *loadings, *end])


def effect_prior(contexts: int) -> list[Normal]:
    """Return the prior of the logarithms of the effects' sd: the more numbers, the smaller their effects."""
    return [(EFFECT_LOG_SD[0] - 0.5 * math.log(contexts), EFFECT_LOG_SD[1])] * contexts if contexts else []


@inline
def clip_loading(size: Row) -> Row:
    """Return `size` limited to ±MAX_LOADING."""
    return minimum(maximum(size, broadcast(-MAX_LOADING)), broadcast(MAX_LOADING))


@inline
def set_rotation(x: Floats, fields: FieldOffsets) -> Row:
    """Compute φ of DAMPED_ROTATION; return the variance of a shock / stationary variance of the state."""
    zero = broadcast(0.0)
    shrink = exp(zero - exp(load(x, fields.theta)))
    store(x, fields.tmp1, exp(load(x, fields.theta + 1)))
    for lane in range(LANES):
        x[fields.phi, lane], x[fields.phi + 1, lane] = math.cos(x[fields.tmp1, lane]), math.sin(x[fields.tmp1, lane])
    store(x, fields.phi, shrink * load(x, fields.phi))
    store(x, fields.phi + 1, shrink * load(x, fields.phi + 1))
    return broadcast(1.0) - shrink * shrink


@inline
def set_autoregression(x: Floats, fields: FieldOffsets, kind: ModelKind) -> Row:
    """Compute φ of AR_STATE or STATIONARY_AR; return the variance of a shock / stationary variance of the state.

    The Durbin–Levinson recursion leads from partial autocorrelations to AR coefficients. It is separate from the one in
    larl.statespace because it updates the coefficients of many particles in place.
    """
    phi, one, share = fields.phi, broadcast(1.0), broadcast(1.0)
    most, is_stationary = broadcast(MAX_PARTIAL_AUTOCORRELATION), kind.form == STATIONARY_AR
    if is_stationary:
        store(x, fields.autocorrelation, one)
    for j in range(kind.p):
        double = load(x, fields.theta + j) + load(x, fields.theta + j)
        partial = one - broadcast(2.0) / (exp(double) + one)  # tanh
        partial = maximum(minimum(partial, most), broadcast(0.0) - most)
        if is_stationary and j + 1 < kind.p:  # the Yule–Walker equation of lag j + 1
            correlation = partial * share
            for i in range(j):
                correlation += load(x, phi + i) * load(x, fields.autocorrelation + j - i)
            store(x, fields.autocorrelation + j + 1, correlation)
        for i in range((j + 1) // 2):
            low, high = load(x, phi + i), load(x, phi + j - 1 - i)
            store(x, phi + i, low - partial * high)
            store(x, phi + j - 1 - i, high - partial * low)
        store(x, phi + j, partial)
        share = share * (one - partial * partial)
    return share


@inner
def to_parameters(x: Floats, fields: FieldOffsets, kind: ModelKind) -> None:
    """Compute the parameters of every particle in a block from its coordinates."""
    b, is_binary, is_rotation = fields.theta + kind.p, kind.rewards == BINARY, kind.form == DAMPED_ROTATION
    rest, zero, one, shock_share = b + kind.arms, broadcast(0.0), broadcast(1.0), broadcast(1.0)
    if is_rotation:
        shock_share = set_rotation(x, fields)
    elif kind.form != INDEPENDENT_AR1:
        shock_share = set_autoregression(x, fields, kind)
    shock_share = maximum(shock_share, broadcast(MIN_SHOCK_SHARE))
    noise, share, factor = exp(load(x, rest)), one / (one + exp(zero - load(x, rest + 1))), one
    if is_binary:
        factor = exp(minimum(load(x, rest), broadcast(MAX_LOG_FACTOR))) * square_root(shock_share)
    for arm in range(kind.arms):
        size = clip_loading(factor * load(x, b + arm))
        square = size * size
        if is_rotation:
            other = clip_loading(factor * load(x, rest + 4 + arm))
            store(x, fields.kappa + arm, other)
            square = square + other * other
        store(x, fields.beta + arm, one if kind.form == INDEPENDENT_AR1 else load(x, fields.sign + arm) * size)
        variance = noise * (share * square + one - share)
        variance = minimum(maximum(variance, broadcast(MIN_NOISE)), broadcast(MAX_NOISE))
        store(x, fields.noise_variance + arm, variance)
    start, level = minimum(load(x, rest + 2), broadcast(MAX_LOG_SD)), load(x, rest + 3)
    start_variance = one / shock_share if is_binary else exp(start + start)
    if kind.form == STATIONARY_AR and not is_binary:
        start_variance = start_variance / shock_share
    store(x, fields.start_variance, start_variance)
    level = minimum(level, broadcast(MAX_LOG_LEVEL_SD_BINARY if is_binary else MAX_LOG_SD))
    store(x, fields.level_variance, exp(level + level))
    store(x, fields.persistence, exp(zero - exp(load(x, rest + 4))) if kind.form == INDEPENDENT_AR1 else one)
    if kind.contexts > 0:
        set_effect_variances(x, fields, kind)


@inline
def set_effect_variances(x: Floats, fields: FieldOffsets, kind: ModelKind) -> None:
    """Compute the prior variances of the context's effects, in units of the variance of an innovation."""
    unit, share = broadcast(1.0), broadcast(1.0 / kind.arms)
    if kind.rewards != BINARY:
        unit = broadcast(0.0)
        for arm in range(kind.arms):
            unit += share * load(x, fields.noise_variance + arm)
            if kind.p > 0 and kind.form != INDEPENDENT_AR1:
                unit += share * load(x, fields.beta + arm) * load(x, fields.beta + arm)
            if kind.form == DAMPED_ROTATION:
                unit += share * load(x, fields.kappa + arm) * load(x, fields.kappa + arm)
    last = fields.theta + coordinate_count(kind) - kind.contexts
    for k in range(kind.contexts):
        level = minimum(load(x, last + k), broadcast(MAX_LOG_EFFECT_SD))
        store(x, fields.effect_variance + k, unit * exp(level + level))
