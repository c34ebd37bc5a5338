"""AR-UCB: each arm's reward depends linearly on the last rewards, of any arms (Bacchiocchi et al. 2022)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits, pick
from larl._core.validation import LARGEST, InvalidValue, checked, integer, number, one_of, optional, required
from larl.policies._bounds import STEPS, Bound
from larl.policies._contract import Policy
from larl.policies._linalg.ridge import Ridge, dense_add_row, dense_predict, ridge_init
from larl.policies._registry import register

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


def bounds(initial: ARUCBState, state: ARUCBState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"time": STEPS}


@inline
def confidence_radius(state: ARUCBState, arm: int) -> float:
    """Return the confidence radius of an arm, in units of the width √(xᵀV⁻¹x)."""
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
        bound = mean + confidence_radius(state, arm) * width
        if bound > best:
            best, choice = bound, arm
    return choice


def update(state: ARUCBState, arm: int, reward: float) -> None:
    if state.time[0] >= state.context.size - 1:
        state.log_det[arm] += math.log(dense_add_row(state.ridge, arm, state.context, reward))
    push_reward(state, reward)


@inline
def push_reward(state: ARUCBState, reward: float) -> None:
    """Insert a reward as the latest lag of the context; time advances by one."""
    for j in range(state.context.size - 1, 1, -1):
        state.context[j] = state.context[j - 1]
    if state.context.size > 1:
        state.context[1] = reward
    state.time[0] += 1


def update_missing(state: ARUCBState, arm: int) -> None:
    """Insert the predicted reward of the arm (the mean over all arms if none was played) in place of the reward.

    It is limited like rewards, because the predictions of an unstable fit grow at every missing reward.
    """
    forecast, first, last = 0.0, max(arm, 0), arm + 1 if arm >= 0 else state.log_det.size
    for other in range(first, last):
        mean, _ = dense_predict(state.ridge, other, state.context)
        forecast += mean / (last - first)
    push_reward(state, min(max(forecast, -LARGEST), LARGEST))


def predict(state: ARUCBState, arm: int) -> tuple[float, float]:
    if state.time[0] < state.context.size - 1:
        return math.nan, math.nan
    mean, width = dense_predict(state.ridge, arm, state.context)
    return mean, confidence_radius(state, arm) * width


@register(ARUCBState, act, update, bounds=bounds, update_missing=update_missing, predict=predict)
@dataclass(frozen=True)
class ARUCB(Policy):
    """LinUCB on a constant and the last `order` rewards (Bacchiocchi et al. 2022).

    The first `order` steps are random and not used for the regressions. With ``radius="theory"`` the confidence radius
    is that of the paper, √(λ(m² + 1)) + σ√(2 log(|A|/δ) + log det V/λ^{order+1}).

    Parameters
    ----------
    order : int, >= 0
        Number of past rewards in the context.
    alpha : float, >= 0, default 1.0
        Confidence radius with ``radius="alpha"``, in standard errors of the prediction for noise of sd 1.
    ridge : float, > 0, default 1.0
        Penalty λ of each arm's regression.
    radius : {"alpha", "theory"}, default "alpha"
        Which confidence radius to use.
    bound : float, >= 0, default 1.0
        Upper limit m of the intercepts, for ``radius="theory"``.
    sigma : float, > 0, default 1.0
        Standard deviation of the noise, for ``radius="theory"``.
    delta : float, 0 < delta < 1, optional
        Level δ of the confidence radius, for ``radius="theory"``. By default 1/(2T) for a horizon T.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.ARUCB(order=1)
    >>> result = larl.compare({"ARUCB": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    336.0
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
            raise InvalidValue("ARUCB", "delta", None, "a number between 0 and 1, required if the horizon is not known")
        context = np.zeros(self.order + 1)
        context[0] = 1.0
        return ARUCBState(
            ridge=ridge_init(arms, self.order + 1, self.ridge),
            context=context,
            log_det=np.zeros(arms),
            time=np.zeros(1, dtype=np.int64),
            alpha=self.alpha,
            theory=theory,
            bound=self.bound,
            sigma=self.sigma,
            delta=delta or 1.0,
        )
