"""Sliding-window UCB: UCB on the last steps only (Garivier & Moulines 2011)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from larl._core.random import Bits
from larl._core.validation import boolean, checked, integer, number, required
from larl.policies._bounds import Bound
from larl.policies._contract import Policy
from larl.policies._registry import register
from larl.policies._standardise import standard_init
from larl.policies._window import Window, slide, window_bounds, window_init


class SlidingWindowUCBState(NamedTuple):
    window: Window
    scale: float
    xi: float


def bounds(initial: SlidingWindowUCBState, state: SlidingWindowUCBState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return window_bounds(initial.window)


def act(state: SlidingWindowUCBState, bits: Bits) -> int:
    window = state.window
    log_time = math.log(max(min(window.time[0], window.arm.size), 1))
    best, choice = -math.inf, 0
    for arm in range(window.plays.size):
        if window.plays[arm] == 0.0:
            return arm
        bonus = state.scale * math.sqrt(state.xi * log_time / window.plays[arm])
        if window.total[arm] / window.plays[arm] + bonus > best:
            best, choice = window.total[arm] / window.plays[arm] + bonus, arm
    return choice


def update(state: SlidingWindowUCBState, arm: int, reward: float) -> None:
    slide(state.window, arm, reward)


def update_missing(state: SlidingWindowUCBState, arm: int) -> None:
    slide(state.window, -1, 0.0)


def predict(state: SlidingWindowUCBState, arm: int) -> tuple[float, float]:
    window = state.window
    if window.plays[arm] == 0.0:
        return math.nan, math.inf
    log_time = math.log(max(min(window.time[0], window.arm.size), 1))
    return window.total[arm] / window.plays[arm], state.scale * math.sqrt(state.xi * log_time / window.plays[arm])


@register(SlidingWindowUCBState, act, update, bounds=bounds, update_missing=update_missing, predict=predict)
@dataclass(frozen=True)
class SlidingWindowUCB(Policy):
    """UCB on the last `window` steps (Garivier & Moulines 2011).

    It plays the arm with the largest mean + B√(ξ log(min(t, window)) / N), for the number N of its plays in the window.
    An arm without a play in the window is played immediately.

    Parameters
    ----------
    window : int, >= 1
        Number of steps in the window.
    scale : float, > 0, default 1.0
        Size B of the rewards, in units of the reward, or of their scale if `standardise`.
    xi : float, >= 0, default 0.6
        Exploration constant ξ.
    standardise : bool, default False
        Subtract the median of the first 32 rewards and divide by their scale.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.SlidingWindowUCB(window=50)
    >>> result = larl.compare({"SW-UCB": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    234.0
    """

    window: int = required(integer(1))
    scale: float = checked(number(above=0.0), 1.0)
    xi: float = checked(number(0.0), 0.6)
    standardise: bool = checked(boolean(), False)

    def init(self, arms: int, **_: Any) -> Any:
        state = SlidingWindowUCBState(window_init(self.window, arms), self.scale, self.xi)
        return standard_init(state, arms) if self.standardise else state
