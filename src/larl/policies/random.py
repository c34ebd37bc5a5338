"""An arm at random: the yardstick that everyone must beat."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from larl._core.random import Bits, pick
from larl.policies._contract import Policy, register
from larl.policies._probabilities import Floats, Mask, uniform_probabilities


class RandomState(NamedTuple):
    arms: int


def act(state: RandomState, bits: Bits) -> int:
    return pick(bits, state.arms)


def update(state: RandomState, arm: int, reward: float) -> None:
    pass


def action_probabilities(state: RandomState, available: Mask, out: Floats) -> None:
    uniform_probabilities(available, out)


@register(RandomState, act, update, action_probabilities=action_probabilities)
@dataclass(frozen=True)
class Random(Policy):
    """Every arm with the same probability, whatever happened before."""

    def init(self, arms: int, **_: Any) -> RandomState:
        return RandomState(arms)
