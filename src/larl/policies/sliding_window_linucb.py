"""LinUCB on LARL's context over a sliding window: the past steps' θ may drift too (Cheung, Simchi-Levi & Zhu 2019)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._check import checked, number, whole
from larl._compile import assign, inner
from larl._words import pick
from larl.policies._contract import Policy, register
from larl.policies._lags import Lags, dimension, lags_init, learn, push
from larl.policies._ridge import Floats, Ridge, ridge_clear, ridge_init
from larl.policies.larl import best_arm


class SlidingWindowLinUCBState(NamedTuple):
    ridge: Ridge
    lags: Lags
    cells: NDArray[np.int64]  # (window, s) the contexts of the rows in the window, a ring
    rewards: Floats  # (window, s)
    row_arm: NDArray[np.int64]  # (window,)
    row_reward: Floats  # (window,)
    time: NDArray[np.int64]  # (1,)
    arms: int
    alpha: float


@inner
def _row(state: SlidingWindowLinUCBState, place: int, sign: float) -> None:
    """Add or remove the row at one place of the ring."""
    lags = Lags(state.cells[place], state.rewards[place])
    s = state.lags.cell.size
    learn(state.ridge, state.row_arm[place], lags, s, state.arms, state.row_reward[place], sign)


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
        if row >= window and place > 0:
            _row(state, place, -1.0)
        assign(state.cells[place], state.lags.cell)
        assign(state.rewards[place], state.lags.reward)
        state.row_arm[place], state.row_reward[place] = arm, reward
        if row >= window and place == 0:  # once a round, fit afresh: removals would let rounding errors pile up
            ridge_clear(state.ridge, state.ridge.column.size)
            for other in range(window):
                _row(state, other, 1.0)
        else:
            _row(state, place, 1.0)
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
        ridge = ridge_init(arms, dimension(self.s, arms), self.ridge)
        cells, rewards = np.zeros((self.window, self.s), dtype=np.int64), np.zeros((self.window, self.s))
        row_arm, row_reward = np.zeros(self.window, dtype=np.int64), np.zeros(self.window)
        time = np.zeros(1, dtype=np.int64)
        return SlidingWindowLinUCBState(
            ridge, lags_init(self.s), cells, rewards, row_arm, row_reward, time, arms, self.alpha
        )
