"""LARL's context: the last s actions and rewards, Φ_t(s) = [R_t, A_t, 1] of Lemma 2, as a list of its non-zero pairs.

Of its d = 2s|A| + 1 entries 2s + 1 are not zero: the constant, and for each lag one reward and one indicator. The
constant is pair 0, (1, 0), and lag j (0 is the latest) under arm a is pair 1 + j|A| + a, (reward, 1). A lag of which
nothing is known is (0, 0). A width costs |A|(2s+1)²/2, an update d(2s+1) + d²/2.
"""

import numpy as np

from larl._core.compile import inline, kernel
from larl.policies._linalg.packed_ridge import Pairs
from larl.policies._linalg.simd4 import Floats, aligned, four, put


@kernel
def dimension(s: int, arms: int) -> int:
    """The length of the context."""
    return 2 * s * arms + 1


@kernel
def pair_count(s: int, arms: int) -> int:
    """The number of pairs in the context: the constant's and the lags'."""
    return s * arms + 1


@inline
def write(lags: Pairs, s: int, context: Floats) -> None:
    """Put further numbers into the pairs behind s lags; the last pair of an odd number has a zero.

    Where there is no room for them, as in a policy that does not look at what its world shows, they are left out.
    """
    for i in range(0, min(context.size, 2 * (lags.place.size - 1 - s)), 2):
        first, second = context[i], context[i + 1] if i + 1 < context.size else 0.0
        at = 4 * (s + 1) + 2 * i
        lags.value[at], lags.value[at + 1] = first, second
        lags.value[at + 2], lags.value[at + 3] = second, first


def lags_init(s: int, arms: int, context: int = 0) -> Pairs:
    """The constant, s lags of which nothing is known, and pairs for `context` further numbers."""
    value = aligned(4 * (s + 1 + (context + 1) // 2))
    value[0] = value[3] = 1.0
    lags, rest = 1 + arms * np.arange(s), 1 + s * arms + np.arange((context + 1) // 2)
    return Pairs(np.concatenate([[0], lags, rest]), value)


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
