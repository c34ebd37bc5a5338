"""LinUCB on LARL's context over a sliding window: the past steps' θ may drift too (Cheung, Simchi-Levi & Zhu 2019)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import assign, inline, inner
from larl._core.random import Bits, pick
from larl._core.validation import checked, integer, number, required
from larl.policies._contract import Policy, register
from larl.policies._lags import lags_init, pair_count, push, push_missing
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
from larl.policies.larl import best_arm

SAFE = 1e-3  # a removal multiplies rounding errors by 1/(1 − leverage): by no more than a thousand
SHORT = 1e6  # ‖Φ‖²/λ beyond which rounding errors are not worth multiplying: the window is fitted anew


class SlidingWindowLinUCBState(NamedTuple):
    ridge: PackedRidge
    lags: SparseContext
    places: NDArray[np.int64]  # (window, s+1) the contexts of the rows in the window, a ring
    values: Floats  # (window, 4(s+1))
    row_arm: NDArray[np.int64]  # (window,)
    row_reward: Floats  # (window,)
    time: NDArray[np.int64]  # (1,)
    arms: int
    alpha: float


@inner
def _refit(state: SlidingWindowLinUCBState) -> None:
    """Fit the rows of the ring from nothing."""
    size = pair_count(state.lags.indices.size - 1, state.arms)
    clear_rows(state.ridge, size)
    for place in range(state.row_arm.size):
        lags, arm = SparseContext(state.places[place], state.values[place]), state.row_arm[place]
        if arm >= 0:
            add_row(state.ridge, arm, lags, lags.indices.size, size, state.row_reward[place])


@inline
def _forget(state: SlidingWindowLinUCBState, place: int) -> bool:
    """Remove the row at one place of the ring, unless it was so nearly alone in its direction that digits would go."""
    lags, arm = SparseContext(state.places[place], state.values[place]), state.row_arm[place]
    if arm < 0:
        return True
    size = pair_count(lags.indices.size - 1, state.arms)
    leverage, error = solve(state.ridge, arm, lags, lags.indices.size, size, state.row_reward[place])
    safe = 1.0 - leverage > SAFE and squared_norm(lags, lags.indices.size) < SHORT * state.ridge.penalty
    if safe:
        rank_one_update(state.ridge, arm, size, -1.0, 1.0 - leverage, error)
    return safe


def act(state: SlidingWindowLinUCBState, bits: Bits) -> int:
    s = state.lags.indices.size - 1
    if state.time[0] < s:
        return pick(bits, state.arms)
    return best_arm(state.ridge, state.lags, s + 1, state.arms, state.alpha)


def update(state: SlidingWindowLinUCBState, arm: int, reward: float) -> None:
    advance(state, arm, reward)


@inline
def advance(state: SlidingWindowLinUCBState, arm: int, reward: float) -> None:
    """One step; arm −1 where its reward is missing."""
    s, window = state.lags.indices.size - 1, state.row_arm.size
    row = state.time[0] - s
    if row >= 0:
        place = row % window
        # Once a round, fit afresh in any case: removals would let rounding errors pile up.
        kept = row < window or (place > 0 and _forget(state, place))
        assign(state.places[place], state.lags.indices)
        assign(state.values[place], state.lags.value)
        state.row_arm[place], state.row_reward[place] = arm, reward
        if not kept:
            _refit(state)
        elif arm >= 0:
            add_row(state.ridge, arm, state.lags, s + 1, pair_count(s, state.arms), reward)
    if arm >= 0:
        push(state.lags, s, state.arms, arm, reward)
    else:
        push_missing(state.lags, s, state.arms)
    state.time[0] += 1


def update_missing(state: SlidingWindowLinUCBState, arm: int) -> None:
    """As LARL; the window moves on by a row that is not there."""
    advance(state, -1, 0.0)


def predict(state: SlidingWindowLinUCBState, arm: int) -> tuple[float, float]:
    s = state.lags.indices.size - 1
    if state.time[0] < s:
        return math.nan, math.nan
    mean, width = predict_arm(state.ridge, arm, state.lags, s + 1)
    return mean, state.alpha * width


@register(SlidingWindowLinUCBState, act, update, update_missing=update_missing, predict=predict)
@dataclass(frozen=True)
class SlidingWindowLinUCB(Policy):
    """LARL(s) fitted on the last `window` rows only."""

    s: int = required(integer(0))
    window: int = required(integer(1))
    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 1.0)

    def init(self, arms: int, **_: Any) -> SlidingWindowLinUCBState:
        ridge, lags = packed_ridge_init(arms, pair_count(self.s, arms), self.ridge), lags_init(self.s, arms)
        places = np.zeros((self.window, lags.indices.size), dtype=np.int64)
        values = np.zeros((self.window, lags.value.size))
        row_arm, row_reward = np.zeros(self.window, dtype=np.int64), np.zeros(self.window)
        time = np.zeros(1, dtype=np.int64)
        return SlidingWindowLinUCBState(ridge, lags, places, values, row_arm, row_reward, time, arms, self.alpha)
