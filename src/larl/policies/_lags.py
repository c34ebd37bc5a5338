"""LARL's context: the last s actions and rewards, Φ_t(s) = [R_t, A_t, 1] of Lemma 2, as a list of its non-zero pairs.

Of its d = 2s|A| + 1 entries 2s + 1 are not zero: the constant, and for each lag one reward and one indicator. The
constant is pair 0, (1, 0), and lag j (0 is the latest) under arm a is pair 1 + j|A| + a, (reward, 1). A lag of which
nothing is known is (0, 0). A width costs |A|(2s+1)²/2, an update d(2s+1) + d²/2.
"""

import numpy as np

from larl._compile import inline, kernel
from larl.policies._quads import Floats, aligned, four, put
from larl.policies._tiles import Pairs


@kernel
def dimension(s: int, arms: int) -> int:
    """The length of the context."""
    return 2 * s * arms + 1


@kernel
def pair_count(s: int, arms: int) -> int:
    """The number of pairs in the context."""
    return s * arms + 1


def lags_init(s: int, arms: int) -> Pairs:
    """The constant, and s lags of which nothing is known."""
    value = aligned(4 * (s + 1))
    value[0] = value[3] = 1.0
    return Pairs(np.append(0, 1 + arms * np.arange(s)), value)


@inline
def push(lags: Pairs, s: int, arms: int, arm: int, reward: float) -> None:
    """Move every lag one further back and put (arm, reward) at lag 0."""
    _push(lags, s, arms, arm, reward, 1.0)


@inline
def push_missing(lags: Pairs, s: int, arms: int) -> None:
    """Move every lag one further back; of lag 0 nothing is known."""
    _push(lags, s, arms, 0, 0.0, 0.0)


@inline
def _push(lags: Pairs, s: int, arms: int, arm: int, reward: float, indicator: float) -> None:
    for j in range(s, 1, -1):
        lags.place[np.uintp(j)] = lags.place[np.uintp(j - 1)] + arms
        put(lags.value, 4 * j, four(lags.value, 4 * j - 4))
    if s > 0:
        lags.place[1] = 1 + arm
        lags.value[4], lags.value[5], lags.value[6], lags.value[7] = reward, indicator, indicator, reward


def dense(lags: Pairs, s: int, arms: int) -> Floats:
    """Φ_t(s) written out in the paper's order: rewards by lag (oldest first) and arm, then indicators, then 1."""
    x = np.zeros((2, s, arms))
    for j in range(s):
        x[:, s - 1 - j, lags.place[j + 1] - 1 - j * arms] = lags.value[4 * j + 4 : 4 * j + 6]
    return np.append(x.ravel(), 1.0)
