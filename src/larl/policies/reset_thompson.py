"""Thompson sampling with resets: each arm changes on its own (Viappiani 2013; Mellor & Shapiro 2013, per-arm CTS)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits, normal, uniform
from larl._core.validation import checked, integer, number
from larl.policies._bounds import Bound
from larl.policies._contract import Policy
from larl.policies._mixture_probabilities import argmax_mixture_probabilities
from larl.policies._probabilities import Floats, Mask
from larl.policies._registry import register
from larl.policies._thompson import MIN_SD, condition_hypotheses, drawn_hypothesis, mixture_moments, posterior

NEGLIGIBLE = 1e-14  # hypotheses with less weight do not enter the action probabilities


class ResetThompsonState(NamedTuple):
    """Hypotheses about the last reset of each arm; the first one is that the arm was not played since."""

    weight: NDArray[np.float64]  # (arms, memory) posterior probability
    plays: NDArray[np.float64]  # (arms, memory) number of plays since the reset
    total: NDArray[np.float64]  # (arms, memory) sum of rewards since the reset
    used: NDArray[np.int64]  # (arms,) number of hypotheses
    hazard: float
    sigma: float
    prior_sd: float


def bounds(initial: ResetThompsonState, state: ResetThompsonState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"used": (1, initial.weight.shape[1])}


def act(state: ResetThompsonState, bits: Bits) -> int:
    best, choice = -math.inf, 0
    for arm in range(state.used.size):
        i = drawn_hypothesis(state.weight[arm], state.used[arm], uniform(bits))
        mean, sd = posterior(state.plays[arm, i], state.total[arm, i], state.sigma, state.prior_sd)
        draw = mean + sd * normal(bits)
        if draw > best:
            best, choice = draw, arm
    return choice


def update(state: ResetThompsonState, arm: int, reward: float) -> None:
    weight, plays, total, used = state.weight[arm], state.plays[arm], state.total[arm], state.used[arm]
    mass = condition_hypotheses(weight, plays, total, used, reward, state.sigma, state.prior_sd)
    slot = used  # the first hypothesis has a play now and moves here
    if used == weight.size:  # forget the least likely hypothesis
        slot = 0
        for i in range(used):
            if weight[i] < weight[slot]:
                slot = i
        mass -= weight[slot]
    else:
        state.used[arm] += 1
    weight[slot], plays[slot], total[slot] = weight[0], plays[0], total[0]
    weight[0], plays[0], total[0] = 0.0, 0.0, 0.0
    for i in range(state.used[arm]):
        weight[i] /= mass
    apply_hazard(state)


@inline
def apply_hazard(state: ResetThompsonState) -> None:
    """Move the share `hazard` of the weight of every arm to the hypothesis without a play since the reset."""
    for arm in range(state.used.size):
        for i in range(state.used[arm]):
            state.weight[arm, i] *= 1.0 - state.hazard
        state.weight[arm, 0] += state.hazard


def update_missing(state: ResetThompsonState, arm: int) -> None:
    apply_hazard(state)


def predict(state: ResetThompsonState, arm: int) -> tuple[float, float]:
    weight, plays, total = state.weight[arm], state.plays[arm], state.total[arm]
    return mixture_moments(weight, plays, total, state.used[arm], state.sigma, state.prior_sd)


def action_probabilities(state: ResetThompsonState, available: Mask, out: Floats) -> None:
    weight, mean, sd = np.empty(state.weight.shape), np.empty(state.weight.shape), np.empty(state.weight.shape)
    used = np.zeros(out.size, np.int64)
    for arm in range(out.size):
        for i in range(state.used[arm]):
            if state.weight[arm, i] > NEGLIGIBLE:
                kept = used[arm]
                weight[arm, kept] = state.weight[arm, i]
                mean[arm, kept], sd[arm, kept] = posterior(
                    state.plays[arm, i], state.total[arm, i], state.sigma, state.prior_sd
                )
                used[arm] += 1
    argmax_mixture_probabilities(weight, mean, sd, used, available, out)


@register(
    ResetThompsonState,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class ResetThompson(Policy):
    """Thompson sampling for arms whose means are redrawn independently of each other (Viappiani 2013).

    Before every step but the first, the mean of each arm is redrawn from its prior with probability `hazard`, whether
    the arm is played or not. For each arm, the policy keeps the posterior of the number of its plays since its last
    reset. It draws this number and then a mean for every arm, and plays the arm with the largest mean. These are the
    resets of Viappiani, and the per-arm switching with a known rate of Mellor & Shapiro (2013, PA-CTS), for normal
    rewards in place of binary ones. The posterior is exact until an arm has been played `memory` times.
    `ChangePointThompson` is for arms that change together.

    Parameters
    ----------
    hazard : float, 0 < hazard < 1, default 0.05
        Probability of a reset per arm and step.
    sigma : float, >= 1e-50, default 1.0
        Standard deviation of the rewards around their mean, in units of the reward.
    prior_sd : float, >= 1e-50, default 1.0
        Standard deviation of the means, which have mean 0, in units of the reward.
    memory : int, >= 2, default 50
        Number of hypotheses about the last reset that are kept for each arm. The least likely one is forgotten.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.ResetThompson(hazard=0.1)
    >>> result = larl.compare({"resets": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    122.0
    """

    hazard: float = checked(number(above=0.0, below=1.0), 0.05)
    sigma: float = checked(number(MIN_SD), 1.0)
    prior_sd: float = checked(number(MIN_SD), 1.0)
    memory: int = checked(integer(2), 50)

    def init(self, arms: int, **_: Any) -> ResetThompsonState:
        weight = np.zeros((arms, self.memory))
        weight[:, 0] = 1.0
        return ResetThompsonState(
            weight=weight,
            plays=np.zeros((arms, self.memory)),
            total=np.zeros((arms, self.memory)),
            used=np.ones(arms, dtype=np.int64),
            hazard=self.hazard,
            sigma=self.sigma,
            prior_sd=self.prior_sd,
        )
