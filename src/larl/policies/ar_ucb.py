"""AR-UCB: each arm's reward is an AR process in the rewards last seen, whoever gave them (Bacchiocchi et al. 2022)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits, pick
from larl._core.validation import LARGEST, InvalidValue, checked, integer, number, one_of, optional, required
from larl.policies._contract import Policy, register
from larl.policies._linalg.ridge import Ridge, dense_add_row, dense_predict, ridge_init

if TYPE_CHECKING:
    from larl.worlds.base import World


class ARUCBState(NamedTuple):
    ridge: Ridge
    context: NDArray[np.float64]  # (1, r_{t−1} … r_{t−order})
    log_det: NDArray[np.float64]  # (arms,) log det V_a/λ^{order+1}
    time: NDArray[np.int64]  # (1,)
    alpha: float
    theory: bool
    bound: float
    sigma: float
    delta: float


@inline
def confidence(state: ARUCBState, arm: int) -> float:
    """How many widths are added to an arm's mean."""
    if not state.theory:
        return state.alpha
    level = 2.0 * math.log(state.log_det.size / state.delta) + state.log_det[arm]
    return math.sqrt(state.ridge.penalty * (state.bound**2 + 1.0)) + state.sigma * math.sqrt(level)


def act(state: ARUCBState, bits: Bits) -> int:
    if state.time[0] < state.context.size - 1:
        return pick(bits, state.log_det.size)
    best, choice = -math.inf, 0
    for arm in range(state.log_det.size):
        mean, width = dense_predict(state.ridge, arm, state.context)
        bound = mean + confidence(state, arm) * width
        if bound > best:
            best, choice = bound, arm
    return choice


def update(state: ARUCBState, arm: int, reward: float) -> None:
    if state.time[0] >= state.context.size - 1:
        state.log_det[arm] += math.log(dense_add_row(state.ridge, arm, state.context, reward))
    remember(state, reward)


@inline
def remember(state: ARUCBState, reward: float) -> None:
    """Put a reward in front of the context; time advances by one."""
    for j in range(state.context.size - 1, 1, -1):
        state.context[j] = state.context[j - 1]
    if state.context.size > 1:
        state.context[1] = reward
    state.time[0] += 1


def update_missing(state: ARUCBState, arm: int) -> None:
    """In place of the reward, the context gets what was expected of the arm, or of all if none was played.

    It is bounded as rewards are: the forecasts of an unstable fit grow at every missing reward.
    """
    forecast, first, last = 0.0, max(arm, 0), arm + 1 if arm >= 0 else state.log_det.size
    for other in range(first, last):
        mean, _ = dense_predict(state.ridge, other, state.context)
        forecast += mean / (last - first)
    remember(state, min(max(forecast, -LARGEST), LARGEST))


def predict(state: ARUCBState, arm: int) -> tuple[float, float]:
    if state.time[0] < state.context.size - 1:
        return math.nan, math.nan
    mean, width = dense_predict(state.ridge, arm, state.context)
    return mean, confidence(state, arm) * width


@register(ARUCBState, act, update, update_missing=update_missing, predict=predict)
@dataclass(frozen=True)
class ARUCB(Policy):
    """Ridge regression of each arm's reward on a constant and the last `order` rewards, played optimistically.

    The first `order` steps, which have no such past, are random and not learnt from. The width is `alpha`, or with
    `radius="theory"` its authors' √(λ(m²+1)) + σ√(2 log(|A|/δ) + log det V/λ^{order+1}), with m = `bound` on the
    intercepts, σ = `sigma` of the noise, and δ = `delta`, by default 1/(2T) for a horizon T.
    """

    order: int = required(integer(0))
    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 1.0)
    radius: str = checked(one_of("alpha", "theory"), "alpha")
    bound: float = checked(number(0.0), 1.0)
    sigma: float = checked(number(above=0.0), 1.0)
    delta: float | None = checked(optional(number(above=0.0, below=1.0)), None)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> ARUCBState:
        theory, delta = self.radius == "theory", self.delta or (0.5 / horizon if horizon else None)
        if theory and delta is None:
            raise InvalidValue("ARUCB", "delta", None, "a number between 0 and 1 where no horizon is known")
        context = np.zeros(self.order + 1)
        context[0] = 1.0
        ridge, time = ridge_init(arms, self.order + 1, self.ridge), np.zeros(1, dtype=np.int64)
        return ARUCBState(
            ridge, context, np.zeros(arms), time, self.alpha, theory, self.bound, self.sigma, delta or 1.0
        )
