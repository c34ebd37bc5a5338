"""What the particles of a block predict about the next reward of an arm."""

from larl._core.compile import inline
from larl.policies.auto.layout import AR_STATE, DAMPED_ROTATION, FieldOffsets, ModelKind, cov_index
from larl.policies.auto.soa import Floats, Row, broadcast, load


@inline
def newest_state(kind: ModelKind, age: int) -> int:
    """Return the index of z_t in the filter's state, `age` steps after the population started."""
    return kind.arms + (age % kind.p if kind.form == AR_STATE and kind.p > 0 else 0)


@inline
def predicted_mean(x: Floats, fields: FieldOffsets, kind: ModelKind, row: int, z: int, arm: int) -> Row:
    """Return the expected linear predictor of an arm; `row` is the first row of the block."""
    mean = load(x, row + fields.mean + arm)
    if kind.p > 0:
        mean += load(x, row + fields.beta + arm) * load(x, row + fields.mean + z)
    if kind.form == DAMPED_ROTATION:
        mean += load(x, row + fields.kappa + arm) * load(x, row + fields.mean + z + 1)
    return mean


@inline
def predicted_variance(x: Floats, fields: FieldOffsets, kind: ModelKind, row: int, z: int, arm: int) -> Row:
    """Return the variance of the linear predictor of an arm, in units of σ²."""
    cov, two = row + fields.cov, broadcast(2.0)
    variance = load(x, cov + cov_index(arm, arm))
    beta = load(x, row + fields.beta + arm)
    if kind.p > 0:
        variance += two * beta * load(x, cov + cov_index(arm, z))
        variance += beta * beta * load(x, cov + cov_index(z, z))
    if kind.form == DAMPED_ROTATION:
        kappa = load(x, row + fields.kappa + arm)
        variance += two * kappa * load(x, cov + cov_index(arm, z + 1))
        variance += two * kappa * beta * load(x, cov + cov_index(z, z + 1))
        variance += kappa * kappa * load(x, cov + cov_index(z + 1, z + 1))
    return variance
