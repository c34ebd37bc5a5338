"""Cholesky factorisation and triangular solves of small matrices, in place."""

import math

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner

Floats = NDArray[np.float64]


@inner
def cholesky(matrix: Floats, d: int) -> float:
    """Write the factor L into the lower triangle, with pivots raised to a small positive number; return log det."""
    total = 0.0
    for i in range(d):
        pivot = matrix[i, i]
        least = 1e-12 * abs(pivot) + 1e-300
        for j in range(i):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = value / matrix[j, j]
            pivot -= matrix[i, j] * matrix[i, j]
        pivot = max(pivot, least)
        matrix[i, i] = math.sqrt(pivot)
        total += math.log(pivot)
    return total


@inline
def solve_lower(factor: Floats, x: Floats, d: int) -> float:
    """Replace x by L⁻¹x; return its squared length."""
    square = 0.0
    for i in range(d):
        value = x[i]
        for j in range(i):
            value -= factor[i, j] * x[j]
        x[i] = value / factor[i, i]
        square += x[i] * x[i]
    return square


@inline
def solve_upper(factor: Floats, x: Floats, d: int) -> None:
    """Replace x by L⁻ᵀx."""
    for i in range(d - 1, -1, -1):
        x[i] /= factor[i, i]
        for j in range(i):
            x[j] -= factor[i, j] * x[i]
