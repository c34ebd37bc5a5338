"""An arm at random: the yardstick that everyone must beat."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from larl._words import Bits, pick
from larl.policies._contract import Policy, register
from larl.policies._odds import Floats, Open, evenly


class RandomState(NamedTuple):
    arms: int


def act(state: RandomState, bits: Bits) -> int:
    return pick(bits, state.arms)


def update(state: RandomState, arm: int, reward: float) -> None:
    pass


def odds(state: RandomState, available: Open, out: Floats) -> None:
    evenly(available, out)


@register(RandomState, act, update, odds=odds)
@dataclass(frozen=True)
class Random(Policy):
    """Every arm with the same probability, whatever happened before."""

    def init(self, arms: int, **_: Any) -> RandomState:
        return RandomState(arms)
