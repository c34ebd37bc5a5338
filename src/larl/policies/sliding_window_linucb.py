"""LinUCB on LARL's context over a sliding window: the past steps' θ may drift too (Cheung, Simchi-Levi & Zhu 2019)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._check import checked, number, whole
from larl._compile import assign, inline, inner
from larl._words import pick
from larl.policies._contract import Policy, register
from larl.policies._half import Floats, Half, half_absorb, half_clear, half_init
from larl.policies._lags import Lags, dimension, gather, lags_init, learn, push
from larl.policies.larl import best_arm

SAFE = 1e-3  # a removal multiplies rounding errors by 1/(1 − leverage): by no more than a thousand


class SlidingWindowLinUCBState(NamedTuple):
    ridge: Half
    lags: Lags
    cells: NDArray[np.int64]  # (window, s) the contexts of the rows in the window, a ring
    rewards: Floats  # (window, s)
    row_arm: NDArray[np.int64]  # (window,)
    row_reward: Floats  # (window,)
    time: NDArray[np.int64]  # (1,)
    arms: int
    alpha: float


@inner
def _refit(state: SlidingWindowLinUCBState) -> None:
    """Fit the rows of the ring from nothing."""
    half_clear(state.ridge, state.ridge.column.size)
    for place in range(state.row_arm.size):
        lags = Lags(state.cells[place], state.rewards[place])
        learn(state.ridge, state.row_arm[place], lags, state.lags.cell.size, state.arms, state.row_reward[place])


@inline
def _forget(state: SlidingWindowLinUCBState, place: int) -> bool:
    """Remove the row at one place of the ring, unless it was so nearly alone in its direction that digits would go."""
    lags, arm, s = Lags(state.cells[place], state.rewards[place]), state.row_arm[place], state.lags.cell.size
    leverage, error = gather(state.ridge, arm, lags, s, state.arms, state.row_reward[place])
    safe = 1.0 - leverage > SAFE
    if safe:
        half_absorb(state.ridge, arm, state.ridge.column.size, -1.0, 1.0 - leverage, error)
    return safe


def act(state: SlidingWindowLinUCBState, word: np.uint64) -> int:
    s = state.lags.cell.size
    if state.time[0] < s:
        return pick(word, state.arms)
    return best_arm(state.ridge, state.lags, s, state.arms, state.alpha)


def update(state: SlidingWindowLinUCBState, arm: int, reward: float) -> None:
    s, window = state.lags.cell.size, state.row_arm.size
    row = state.time[0] - s
    if row >= 0:
        place = row % window
        # Once a round, fit afresh in any case: removals would let rounding errors pile up.
        kept = row < window or (place > 0 and _forget(state, place))
        assign(state.cells[place], state.lags.cell)
        assign(state.rewards[place], state.lags.reward)
        state.row_arm[place], state.row_reward[place] = arm, reward
        if kept:
            learn(state.ridge, arm, state.lags, s, state.arms, reward)
        else:
            _refit(state)
    push(state.lags, s, state.arms, arm, reward)
    state.time[0] += 1


@register(SlidingWindowLinUCBState, act, update)
@dataclass(frozen=True)
class SlidingWindowLinUCB(Policy):
    """LARL(s) fitted on the last `window` rows only."""

    s: int = checked(whole(0))
    window: int = checked(whole(1))
    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 1.0)

    def init(self, arms: int, **_: Any) -> SlidingWindowLinUCBState:
        ridge = half_init(arms, dimension(self.s, arms), self.ridge)
        cells, rewards = np.zeros((self.window, self.s), dtype=np.int64), np.zeros((self.window, self.s))
        row_arm, row_reward = np.zeros(self.window, dtype=np.int64), np.zeros(self.window)
        time = np.zeros(1, dtype=np.int64)
        return SlidingWindowLinUCBState(
            ridge, lags_init(self.s), cells, rewards, row_arm, row_reward, time, arms, self.alpha
        )
