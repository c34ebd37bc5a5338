"""What the particles of a block predict about the next reward of an arm."""

from larl._core.compile import inline
from larl.policies.auto.layout import (
    DAMPED_ROTATION,
    FieldOffsets,
    ModelKind,
    cov_index,
    effect_index,
    first_state,
)
from larl.policies.auto.soa import Floats, Row, broadcast, load


@inline
def newest_state(kind: ModelKind, age: int) -> int:
    """Return the index of z_t in the filter's state, `age` steps after the population started."""
    return first_state(kind) + (age % kind.p if kind.p > 0 and kind.form != DAMPED_ROTATION else 0)


@inline
def predicted_mean(
    x: Floats, fields: FieldOffsets, kind: ModelKind, row: int, z: int, arm: int, contexts: Floats, at: int
) -> Row:
    """Return the expected linear predictor of an arm with context `contexts[at]`; `row` is the block's first row."""
    mean = load(x, row + fields.mean + arm)
    for k in range(kind.contexts):
        mean += broadcast(contexts[at, k]) * load(x, row + fields.mean + effect_index(kind, arm, k))
    if kind.p > 0:
        mean += load(x, row + fields.beta + arm) * load(x, row + fields.mean + z)
    if kind.form == DAMPED_ROTATION:
        mean += load(x, row + fields.kappa + arm) * load(x, row + fields.mean + z + 1)
    return mean


@inline
def predicted_variance(
    x: Floats, fields: FieldOffsets, kind: ModelKind, row: int, z: int, arm: int, contexts: Floats, at: int
) -> Row:
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
    for k in range(kind.contexts):
        number, effect = broadcast(contexts[at, k]), effect_index(kind, arm, k)
        covariance = load(x, cov + cov_index(arm, effect))
        if kind.p > 0:
            covariance += beta * load(x, cov + cov_index(effect, z))
        if kind.form == DAMPED_ROTATION:
            covariance += load(x, row + fields.kappa + arm) * load(x, cov + cov_index(effect, z + 1))
        variance += two * number * covariance
        for j in range(kind.contexts):
            other = cov_index(effect, effect_index(kind, arm, j))
            variance += number * broadcast(contexts[at, j]) * load(x, cov + other)
    return variance
