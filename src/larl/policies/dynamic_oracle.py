"""The best arm of every step: what regret is measured against."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from larl._core.compile import assign, implement
from larl._core.random import Bits
from larl.policies._contract import Policy, register, set_true_means
from larl.policies._oracle import Floats


class DynamicState(NamedTuple):
    means: Floats  # (arms,) of the coming step


def act(state: DynamicState, bits: Bits) -> int:
    return np.argmax(state.means)  # type: ignore[return-value]


def update(state: DynamicState, arm: int, reward: float) -> None:
    pass


def see(state: DynamicState, means: Floats) -> None:
    assign(state.means, means)


def predict(state: DynamicState, arm: int) -> tuple[float, float]:
    return state.means[arm], 0.0


implement(set_true_means, DynamicState, see)


@register(DynamicState, act, update, predict=predict)
@dataclass(frozen=True)
class DynamicOracle(Policy):
    """The best arm of every step: it sees z_t. Regret is measured against it, so its own is zero."""

    def init(self, arms: int, **_: Any) -> DynamicState:
        return DynamicState(np.zeros(arms))
