"""Exp3: exponential weights for adversarial rewards (Auer, Cesa-Bianchi, Freund & Schapire 2002)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits, uniform
from larl._core.validation import Vector, checked, interval, number
from larl.policies._bounds import STEPS, Bound
from larl.policies._contract import Policy
from larl.policies._probabilities import Floats, Mask
from larl.policies._registry import register
from larl.policies._reward_range import unit_reward


class Exp3State(NamedTuple):
    log_weight: NDArray[np.float64]  # (arms,) the largest is 0
    time: NDArray[np.int64]  # (1,) within the batch
    gamma: float
    batch: int  # steps between restarts, 0 for never
    low: float
    high: float


def bounds(initial: Exp3State, state: Exp3State) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"time": (0, initial.batch - 1) if initial.batch else STEPS}


def exp3_init(arms: int, gamma: float, batch: int, low: float, high: float) -> Exp3State:
    """Return the State before the first step."""
    time = np.zeros(1, dtype=np.int64)
    return Exp3State(log_weight=np.zeros(arms), time=time, gamma=gamma, batch=batch, low=low, high=high)


@inline
def probability(state: Exp3State, arm: int) -> float:
    """Return (1 − γ) w_a/Σw + γ/|A|."""
    total = 0.0
    for other in range(state.log_weight.size):
        total += math.exp(state.log_weight[other])
    return (1.0 - state.gamma) * math.exp(state.log_weight[arm]) / total + state.gamma / state.log_weight.size


def act(state: Exp3State, bits: Bits) -> int:
    remaining = uniform(bits)
    for arm in range(state.log_weight.size - 1):
        remaining -= probability(state, arm)
        if remaining < 0.0:
            return arm
    return state.log_weight.size - 1


def update(state: Exp3State, arm: int, reward: float) -> None:
    share = unit_reward(reward, state.low, state.high)
    state.log_weight[arm] += state.gamma * share / probability(state, arm) / state.log_weight.size
    advance_time(state)


@inline
def advance_time(state: Exp3State) -> None:
    """Advance time; scale the weights so that the largest is 1, or reset all to 1 at the end of a batch."""
    state.time[0] += 1
    is_batch_end, top = state.time[0] == state.batch, state.log_weight.max()
    for other in range(state.log_weight.size):
        state.log_weight[other] = 0.0 if is_batch_end else state.log_weight[other] - top
    if is_batch_end:
        state.time[0] = 0


def update_missing(state: Exp3State, arm: int) -> None:
    advance_time(state)


def action_probabilities(state: Exp3State, available: Mask, out: Floats) -> None:
    total = 0.0
    for arm in range(out.size):
        out[arm] = probability(state, arm) if available[arm] else 0.0
        total += out[arm]
    for arm in range(out.size):
        out[arm] /= total


@register(
    Exp3State, act, update, bounds=bounds, update_missing=update_missing, action_probabilities=action_probabilities
)
@dataclass(frozen=True)
class Exp3(Policy):
    """Exponential weights for adversarial rewards (Auer et al. 2002).

    Parameters
    ----------
    gamma : float, 0 < gamma <= 1, default 0.1
        Probability of a uniformly random arm, which is also the learning rate.
    reward_range : (float, float), low < high, default (0.0, 1.0)
        Rewards are mapped from this interval to [0, 1]; rewards outside are clipped.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.Exp3(reward_range=(-4.0, 4.0))
    >>> result = larl.compare({"Exp3": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    359.0
    """

    gamma: float = checked(number(above=0.0, high=1.0), 0.1)
    reward_range: Vector = checked(interval(), (0.0, 1.0))

    def init(self, arms: int, **_: Any) -> Exp3State:
        return exp3_init(arms, self.gamma, 0, *self.reward_range)
