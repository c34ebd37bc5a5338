"""Ridge regression, one per arm, for sparse contexts (LARL's, see _lags.py), with SIMD instructions.

The mathematics is that of ridge.py. There are two implementations because the contexts have different shapes. ridge.py
has dense contexts and full square matrices, and any slot can have its own penalties. LARL's contexts have 2s + 1
non-zero entries of 2s|A| + 1; with sparse contexts and packed matrices this file does a fraction of the arithmetic, in
another order, so its results differ in the last bits.

A context is a list of its non-zero pairs of entries. Of V_a⁻¹ only the lower triangle is stored, in 2×2 tiles of one
vector register each: tile (i, j ≤ i), for rows 2i and 2i + 1, starts at 4(i(i+1)/2 + j). A tile has its diagonal first,
[t₀₀ t₁₁ t₀₁ t₁₀], so its transpose swaps the last two numbers. A pair (a, b) of Φ, u or θ is stored as [a b b a]. Then

- u_i = (Σ t₀₀a + t₀₁b, Σ t₁₁b + t₁₀a) over the pairs of Φ: the sum of the two halves of Σ_j tile_ij [a b b a]_j;
- u_i u_jᵀ = [u_i0 u_i1 u_i0 u_i1][u_j0 u_j1 u_j1 u_j0];
- ΦᵀV_a⁻¹Φ is the sum of [a b a b]_i Σ_j tile_ij [a b b a]_j, with the tiles off the diagonal counted twice.

Pair 0 is the constant, (1, 0): its second entry is always zero, and so are that row and column of V_a⁻¹. Computed
indices are unsigned (`np.uintp`): for signed ones the compiler adds code for negative indices.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl.policies._linalg.ridge import row_variance
from larl.policies._linalg.simd4 import (
    Floats,
    aligned_zeros,
    broadcast4,
    extract_lane,
    horizontal_sums,
    load4,
    no_unroll,
    shuffle_0101,
    shuffle_0132,
    shuffle_2301,
    sqrt_nonnegative,
    store4,
)


class SparseContext(NamedTuple):
    """A context as a list of pairs of entries; all other pairs are zero."""

    indices: NDArray[np.int64]  # of each pair in the context: 0 first, then ascending
    value: Floats  # [a b b a] of each pair


class PackedRidge(NamedTuple):
    """The regressions of all arms, in 2×2 tiles."""

    inverse: Floats  # (arms, 2m(m+1)): the lower triangle of V_a⁻¹ for m pairs
    theta: Floats  # (arms, 4m)
    column: Floats  # (4m,) scratch for u; `solve` leaves each pair as two halves of a sum
    penalty: float  # λ


@inline
def tile_row_start(i: int) -> int:
    """Return the offset of row i of the tiles."""
    return 2 * i * (i + 1)


def packed_ridge_init(arms: int, size: int, penalty: float) -> PackedRidge:
    """Return regressions without data, V_a = λI, for contexts of `size` pairs."""
    ridge = PackedRidge(
        inverse=aligned_zeros(arms, 2 * size * (size + 1)),
        theta=aligned_zeros(arms, 4 * size),
        column=aligned_zeros(4 * size),
        penalty=penalty,
    )
    corners = 2 * np.arange(size) * (np.arange(size) + 3)
    ridge.inverse[:, corners] = ridge.inverse[:, corners[1:] + 1] = 1.0 / penalty
    return ridge


@inner
def clear_rows(ridge: PackedRidge, size: int) -> None:
    """Remove all data from the leading `size` pairs."""
    for arm in range(ridge.theta.shape[0]):
        for i in range(tile_row_start(size)):
            ridge.inverse[arm, i] = 0.0
        for i in range(4 * size):
            ridge.theta[arm, i] = 0.0
        for i in range(size):
            corner = tile_row_start(i) + 4 * i
            ridge.inverse[arm, corner] = 1.0 / ridge.penalty
            if i > 0:
                ridge.inverse[arm, corner + 1] = 1.0 / ridge.penalty


def dense_inverse(ridge: PackedRidge, arm: int) -> Floats:
    """Return V_a⁻¹ as a square matrix, without the constant's empty second entry."""
    size = ridge.column.size // 4
    square, (i, j) = np.zeros((size, 2, size, 2)), np.tril_indices(size)
    squares = ridge.inverse[arm].reshape(-1, 4)[:, [0, 2, 3, 1]].reshape(-1, 2, 2)
    square[i, :, j, :], square[j, :, i, :] = squares, squares.transpose(0, 2, 1)
    return np.delete(np.delete(square.reshape(2 * size, 2 * size), 1, axis=0), 1, axis=1)


