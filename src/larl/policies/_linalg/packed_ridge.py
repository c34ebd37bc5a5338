"""Ridge regression, one per arm, on contexts of which few pairs of entries are not zero: LARL's (_lags.py).

The mathematics is that of _ridge.py. A context is a list of its non-zero pairs; of V_a⁻¹ the lower triangle is kept,
in tiles of 2×2, one vector register each: tile (i, j ≤ i), rows 2i and 2i + 1, is the four numbers from
4(i(i+1)/2 + j) on. A tile has its diagonal first, [t₀₀ t₁₁ t₀₁ t₁₀], so that its transpose swaps the last two. A pair
(a, b) of Φ, u or θ is kept as [a b b a]. Then

- u_i is t₀₀a + t₀₁b and t₁₁b + t₁₀a over the pairs of Φ, so the two halves of Σ_j tile_ij [a b b a]_j, added;
- u_i u_jᵀ is [u_i0 u_i1 u_i0 u_i1][u_j0 u_j1 u_j1 u_j0];
- ΦᵀV_a⁻¹Φ is the sum of [a b a b]_i Σ_j tile_ij [a b b a]_j, the tiles off the diagonal counted twice.

Pair 0 is a constant, (1, 0): its second entry is always zero, and so are its row and column of V_a⁻¹. Indices are made
unsigned (`np.uintp`) where they are computed, as the compiler looks for negative ones otherwise.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl.policies._linalg.ridge import row_variance
from larl.policies._linalg.simd4 import (
    Floats,
    again,
    aligned,
    as_it_stands,
    crossed,
    four,
    lane,
    put,
    roots,
    spread,
    totals,
    turned,
)


class Pairs(NamedTuple):
    """A context by its non-zero pairs; one that is known to be zero may be among them."""

    place: NDArray[np.int64]  # which pairs: 0 first, then ascending
    value: Floats  # four numbers for each


class Tiles(NamedTuple):
    inverse: Floats  # (arms, 2m(m+1)): the lower triangle of V_a⁻¹ for m pairs
    theta: Floats  # (arms, 4m)
    column: Floats  # (4m,) scratch for u, each pair first as two halves of a sum
    penalty: float  # λ


@inline
def row_start(i: int) -> int:
    """Where row i of the tiles begins."""
    return 2 * i * (i + 1)


def tiles_init(arms: int, size: int, penalty: float) -> Tiles:
    """No rows yet: V_a = λI, for contexts of `size` pairs."""
    tiles = Tiles(aligned(arms, 2 * size * (size + 1)), aligned(arms, 4 * size), aligned(4 * size), penalty)
    corners = 2 * np.arange(size) * (np.arange(size) + 3)
    tiles.inverse[:, corners] = tiles.inverse[:, corners[1:] + 1] = 1.0 / penalty
    return tiles


@inner
def tiles_clear(tiles: Tiles, size: int) -> None:
    """Forget all rows, in the leading `size` pairs."""
    for arm in range(tiles.theta.shape[0]):
        for i in range(row_start(size)):
            tiles.inverse[arm, i] = 0.0
        for i in range(4 * size):
            tiles.theta[arm, i] = 0.0
        for i in range(size):
            corner = row_start(i) + 4 * i
            tiles.inverse[arm, corner] = 1.0 / tiles.penalty
            if i > 0:
                tiles.inverse[arm, corner + 1] = 1.0 / tiles.penalty


def whole_inverse(tiles: Tiles, arm: int) -> Floats:
    """V_a⁻¹ as a square, without the constant's empty second entry."""
    size = tiles.column.size // 4
    square, (i, j) = np.zeros((size, 2, size, 2)), np.tril_indices(size)
    squares = tiles.inverse[arm].reshape(-1, 4)[:, [0, 2, 3, 1]].reshape(-1, 2, 2)
    square[i, :, j, :], square[j, :, i, :] = squares, squares.transpose(0, 2, 1)
    return np.delete(np.delete(square.reshape(2 * size, 2 * size), 1, axis=0), 1, axis=1)


def whole_theta(tiles: Tiles, arm: int) -> Floats:
    """θ_a, without the constant's empty second entry."""
    return np.delete(tiles.theta[arm].reshape(-1, 4)[:, :2].ravel(), 1)


