"""Kalman-UCB: the upper confidence bound of the Kalman filter with the world's true parameters.

Rewards of a linear dynamical system as a bandit problem: Gornet, Hosseinzadeh & Sinopoli (2022). The bound with known
parameters: Kalman-UCB of Gornet, Mo & Sinopoli (2025).
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from larl._core.compile import inner
from larl._core.random import Bits
from larl._core.validation import checked, number
from larl.policies._bounds import STEPS, Bound
from larl.policies._contract import Policy
from larl.policies._oracle import known_world
from larl.policies._registry import register
from larl.statespace.kalman import (
    FilterState,
    current_offset,
    expected_reward,
    initial_filter_state,
    update_filter,
    update_filter_missing,
)

if TYPE_CHECKING:
    from larl.worlds.base import World


class KalmanUCBState(NamedTuple):
    belief: FilterState
    alpha: float


def bounds(initial: KalmanUCBState, state: KalmanUCBState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"belief.time": STEPS}


@inner
def mean_and_bonus(state: KalmanUCBState, arm: int) -> tuple[float, float]:
    """Return μ_a + β_aᵀẑ_t and α√(β_aᵀPβ_a), for the prediction ẑ_t of z_t and its covariance P."""
    belief, at, variance = state.belief, current_offset(state.belief), 0.0
    for i in range(belief.beta.shape[1]):
        for j in range(belief.beta.shape[1]):
            variance += belief.beta[arm, i] * belief.cov[at + i, at + j] * belief.beta[arm, j]
    mean = expected_reward(belief.mu, belief.beta, belief.mean, at, arm)
    return mean, state.alpha * math.sqrt(max(variance, 0.0))


def act(state: KalmanUCBState, bits: Bits) -> int:
    best, choice = -math.inf, 0
    for arm in range(state.belief.mu.size):
        mean, bonus = mean_and_bonus(state, arm)
        if mean + bonus > best:
            best, choice = mean + bonus, arm
    return choice


def update(state: KalmanUCBState, arm: int, reward: float) -> None:
    update_filter(state.belief, arm, reward)


def update_missing(state: KalmanUCBState, arm: int) -> None:
    update_filter_missing(state.belief)


def predict(state: KalmanUCBState, arm: int) -> tuple[float, float]:
    return mean_and_bonus(state, arm)


@register(KalmanUCBState, act, update, bounds=bounds, update_missing=update_missing, predict=predict)
@dataclass(frozen=True)
class KalmanUCB(Policy):
    """Play the arm with the largest upper confidence bound of the Kalman filter, with the world's true parameters.

    The bound of arm a is μ_a + β_aᵀẑ + α√(β_aᵀPβ_a), with the exact filter's prediction ẑ of z_t and its covariance P
    (Kalman-UCB: Gornet, Mo & Sinopoli 2025). P is the uncertainty of the mean reward; the reward noise is not in it.
    ``alpha=0`` is `KalmanOracle`, and so is every α if all |β| are equal, because all bonuses are.

    Exploration helps only if some arms tell more about z than others. With common noise and β = (0, 1), an oracle that
    does not explore can stay with the first arm, which tells nothing; the example has less than half its regret. A
    larger α also costs more: at 2, the regret can exceed that of α = 0. If all arms tell the same (noise that scales
    with |β|), no α has less expected regret than α = 0.

    Parameters
    ----------
    alpha : float, >= 0, default 1.0
        Width of the confidence interval, in standard deviations of the predicted mean reward.

    Raises
    ------
    larl.InvalidValue
        By ``init``, if the world is no `LatentAR`, `LatentVAR` or `HeavyTails`.

    Examples
    --------
    >>> import larl
    >>> world = larl.LatentAR(gammas=[0.9], beta=[0, 1], mu=[0.5, 0], noise="common")
    >>> policies = {"greedy": larl.policies.KalmanUCB(alpha=0), "explores": larl.policies.KalmanUCB(alpha=0.5)}
    >>> larl.compare(policies, world, horizon=200, trials=500).summary()["mean"].round(0).to_dict()
    {'greedy': 136.0, 'explores': 65.0}
    """

    alpha: float = checked(number(0.0), 1.0)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> KalmanUCBState:
        return KalmanUCBState(initial_filter_state(known_world("KalmanUCB", world, arms)), self.alpha)
