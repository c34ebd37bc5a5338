"""Discounted UCB: counts and sums decay by a factor per step (Kocsis & Szepesvári 2006; Garivier & Moulines 2011)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.random import Bits
from larl._core.validation import boolean, checked, number, required
from larl.policies._contract import Policy
from larl.policies._discounting import discount_and_add
from larl.policies._registry import register
from larl.policies._standardise import standard_init


class DiscountedUCBState(NamedTuple):
    plays: NDArray[np.float64]  # (arms,) discounted number of plays
    total: NDArray[np.float64]  # (arms,) discounted sum of rewards
    discount: float
    scale: float
    xi: float


def act(state: DiscountedUCBState, bits: Bits) -> int:
    plays = 0.0
    for arm in range(state.plays.size):
        if state.plays[arm] == 0.0:
            return arm
        plays += state.plays[arm]
    log_plays = max(math.log(plays), 0.0)
    best, choice = -math.inf, 0
    for arm in range(state.plays.size):
        bonus = 2.0 * state.scale * math.sqrt(state.xi * log_plays / state.plays[arm])
        if state.total[arm] / state.plays[arm] + bonus > best:
            best, choice = state.total[arm] / state.plays[arm] + bonus, arm
    return choice


def update(state: DiscountedUCBState, arm: int, reward: float) -> None:
    discount_and_add(state.plays, state.total, state.discount, arm, reward)


def update_missing(state: DiscountedUCBState, arm: int) -> None:
    discount_and_add(state.plays, state.total, state.discount, -1, 0.0)


def predict(state: DiscountedUCBState, arm: int) -> tuple[float, float]:
    if state.plays[arm] == 0.0:
        return math.nan, math.inf
    plays = 0.0
    for other in range(state.plays.size):
        plays += state.plays[other]
    bonus = 2.0 * state.scale * math.sqrt(state.xi * max(math.log(plays), 0.0) / state.plays[arm])
    return state.total[arm] / state.plays[arm], bonus


@register(DiscountedUCBState, act, update, update_missing=update_missing, predict=predict)
@dataclass(frozen=True)
class DiscountedUCB(Policy):
    """UCB with discounted counts and sums (Kocsis & Szepesvári 2006; Garivier & Moulines 2011).

    It plays the arm with the largest discounted mean + 2B√(ξ log n / N), for the discounted number N of plays of the
    arm and n of all plays.

    Parameters
    ----------
    discount : float, 0 < discount <= 1
        Factor by which the weight of a past reward decays per step.
    scale : float, > 0, default 1.0
        Size B of the rewards, in units of the reward, or of their scale if `standardise`.
    xi : float, >= 0, default 0.6
        Exploration constant ξ.
    standardise : bool, default False
        Subtract the median of the first 32 rewards and divide by their scale.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.DiscountedUCB(discount=0.95)
    >>> result = larl.compare({"D-UCB": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    136.0
    """

    discount: float = required(number(above=0.0, high=1.0))
    scale: float = checked(number(above=0.0), 1.0)
    xi: float = checked(number(0.0), 0.6)
    standardise: bool = checked(boolean(), False)

    def init(self, arms: int, **_: Any) -> Any:
        state = DiscountedUCBState(np.zeros(arms), np.zeros(arms), self.discount, self.scale, self.xi)
        return standard_init(state, arms) if self.standardise else state
