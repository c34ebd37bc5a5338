"""An arm at random: the yardstick that everyone must beat."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from larl._words import pick
from larl.policies._contract import Policy, register


class RandomState(NamedTuple):
    arms: int


def act(state: RandomState, word: np.uint64) -> int:
    return pick(word, state.arms)


def update(state: RandomState, arm: int, reward: float) -> None:
    pass


@register(RandomState, act, update)
@dataclass(frozen=True)
class Random(Policy):
    """Every arm with the same probability, whatever happened before."""

    def init(self, arms: int, **_: Any) -> RandomState:
        return RandomState(arms)
