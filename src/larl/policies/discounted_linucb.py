"""Discounted LinUCB (D-LinUCB: Russac, Vernade & Cappé 2019) on LARL's context, for coefficients that drift.

With γ the discount and t − i the number of steps since row i, each arm has G = Σ γ^(t−i) ΦΦᵀ, H = Σ γ^(2(t−i)) ΦΦᵀ and
b = Σ γ^(t−i) rΦ. The paper's matrices are V = G + λI and Ṽ = H + λI. Its recursion V ← γV + ΦΦᵀ + (1−γ)λI keeps the
penalty; here λ is not stored in the sums, so it cannot decay either. Time passes for all arms: each step discounts the
sums of every arm, also after a missing reward.

All sums change at every step, so no inverse is updated: a decision factorises V of each arm, O(d³) for contexts of
length d. With u = V⁻¹Φ the mean is Φᵀθ̂ = uᵀb and the squared width is ΦᵀV⁻¹ṼV⁻¹Φ = uᵀHu + λuᵀu. Sums of squares with
positive weights lose no digits over time, and V has no eigenvalue below λ, however small the weights become.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl._core.random import Bits, pick
from larl._core.validation import boolean, checked, integer, number, required
from larl.policies._bounds import STEPS, Bound
from larl.policies._contract import Policy
from larl.policies._lags import dimension, lag_bounds, lags_init, push, push_missing
from larl.policies._linalg.cholesky import cholesky, solve_lower, solve_upper
from larl.policies._linalg.packed_ridge import SparseContext, squared_norm
from larl.policies._linalg.ridge import row_variance
from larl.policies._linalg.simd4 import Floats
from larl.policies._registry import register
from larl.policies._standardise import standard_init


class DiscountedLinUCBState(NamedTuple):
    gram: Floats  # (arms, d, d) lower triangle of G
    squared_gram: Floats  # (arms, d, d) lower triangle of H, with squared weights
    total: Floats  # (arms, d) b
    lags: SparseContext
    time: NDArray[np.int64]  # (1,)
    discount: float
    alpha: float
    penalty: float  # λ


def bounds(initial: DiscountedLinUCBState, state: DiscountedLinUCBState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {
        "lags.indices": lag_bounds(initial.lags, initial.lags.indices.size - 1, initial.total.shape[0]),
        "time": STEPS,
    }


@inner
def fill_context(lags: SparseContext, x: Floats) -> None:
    """Write the context into `x`, which is zero: the constant, then the reward and the indicator of each pair."""
    x[0] = 1.0
    for j in range(1, lags.indices.size):
        pair = lags.indices[j]
        x[2 * pair - 1], x[2 * pair] = lags.value[4 * j], lags.value[4 * j + 1]


@inner
def predict_arm(state: DiscountedLinUCBState, arm: int) -> tuple[float, float]:
    """Return Φᵀθ̂ and the width √(ΦᵀV⁻¹ṼV⁻¹Φ) of one arm."""
    d = state.total.shape[1]
    u, factor = np.zeros(d), np.empty((d, d))
    fill_context(state.lags, u)
    for i in range(d):
        for j in range(i):
            factor[i, j] = state.gram[arm, i, j]
        factor[i, i] = state.gram[arm, i, i] + state.penalty
    cholesky(factor, d)
    solve_lower(factor, u, d)
    solve_upper(factor, u, d)
    mean, square = 0.0, 0.0
    for i in range(d):
        row = 0.0
        for j in range(i):
            row += state.squared_gram[arm, i, j] * u[j]
        mean += state.total[arm, i] * u[i]
        square += u[i] * (2.0 * row + (state.squared_gram[arm, i, i] + state.penalty) * u[i])
    return mean, math.sqrt(max(square, 0.0))


@inline
def advance(state: DiscountedLinUCBState, arm: int, reward: float) -> None:
    """Discount all sums by one step, then add the row of `arm` (−1: its reward is missing)."""
    (arms, d), s = state.total.shape, state.lags.indices.size - 1
    x, has_row = np.zeros(d), arm >= 0 and state.time[0] >= s
    if has_row:
        fill_context(state.lags, x)
        # A very long row gets less weight, as in LARL: V then keeps enough digits of λ.
        scale = 1.0 / math.sqrt(row_variance(squared_norm(state.lags, s + 1), state.penalty))
        reward *= scale
        for i in range(d):
            x[i] *= scale
    for each in range(arms):
        share = 1.0 if has_row and each == arm else 0.0
        for i in range(d):
            state.total[each, i] = state.discount * state.total[each, i] + share * (reward * x[i])
            for j in range(i + 1):
                new = share * (x[i] * x[j])
                state.gram[each, i, j] = state.discount * state.gram[each, i, j] + new
                squared = state.discount * (state.discount * state.squared_gram[each, i, j])
                state.squared_gram[each, i, j] = squared + new


def act(state: DiscountedLinUCBState, bits: Bits) -> int:
    arms = state.total.shape[0]
    if state.time[0] < state.lags.indices.size - 1:
        return pick(bits, arms)
    best, choice = -math.inf, 0
    for arm in range(arms):
        mean, width = predict_arm(state, arm)
        if mean + state.alpha * width > best:
            best, choice = mean + state.alpha * width, arm
    return choice


def update(state: DiscountedLinUCBState, arm: int, reward: float) -> None:
    advance(state, arm, reward)
    push(state.lags, state.lags.indices.size - 1, state.total.shape[0], arm, reward)
    state.time[0] += 1


def update_missing(state: DiscountedLinUCBState, arm: int) -> None:
    """Discount, and push an empty lag as LARL does."""
    advance(state, -1, 0.0)
    push_missing(state.lags, state.lags.indices.size - 1, state.total.shape[0])
    state.time[0] += 1


def predict(state: DiscountedLinUCBState, arm: int) -> tuple[float, float]:
    if state.time[0] < state.lags.indices.size - 1:
        return math.nan, math.nan
    mean, width = predict_arm(state, arm)
    return mean, state.alpha * width


@register(DiscountedLinUCBState, act, update, bounds=bounds, update_missing=update_missing, predict=predict)
@dataclass(frozen=True)
class DiscountedLinUCB(Policy):
    """LARL with rows whose weight decays by a factor per step (D-LinUCB: Russac, Vernade & Cappé 2019).

    It plays the arm with the largest Φᵀθ̂ + α√(ΦᵀV⁻¹ṼV⁻¹Φ). V and Ṽ weigh a row of t steps ago by γᵗ and γ²ᵗ, for
    steps of any arm; both have the penalty λI, which does not decay. With ``discount=1`` both are LARL's V, and the
    policy is ``LARL(s, alpha, ridge)`` up to rounding. The paper has one θ and α from its theory; here each arm has a
    θ, as in LARL, and α is given. The first ``s`` steps are random.

    Parameters
    ----------
    s : int, >= 0
        Number of past steps in the context.
    discount : float, 0 < discount <= 1
        Factor γ by which the weight of a row decays per step.
    alpha : float, >= 0, default 1.0
        Width of the confidence interval, in standard errors of the prediction for noise of sd 1.
    ridge : float, > 0, default 1.0
        Penalty λ of each arm's regression: V = λI + Σ γᵗ ΦΦᵀ.
    standardise : bool, default False
        Subtract the median of the first 32 rewards and divide by their scale.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.DiscountedLinUCB(s=1, discount=0.99)
    >>> result = larl.compare({"D-LinUCB": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    89.0
    """

    s: int = required(integer(0))
    discount: float = required(number(above=0.0, high=1.0))
    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 1.0)
    standardise: bool = checked(boolean(), False)

    def init(self, arms: int, **_: Any) -> Any:
        d = dimension(self.s, arms)
        state = DiscountedLinUCBState(
            gram=np.zeros((arms, d, d)),
            squared_gram=np.zeros((arms, d, d)),
            total=np.zeros((arms, d)),
            lags=lags_init(self.s, arms),
            time=np.zeros(1, dtype=np.int64),
            discount=self.discount,
            alpha=self.alpha,
            penalty=self.ridge,
        )
        return standard_init(state, arms) if self.standardise else state
