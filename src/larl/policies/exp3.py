"""Exp3: exponential weights for rewards that follow no law (Auer et al. 2002)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits, uniform
from larl._core.validation import Vector, checked, interval, number
from larl.policies._contract import Policy, register
from larl.policies._probabilities import Floats, Mask


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


def act(state: Exp3State, bits: Bits) -> int:
    left = uniform(bits)
    for arm in range(state.log_weight.size - 1):
        left -= probability(state, arm)
        if left < 0.0:
            return arm
    return state.log_weight.size - 1


def update(state: Exp3State, arm: int, reward: float) -> None:
    share = min(max((reward - state.low) / (state.high - state.low), 0.0), 1.0)
    state.log_weight[arm] += state.gamma * share / probability(state, arm) / state.log_weight.size
    pass_time(state)


@inline
def pass_time(state: Exp3State) -> None:
    """The largest weight becomes 1; at the end of a batch, all do."""
    state.time[0] += 1
    restart, top = state.time[0] == state.batch, state.log_weight.max()
    for other in range(state.log_weight.size):
        state.log_weight[other] = 0.0 if restart else state.log_weight[other] - top
    if restart:
        state.time[0] = 0


def update_missing(state: Exp3State, arm: int) -> None:
    pass_time(state)


def action_probabilities(state: Exp3State, available: Mask, out: Floats) -> None:
    total = 0.0
    for arm in range(out.size):
        out[arm] = probability(state, arm) if available[arm] else 0.0
        total += out[arm]
    for arm in range(out.size):
        out[arm] /= total


@register(Exp3State, act, update, update_missing=update_missing, action_probabilities=action_probabilities)
@dataclass(frozen=True)
class Exp3(Policy):
    """Exponential weights with exploration share `gamma`; rewards are mapped from `reward_range` to [0, 1], clipped."""

    gamma: float = checked(number(above=0.0, high=1.0), 0.1)
    reward_range: Vector = checked(interval(), (0.0, 1.0))

    def init(self, arms: int, **_: Any) -> Exp3State:
        return Exp3State(np.zeros(arms), np.zeros(1, dtype=np.int64), self.gamma, 0, *self.reward_range)
