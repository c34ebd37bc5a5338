"""LARL's context: the last s actions and rewards, Φ_t(s) = [R_t, A_t, 1] of Lemma 2, and ridge regression on it.

Of its d = 2s|A| + 1 entries 2s + 1 are not zero: the constant, and for each lag one reward and one indicator. Here the
constant is entry 0 and lag j (0 is the latest) under arm a has its reward at entry 1 + 2(j|A| + a), its indicator
right behind. A width costs |A|(2s+1)²/2, an update d(2s+1) + d².
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._compile import inline, kernel
from larl.policies._ridge import Floats, Ridge, absorb


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
def score(ridge: Ridge, arm: int, lags: Lags, s: int) -> tuple[float, float]:
    """Φᵀθ_a and the width √(ΦᵀV_a⁻¹Φ), from the lower triangle of V_a⁻¹."""
    inverse, theta = ridge.inverse, ridge.theta
    mean, half = theta[arm, 0], 0.5 * inverse[arm, 0, 0]
    for i in range(s):
        row, reward = lags.cell[i], lags.reward[i]
        mean += theta[arm, row] * reward + theta[arm, row + 1]
        along, beside = inverse[arm, row, 0], inverse[arm, row + 1, 0]
        for j in range(i):
            column, past = lags.cell[j], lags.reward[j]
            along += inverse[arm, row, column] * past + inverse[arm, row, column + 1]
            beside += inverse[arm, row + 1, column] * past + inverse[arm, row + 1, column + 1]
        along += 0.5 * inverse[arm, row, row] * reward + inverse[arm, row + 1, row]
        beside += 0.5 * inverse[arm, row + 1, row + 1]
        half += along * reward + beside
    return mean, math.sqrt(max(2.0 * half, 0.0))


@inline
def gather(ridge: Ridge, arm: int, lags: Lags, s: int, arms: int, reward: float) -> tuple[float, float]:
    """Put u = V_a⁻¹Φ into `ridge.column`; returns the leverage Φᵀu and the error reward − Φᵀθ_a."""
    inverse, theta, column = ridge.inverse, ridge.theta, ridge.column
    size, error = dimension(s, arms), reward - theta[arm, 0]
    for j in range(size):
        column[j] = inverse[arm, 0, j]
    for i in range(s):
        row, past = lags.cell[i], lags.reward[i]
        error -= theta[arm, row] * past + theta[arm, row + 1]
        for j in range(size):
            column[j] += past * inverse[arm, row, j] + inverse[arm, row + 1, j]
    leverage = column[0]
    for i in range(s):
        leverage += lags.reward[i] * column[lags.cell[i]] + column[lags.cell[i] + 1]
    return max(leverage, 0.0), error


@inline
def learn(ridge: Ridge, arm: int, lags: Lags, s: int, arms: int, reward: float) -> None:
    """Add the row (Φ, reward) to arm `arm`."""
    leverage, error = gather(ridge, arm, lags, s, arms, reward)
    absorb(ridge, arm, dimension(s, arms), 1.0, 1.0 + leverage, error)


def dense(lags: Lags, s: int, arms: int) -> Floats:
    """Φ_t(s) written out in the paper's order: rewards by lag (oldest first) and arm, then indicators, then 1."""
    x = np.zeros(dimension(s, arms))
    for j in range(s):
        arm = (int(lags.cell[j]) - 1) // 2 - j * arms
        x[(s - 1 - j) * arms + arm] = lags.reward[j]
        x[s * arms + (s - 1 - j) * arms + arm] = 1.0
    x[-1] = 1.0
    return x
