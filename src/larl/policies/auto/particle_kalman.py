"""Kalman filters of the particles in a block: the same rewards, different parameters.

AR_STATE, in units of the latent shock: z_t = Σ_j φ_j z_{t−j} + N(0, 1) after p free states N(0, start variance), and
r_t(a) = m_a + β_a z_t + N(0, noise variance of a). The arms' levels m_a = c + N(0, level variance) share an offset c
with a flat prior, so the filter starts at the first reward and subtracts it from all others. The filter's state is
(m_1 … m_|A|, z_t … z_{t−p+1}); z_t has index |A| + t mod p, where it replaces z_{t−p}.
With p = 0 the arms are constant.

INDEPENDENT_AR1: there is no z. Each m_a is an AR(1) of its own with variance `level_variance` and one-step
autocorrelation `persistence`. Index |A| holds c.

DAMPED_ROTATION: the state is a point (u, v) of the plane. Each step rotates it by ω and shrinks it by ρ, with
(φ_1, φ_2) = ρ(cos ω, sin ω), and adds N(0, 1) to both coordinates. The mean reward of arm a is m_a + β_a u + κ_a v.

larl.statespace.kalman has the filter for one set of parameters. This one is separate for speed: it updates LANES
particles with each vector instruction (soa.py) and stores covariances packed. layout.py defines the rows.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl.policies.auto.layout import DAMPED_ROTATION, INDEPENDENT_AR1, FieldOffsets, ModelKind, cov_index
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


class RewardHistory(NamedTuple):
    """The rewards that can still be replayed: a ring in which step t has index t mod size."""

    arm: NDArray[np.int64]  # −1 where the reward is missing
    reward: Floats  # minus the first reward


@inline
def fill(x: Floats, row: int, value: float) -> None:
    """Set a row to one value."""
    for lane in range(LANES):
        x[row, lane] = value


@inner
def init_belief(x: Floats, fields: FieldOffsets, kind: ModelKind, arm: int) -> None:
    """Set the belief after the first reward, which is subtracted from all others."""
    arms, z, cov, is_independent = fields.arms, fields.arms, fields.cov, kind.form == INDEPENDENT_AR1
    for i in range(arms + kind.p):
        fill(x, fields.mean + i, 0.0)
    fill(x, fields.log_det, 0.0)
    fill(x, fields.squared_error, 0.0)
    for lane in range(LANES):
        start, level = x[fields.start_variance, lane], x[fields.level_variance, lane]
        noise = x[fields.noise_variance + arm, lane]
        beta, kappa = 0.0, 0.0
        if is_independent:  # c − r = −m_a − e
            x[cov + cov_index(z, z), lane] = level + noise
        elif kind.p > 0:
            beta = x[fields.beta + arm, lane]
            x[cov + cov_index(z, z), lane] = start
        if kind.form == DAMPED_ROTATION:
            kappa = x[fields.kappa + arm, lane]
            x[cov + cov_index(z, z + 1), lane] = 0.0
            x[cov + cov_index(z + 1, z + 1), lane] = start
        for i in range(arms):
            if is_independent:
                x[cov + cov_index(z, i), lane] = -level if i == arm else 0.0
            elif kind.p > 0:
                x[cov + cov_index(z, i), lane] = -beta * start
            if kind.form == DAMPED_ROTATION:
                x[cov + cov_index(z + 1, i), lane] = -kappa * start
            for j in range(i + 1):
                if is_independent:
                    x[cov + cov_index(i, j), lane] = level if i == j else 0.0
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
    arms, mean, cov, work = fields.arms, fields.mean, fields.cov, fields.work
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
def measurement_update(x: Floats, fields: FieldOffsets, kind: ModelKind, t: int, arm: int, reward: float) -> None:
    """Condition the belief on the reward of step t, and multiply row `product` by S.

    In exact arithmetic S is at least the noise variance. Rounding can make it smaller if the noise is very small
    compared with the variances of level and state, so S has a lower limit relative to these.
    """
    arms, mean, cov, work = fields.arms, fields.mean, fields.cov, fields.work
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
    add(x, scale, fields.noise_variance + arm)
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
def accumulate_log_det(x: Floats, fields: FieldOffsets) -> None:
    """Add the logarithm of row `product` to `log_det` and reset the product to 1."""
    for lane in range(LANES):
        x[fields.log_det, lane] += math.log(x[fields.product, lane])
        x[fields.product, lane] = 1.0


@inline
def log_likelihood(x: Floats, fields: FieldOffsets, target: int, seen: int, largest: float) -> None:
    """Set row `target` to the log density of `seen` rewards after the first, with σ² integrated out, up to a constant.

    It is a multivariate Student-t density. `largest` is the largest |reward − first reward|; while it is 0 there is no
    scale and all particles fit equally well. Σ e²/S has a lower limit relative to `largest`, because the likelihood of
    a particle that predicts repeated equal rewards ever more exactly would otherwise grow without limit.
    """
    least = seen * (MIN_ERROR_SHARE * largest) ** 2
    for lane in range(LANES):
        square = max(x[fields.squared_error, lane], least)
        x[target, lane] = -0.5 * (x[fields.log_det, lane] + (seen * math.log(square) if square > 0.0 else 0.0))


@inner
def filter_step(
    x: Floats, fields: FieldOffsets, kind: ModelKind, t: int, arm: int, reward: float, seen: int, largest: float
) -> None:
    """Update with the reward of step t, the first after `seen` others, and advance to step t + 1."""
    if t == 0:
        init_belief(x, fields, kind, arm)
    else:
        fill(x, fields.product, 1.0)
        measurement_update(x, fields, kind, t, arm, reward)
        accumulate_log_det(x, fields)
    copy(x, fields.log_lik_before, fields.log_lik)
    log_likelihood(x, fields, fields.log_lik, seen, largest)
    time_update(x, fields, kind, t + 1)


@inner
def replay_filter(
    x: Floats,
    fields: FieldOffsets,
    kind: ModelKind,
    history: RewardHistory,
    first: int,
    next_window: int,
    end: int,
    seen: int,
    largest: float,
) -> None:
    """Filter steps first … end − 1 again, from the start or, if first > 0, from the belief in `window_start`.

    The last of these steps has a reward; it is the `seen`-th of all rewards. When the filter passes step `next_window`
    it stores the belief before that step in `next_window_start`.
    """
    size, filtered = history.arm.size, fields.window_start - fields.mean
    fill(x, fields.product, 1.0)
    if first > 0:
        for i in range(filtered):
            copy(x, fields.mean + i, fields.window_start + i)
    for t in range(first, end):
        if t == next_window:
            accumulate_log_det(x, fields)
            for i in range(filtered):
                copy(x, fields.next_window_start + i, fields.mean + i)
        if t == end - 1:
            accumulate_log_det(x, fields)
            log_likelihood(x, fields, fields.log_lik_before, seen - 2, largest)
        if t == 0:
            init_belief(x, fields, kind, history.arm[0])
        elif history.arm[t % size] >= 0:
            measurement_update(x, fields, kind, t, history.arm[t % size], history.reward[t % size])
        if t % LOG_EVERY == 0:
            accumulate_log_det(x, fields)
        time_update(x, fields, kind, t + 1)
    accumulate_log_det(x, fields)
    log_likelihood(x, fields, fields.log_lik, seen - 1, largest)
