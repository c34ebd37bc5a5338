"""Each arm in turn."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.random import Bits
from larl.policies._contract import Policy, register
from larl.policies._probabilities import Floats, Mask, one_hot


class RoundRobinState(NamedTuple):
    time: NDArray[np.int64]  # (1,)
    arms: int


def act(state: RoundRobinState, bits: Bits) -> int:
    return state.time[0] % state.arms


def update(state: RoundRobinState, arm: int, reward: float) -> None:
    state.time[0] += 1


def update_missing(state: RoundRobinState, arm: int) -> None:
    state.time[0] += 1


def action_probabilities(state: RoundRobinState, available: Mask, out: Floats) -> None:
    turn = state.time[0] % state.arms
    while not available[turn]:
        turn = (turn + 1) % state.arms
    one_hot(turn, out)


@register(RoundRobinState, act, update, update_missing=update_missing, action_probabilities=action_probabilities)
@dataclass(frozen=True)
class RoundRobin(Policy):
    """Arm t mod |A| at step t; the next that is open where it is not."""

    def init(self, arms: int, **_: Any) -> RoundRobinState:
        return RoundRobinState(np.zeros(1, dtype=np.int64), arms)
