"""Ridge regression, one per arm, learnt one row at a time.

For arm a: V_a = λI + Σ x xᵀ and θ_a = V_a⁻¹ Σ r x. The inverse is kept and changed by rank one (Sherman & Morrison):
with u = V⁻¹x and c = 1 + xᵀu, a new row does V⁻¹ ← V⁻¹ − u uᵀ/c and θ ← θ + u (r − xᵀθ)/c. To forget a row is the
same with c = 1 − xᵀu and both signs turned. Whoever knows the shape of x computes u and c; `absorb` does the rest.

V⁻¹ is known to about 10⁻¹⁶/λ, so xᵀu is known to about 10⁻¹⁶‖x‖²/λ, and a row with ‖x‖² near 10¹⁶λ could make V⁻¹
indefinite. A row with ‖x‖² > 10¹²λ therefore counts less: as one with noise of variance v = ‖x‖²/10¹²λ instead of 1,
so that c = v + xᵀu (`row_variance`). Rewards below 10⁶√λ are not affected.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline

Floats = NDArray[np.float64]
LONGEST = 1e12  # ‖x‖²/λ up to which a row counts fully


class Ridge(NamedTuple):
    inverse: Floats  # (arms, d, d): V_a⁻¹
    theta: Floats  # (arms, d)
    column: Floats  # (d,) scratch for u
    penalty: float  # λ


def ridge_init(arms: int, dimension: int, penalty: float) -> Ridge:
    """No rows yet: V_a = λI."""
    inverse = np.tile(np.eye(dimension) / penalty, (arms, 1, 1))
    return Ridge(inverse, np.zeros((arms, dimension)), np.zeros(dimension), penalty)


@inline
def row_variance(square: float, penalty: float) -> float:
    """v, the variance of the noise with which a row of squared length `square` counts: 1 unless the row is too long."""
    return max(1.0, square / (LONGEST * penalty))


@inline
def absorb(ridge: Ridge, arm: int, size: int, sign: float, growth: float, error: float) -> None:
    """Add (sign = 1) or remove (sign = −1) the row whose u is in `ridge.column`; growth is c, error is r − xᵀθ."""
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
def dense_score(ridge: Ridge, arm: int, x: Floats) -> tuple[float, float]:
    """xᵀθ_a and the width √(xᵀV_a⁻¹x)."""
    mean, square = 0.0, 0.0
    for i in range(x.size):
        mean += ridge.theta[arm, i] * x[i]
        row = 0.0
        for j in range(x.size):
            row += ridge.inverse[arm, i, j] * x[j]
        square += x[i] * row
    return mean, math.sqrt(max(square, 0.0))


@inline
def dense_learn(ridge: Ridge, arm: int, x: Floats, reward: float) -> float:
    """Add the row (x, reward); returns c/v, the factor by which det V_a grew."""
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
    absorb(ridge, arm, x.size, 1.0, growth, error)
    return growth / variance
