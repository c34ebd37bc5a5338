"""AR2: alternate and restart, for arms whose rewards each follow a known AR(1) (Chen, Golrezaei & Bouneffouf 2023).

Model: R_i(t) = r_i(t) + ε_i(t) and r_i(t+1) = α R_i(t), mean zero, ε ~ N(0, σ²). An arm last seen at τ is estimated by
r̂_i(t) = α^{t−τ} R_i(τ), with variance σ²(α² − α^{2(t−τ)})/(1 − α²).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits
from larl._core.validation import checked, integer, number, optional, required
from larl.policies._contract import Policy, register
from larl.policies._probabilities import Floats, Mask, first_best, surely


class AR2State(NamedTuple):
    estimate: NDArray[np.float64]  # (arms,) r̂_i of the coming step
    seen: NDArray[np.int64]  # (arms,) step of the epoch at which the arm was last played
    triggered: NDArray[np.int64]  # (arms,) step at which it was triggered, −1 if it is not
    superior: NDArray[np.int64]  # (1,) the better-looking of the two arms played last
    last: NDArray[np.int64]  # (1,) the arm played last
    time: NDArray[np.int64]  # (1,) within the epoch
    alpha: float
    sigma: float
    epoch: int
    threshold: float


@inline
def turn(state: AR2State) -> int:
    """The arm whose turn it is."""
    t, arms = state.time[0], state.estimate.size
    if t < arms:  # every epoch begins with one look at each arm
        return t
    chosen = state.superior[0]
    if (t - arms) % 2 == 1:  # every other step goes to the arm that has waited longest, if any was triggered
        earliest = state.epoch
        for arm in range(arms):
            if 0 <= state.triggered[arm] < earliest:
                earliest, chosen = state.triggered[arm], arm
    return chosen


def act(state: AR2State, bits: Bits) -> int:
    return turn(state)


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
            error = spread(state.alpha, age)
            gap = state.estimate[leader] - state.estimate[other]
            if other != leader and state.triggered[other] < 0 and gap <= state.threshold * state.sigma * error:
                state.triggered[other] = t + 1
    restart(state)


@inline
def spread(alpha: float, age: int) -> float:
    """The sd of an estimate of that age, in units of σ."""
    return math.sqrt((alpha**2 - alpha ** (2 * age)) / (1.0 - alpha**2))


@inline
def restart(state: AR2State) -> None:
    """At the end of an epoch, forget everything."""
    if state.time[0] == state.epoch:
        for other in range(state.estimate.size):
            state.estimate[other], state.seen[other], state.triggered[other] = 0.0, 0, -1
        state.superior[0], state.last[0], state.time[0] = 0, 0, 0


def update_missing(state: AR2State, arm: int) -> None:
    """Estimates fade as ever; who leads and who waits stays."""
    for other in range(state.estimate.size):
        state.estimate[other] *= state.alpha
    state.time[0] += 1
    restart(state)


def predict(state: AR2State, arm: int) -> tuple[float, float]:
    age = max(state.time[0] - state.seen[arm], 1)
    return state.estimate[arm], state.sigma * spread(state.alpha, age)


def action_probabilities(state: AR2State, available: Mask, out: Floats) -> None:
    """Where the arm whose turn it is cannot be played, the best-looking of those that can."""
    choice = turn(state)
    if available[choice]:
        surely(choice, out)
    else:
        first_best(state.estimate, available, out)


@register(
    AR2State, act, update, update_missing=update_missing, predict=predict, action_probabilities=action_probabilities
)
@dataclass(frozen=True)
class AR2(Policy):
    """Play the leader, and every other step an arm that may have overtaken it; forget everything every `epoch` steps.

    `alpha` and `sigma` are the AR(1)'s coefficient and noise sd, known to it. The leader is the better-looking of the
    two arms played last; another arm is triggered, and waits for its turn, when its estimate is within `threshold` of
    its standard errors of the leader's. Default epoch: ⌈|A| α⁻³ σ⁻³⌉ steps, its authors' order, at least two an arm.
    """

    alpha: float = required(number(above=0.0, below=1.0))
    sigma: float = required(number(above=0.0))
    epoch: int | None = checked(optional(integer(2)), None)
    threshold: float = checked(number(above=0.0), 1.0)

    def init(self, arms: int, **_: Any) -> AR2State:
        default = max(math.ceil(arms / max(self.alpha * self.sigma, 1e-5) ** 3), 2 * arms)
        epoch = default if self.epoch is None else integer(2 * arms)("AR2", "epoch", self.epoch)
        zero = np.zeros(1, dtype=np.int64)
        return AR2State(
            np.zeros(arms),
            np.zeros(arms, dtype=np.int64),
            np.full(arms, -1, dtype=np.int64),
            zero,
            zero.copy(),
            zero.copy(),
            self.alpha,
            self.sigma,
            epoch,
            self.threshold,
        )
