"""Ridge regression on LARL's context, one per arm, with half of a symmetric matrix: less to keep, half the work.

The mathematics is that of _ridge.py. Of V_a⁻¹ only the lower triangle is kept, row by row: entry (i, j ≤ i) is at
i(i+1)/2 + j. d is odd: a constant first, and pairs behind it (_lags.py). Indices are made unsigned (`np.uintp`) where
they are computed, as the compiler looks for negative ones otherwise.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._compile import inline, inner
from larl.policies._spans import subtract_products

Floats = NDArray[np.float64]


class Half(NamedTuple):
    inverse: Floats  # (arms, d(d+1)/2): the lower triangle of V_a⁻¹
    theta: Floats  # (arms, d)
    column: Floats  # (d,) scratch for u
    penalty: float  # λ


@inline
def row_start(i: int) -> int:
    """Where row i of the triangle begins."""
    return i * (i + 1) // 2


def half_init(arms: int, dimension: int, penalty: float) -> Half:
    """No rows yet: V_a = λI."""
    inverse = np.zeros((arms, dimension * (dimension + 1) // 2))
    inverse[:, np.cumsum(np.arange(1, dimension + 1)) - 1] = 1.0 / penalty
    return Half(inverse, np.zeros((arms, dimension)), np.zeros(dimension), penalty)


def whole_inverse(half: Half, arm: int) -> Floats:
    """V_a⁻¹ as a square."""
    size = half.column.size
    square = np.zeros((size, size))
    square[np.tril_indices(size)] = half.inverse[arm]
    return square + np.tril(square, -1).T


@inner
def half_clear(half: Half, size: int) -> None:
    """Forget all rows, in the leading `size` coordinates."""
    for arm in range(half.theta.shape[0]):
        for i in range(row_start(size)):
            half.inverse[arm, i] = 0.0
        for i in range(size):
            half.theta[arm, i] = 0.0
            half.inverse[arm, row_start(i) + i] = 1.0 / half.penalty


@inline
def half_absorb(half: Half, arm: int, size: int, sign: float, growth: float, error: float) -> None:
    """Add (sign = 1) or remove (sign = −1) the row whose u is in `half.column`; growth is c, error is r − xᵀθ."""
    inverse, theta, column = half.inverse[arm], half.theta[arm], half.column
    share = sign / growth
    first = share * column[0]
    theta[0] += error * first
    inverse[0] -= first * column[0]
    at = 1
    for i in range(1, size, 2):  # two rows at a time: u is loaded once for both
        upper, lower, next_row = np.uintp(i), np.uintp(i + 1), at + i + 1
        weight, second = share * column[upper], share * column[lower]
        theta[upper] += error * weight
        theta[lower] += error * second
        subtract_products(inverse, at, next_row, weight, second, column, i + 1)
        inverse[np.uintp(next_row + i + 1)] -= second * column[lower]
        at = next_row + i + 2
