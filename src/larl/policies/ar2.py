"""AR2: alternate and restart, for arms whose rewards each follow a known AR(1) (Chen, Golrezaei & Bouneffouf 2023).

Model: R_i(t) = r_i(t) + ε_i(t) and r_i(t+1) = α R_i(t), mean zero, ε ~ N(0, σ²). The estimate for an arm that was last
played at τ is r̂_i(t) = α^{t−τ} R_i(τ), with variance σ²(α² − α^{2(t−τ)})/(1 − α²).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits
from larl._core.validation import checked, integer, number, optional, required
from larl.policies._bounds import Bound
from larl.policies._contract import Policy
from larl.policies._probabilities import Floats, Mask, argmax_probabilities, one_hot
from larl.policies._registry import register


class AR2State(NamedTuple):
    estimate: NDArray[np.float64]  # (arms,) r̂_i of the next step
    seen: NDArray[np.int64]  # (arms,) step of the epoch at which the arm was last played
    triggered: NDArray[np.int64]  # (arms,) step at which it was triggered, −1 if it is not
    superior: NDArray[np.int64]  # (1,) the one of the last two arms with the larger estimate
    last: NDArray[np.int64]  # (1,) the arm played last
    time: NDArray[np.int64]  # (1,) within the epoch
    alpha: float
    sigma: float
    epoch: int
    threshold: float


def bounds(initial: AR2State, state: AR2State) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    arm, step = (0, initial.estimate.size - 1), (0, initial.epoch - 1)
    return {"seen": step, "triggered": (-1, initial.epoch - 1), "superior": arm, "last": arm, "time": step}


@inline
def scheduled_arm(state: AR2State) -> int:
    """Return the arm that the schedule plays next."""
    t, arms = state.time[0], state.estimate.size
    if t < arms:  # an epoch starts with one play of each arm
        return t
    chosen = state.superior[0]
    if (t - arms) % 2 == 1:  # every second step plays the arm that was triggered first, if any
        earliest = state.epoch
        for arm in range(arms):
            if 0 <= state.triggered[arm] < earliest:
                earliest, chosen = state.triggered[arm], arm
    return chosen


def act(state: AR2State, bits: Bits) -> int:
    return scheduled_arm(state)


def update(state: AR2State, arm: int, reward: float) -> None:
    t, arms = state.time[0], state.estimate.size
    for other in range(arms):
        state.estimate[other] *= state.alpha
    state.estimate[arm], state.seen[arm], state.triggered[arm] = state.alpha * reward, t, -1
    leader = arm if state.estimate[arm] > state.estimate[state.last[0]] else state.last[0]
    state.superior[0], state.last[0] = leader, arm
    state.time[0] += 1
    if t + 1 >= arms:
        state.triggered[leader] = -1
        for other in range(arms):
            age = t + 1 - state.seen[other]
            error = estimate_sd(state.alpha, age)
            gap = state.estimate[leader] - state.estimate[other]
            if other != leader and state.triggered[other] < 0 and gap <= state.threshold * state.sigma * error:
                state.triggered[other] = t + 1
    restart(state)


@inline
def estimate_sd(alpha: float, age: int) -> float:
    """Return the sd of an estimate of that age, in units of σ."""
    return math.sqrt((alpha**2 - alpha ** (2 * age)) / (1.0 - alpha**2))


@inline
def restart(state: AR2State) -> None:
    """Reset the State at the end of an epoch."""
    if state.time[0] == state.epoch:
        for other in range(state.estimate.size):
            state.estimate[other], state.seen[other], state.triggered[other] = 0.0, 0, -1
        state.superior[0], state.last[0], state.time[0] = 0, 0, 0


def update_missing(state: AR2State, arm: int) -> None:
    """Decay the estimates; the leader and the triggered arms do not change."""
    for other in range(state.estimate.size):
        state.estimate[other] *= state.alpha
    state.time[0] += 1
    restart(state)


def predict(state: AR2State, arm: int) -> tuple[float, float]:
    age = max(state.time[0] - state.seen[arm], 1)
    return state.estimate[arm], state.sigma * estimate_sd(state.alpha, age)


def action_probabilities(state: AR2State, available: Mask, out: Floats) -> None:
    """Choose the scheduled arm, or the available arm with the largest estimate if that is not available."""
    choice = scheduled_arm(state)
    if available[choice]:
        one_hot(choice, out)
    else:
        argmax_probabilities(state.estimate, available, out)


@register(
    AR2State,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class AR2(Policy):
    """Alternate between the leading arm and arms that may have overtaken it, with restarts (Chen et al. 2023).

    The leader is the one of the last two arms with the larger estimate. Another arm is triggered when its estimate is
    within `threshold` standard errors of the leader's; every second step plays the arm that was triggered first.

    Parameters
    ----------
    alpha : float, 0 < alpha < 1
        AR(1) coefficient of every arm.
    sigma : float, > 0
        Standard deviation of the innovations, in units of the reward.
    epoch : int, >= 2 per arm, optional
        Steps between restarts. By default ``ceil(arms / (alpha * sigma)**3)``, the order in the paper, but at least two
        per arm.
    threshold : float, > 0, default 1.0
        Distance from the leader at which an arm is triggered, in standard errors of its estimate.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.AR2(alpha=0.9, sigma=1.0)
    >>> result = larl.compare({"AR2": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    241.0
    """

    alpha: float = required(number(above=0.0, below=1.0))
    sigma: float = required(number(above=0.0))
    epoch: int | None = checked(optional(integer(2)), None)
    threshold: float = checked(number(above=0.0), 1.0)

    def init(self, arms: int, **_: Any) -> AR2State:
        default = max(math.ceil(arms / max(self.alpha * self.sigma, 1e-5) ** 3), 2 * arms)
        epoch = default if self.epoch is None else integer(2 * arms)("AR2", "epoch", self.epoch)
        return AR2State(
            estimate=np.zeros(arms),
            seen=np.zeros(arms, dtype=np.int64),
            triggered=np.full(arms, -1, dtype=np.int64),
            superior=np.zeros(1, dtype=np.int64),
            last=np.zeros(1, dtype=np.int64),
            time=np.zeros(1, dtype=np.int64),
            alpha=self.alpha,
            sigma=self.sigma,
            epoch=epoch,
            threshold=self.threshold,
        )
