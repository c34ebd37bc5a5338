"""Filters of the particles in a block: the same rewards, different parameters.

AR_STATE, in units of the latent shock: z_t = Σ_j φ_j z_{t−j} + N(0, 1) after p free states N(0, start variance), and
r_t(a) = m_a + β_a z_t + N(0, noise variance of a). The arms' levels m_a = c + N(0, level variance) share an offset c
with a flat prior, so the filter starts at the first reward. The filter's state is (m_1 … m_|A|, z_t … z_{t−p+1}); z_t
has index |A| + t mod p, where it replaces z_{t−p}. With p = 0 the arms are constant.

INDEPENDENT_AR1: there is no z. Each m_a is an AR(1) of its own with variance `level_variance` and one-step
autocorrelation `persistence`. Index |A| holds c.

DAMPED_ROTATION: the state is a point (u, v) of the plane. Each step rotates it by ω and shrinks it by ρ, with
(φ_1, φ_2) = ρ(cos ω, sin ω), and adds N(0, 1) to both coordinates. The mean reward of arm a is m_a + β_a u + κ_a v.

With a context x, η_aᵀx is added to the mean reward of arm a. The effects η_a are constant, and come after the levels in
the filter's state: z_t has index |A|(1 + length of x) + t mod p.

BINARY rewards are 0 or 1: P(r_t(a) = 1) = Φ(η/PROBIT_SCALE), where η is the mean of the continuous model, and c has the
prior N(0, OFFSET_SD²). The belief stays normal: each reward replaces it by the normal distribution with the mean and
covariance of the exact posterior (assumed-density filtering).

larl.statespace.kalman has the filter for one set of parameters. This one is separate for speed: it updates LANES
particles with each vector instruction (soa.py) and stores covariances packed. layout.py defines the rows. In this file,
t counts the steps since the population started.
"""

from larl._core.compile import inline
from larl.policies.auto.binary import binary_gains
from larl.policies.auto.layout import (
    BINARY,
    DAMPED_ROTATION,
    INDEPENDENT_AR1,
    STATIONARY_AR,
    FieldOffsets,
    ModelKind,
    cov_index,
    effect_index,
    first_state,
)
from larl.policies.auto.soa import Floats, Row, broadcast, load, maximum, store

MIN_VARIANCE_SHARE = 1e-9  # lower limit of S, relative to the variances it is computed from: less may be rounding


@inline
def rotate(x: Floats, fields: FieldOffsets, u: int, v: int) -> None:
    """Rotate and shrink the plane of rows u and v."""
    cosine, sine, first, second = load(x, fields.phi), load(x, fields.phi + 1), load(x, u), load(x, v)
    store(x, u, cosine * first - sine * second)
    store(x, v, cosine * second + sine * first)


@inline
def time_update(x: Floats, fields: FieldOffsets, kind: ModelKind, t: int) -> None:
    """Turn the belief after step t − 1 into the belief before step t."""
    if kind.form == INDEPENDENT_AR1:
        advance_levels(x, fields, kind)
    elif kind.form == DAMPED_ROTATION:
        advance_rotation(x, fields, kind)
    elif kind.p > 0:
        advance_lags(x, fields, kind, t)


@inline
def advance_levels(x: Floats, fields: FieldOffsets, kind: ModelKind) -> None:
    """Advance the levels by one step of INDEPENDENT_AR1."""
    arms, mean, cov = kind.arms, fields.mean, fields.cov
    keep, variance = load(x, fields.persistence), load(x, fields.level_variance)
    square = keep * keep
    for i in range(arms):
        store(x, mean + i, load(x, mean + i) * keep)
        common, first = cov + cov_index(first_state(kind), i), cov + cov_index(i, 0)
        for j in range(arms, first_state(kind)):
            store(x, cov + cov_index(j, i), load(x, cov + cov_index(j, i)) * keep)
        store(x, common, load(x, common) * keep)
        for j in range(i):
            store(x, first + j, load(x, first + j) * square)
        store(x, first + i, (load(x, first + i) - variance) * square + variance)


@inline
def advance_rotation(x: Floats, fields: FieldOffsets, kind: ModelKind) -> None:
    """Advance the state by one step of DAMPED_ROTATION."""
    first, cov, work = first_state(kind), fields.cov, fields.work
    u, v = cov + cov_index(first, first), cov + cov_index(first + 1, first + 1)
    rotate(x, fields, fields.mean + first, fields.mean + first + 1)
    for i in range(first):
        rotate(x, fields, cov + cov_index(first, i), cov + cov_index(first + 1, i))
    store(x, work, load(x, v - 1))  # the covariance of u and v
    rotate(x, fields, u, v - 1)
    rotate(x, fields, work, v)
    rotate(x, fields, u, work)
    rotate(x, fields, v - 1, v)
    store(x, u, load(x, u) + broadcast(1.0))
    store(x, v, load(x, v) + broadcast(1.0))


