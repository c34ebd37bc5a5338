"""UCB in ridge form for stationary arms: the "Stationary" baseline of Trella et al. (2025), and LARL with s = 0."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.random import Bits
from larl._core.validation import boolean, checked, number
from larl.policies._contract import Policy
from larl.policies._registry import register
from larl.policies._standardise import standard_init


class UCBState(NamedTuple):
    weight: NDArray[np.float64]  # (arms,) λ + number of plays
    total: NDArray[np.float64]  # (arms,) sum of rewards
    alpha: float


def act(state: UCBState, bits: Bits) -> int:
    best, choice = -math.inf, 0
    for arm in range(state.weight.size):
        bound = state.total[arm] / state.weight[arm] + state.alpha / math.sqrt(state.weight[arm])
        if bound > best:
            best, choice = bound, arm
    return choice


def update(state: UCBState, arm: int, reward: float) -> None:
    state.weight[arm] += 1.0
    state.total[arm] += reward


def predict(state: UCBState, arm: int) -> tuple[float, float]:
    return state.total[arm] / state.weight[arm], state.alpha / math.sqrt(state.weight[arm])


@register(UCBState, act, update, ("weight", "total"), predict=predict)
@dataclass(frozen=True)
class UCB(Policy):
    """Play the arm with the largest Σr/(n + λ) + α/√(n + λ), for n rewards with the sum Σr.

    This is the "Stationary" baseline of Trella et al. (2025), and LARL with ``s=0``.

    Parameters
    ----------
    alpha : float, >= 0, default 1.0
        Width α of the confidence interval, in units of the reward.
    ridge : float, > 0, default 1.0
        Penalty λ, in numbers of rewards; it shrinks the means towards 0.
    standardise : bool, default False
        Subtract the median of the first 32 rewards and divide by their scale, so that decisions do not depend on the
        offset and unit of the rewards.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.UCB()
    >>> result = larl.compare({"UCB": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    284.0
    """

    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 1.0)
    standardise: bool = checked(boolean(), False)

    def init(self, arms: int, **_: Any) -> Any:
        state = UCBState(np.full(arms, self.ridge), np.zeros(arms), self.alpha)
        return standard_init(state, arms) if self.standardise else state
