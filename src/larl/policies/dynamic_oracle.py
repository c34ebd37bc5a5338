"""DynamicOracle: the best arm of every step, which regret is measured against."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from larl._core.compile import implement
from larl._core.random import Bits
from larl.policies._contract import Policy, set_true_means
from larl.policies._oracle import Floats
from larl.policies._registry import register


class DynamicState(NamedTuple):
    means: Floats  # (arms,) true mean rewards of the next step; −∞ if missing


def act(state: DynamicState, bits: Bits) -> int:
    return np.argmax(state.means)  # type: ignore[return-value]


def update(state: DynamicState, arm: int, reward: float) -> None:
    pass


def dynamic_set_true_means(state: DynamicState, means: Floats) -> None:
    for arm in range(means.size):  # a missing reward is never the best
        state.means[arm] = -math.inf if math.isnan(means[arm]) else means[arm]


def predict(state: DynamicState, arm: int) -> tuple[float, float]:
    return state.means[arm], 0.0


implement(set_true_means, DynamicState, dynamic_set_true_means)


@register(DynamicState, act, update, predict=predict)
@dataclass(frozen=True)
class DynamicOracle(Policy):
    """Play the best arm of every step, with knowledge of z_t. Its regret is 0 by definition.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.DynamicOracle()
    >>> result = larl.compare({"best": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    0.0
    """

    def init(self, arms: int, **_: Any) -> DynamicState:
        return DynamicState(np.zeros(arms))
