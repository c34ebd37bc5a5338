"""Arms in a fixed cycle."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.random import Bits
from larl.policies._bounds import STEPS, Bound
from larl.policies._contract import Policy
from larl.policies._probabilities import Floats, Mask, one_hot
from larl.policies._registry import register


class RoundRobinState(NamedTuple):
    time: NDArray[np.int64]  # (1,)
    arms: int


def bounds(initial: RoundRobinState, state: RoundRobinState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"time": STEPS}


def act(state: RoundRobinState, bits: Bits) -> int:
    return state.time[0] % state.arms


def update(state: RoundRobinState, arm: int, reward: float) -> None:
    state.time[0] += 1


def update_missing(state: RoundRobinState, arm: int) -> None:
    state.time[0] += 1


def action_probabilities(state: RoundRobinState, available: Mask, out: Floats) -> None:
    arm = state.time[0] % state.arms
    while not available[arm]:
        arm = (arm + 1) % state.arms
    one_hot(arm, out)


@register(
    RoundRobinState,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class RoundRobin(Policy):
    """Play arm t mod |A| at step t, or the next available arm.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.RoundRobin()
    >>> result = larl.compare({"cycle": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    407.0
    """

    def init(self, arms: int, **_: Any) -> RoundRobinState:
        return RoundRobinState(np.zeros(1, dtype=np.int64), arms)
