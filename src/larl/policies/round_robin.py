"""Each arm in turn."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl.policies._contract import Policy, register


class RoundRobinState(NamedTuple):
    time: NDArray[np.int64]  # (1,)
    arms: int


def act(state: RoundRobinState, word: np.uint64) -> int:
    return state.time[0] % state.arms


def update(state: RoundRobinState, arm: int, reward: float) -> None:
    state.time[0] += 1


@register(RoundRobinState, act, update)
@dataclass(frozen=True)
class RoundRobin(Policy):
    """Arm t mod |A| at step t."""

    def init(self, arms: int, **_: Any) -> RoundRobinState:
        return RoundRobinState(np.zeros(1, dtype=np.int64), arms)
