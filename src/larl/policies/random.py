"""Uniformly random arms: a baseline that every policy should beat."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from larl._core.random import Bits, pick
from larl.policies._contract import Policy
from larl.policies._probabilities import Floats, Mask, uniform_probabilities
from larl.policies._registry import register


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
    """Play every arm with the same probability at every step.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.Random()
    >>> result = larl.compare({"random": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    401.0
    """

    def init(self, arms: int, **_: Any) -> RandomState:
        return RandomState(arms)
