"""The belief of the particles in a block before a population's first reward, or after it if that sets the offset."""

from larl._core.compile import inline, inner
from larl.policies.auto.binary import OFFSET_SD
from larl.policies.auto.layout import BINARY, DAMPED_ROTATION, INDEPENDENT_AR1, FieldOffsets, ModelKind, cov_index
from larl.policies.auto.soa import LANES, Floats, broadcast, store


@inline
def fill(x: Floats, row: int, value: float) -> None:
    """Set a row to one value."""
    store(x, row, broadcast(value))


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
