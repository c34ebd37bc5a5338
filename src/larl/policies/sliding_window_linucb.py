"""Sliding-window LinUCB (Cheung, Simchi-Levi & Zhu 2019) on LARL's context, for coefficients that drift."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import assign, inline, inner
from larl._core.random import Bits, pick
from larl._core.validation import checked, integer, number, required
from larl.policies._bounds import STEPS, Bound
from larl.policies._contract import Policy
from larl.policies._lags import lag_bounds, lags_init, pair_count, push, push_missing
from larl.policies._linalg.packed_ridge import (
    PackedRidge,
    SparseContext,
    add_row,
    clear_rows,
    packed_ridge_init,
    predict_arm,
    rank_one_update,
    solve,
    squared_norm,
)
from larl.policies._linalg.simd4 import Floats
from larl.policies._registry import register
from larl.policies.larl import best_ucb_arm

MIN_PIVOT = 1e-3  # of 1 − leverage: removing a row multiplies rounding errors by 1/(1 − leverage)
MAX_REMOVABLE_NORM = 1e6  # ‖Φ‖²/λ; a longer row is not removed: the window is fitted again


class SlidingWindowLinUCBState(NamedTuple):
    ridge: PackedRidge
    lags: SparseContext
    context_indices: NDArray[np.int64]  # (window, s+1) contexts of the rows in the window, ring buffer
    context_values: Floats  # (window, 4(s+1))
    row_arm: NDArray[np.int64]  # (window,) −1 where the reward is missing
    row_reward: Floats  # (window,)
    time: NDArray[np.int64]  # (1,)
    arms: int
    alpha: float


def bounds(initial: SlidingWindowLinUCBState, state: SlidingWindowLinUCBState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers; rows that are not used yet are 0."""
    low, high = lag_bounds(initial.lags, initial.lags.indices.size - 1, initial.arms)
    return {
        "lags.indices": (low, high),
        "context_indices": (0, high),
        "row_arm": (-1, initial.arms - 1),
        "time": STEPS,
    }


@inner
def _refit(state: SlidingWindowLinUCBState) -> None:
    """Fit all rows of the window again."""
    size = pair_count(state.lags.indices.size - 1, state.arms)
    clear_rows(state.ridge, size)
    for slot in range(state.row_arm.size):
        lags, arm = SparseContext(state.context_indices[slot], state.context_values[slot]), state.row_arm[slot]
        if arm >= 0:
            add_row(state.ridge, arm, lags, lags.indices.size, size, state.row_reward[slot])


@inline
def _remove_row(state: SlidingWindowLinUCBState, slot: int) -> bool:
    """Remove one row of the window; return False, without removing it, if that would lose too many digits."""
    lags, arm = SparseContext(state.context_indices[slot], state.context_values[slot]), state.row_arm[slot]
    if arm < 0:
        return True
    size = pair_count(lags.indices.size - 1, state.arms)
    leverage, error = solve(state.ridge, arm, lags, lags.indices.size, size, state.row_reward[slot])
    can_remove = (
        1.0 - leverage > MIN_PIVOT and squared_norm(lags, lags.indices.size) < MAX_REMOVABLE_NORM * state.ridge.penalty
    )
    if can_remove:
        rank_one_update(state.ridge, arm, size, -1.0, 1.0 - leverage, error)
    return can_remove


def act(state: SlidingWindowLinUCBState, bits: Bits) -> int:
    s = state.lags.indices.size - 1
    if state.time[0] < s:
        return pick(bits, state.arms)
    return best_ucb_arm(state.ridge, state.lags, s + 1, state.arms, state.alpha)


def update(state: SlidingWindowLinUCBState, arm: int, reward: float) -> None:
    advance(state, arm, reward)


@inline
def advance(state: SlidingWindowLinUCBState, arm: int, reward: float) -> None:
    """Update with one step; arm −1 if its reward is missing."""
    s, window = state.lags.indices.size - 1, state.row_arm.size
    row = state.time[0] - s
    if row >= 0:
        slot = row % window
        # Once per window, fit again in any case, so that rounding errors of removals do not accumulate.
        is_current = row < window or (slot > 0 and _remove_row(state, slot))
        assign(state.context_indices[slot], state.lags.indices)
        assign(state.context_values[slot], state.lags.value)
        state.row_arm[slot], state.row_reward[slot] = arm, reward
        if not is_current:
            _refit(state)
        elif arm >= 0:
            add_row(state.ridge, arm, state.lags, s + 1, pair_count(s, state.arms), reward)
    if arm >= 0:
        push(state.lags, s, state.arms, arm, reward)
    else:
        push_missing(state.lags, s, state.arms)
    state.time[0] += 1


def update_missing(state: SlidingWindowLinUCBState, arm: int) -> None:
    """Update as LARL does; the window gets an empty row."""
    advance(state, -1, 0.0)


def predict(state: SlidingWindowLinUCBState, arm: int) -> tuple[float, float]:
    s = state.lags.indices.size - 1
    if state.time[0] < s:
        return math.nan, math.nan
    mean, width = predict_arm(state.ridge, arm, state.lags, s + 1)
    return mean, state.alpha * width


@register(SlidingWindowLinUCBState, act, update, bounds=bounds, update_missing=update_missing, predict=predict)
@dataclass(frozen=True)
class SlidingWindowLinUCB(Policy):
    """LARL fitted on the last `window` steps only (Cheung, Simchi-Levi & Zhu 2019).

    Parameters
    ----------
    s : int, >= 0
        Number of past steps in the context.
    window : int, >= 1
        Number of steps on which each arm's regression is fitted.
    alpha : float, >= 0, default 1.0
        Width of the confidence interval, in standard errors of the prediction for noise of sd 1.
    ridge : float, > 0, default 1.0
        Penalty λ of each arm's regression: V_a = λI + Σ ΦΦᵀ.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.SlidingWindowLinUCB(s=1, window=100)
    >>> result = larl.compare({"SW-LinUCB": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    95.0
    """

    s: int = required(integer(0))
    window: int = required(integer(1))
    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 1.0)

    def init(self, arms: int, **_: Any) -> SlidingWindowLinUCBState:
        lags = lags_init(self.s, arms)
        return SlidingWindowLinUCBState(
            ridge=packed_ridge_init(arms, pair_count(self.s, arms), self.ridge),
            lags=lags,
            context_indices=np.zeros((self.window, lags.indices.size), dtype=np.int64),
            context_values=np.zeros((self.window, lags.value.size)),
            row_arm=np.zeros(self.window, dtype=np.int64),
            row_reward=np.zeros(self.window),
            time=np.zeros(1, dtype=np.int64),
            arms=arms,
            alpha=self.alpha,
        )
