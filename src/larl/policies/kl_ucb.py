"""KL-UCB for binary and bounded rewards (Garivier & Cappé 2011)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.random import Bits
from larl._core.validation import Vector, checked, interval, number
from larl.policies._bernoulli_kl import bernoulli_upper_bound
from larl.policies._change_detection import all_arms, largest_bound
from larl.policies._contract import Policy
from larl.policies._discounting import discount_and_add
from larl.policies._registry import register
from larl.policies._reward_range import unit_reward


class KLUCBState(NamedTuple):
    plays: NDArray[np.float64]  # (arms,) discounted number of plays
    total: NDArray[np.float64]  # (arms,) discounted sum of rewards, in [0, 1] each
    discount: float
    c: float
    low: float
    high: float


def kl_ucb_init(arms: int, discount: float, c: float, reward_range: Vector) -> KLUCBState:
    """Return the State before the first step."""
    low, high = reward_range
    return KLUCBState(plays=np.zeros(arms), total=np.zeros(arms), discount=discount, c=c, low=low, high=high)


def act(state: KLUCBState, bits: Bits) -> int:
    return largest_bound(state, all_arms(state.plays.size))


def update(state: KLUCBState, arm: int, reward: float) -> None:
    discount_and_add(state.plays, state.total, state.discount, arm, unit_reward(reward, state.low, state.high))


def update_missing(state: KLUCBState, arm: int) -> None:
    discount_and_add(state.plays, state.total, state.discount, -1, 0.0)


def predict(state: KLUCBState, arm: int) -> tuple[float, float]:
    if state.plays[arm] == 0.0:
        return math.nan, math.inf
    plays = 0.0
    for other in range(state.plays.size):
        plays += state.plays[other]
    log_plays = math.log(max(plays, 1.0))
    level = (log_plays + state.c * math.log(max(log_plays, 1.0))) / state.plays[arm]
    mean = state.total[arm] / state.plays[arm]
    width = state.high - state.low
    return state.low + width * mean, width * (bernoulli_upper_bound(mean, level) - mean)


@register(KLUCBState, act, update, update_missing=update_missing, predict=predict)
@dataclass(frozen=True)
class KLUCB(Policy):
    """UCB with confidence bounds for binary rewards (Garivier & Cappé 2011).

    It plays the arm with the largest q that satisfies N kl(mean, q) ≤ log n + c log log n, for the N plays of the arm
    with this mean, n plays of all arms, and the divergence kl(p, q) = p log(p/q) + (1 − p) log((1 − p)/(1 − q)) of
    Bernoulli distributions. The bound is valid for all rewards in [0, 1] and is narrow near 0 and 1. Each arm is played
    once first; log log n counts as 0 while it is negative.

    Parameters
    ----------
    c : float, >= 0, default 0.0
        Exploration constant. The authors' theorem has c = 3, and they recommend c = 0 in practice.
    reward_range : (float, float), low < high, default (0.0, 1.0)
        Rewards are mapped from this interval to [0, 1]; rewards outside are clipped.

    Examples
    --------
    >>> import larl
    >>> agent = larl.Agent(larl.KLUCB(), arms=["off", "on"])
    >>> for arm, reward in [("off", 0.0), ("on", 1.0), ("on", 0.0)]:
    ...     _ = agent.observe(agent.record(arm), reward)
    >>> decision = agent.decide()
    >>> decision.arm, round(decision.expected + decision.width, 4)
    ('on', 0.9082)
    """

    c: float = checked(number(0.0), 0.0)
    reward_range: Vector = checked(interval(), (0.0, 1.0))

    def init(self, arms: int, **_: Any) -> KLUCBState:
        return kl_ucb_init(arms, 1.0, self.c, self.reward_range)