@inline
def trace(tiles: Tiles, arm: int) -> float:
    """tr V_a⁻¹."""
    total = 0.0
    for i in range(tiles.column.size // 4):
        corner = row_start(i) + 4 * i
        total += tiles.inverse[arm, corner] + tiles.inverse[arm, corner + 1]
    return total


@inline
def scores(tiles: Tiles, arm: int, other: int, context: Pairs, count: int) -> tuple[float, float, float, float]:
    """Φᵀθ_a and the width √(ΦᵀV_a⁻¹Φ) of two arms, for the first `count` pairs of a list.

    Two arms and two rows at a time: whatever goes around the tiles costs as much as the tiles.
    """
    place, value = context.place, context.value
    inverse, theta = tiles.inverse[np.uintp(arm)], tiles.theta[np.uintp(arm)]
    inverse2, theta2 = tiles.inverse[np.uintp(other)], tiles.theta[np.uintp(other)]
    mean, mean2, square, square2, half = spread(0.0), spread(0.0), spread(0.0), spread(0.0), spread(0.5)
    alone = count & 1
    if alone:
        x = four(value, 0)
        weight = half * x * again(x)
        mean, mean2 = four(theta, 0) * x, four(theta2, 0) * x
        square, square2 = four(inverse, 0) * weight, four(inverse2, 0) * weight
    for i in range(alone, count, 2):
        as_it_stands()
        first, second = place[np.uintp(i)], place[np.uintp(i + 1)]
        x, y = four(value, 4 * i), four(value, 4 * i + 4)
        mean += four(theta, 4 * first) * x + four(theta, 4 * second) * y
        mean2 += four(theta2, 4 * first) * x + four(theta2, 4 * second) * y
        row, below = row_start(first), row_start(second)
        corner, beneath, last = row + 4 * first, below + 4 * first, below + 4 * second
        products, products2 = four(inverse, corner) * (half * x), four(inverse2, corner) * (half * x)
        lower = four(inverse, last) * (half * y) + four(inverse, beneath) * x
        lower2 = four(inverse2, last) * (half * y) + four(inverse2, beneath) * x
        for j in range(i):
            as_it_stands()
            at, z = 4 * place[np.uintp(j)], four(value, 4 * j)
            products += four(inverse, row + at) * z
            products2 += four(inverse2, row + at) * z
            lower += four(inverse, below + at) * z
            lower2 += four(inverse2, below + at) * z
        square += again(x) * products + again(y) * lower
        square2 += again(x) * products2 + again(y) * lower2
    sums = totals(square, square2, mean, mean2)
    widths = roots(sums + sums)
    return 0.5 * lane(sums, 2), lane(widths, 0), 0.5 * lane(sums, 3), lane(widths, 1)


@inline
def score(tiles: Tiles, arm: int, context: Pairs, count: int) -> tuple[float, float]:
    """The same of one arm."""
    mean, width, _, _ = scores(tiles, arm, arm, context, count)
    return mean, width


@inline
def gather(tiles: Tiles, arm: int, context: Pairs, count: int, size: int, reward: float) -> tuple[float, float]:
    """Put u = V_a⁻¹Φ into `tiles.column`, its halves not yet added; returns the leverage Φᵀu and reward − Φᵀθ_a.

    Of the list the first `count` pairs are meant, of the matrix the leading `size`. Pair by pair of the list, a column
    of tiles at a time: those right of the diagonal are the transposes of a row.
    """
    inverse, theta, column = tiles.inverse[np.uintp(arm)], tiles.theta[np.uintp(arm)], tiles.column
    x, at = four(context.value, 0), 0
    for i in range(size):
        as_it_stands()
        put(column, 4 * i, four(inverse, at) * x)
        at += 4 * (i + 1)
    for j in range(1, count):
        as_it_stands()
        place, x = context.place[np.uintp(j)], four(context.value, 4 * j)
        at = row_start(place)
        for i in range(place):
            as_it_stands()
            put(column, 4 * i, four(column, 4 * i) + crossed(four(inverse, at)) * x)
            at += 4
        for i in range(place, size):
            as_it_stands()
            put(column, 4 * i, four(column, 4 * i) + four(inverse, at) * x)
            at += 4 * (i + 1)
    mean, leverage = spread(0.0), spread(0.0)
    for j in range(count):
        as_it_stands()
        place, x = context.place[np.uintp(j)], four(context.value, 4 * j)
        mean += four(theta, 4 * place) * x
        leverage += four(column, 4 * place) * again(x)
    leverage += turned(leverage)
    return max(lane(leverage, 0) + lane(leverage, 1), 0.0), reward - (lane(mean, 0) + lane(mean, 1))


@inline
def absorb(tiles: Tiles, arm: int, size: int, sign: float, growth: float, error: float) -> None:
    """Add (sign = 1) or remove (sign = −1) the row that was gathered last; growth is c, error is r − Φᵀθ_a."""
    inverse, theta, column = tiles.inverse[np.uintp(arm)], tiles.theta[np.uintp(arm)], tiles.column
    share, step = spread(sign / growth), spread(sign / growth * error)
    at = 0
    for i in range(size):
        as_it_stands()
        halves = four(column, 4 * i)
        u = crossed(halves + turned(halves))
        put(column, 4 * i, u)
        put(theta, 4 * i, four(theta, 4 * i) + step * u)
        weight = share * again(u)
        for j in range(i):
            as_it_stands()
            put(inverse, at, four(inverse, at) - weight * four(column, 4 * j))
            at += 4
        put(inverse, at, four(inverse, at) - share * (again(u) * u))  # so multiplied, it stays symmetric
        at += 4


@inline
def squared_length(context: Pairs, count: int) -> float:
    """‖Φ‖² of the first `count` pairs of a list."""
    square = spread(0.0)
    for j in range(count):
        as_it_stands()
        x = four(context.value, 4 * j)
        square += x * x
    return lane(square, 0) + lane(square, 1)


@inline
def learn(tiles: Tiles, arm: int, context: Pairs, count: int, size: int, reward: float) -> None:
    """Add the row (Φ, reward) to arm `arm`."""
    leverage, error = gather(tiles, arm, context, count, size, reward)
    variance = row_variance(squared_length(context, count), tiles.penalty)
    absorb(tiles, arm, size, 1.0, variance + leverage, error)
