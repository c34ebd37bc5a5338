"""The yardsticks: an arm at random, and each arm in turn."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._words import pick
from larl.policies._contract import Policy, register


class RandomState(NamedTuple):
    arms: int


def random_act(state: RandomState, word: np.uint64) -> int:
    return pick(word, state.arms)


def random_update(state: RandomState, arm: int, reward: float) -> None:
    pass


@register(RandomState, random_act, random_update)
@dataclass(frozen=True)
class Random(Policy):
    """Every arm with the same probability, whatever happened before."""

    def init(self, arms: int, **_: Any) -> RandomState:
        return RandomState(arms)


class RoundRobinState(NamedTuple):
    time: NDArray[np.int64]  # (1,)
    arms: int


def round_robin_act(state: RoundRobinState, word: np.uint64) -> int:
    return state.time[0] % state.arms


def round_robin_update(state: RoundRobinState, arm: int, reward: float) -> None:
    state.time[0] += 1


@register(RoundRobinState, round_robin_act, round_robin_update)
@dataclass(frozen=True)
class RoundRobin(Policy):
    """Arm t mod |A| at step t."""

    def init(self, arms: int, **_: Any) -> RoundRobinState:
        return RoundRobinState(np.zeros(1, dtype=np.int64), arms)
