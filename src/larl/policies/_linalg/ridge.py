"""Recursive ridge regression, one per arm, with dense contexts.

For arm a: V_a = λI + Σ x xᵀ and θ_a = V_a⁻¹ Σ r x. The inverse is updated by the Sherman–Morrison formula: with
u = V⁻¹x and c = 1 + xᵀu, a new row gives V⁻¹ ← V⁻¹ − u uᵀ/c and θ ← θ + u (r − xᵀθ)/c. Removing a row is the same with
c = 1 − xᵀu and both signs reversed. The caller computes u and c; `rank_one_update` does the rest.

V⁻¹ has an error of about 10⁻¹⁶/λ, so xᵀu has one of about 10⁻¹⁶‖x‖²/λ, and a row with ‖x‖² near 10¹⁶λ could make V⁻¹
indefinite. A row with ‖x‖² > 10¹²λ therefore gets noise variance v = ‖x‖²/10¹²λ instead of 1, so that c = v + xᵀu
(`row_variance`). Rewards below 10⁶√λ are not affected.

packed_ridge.py does the same for LARL's sparse contexts; its docstring says why there are two implementations.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline

Floats = NDArray[np.float64]
MAX_SQUARED_NORM = 1e12  # ‖x‖²/λ up to which a row has full weight


class Ridge(NamedTuple):
    """The regressions of all arms."""

    inverse: Floats  # (arms, d, d): V_a⁻¹
    theta: Floats  # (arms, d)
    column: Floats  # (d,) scratch for u
    penalty: float  # λ


def ridge_init(arms: int, dimension: int, penalty: float) -> Ridge:
    """Return regressions without data: V_a = λI."""
    inverse = np.tile(np.eye(dimension) / penalty, (arms, 1, 1))
    return Ridge(inverse, np.zeros((arms, dimension)), np.zeros(dimension), penalty)


@inline
def row_variance(square: float, penalty: float) -> float:
    """Return the noise variance v of a row with ‖x‖² = `square`: 1 unless the row is too long."""
    return max(1.0, square / (MAX_SQUARED_NORM * penalty))


@inline
def rank_one_update(ridge: Ridge, arm: int, size: int, sign: float, growth: float, error: float) -> None:
    """Add (sign = 1) or remove (sign = −1) the row with u in `ridge.column`; growth is c, error is r − xᵀθ."""
    inverse, theta, column = ridge.inverse, ridge.theta, ridge.column
    step, shrink = sign * error / growth, 1.0 / math.sqrt(growth)
    for j in range(size):
        theta[arm, j] += step * column[j]
        column[j] *= shrink
    for i in range(size):
        weight = sign * column[i]
        for j in range(size):  # weight·column[j] is the same number for (i, j) and (j, i): V⁻¹ stays symmetric
            inverse[arm, i, j] -= weight * column[j]


@inline
def dense_predict(ridge: Ridge, arm: int, x: Floats) -> tuple[float, float]:
    """Return xᵀθ_a and the width √(xᵀV_a⁻¹x)."""
    mean, square = 0.0, 0.0
    for i in range(x.size):
        mean += ridge.theta[arm, i] * x[i]
        row = 0.0
        for j in range(x.size):
            row += ridge.inverse[arm, i, j] * x[j]
        square += x[i] * row
    return mean, math.sqrt(max(square, 0.0))


@inline
def dense_add_row(ridge: Ridge, arm: int, x: Floats, reward: float) -> float:
    """Add the row (x, reward); return c/v, the factor by which det V_a grows."""
    column, leverage, error, square = ridge.column, 0.0, reward, 0.0
    for i in range(x.size):
        column[i] = 0.0
    for i in range(x.size):
        error -= ridge.theta[arm, i] * x[i]
        square += x[i] * x[i]
        for j in range(x.size):
            column[j] += x[i] * ridge.inverse[arm, i, j]
    for i in range(x.size):
        leverage += x[i] * column[i]
    variance = row_variance(square, ridge.penalty)
    growth = variance + max(leverage, 0.0)
    rank_one_update(ridge, arm, x.size, 1.0, growth, error)
    return growth / variance