@inline
def advance_lags(x: Floats, fields: FieldOffsets, kind: ModelKind, t: int) -> None:
    """Replace z_{t−p} by z_t; the first p states of AR_STATE are free."""
    first, p, cov, work = first_state(kind), kind.p, fields.cov, fields.work
    is_free = t < p and kind.form != STATIONARY_AR
    size, z = first + (t if is_free else p), first + t % p
    mean, variance = broadcast(0.0), load(x, fields.start_variance)
    if is_free:
        for i in range(size):
            store(x, work + i, mean)
    else:
        index, variance = z, broadcast(1.0)
        for j in range(p):
            index = index - 1 if index > first else size - 1
            mean += load(x, fields.phi + j) * load(x, fields.mean + index)
        for i in range(size):
            index, total = z, broadcast(0.0)
            for j in range(p):
                index = index - 1 if index > first else size - 1
                total += load(x, fields.phi + j) * load(x, cov + cov_index(i, index))
            store(x, work + i, total)
        index = z
        for j in range(p):
            index = index - 1 if index > first else size - 1
            variance += load(x, fields.phi + j) * load(x, work + index)
    for i in range(size):
        store(x, cov + cov_index(i, z), load(x, work + i))
    store(x, cov + cov_index(z, z), variance)
    store(x, fields.mean + z, mean)


@inline
def measurement_update(
    x: Floats,
    fields: FieldOffsets,
    kind: ModelKind,
    t: int,
    arm: int,
    reward: float,
    inflation: float,
    contexts: Floats,
    at: int,
) -> Row:
    """Condition the belief on the reward of step t, with context `contexts[at]`; return S, or 1 for binary rewards.

    In exact arithmetic S is at least the noise variance. Rounding can make it smaller if the noise is very small
    compared with the variances of level and state, so S has a lower limit relative to these.
    """
    first, mean, cov, work = first_state(kind), fields.mean, fields.cov, fields.work
    is_rotation, has_state = kind.form == DAMPED_ROTATION, kind.p > 0
    size = first + (kind.p if is_rotation or kind.form == STATIONARY_AR else min(kind.p, t + 1))
    z = first + (t % kind.p if has_state and not is_rotation else 0)
    beta, kappa = load(x, fields.beta + arm), load(x, fields.kappa + arm)
    if has_state:
        for i in range(size):
            store(x, work + i, load(x, cov + cov_index(i, arm)) + beta * load(x, cov + cov_index(i, z)))
    else:
        for i in range(size):
            store(x, work + i, load(x, cov + cov_index(i, arm)))
    if is_rotation:
        for i in range(size):
            store(x, work + i, load(x, work + i) + kappa * load(x, cov + cov_index(i, z + 1)))
    for k in range(kind.contexts):
        number, effect = broadcast(contexts[at, k]), effect_index(kind, arm, k)
        for i in range(size):
            store(x, work + i, load(x, work + i) + number * load(x, cov + cov_index(i, effect)))
    variance = load(x, work + arm)
    for k in range(kind.contexts):
        variance += broadcast(contexts[at, k]) * load(x, work + effect_index(kind, arm, k))
    if has_state:
        variance += beta * load(x, work + z)
    if is_rotation:
        variance += kappa * load(x, work + z + 1)
    if kind.rewards == BINARY:
        predicted = load(x, mean + arm)
        for k in range(kind.contexts):
            predicted += broadcast(contexts[at, k]) * load(x, mean + effect_index(kind, arm, k))
        if has_state:
            predicted += beta * load(x, mean + z)
        if is_rotation:
            predicted += kappa * load(x, mean + z + 1)
        store(x, fields.tmp1, variance)
        store(x, fields.tmp2, predicted)
        binary_gains(x, fields, reward)
        gain, scale, variance = load(x, fields.tmp3), load(x, fields.tmp1), broadcast(1.0)
    else:
        noise, least = load(x, fields.noise_variance + arm), load(x, cov + cov_index(arm, arm))
        variance += broadcast(inflation) * noise
        error = broadcast(reward) - load(x, mean + arm)
        for k in range(kind.contexts):
            number, effect = broadcast(contexts[at, k]), effect_index(kind, arm, k)
            least += number * number * load(x, cov + cov_index(effect, effect))
            error -= number * load(x, mean + effect)
        if has_state:
            least += beta * beta * load(x, cov + cov_index(z, z))
            error -= beta * load(x, mean + z)
        if is_rotation:
            least += kappa * kappa * load(x, cov + cov_index(z + 1, z + 1))
            error -= kappa * load(x, mean + z + 1)
        variance = maximum(maximum(variance, least * broadcast(MIN_VARIANCE_SHARE)), noise)
        scale = broadcast(1.0) / variance
        gain = error * scale
        store(x, fields.squared_error, load(x, fields.squared_error) + error * gain)
    for i in range(size):
        row = load(x, work + i)
        store(x, mean + i, load(x, mean + i) + row * gain)
    for i in range(size):
        factor, top = load(x, work + i) * scale, cov + (i * (i + 1) >> 1)
        for j in range(i + 1):
            store(x, top + j, load(x, top + j) - factor * load(x, work + j))
    return variance
