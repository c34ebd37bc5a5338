"""LARL's context: the last s actions and rewards, Φ_t(s) = [R_t, A_t, 1] of Lemma 2, and ridge regression on it.

Of its d = 2s|A| + 1 entries 2s + 1 are not zero: the constant, and for each lag one reward and one indicator. Here the
constant is entry 0 and lag j (0 is the latest) under arm a has its reward at entry 1 + 2(j|A| + a), its indicator
right behind. A width costs |A|(2s+1)²/2, an update d(2s+1) + d²/2.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._compile import inline, kernel
from larl.policies._half import Floats, Half, half_absorb, row_start
from larl.policies._spans import add_rows


class Lags(NamedTuple):
    cell: NDArray[np.int64]  # entry of each lag's reward in the context, latest lag first
    reward: Floats


def lags_init(s: int) -> Lags:
    return Lags(np.zeros(s, dtype=np.int64), np.zeros(s))


@kernel
def dimension(s: int, arms: int) -> int:
    """The length of the context."""
    return 2 * s * arms + 1


@inline
def push(lags: Lags, s: int, arms: int, arm: int, reward: float) -> None:
    """Move every lag one further back and put (arm, reward) at lag 0."""
    for j in range(s - 1, 0, -1):
        lags.cell[j] = lags.cell[j - 1] + 2 * arms
        lags.reward[j] = lags.reward[j - 1]
    if s > 0:
        lags.cell[0], lags.reward[0] = 1 + 2 * arm, reward


@inline
def rows_before(inverse: Floats, row: int, lags: Lags, count: int) -> tuple[float, float]:
    """Rows `row` and `row + 1` of V_a⁻¹, each times the part of Φ that is the constant and the latest `count` lags."""
    at, beneath = row_start(row), row_start(row + 1)
    above, above_ones, below, below_ones = inverse[np.uintp(at)], 0.0, inverse[np.uintp(beneath)], 0.0
    for j in range(count):
        cell, reward = lags.cell[j], lags.reward[j]
        above += inverse[np.uintp(at + cell)] * reward
        above_ones += inverse[np.uintp(at + cell + 1)]
        below += inverse[np.uintp(beneath + cell)] * reward
        below_ones += inverse[np.uintp(beneath + cell + 1)]
    return above + above_ones, below + below_ones


@inline
def score(half: Half, arm: int, lags: Lags, s: int) -> tuple[float, float]:
    """Φᵀθ_a and the width √(ΦᵀV_a⁻¹Φ)."""
    inverse, theta = half.inverse[arm], half.theta[arm]
    mean, square = theta[0], 0.5 * inverse[0]
    for i in range(s):
        row, reward = lags.cell[i], lags.reward[i]
        mean += theta[np.uintp(row)] * reward + theta[np.uintp(row + 1)]
        above, below = rows_before(inverse, row, lags, i)
        corner, beneath = np.uintp(row_start(row) + row), np.uintp(row_start(row + 1) + row)
        above += 0.5 * inverse[corner] * reward + inverse[beneath]
        below += 0.5 * inverse[beneath + np.uintp(1)]
        square += above * reward + below
    return mean, math.sqrt(max(2.0 * square, 0.0))


@inline
def _column_part(half: Half, arm: int, lags: Lags, s: int, arms: int) -> None:
    """Into `half.column`: of u = V_a⁻¹Φ, the products left of the diagonal."""
    inverse, column = half.inverse[arm], half.column
    column[0] = inverse[0]
    for lag in range(s):
        for other in range(arms):
            row = 1 + 2 * (lag * arms + other)
            count = lag + 1 if lags.cell[lag] < row else lag
            above, below = rows_before(inverse, row, lags, count)
            column[np.uintp(row)], column[np.uintp(row + 1)] = above, below


@inline
def gather(half: Half, arm: int, lags: Lags, s: int, arms: int, reward: float) -> tuple[float, float]:
    """Put u = V_a⁻¹Φ into `half.column`; returns the leverage Φᵀu and the error reward − Φᵀθ_a."""
    inverse, theta, column = half.inverse[arm], half.theta[arm], half.column
    _column_part(half, arm, lags, s, arms)
    error = reward - theta[0]
    for i in range(s):
        row, past = lags.cell[i], lags.reward[i]
        error -= theta[np.uintp(row)] * past + theta[np.uintp(row + 1)]
        at, beneath = row_start(row), row_start(row + 1)
        add_rows(column, past, inverse, at, beneath, row)
        across = inverse[np.uintp(beneath + row)]
        column[np.uintp(row)] += past * inverse[np.uintp(at + row)] + across
        column[np.uintp(row + 1)] += past * across + inverse[np.uintp(beneath + row + 1)]
    leverage, ones = column[0], 0.0
    for i in range(s):
        leverage += lags.reward[i] * column[np.uintp(lags.cell[i])]
        ones += column[np.uintp(lags.cell[i] + 1)]
    return max(leverage + ones, 0.0), error


@inline
def learn(half: Half, arm: int, lags: Lags, s: int, arms: int, reward: float) -> None:
    """Add the row (Φ, reward) to arm `arm`."""
    leverage, error = gather(half, arm, lags, s, arms, reward)
    half_absorb(half, arm, dimension(s, arms), 1.0, 1.0 + leverage, error)


def dense(lags: Lags, s: int, arms: int) -> Floats:
    """Φ_t(s) written out in the paper's order: rewards by lag (oldest first) and arm, then indicators, then 1."""
    x = np.zeros(dimension(s, arms))
    for j in range(s):
        arm = (int(lags.cell[j]) - 1) // 2 - j * arms
        x[(s - 1 - j) * arms + arm] = lags.reward[j]
        x[s * arms + (s - 1 - j) * arms + arm] = 1.0
    x[-1] = 1.0
    return x
