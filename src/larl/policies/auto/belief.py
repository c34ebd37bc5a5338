"""The belief of the particles in a block before a population's first reward, or after it if that sets the offset."""

from larl._core.compile import inline, inner
from larl.policies.auto.binary import OFFSET_SD
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
from larl.policies.auto.soa import LANES, Floats, broadcast, load, store


@inline
def fill(x: Floats, row: int, value: float) -> None:
    """Set a row to one value."""
    store(x, row, broadcast(value))


@inner
def init_belief(
    x: Floats,
    fields: FieldOffsets,
    kind: ModelKind,
    arm: int,
    reward: float,
    expected_level: Floats,
    contexts: Floats,
    row: int,
) -> None:
    """Set the belief after the first reward of the population; for binary rewards, before it.

    `expected_level` is that of each arm, up to a constant unless the rewards are binary. The context of the first
    reward is row `row` of `contexts`.
    """
    arms, z, cov, is_independent = kind.arms, first_state(kind), fields.cov, kind.form == INDEPENDENT_AR1
    is_binary, is_rotation = kind.rewards == BINARY, kind.form == DAMPED_ROTATION
    for i in range(z + kind.p):
        fill(x, fields.mean + i, 0.0)
    if is_independent and not is_binary:
        fill(x, fields.mean + z, reward)
    elif not is_binary:
        for i in range(arms):
            fill(x, fields.mean + i, reward + expected_level[i] - expected_level[arm])
    else:
        for i in range(arms):
            fill(x, fields.mean + i, expected_level[i])
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
    if kind.contexts > 0:
        init_effects(x, fields, kind, arm, contexts, row)
    if kind.form == STATIONARY_AR:
        spread_start(x, fields, kind, arm)


@inline
def spread_start(x: Floats, fields: FieldOffsets, kind: ModelKind, arm: int) -> None:
    """Set the covariances of the earlier states, z_{−1} … z_{1−p}; those of z_0, and zeros of effects, are set."""
    arms, z, p, cov = kind.arms, first_state(kind), kind.p, fields.cov
    variance, beta = load(x, fields.start_variance), load(x, fields.beta + arm)
    for slot in range(1, p):  # it has z_{slot − p}
        along = variance * load(x, fields.autocorrelation + p - slot)
        for i in range(arms):
            correlated = broadcast(0.0) if kind.rewards == BINARY else broadcast(0.0) - beta * along
            store(x, cov + cov_index(z + slot, i), correlated)
        store(x, cov + cov_index(z + slot, z), along)
        for other in range(1, slot + 1):
            lag = load(x, fields.autocorrelation + slot - other)
            store(x, cov + cov_index(z + slot, z + other), variance * lag)


@inline
def init_effects(x: Floats, fields: FieldOffsets, kind: ModelKind, arm: int, contexts: Floats, row: int) -> None:
    """Add the effects of the context to the belief: of arms a and b, they have the covariance v(1 + [a = b]).

    The first continuous reward r sets the offset: m_b − r contains −η_aᵀx for every arm b, or c − r if arms move alone.
    """
    arms, z, cov, zero = kind.arms, first_state(kind), fields.cov, broadcast(0.0)
    is_binary, is_independent = kind.rewards == BINARY, kind.form == INDEPENDENT_AR1
    for i in range(arms, z):
        for j in range(i + 1):
            store(x, cov + cov_index(i, j), zero)
    for i in range(z, z + kind.p):
        for j in range(arms, z):
            store(x, cov + cov_index(i, j), zero)
    for k in range(kind.contexts):
        number, variance = broadcast(0.0 if is_binary else contexts[row, k]), load(x, fields.effect_variance + k)
        for a in range(arms):
            for b in range(a + 1):
                both = variance + variance if a == b else variance
                store(x, cov + cov_index(effect_index(kind, a, k), effect_index(kind, b, k)), both)
            covariance = zero - number * (variance + variance if a == arm else variance)
            if is_independent:
                store(x, cov + cov_index(z, effect_index(kind, a, k)), covariance)
            else:
                for i in range(arms):
                    store(x, cov + cov_index(i, effect_index(kind, a, k)), covariance)
        square = number * number * (variance + variance)
        if is_independent:
            store(x, cov + cov_index(z, z), load(x, cov + cov_index(z, z)) + square)
        else:
            for i in range(arms):
                for j in range(i + 1):
                    store(x, cov + cov_index(i, j), load(x, cov + cov_index(i, j)) + square)
