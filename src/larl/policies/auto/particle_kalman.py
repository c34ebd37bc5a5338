"""Filters of the particles in a block: the same rewards, different parameters.

AR_STATE, in units of the latent shock: z_t = Σ_j φ_j z_{t−j} + N(0, 1) after p free states N(0, start variance), and
r_t(a) = m_a + β_a z_t + N(0, noise variance of a). The arms' levels m_a = c + N(0, level variance) share an offset c
with a flat prior, so the filter starts at the first reward. The filter's state is (m_1 … m_|A|, z_t … z_{t−p+1}); z_t
has index |A| + t mod p, where it replaces z_{t−p}. With p = 0 the arms are constant.

INDEPENDENT_AR1: there is no z. Each m_a is an AR(1) of its own with variance `level_variance` and one-step
autocorrelation `persistence`. Index |A| holds c.

DAMPED_ROTATION: the state is a point (u, v) of the plane. Each step rotates it by ω and shrinks it by ρ, with
(φ_1, φ_2) = ρ(cos ω, sin ω), and adds N(0, 1) to both coordinates. The mean reward of arm a is m_a + β_a u + κ_a v.

BINARY rewards are 0 or 1: P(r_t(a) = 1) = Φ(η/PROBIT_SCALE), where η is the mean of the continuous model, and c has the
prior N(0, OFFSET_SD²). The belief stays normal: each reward replaces it by the normal distribution with the mean and
covariance of the exact posterior (assumed-density filtering).

larl.statespace.kalman has the filter for one set of parameters. This one is separate for speed: it updates LANES
particles with each vector instruction (soa.py) and stores covariances packed. layout.py defines the rows. In this file,
t counts the steps since the population started.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl.policies.auto.layout import BINARY, DAMPED_ROTATION, INDEPENDENT_AR1, FieldOffsets, ModelKind, cov_index
from larl.policies.auto.soa import (
    LANES,
    Floats,
    add,
    add_product,
    copy,
    elementwise_max,
    multiply,
    reciprocal,
    subtract,
    subtract_product,
    sum_product,
)

LOG_EVERY = 8  # rewards between logarithms: a product of 8 variances cannot overflow
MIN_VARIANCE_SHARE = 1e-9  # lower limit of S, relative to the variances it is computed from: less may be rounding
MIN_ERROR_SHARE = 1e-7  # lower limit of the RMS error, relative to the largest |reward − first reward|
PROBIT_SCALE = 1.7  # Φ(η/1.7) is within 0.01 of the logistic function
OFFSET_SD = 1.7
MAX_SHRINKAGE = 1.0 - 1e-6  # of the variance of η by one binary reward

# log Φ(u) and φ(u)/Φ(u) at u = −TABLE_END … TABLE_END; in between they are interpolated linearly.
TABLE_END, TABLE_STEPS = 8.0, 64
_CDF = [math.erfc((TABLE_END - i / TABLE_STEPS) / 2**0.5) / 2 for i in range(int(2 * TABLE_END) * TABLE_STEPS + 1)]
_PDF = [NormalDist().pdf(i / TABLE_STEPS - TABLE_END) for i in range(int(2 * TABLE_END) * TABLE_STEPS + 1)]
LOG_CDF = np.log(np.array(_CDF))
MILLS = np.array(_PDF) / np.array(_CDF)


class RewardHistory(NamedTuple):
    """The rewards that can still be replayed: a ring in which step t has index t mod size."""

    arm: NDArray[np.int64]  # −1 where the reward is missing
    reward: Floats  # minus the first reward; binary: 0 or 1
    inflation: Floats  # factor of the noise variance of this reward: 1, or more for an outlier
    evidence: Floats  # logarithm of the evidence of all populations after this step


@inline
def fill(x: Floats, row: int, value: float) -> None:
    """Set a row to one value."""
    for lane in range(LANES):
        x[row, lane] = value


@inner
def init_belief(x: Floats, fields: FieldOffsets, kind: ModelKind, arm: int, reward: float) -> None:
    """Set the belief after the first reward of the population; for binary rewards, before it."""
    arms, z, cov, is_independent = kind.arms, kind.arms, fields.cov, kind.form == INDEPENDENT_AR1
    is_binary, is_rotation = kind.rewards == BINARY, kind.form == DAMPED_ROTATION
    for i in range(arms + kind.p):
        fill(x, fields.mean + i, 0.0)
    if is_independent and not is_binary:
        fill(x, fields.mean + z, reward)
    elif not is_binary:
        for i in range(arms):
            fill(x, fields.mean + i, reward)
    for lane in range(LANES):
        start, level = x[fields.start_variance, lane], x[fields.level_variance, lane]
        noise = x[fields.noise_variance + arm, lane]
        beta, kappa, offset = 0.0, 0.0, OFFSET_SD * OFFSET_SD
        if is_independent:  # c − r = −m_a − e
            x[cov + cov_index(z, z), lane] = offset if is_binary else level + noise
        elif kind.p > 0:
            beta = 0.0 if is_binary else x[fields.beta + arm, lane]
            x[cov + cov_index(z, z), lane] = start
        if is_rotation:
            kappa = 0.0 if is_binary else x[fields.kappa + arm, lane]
            x[cov + cov_index(z, z + 1), lane] = 0.0
            x[cov + cov_index(z + 1, z + 1), lane] = start
        for i in range(arms):
            if is_independent:
                x[cov + cov_index(z, i), lane] = -level if i == arm and not is_binary else 0.0
            elif kind.p > 0:
                x[cov + cov_index(z, i), lane] = -beta * start
            if is_rotation:
                x[cov + cov_index(z + 1, i), lane] = -kappa * start
            for j in range(i + 1):
                if is_independent:
                    x[cov + cov_index(i, j), lane] = level if i == j else 0.0
                elif is_binary:
                    x[cov + cov_index(i, j), lane] = offset + (level if i == j else 0.0)
                else:  # m_b − r = (level of b) − (level of a) − β_a z − e
                    multiple = 0.0 if i == arm or j == arm else 2.0 if i == j else 1.0
                    x[cov + cov_index(i, j), lane] = multiple * level + (beta * beta + kappa * kappa) * start + noise


@inline
def rotate(x: Floats, fields: FieldOffsets, u: int, v: int) -> None:
    """Rotate and shrink the plane of rows u and v."""
    multiply(x, fields.tmp2, fields.phi + 1, u)
    multiply(x, fields.tmp3, fields.phi + 1, v)
    multiply(x, u, fields.phi, u)
    subtract(x, u, fields.tmp3)
    multiply(x, v, fields.phi, v)
    add(x, v, fields.tmp2)


@inline
def time_update(x: Floats, fields: FieldOffsets, kind: ModelKind, t: int) -> None:
    """Turn the belief after step t − 1 into the belief before step t."""
    arms, mean, cov, work = kind.arms, fields.mean, fields.cov, fields.work
    if kind.form == INDEPENDENT_AR1:
        multiply(x, fields.tmp1, fields.persistence, fields.persistence)
        for i in range(arms):
            multiply(x, mean + i, mean + i, fields.persistence)
            multiply(x, cov + cov_index(arms, i), cov + cov_index(arms, i), fields.persistence)
            subtract(x, cov + cov_index(i, i), fields.level_variance)
            for j in range(i + 1):
                multiply(x, cov + cov_index(i, j), cov + cov_index(i, j), fields.tmp1)
            add(x, cov + cov_index(i, i), fields.level_variance)
    elif kind.form == DAMPED_ROTATION:
        u, v = cov + cov_index(arms, arms), cov + cov_index(arms + 1, arms + 1)
        rotate(x, fields, mean + arms, mean + arms + 1)
        for i in range(arms):
            rotate(x, fields, cov + cov_index(arms, i), cov + cov_index(arms + 1, i))
        copy(x, work, v - 1)  # the covariance of u and v
        rotate(x, fields, u, v - 1)
        rotate(x, fields, work, v)
        rotate(x, fields, u, work)
        rotate(x, fields, v - 1, v)
        fill(x, fields.tmp1, 1.0)
        add(x, u, fields.tmp1)
        add(x, v, fields.tmp1)
    elif kind.p > 0:
        size, z = arms + min(kind.p, t), arms + t % kind.p
        for i in range(size):
            fill(x, work + i, 0.0)
        fill(x, fields.tmp2, 0.0)
        if t < kind.p:
            copy(x, fields.tmp1, fields.start_variance)
        else:
            fill(x, fields.tmp1, 1.0)
            index = z
            for j in range(kind.p):
                index = index - 1 if index > arms else size - 1
                add_product(x, fields.tmp2, fields.phi + j, mean + index)
                for i in range(size):
                    add_product(x, work + i, fields.phi + j, cov + cov_index(i, index))
            index = z
            for j in range(kind.p):
                index = index - 1 if index > arms else size - 1
                add_product(x, fields.tmp1, fields.phi + j, work + index)
        for i in range(size):
            copy(x, cov + cov_index(i, z), work + i)
        copy(x, cov + cov_index(z, z), fields.tmp1)
        copy(x, mean + z, fields.tmp2)


@inline
def measurement_update(
    x: Floats, fields: FieldOffsets, kind: ModelKind, t: int, arm: int, reward: float, inflation: float
) -> None:
    """Condition the belief on the reward of step t, and multiply row `product` by S.

    In exact arithmetic S is at least the noise variance. Rounding can make it smaller if the noise is very small
    compared with the variances of level and state, so S has a lower limit relative to these.
    """
    arms, mean, cov, work = kind.arms, fields.mean, fields.cov, fields.work
    beta, kappa = fields.beta + arm, fields.kappa + arm
    is_rotation = kind.form == DAMPED_ROTATION
    size, z = arms + (2 if is_rotation else min(kind.p, t + 1)), arms
    scale, error, gain = fields.tmp1, fields.tmp2, fields.tmp3
    least, square = fields.tmp2, fields.tmp3  # the same rows, used before error and gain
    if kind.p > 0:
        z += 0 if is_rotation else t % kind.p
        for i in range(size):
            sum_product(x, work + i, cov + cov_index(i, arm), beta, cov + cov_index(i, z))
        if is_rotation:
            for i in range(size):
                add_product(x, work + i, kappa, cov + cov_index(i, z + 1))
        sum_product(x, scale, work + arm, beta, work + z)
        if is_rotation:
            add_product(x, scale, kappa, work + z + 1)
    else:
        for i in range(size):
            copy(x, work + i, cov + cov_index(i, arm))
        copy(x, scale, work + arm)
    if kind.rewards == BINARY:
        copy(x, error, mean + arm)
        if kind.p > 0:
            add_product(x, error, beta, mean + z)
        if is_rotation:
            add_product(x, error, kappa, mean + z + 1)
        binary_gains(x, fields, reward)
    else:
        fill(x, square, inflation)
        multiply(x, square, square, fields.noise_variance + arm)
        add(x, scale, square)
        copy(x, least, cov + cov_index(arm, arm))
        if kind.p > 0:
            multiply(x, square, beta, beta)
            add_product(x, least, square, cov + cov_index(z, z))
        if is_rotation:
            multiply(x, square, kappa, kappa)
            add_product(x, least, square, cov + cov_index(z + 1, z + 1))
        fill(x, square, MIN_VARIANCE_SHARE)
        multiply(x, least, least, square)
        elementwise_max(x, scale, least)
        elementwise_max(x, scale, fields.noise_variance + arm)
        fill(x, error, reward)
        subtract(x, error, mean + arm)
        if kind.p > 0:
            subtract_product(x, error, beta, mean + z)
        if is_rotation:
            subtract_product(x, error, kappa, mean + z + 1)
        multiply(x, fields.product, fields.product, scale)
        reciprocal(x, scale, scale)
        multiply(x, gain, error, scale)
        add_product(x, fields.squared_error, error, gain)
    for i in range(size):
        add_product(x, mean + i, work + i, gain)
    for i in range(size):
        multiply(x, gain, work + i, scale)
        first = cov + (i * (i + 1) >> 1)
        for j in range(i + 1):
            subtract_product(x, first + j, gain, work + j)


@inline
def probit(u: float) -> tuple[float, float]:
    """Return log Φ(u) and φ(u)/Φ(u)."""
    if u <= -TABLE_END:  # the first terms of the asymptotic series
        return -0.5 * u * u - math.log(-u) - 0.9189385332046727, -u - 1.0 / u
    if u >= TABLE_END:
        return 0.0, 0.0
    position = (u + TABLE_END) * TABLE_STEPS
    i = np.int64(position)
    weight = position - i
    return LOG_CDF[i] + weight * (LOG_CDF[i + 1] - LOG_CDF[i]), MILLS[i] + weight * (MILLS[i + 1] - MILLS[i])


@inline
def binary_gains(x: Floats, fields: FieldOffsets, reward: float) -> None:
    """Turn the mean of η (row tmp2) and its variance (tmp1) into the factors of the moments' updates (tmp3, tmp1).

    With h the covariance of the state and η, the mean moves by h · tmp3 and the covariance by −hhᵀ · tmp1.
    """
    for lane in range(LANES):
        variance, y = max(x[fields.tmp1, lane], 0.0), 2.0 * reward - 1.0
        scale = math.sqrt(PROBIT_SCALE * PROBIT_SCALE + variance)
        u = y * x[fields.tmp2, lane] / scale
        log_probability, ratio = probit(u)
        shrinkage = ratio * (u + ratio) / (scale * scale)
        x[fields.log_det, lane] -= 2.0 * log_probability
        x[fields.tmp3, lane] = y * ratio / scale
        x[fields.tmp1, lane] = min(shrinkage, MAX_SHRINKAGE / variance) if variance > 0.0 else 0.0


@inline
def accumulate_log_det(x: Floats, fields: FieldOffsets) -> None:
    """Add the logarithm of row `product` to `log_det` and reset the product to 1."""
    for lane in range(LANES):
        x[fields.log_det, lane] += math.log(x[fields.product, lane])
        x[fields.product, lane] = 1.0


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
) -> None:
    """Update with the reward of step t, with which there are `seen` prediction errors, and advance to step t + 1."""
    if t == 0:
        init_belief(x, fields, kind, arm, reward)
    fill(x, fields.product, 1.0)
    if t > 0 or kind.rewards == BINARY:
        measurement_update(x, fields, kind, t, arm, reward, inflation)
        accumulate_log_det(x, fields)
    copy(x, fields.log_lik_before, fields.log_lik)
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
) -> None:
    """Filter steps first … end − 1 again, from the population's start or, if first > born, from `window_start`.

    The last of these steps has a reward; with it there are `seen` prediction errors. `prior_square` is the Σ e²/S that
    the population started with.
    """
    size, filtered = history.arm.size, fields.window_start - fields.mean
    fill(x, fields.product, 1.0)
    if first > born:
        for i in range(filtered):
            copy(x, fields.mean + i, fields.window_start + i)
    else:
        fill(x, fields.log_det, 0.0)
        fill(x, fields.squared_error, prior_square)
    for step in range(first, end):
        t, i = step - born, step % size
        if step == end - 1:
            accumulate_log_det(x, fields)
            log_likelihood(x, fields, kind, fields.log_lik_before, seen - 1.0, largest)
        if t == 0:
            init_belief(x, fields, kind, history.arm[i], history.reward[i])
        if history.arm[i] >= 0 and (t > 0 or kind.rewards == BINARY):
            measurement_update(x, fields, kind, t, history.arm[i], history.reward[i], history.inflation[i])
        if step % LOG_EVERY == 0:
            accumulate_log_det(x, fields)
        time_update(x, fields, kind, t + 1)
    accumulate_log_det(x, fields)
    log_likelihood(x, fields, kind, fields.log_lik, seen, largest)
