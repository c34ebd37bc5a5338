"""LARL's context Φ_t(s) = [R_t, A_t, 1] (Trella et al. 2025, Lemma 2): the last s actions and rewards, sparse.

Of its d = 2s|A| + 1 entries, 2s + 1 are not zero: the constant, and for each lag one reward and one indicator. Pair 0
is the constant, (1, 0). Lag j (0 is the latest) with arm a is pair 1 + j|A| + a, (reward, 1). A lag without a reward is
(0, 0). The widths of all arms cost |A|(2s+1)²/2 multiplications, an update d(2s+1) + d²/2.

In a `ScaledContext` lag j is multiplied by a factor. A ridge regression on it with penalty λ is one on the context with
penalty λ/factor² on the coefficients of lag j.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import generic, implement, inline, kernel
from larl._core.states import share_fields
from larl.policies._bounds import Bound
from larl.policies._linalg.packed_ridge import SparseContext
from larl.policies._linalg.simd4 import Floats, aligned_zeros, broadcast4, load4, store4


@kernel
def dimension(s: int, arms: int) -> int:
    """Return the length d of the context."""
    return 2 * s * arms + 1


@kernel
def pair_count(s: int, arms: int) -> int:
    """Return the number of pairs in the context: the constant and one per lag and arm."""
    return s * arms + 1


@inline
def write_context(lags: SparseContext, s: int, context: Floats) -> None:
    """Write additional context numbers into the pairs after the s lags; an odd count is padded with a zero.

    Numbers without a pair, as in a policy with ``context=0`` in a world with a context, are ignored.
    """
    for i in range(0, min(context.size, 2 * (lags.indices.size - 1 - s)), 2):
        first, second = context[i], context[i + 1] if i + 1 < context.size else 0.0
        at = 4 * (s + 1) + 2 * i
        lags.value[at], lags.value[at + 1] = first, second
        lags.value[at + 2], lags.value[at + 3] = second, first


def lags_init(s: int, arms: int, context: int = 0) -> SparseContext:
    """Return a context with the constant, s empty lags, and pairs for `context` additional numbers."""
    value = aligned_zeros(4 * (s + 1 + (context + 1) // 2))
    value[0] = value[3] = 1.0
    lags, rest = 1 + arms * np.arange(s), 1 + s * arms + np.arange((context + 1) // 2)
    return SparseContext(np.concatenate([[0], lags, rest]), value)


def lag_bounds(initial: SparseContext, s: int, arms: int) -> Bound:
    """Return the bounds of the indices: those of the s lags depend on the arm, all others are fixed."""
    high = initial.indices.copy()
    high[1 : s + 1] += arms - 1
    return initial.indices, high


@generic
def push(lags: Any, s: int, arms: int, arm: int, reward: float) -> None:
    """Shift all lags by one and write (arm, reward) to lag 0."""
    _push(lags, s, arms, arm, reward, 1.0)


@generic
def push_missing(lags: Any, s: int, arms: int) -> None:
    """Shift all lags by one and leave lag 0 empty."""
    _push(lags, s, arms, 0, 0.0, 0.0)


@inline
def _push(lags: Any, s: int, arms: int, arm: int, reward: float, indicator: float) -> None:
    """Shift all lags by one and write the pair (reward, indicator) of `arm` to lag 0."""
    for j in range(s, 1, -1):
        lags.indices[np.uintp(j)] = lags.indices[np.uintp(j - 1)] + arms
        store4(lags.value, 4 * j, load4(lags.value, 4 * j - 4))
    if s > 0:
        lags.indices[1] = 1 + arm
        lags.value[4], lags.value[5], lags.value[6], lags.value[7] = reward, indicator, indicator, reward


class ScaledContext(NamedTuple):
    """A `SparseContext` whose lags are multiplied by factors."""

    indices: NDArray[np.int64]
    value: Floats
    factor: Floats  # (s,) of lag 0, then of each lag relative to the lag before it
    indicator: float  # additional factor of the indicators


share_fields(ScaledContext, ("factor",))


def scaled_lags_init(lag_factors: Floats, indicator: float, arms: int, context: int = 0) -> ScaledContext:
    """Return a context with the constant, an empty lag for each factor, and pairs for `context` additional numbers."""
    lags = lags_init(lag_factors.size, arms, context)
    return ScaledContext(lags.indices, lags.value, lag_factors / np.append(1.0, lag_factors[:-1]), indicator)


def push_scaled(lags: ScaledContext, s: int, arms: int, arm: int, reward: float) -> None:
    """Shift all lags by one, write (arm, reward) to lag 0, and scale every lag."""
    factor = lags.factor[0] if s > 0 else 1.0
    _push(lags, s, arms, arm, factor * reward, factor * lags.indicator)
    _scale_shifted(lags, s)


def push_missing_scaled(lags: ScaledContext, s: int, arms: int) -> None:
    """Shift all lags by one, leave lag 0 empty, and scale every other lag."""
    _push(lags, s, arms, 0, 0.0, 0.0)
    _scale_shifted(lags, s)


@inline
def _scale_shifted(lags: ScaledContext, s: int) -> None:
    """Multiply every lag but the first by its factor relative to the lag that it was before."""
    for j in range(1, s):
        store4(lags.value, 4 * j + 4, broadcast4(lags.factor[np.uintp(j)]) * load4(lags.value, 4 * j + 4))


implement(push, ScaledContext, push_scaled)
implement(push_missing, ScaledContext, push_missing_scaled)


def dense_context(lags: SparseContext, s: int, arms: int) -> Floats:
    """Return Φ_t(s) as a dense vector in the paper's order: rewards by lag (oldest first) and arm, indicators, 1."""
    x = np.zeros((2, s, arms))
    for j in range(s):
        x[:, s - 1 - j, lags.indices[j + 1] - 1 - j * arms] = lags.value[4 * j + 4 : 4 * j + 6]
    return np.append(x.ravel(), 1.0)