def dense_theta(ridge: PackedRidge, arm: int) -> Floats:
    """Return θ_a without the constant's empty second entry."""
    return np.delete(ridge.theta[arm].reshape(-1, 4)[:, :2].ravel(), 1)


@inline
def inverse_trace(ridge: PackedRidge, arm: int) -> float:
    """Return tr V_a⁻¹."""
    total = 0.0
    for i in range(ridge.column.size // 4):
        corner = tile_row_start(i) + 4 * i
        total += ridge.inverse[arm, corner] + ridge.inverse[arm, corner + 1]
    return total


@inline
def predict_two_arms(
    ridge: PackedRidge, arm: int, other: int, context: SparseContext, count: int
) -> tuple[float, float, float, float]:
    """Return Φᵀθ_a and the width √(ΦᵀV_a⁻¹Φ) of two arms, for the first `count` pairs of a context.

    It computes two arms and two rows at a time, because loop overhead and loads cost as much as the arithmetic.
    """
    indices, value = context.indices, context.value
    inverse, theta = ridge.inverse[np.uintp(arm)], ridge.theta[np.uintp(arm)]
    inverse2, theta2 = ridge.inverse[np.uintp(other)], ridge.theta[np.uintp(other)]
    mean, mean2, square, square2, half = (
        broadcast4(0.0),
        broadcast4(0.0),
        broadcast4(0.0),
        broadcast4(0.0),
        broadcast4(0.5),
    )
    odd = count & 1
    if odd:
        x = load4(value, 0)
        weight = half * x * shuffle_0101(x)
        mean, mean2 = load4(theta, 0) * x, load4(theta2, 0) * x
        square, square2 = load4(inverse, 0) * weight, load4(inverse2, 0) * weight
    for i in range(odd, count, 2):
        no_unroll()
        first, second = indices[np.uintp(i)], indices[np.uintp(i + 1)]
        x, y = load4(value, 4 * i), load4(value, 4 * i + 4)
        mean += load4(theta, 4 * first) * x + load4(theta, 4 * second) * y
        mean2 += load4(theta2, 4 * first) * x + load4(theta2, 4 * second) * y
        row, below = tile_row_start(first), tile_row_start(second)
        corner, beneath, last = row + 4 * first, below + 4 * first, below + 4 * second
        products, products2 = load4(inverse, corner) * (half * x), load4(inverse2, corner) * (half * x)
        lower = load4(inverse, last) * (half * y) + load4(inverse, beneath) * x
        lower2 = load4(inverse2, last) * (half * y) + load4(inverse2, beneath) * x
        for j in range(i):
            no_unroll()
            at, z = 4 * indices[np.uintp(j)], load4(value, 4 * j)
            products += load4(inverse, row + at) * z
            products2 += load4(inverse2, row + at) * z
            lower += load4(inverse, below + at) * z
            lower2 += load4(inverse2, below + at) * z
        square += shuffle_0101(x) * products + shuffle_0101(y) * lower
        square2 += shuffle_0101(x) * products2 + shuffle_0101(y) * lower2
    sums = horizontal_sums(square, square2, mean, mean2)
    widths = sqrt_nonnegative(sums + sums)
    return 0.5 * extract_lane(sums, 2), extract_lane(widths, 0), 0.5 * extract_lane(sums, 3), extract_lane(widths, 1)


@inline
def predict_arm(ridge: PackedRidge, arm: int, context: SparseContext, count: int) -> tuple[float, float]:
    """Return Φᵀθ_a and the width √(ΦᵀV_a⁻¹Φ) of one arm."""
    mean, width, _, _ = predict_two_arms(ridge, arm, arm, context, count)
    return mean, width


@inline
def solve(
    ridge: PackedRidge, arm: int, context: SparseContext, count: int, size: int, reward: float
) -> tuple[float, float]:
    """Write u = V_a⁻¹Φ into `ridge.column`, halves not yet added; return the leverage Φᵀu and reward − Φᵀθ_a.

    It uses the first `count` pairs of the context and the leading `size` pairs of the matrix. For each pair of the
    context it adds one column of tiles; tiles right of the diagonal are transposes of a stored row.
    """
    inverse, theta, column = ridge.inverse[np.uintp(arm)], ridge.theta[np.uintp(arm)], ridge.column
    x, at = load4(context.value, 0), 0
    for i in range(size):
        no_unroll()
        store4(column, 4 * i, load4(inverse, at) * x)
        at += 4 * (i + 1)
    for j in range(1, count):
        no_unroll()
        pair, x = context.indices[np.uintp(j)], load4(context.value, 4 * j)
        at = tile_row_start(pair)
        for i in range(pair):
            no_unroll()
            store4(column, 4 * i, load4(column, 4 * i) + shuffle_0132(load4(inverse, at)) * x)
            at += 4
        for i in range(pair, size):
            no_unroll()
            store4(column, 4 * i, load4(column, 4 * i) + load4(inverse, at) * x)
            at += 4 * (i + 1)
    mean, leverage = broadcast4(0.0), broadcast4(0.0)
    for j in range(count):
        no_unroll()
        pair, x = context.indices[np.uintp(j)], load4(context.value, 4 * j)
        mean += load4(theta, 4 * pair) * x
        leverage += load4(column, 4 * pair) * shuffle_0101(x)
    leverage += shuffle_2301(leverage)
    return max(extract_lane(leverage, 0) + extract_lane(leverage, 1), 0.0), reward - (
        extract_lane(mean, 0) + extract_lane(mean, 1)
    )


@inline
def rank_one_update(ridge: PackedRidge, arm: int, size: int, sign: float, growth: float, error: float) -> None:
    """Add (sign = 1) or remove (sign = −1) the row that `solve` was called for; growth is c, error is r − Φᵀθ_a."""
    inverse, theta, column = ridge.inverse[np.uintp(arm)], ridge.theta[np.uintp(arm)], ridge.column
    share, step = broadcast4(sign / growth), broadcast4(sign / growth * error)
    at = 0
    for i in range(size):
        no_unroll()
        halves = load4(column, 4 * i)
        u = shuffle_0132(halves + shuffle_2301(halves))
        store4(column, 4 * i, u)
        store4(theta, 4 * i, load4(theta, 4 * i) + step * u)
        weight = share * shuffle_0101(u)
        for j in range(i):
            no_unroll()
            store4(inverse, at, load4(inverse, at) - weight * load4(column, 4 * j))
            at += 4
        # this order of products keeps V_a⁻¹ symmetric
        store4(inverse, at, load4(inverse, at) - share * (shuffle_0101(u) * u))
        at += 4


@inline
def squared_norm(context: SparseContext, count: int) -> float:
    """Return ‖Φ‖² of the first `count` pairs of a context."""
    square = broadcast4(0.0)
    for j in range(count):
        no_unroll()
        x = load4(context.value, 4 * j)
        square += x * x
    return extract_lane(square, 0) + extract_lane(square, 1)


@inline
def add_row(ridge: PackedRidge, arm: int, context: SparseContext, count: int, size: int, reward: float) -> None:
    """Add the row (Φ, reward) to the regression of `arm`."""
    leverage, error = solve(ridge, arm, context, count, size, reward)
    variance = row_variance(squared_norm(context, count), ridge.penalty)
    rank_one_update(ridge, arm, size, 1.0, variance + leverage, error)
