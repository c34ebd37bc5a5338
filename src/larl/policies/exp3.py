"""Exp3 (Auer et al. 2002), and Rexp3, which restarts it in batches against drift (Besbes, Gur & Zeevi 2014)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._check import InvalidValue, checked, interval, number, optional, whole
from larl._compile import inline
from larl._words import uniform
from larl.policies._contract import Policy, register

if TYPE_CHECKING:
    from larl.world import LatentAR


class Exp3State(NamedTuple):
    log_weight: NDArray[np.float64]  # (arms,) the largest is 0
    time: NDArray[np.int64]  # (1,) within the batch
    gamma: float
    batch: int  # steps between restarts, 0 for never
    low: float
    high: float


@inline
def probability(state: Exp3State, arm: int) -> float:
    """(1 − γ) w_a/Σw + γ/|A|."""
    total = 0.0
    for other in range(state.log_weight.size):
        total += math.exp(state.log_weight[other])
    return (1.0 - state.gamma) * math.exp(state.log_weight[arm]) / total + state.gamma / state.log_weight.size


def act(state: Exp3State, word: np.uint64) -> int:
    left = uniform(word)
    for arm in range(state.log_weight.size - 1):
        left -= probability(state, arm)
        if left < 0.0:
            return arm
    return state.log_weight.size - 1


def update(state: Exp3State, arm: int, reward: float) -> None:
    share = min(max((reward - state.low) / (state.high - state.low), 0.0), 1.0)
    state.log_weight[arm] += state.gamma * share / probability(state, arm) / state.log_weight.size
    state.time[0] += 1
    restart, top = state.time[0] == state.batch, state.log_weight.max()
    for other in range(state.log_weight.size):
        state.log_weight[other] = 0.0 if restart else state.log_weight[other] - top
    if restart:
        state.time[0] = 0


@register(Exp3State, act, update)
@dataclass(frozen=True)
class Exp3(Policy):
    """Exponential weights with exploration share `gamma`; rewards are mapped from `reward_range` to [0, 1], clipped."""

    gamma: float = checked(number(above=0.0, high=1.0), 0.1)
    reward_range: tuple[float, float] = checked(interval(), (0.0, 1.0))

    def init(self, arms: int, **_: Any) -> Exp3State:
        return Exp3State(np.zeros(arms), np.zeros(1, dtype=np.int64), self.gamma, 0, *self.reward_range)


@register(Exp3State, act, update)
@dataclass(frozen=True)
class Rexp3(Policy):
    """Exp3 restarted every Δ = ⌈(K log K)^⅓ (T/V)^⅔⌉ steps, γ = min(1, √(K log K / ((e−1)Δ))), V = `variation`.

    V is how much the means, mapped from `reward_range` to [0, 1], may vary in all over T = `horizon` steps (by
    default the horizon of the comparison).
    """

    variation: float = checked(number(above=0.0))
    reward_range: tuple[float, float] = checked(interval(), (0.0, 1.0))
    horizon: int | None = checked(optional(whole(1)), None)

    def batch(self, arms: int, horizon: int) -> int:
        """Δ, at most the horizon."""
        length = (arms * math.log(arms)) ** (1.0 / 3.0) * (horizon / self.variation) ** (2.0 / 3.0)
        return min(math.ceil(length), horizon)

    def init(self, arms: int, *, horizon: int | None = None, world: "LatentAR | None" = None) -> Exp3State:
        steps = self.horizon or horizon
        if steps is None:
            raise InvalidValue("Rexp3", "horizon", None, "the number of steps it will be played for")
        batch = self.batch(arms, steps)
        gamma = min(1.0, math.sqrt(arms * math.log(arms) / ((math.e - 1.0) * batch)))
        return Exp3State(np.zeros(arms), np.zeros(1, dtype=np.int64), gamma, batch, *self.reward_range)
