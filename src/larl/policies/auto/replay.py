"""The rewards that can be replayed, and the filters of the particles in a block over one or many of them."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl.policies.auto.belief import fill, init_belief
from larl.policies.auto.layout import BINARY, FieldOffsets, ModelKind
from larl.policies.auto.particle_kalman import measurement_update, time_update
from larl.policies.auto.soa import LANES, Floats, Row, broadcast, exponent, load, mantissa, store

MIN_ERROR_SHARE = 1e-7  # lower limit of the RMS error, relative to the largest |reward − first reward|
NORMALISE_EVERY = 8  # rewards between two normalisations: a product of 8 variances cannot overflow
LOG_2 = math.log(2.0)


class RewardHistory(NamedTuple):
    """The rewards that can still be replayed: a ring in which step t has index t mod size."""

    arm: NDArray[np.int64]  # −1 where the reward is missing
    reward: Floats  # minus the first reward; binary: 0 or 1
    inflation: Floats  # factor of the noise variance of this reward: 1, or more for an outlier
    evidence: Floats  # logarithm of the evidence of all populations after this step
    context: Floats  # (size, contexts) context of this step


@inner
def occurs_elsewhere(history: RewardHistory, steps: int, value: float, index: int) -> bool:
    """Return whether an entry of the ring before `steps`, other than `index`, has exactly this reward."""
    found = False
    for i in range(steps):
        found |= i != index and history.arm[i] >= 0 and history.reward[i] == value
    return found


@inline
def add_log_det(x: Floats, fields: FieldOffsets, product: Row, exponents: Row) -> None:
    """Add the logarithm of product · 2^exponents to `log_det`."""
    store(x, fields.tmp1, product)
    store(x, fields.log_det, load(x, fields.log_det) + broadcast(LOG_2) * exponents)
    for lane in range(LANES):
        x[fields.log_det, lane] += math.log(x[fields.tmp1, lane])


@inline
def log_likelihood(x: Floats, fields: FieldOffsets, kind: ModelKind, target: int, seen: float, largest: float) -> None:
    """Set row `target` to the log-likelihood of the rewards so far.

    Continuous: σ² is integrated out, which gives a multivariate Student-t density of `seen` prediction errors.
    `largest` is the largest |reward − first reward|; while it is 0 there is no scale and all particles fit equally
    well. Σ e²/S has a lower limit relative to `largest`, because the likelihood of a particle that predicts repeated
    equal rewards ever more exactly would otherwise grow without limit.
    """
    if kind.rewards == BINARY:
        for lane in range(LANES):
            x[target, lane] = -0.5 * x[fields.log_det, lane]
        return
    least = seen * (MIN_ERROR_SHARE * largest) ** 2
    constant = math.lgamma(0.5 * seen) - 0.5 * seen * math.log(math.pi) if seen > 0.0 else 0.0
    for lane in range(LANES):
        square = max(x[fields.squared_error, lane], least)
        x[target, lane] = constant - 0.5 * (
            x[fields.log_det, lane] + (seen * math.log(square) if square > 0.0 else 0.0)
        )


@inner
def filter_step(
    x: Floats,
    fields: FieldOffsets,
    kind: ModelKind,
    t: int,
    arm: int,
    reward: float,
    inflation: float,
    seen: float,
    largest: float,
    expected_level: Floats,
    contexts: Floats,
    at: int,
) -> None:
    """Update with the reward of step t, with which there are `seen` prediction errors, and advance to step t + 1.

    The context of step t is `contexts[at]`.
    """
    if t == 0:
        init_belief(x, fields, kind, arm, reward, expected_level, contexts, at)
    if t > 0 or kind.rewards == BINARY:
        variance = measurement_update(x, fields, kind, t, arm, reward, inflation, contexts, at)
        add_log_det(x, fields, variance, broadcast(0.0))
    store(x, fields.log_lik_before, load(x, fields.log_lik))
    log_likelihood(x, fields, kind, fields.log_lik, seen, largest)
    time_update(x, fields, kind, t + 1)


@inner
def replay_filter(
    x: Floats,
    fields: FieldOffsets,
    kind: ModelKind,
    history: RewardHistory,
    born: int,
    first: int,
    end: int,
    seen: float,
    prior_square: float,
    largest: float,
    expected_level: Floats,
) -> None:
    """Filter steps first … end − 1 again, from the population's start or, if first > born, from `window_start`.

    The last of these steps has a reward; with it there are `seen` prediction errors. `prior_square` is the Σ e²/S that
    the population started with, `expected_level` the prior mean of the arms' levels.
    """
    size, filtered = history.arm.size, fields.window_start - fields.mean
    product, exponents = broadcast(1.0), broadcast(0.0)
    if first > born:
        for i in range(filtered):
            store(x, fields.mean + i, load(x, fields.window_start + i))
    else:
        fill(x, fields.log_det, 0.0)
        fill(x, fields.squared_error, prior_square)
    for step in range(first, end):
        t, i = step - born, step % size
        if step == end - 1:
            add_log_det(x, fields, product, exponents)
            product, exponents = broadcast(1.0), broadcast(0.0)
            log_likelihood(x, fields, kind, fields.log_lik_before, seen - 1.0, largest)
        if t == 0:
            init_belief(x, fields, kind, history.arm[i], history.reward[i], expected_level, history.context, i)
        if history.arm[i] >= 0 and (t > 0 or kind.rewards == BINARY):
            arm, reward, inflation = history.arm[i], history.reward[i], history.inflation[i]
            variance = measurement_update(x, fields, kind, t, arm, reward, inflation, history.context, i)
            product = product * variance
        if step % NORMALISE_EVERY == 0:
            exponents, product = exponents + exponent(product), mantissa(product)
        time_update(x, fields, kind, t + 1)
    add_log_det(x, fields, product, exponents)
    log_likelihood(x, fields, kind, fields.log_lik, seen, largest)
