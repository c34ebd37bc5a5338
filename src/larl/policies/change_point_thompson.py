"""Change-point Thompson sampling, all arms changing together (Mellor & Shapiro 2013, Global-CTS), Gaussian rewards."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits, bits_to_uniform, random_bits
from larl._core.validation import checked, integer, number
from larl.policies._contract import Policy, register
from larl.policies._probabilities import Floats, Mask, surely
from larl.policies._thompson import best_sample, posterior, sample_action_probabilities


class ChangePointState(NamedTuple):
    """Hypotheses about when the last change was; each holds what was seen since."""

    weight: NDArray[np.float64]  # (memory,) posterior probability
    plays: NDArray[np.float64]  # (memory, arms)
    total: NDArray[np.float64]  # (memory, arms)
    used: NDArray[np.int64]  # (1,) how many hypotheses there are
    hazard: float
    sigma: float
    prior_sd: float


def act(state: ChangePointState, bits: Bits) -> int:
    left, chosen = bits_to_uniform(random_bits(bits[0], -1)), state.used[0] - 1
    for i in range(state.used[0]):
        left -= state.weight[i]
        if left < 0.0:
            chosen = i
            break
    return best_sample(bits, state.plays[chosen], state.total[chosen], state.sigma, state.prior_sd)


def update(state: ChangePointState, arm: int, reward: float) -> None:
    weight, count, total, used = state.weight, state.plays, state.total, state.used[0]
    largest = -math.inf
    for i in range(used):  # weights are logarithms until they are normalised below
        mean, sd = posterior(count[i, arm], total[i, arm], state.sigma, state.prior_sd)
        variance = sd**2 + state.sigma**2
        fit = -0.5 * (reward - mean) ** 2 / variance - 0.5 * math.log(variance)
        weight[i] = math.log(weight[i]) + fit
        largest = max(largest, weight[i])
        count[i, arm] += 1.0
        total[i, arm] += reward
    mass = 0.0
    for i in range(used):
        weight[i] = math.exp(weight[i] - largest)
        mass += weight[i]
    renew(state, mass)


@inline
def renew(state: ChangePointState, mass: float) -> None:
    """Time passes: with probability `hazard` all means are drawn anew. The weights so far sum to `mass`."""
    weight, count, total, used = state.weight, state.plays, state.total, state.used[0]
    place = used
    if used == weight.size:  # no room: the least likely hypothesis gives way
        place = 0
        for i in range(used):
            if weight[i] < weight[place]:
                place = i
        mass -= weight[place]
    else:
        state.used[0] += 1
    for i in range(state.used[0]):
        weight[i] *= (1.0 - state.hazard) / mass
    weight[place] = state.hazard
    for other in range(count.shape[1]):
        count[place, other] = 0.0
        total[place, other] = 0.0


def update_missing(state: ChangePointState, arm: int) -> None:
    """No reward tells the hypotheses apart; that all means changed just now is as likely as ever."""
    renew(state, 1.0)


def predict(state: ChangePointState, arm: int) -> tuple[float, float]:
    mean, square = 0.0, 0.0
    for i in range(state.used[0]):
        own, sd = posterior(state.plays[i, arm], state.total[i, arm], state.sigma, state.prior_sd)
        mean += state.weight[i] * own
        square += state.weight[i] * (own * own + sd * sd)
    return mean, math.sqrt(max(square - mean * mean, 0.0))


def action_probabilities(state: ChangePointState, available: Mask, out: Floats) -> None:
    surely(-1, out)
    for i in range(state.used[0]):
        sample_action_probabilities(
            state.plays[i], state.total[i], state.sigma, state.prior_sd, state.weight[i], available, out
        )


@register(
    ChangePointState,
    act,
    update,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class ChangePointThompson(Policy):
    """Each step all means are redrawn with probability `hazard`; `memory` hypotheses of the last change are kept."""

    hazard: float = checked(number(above=0.0, below=1.0), 0.05)
    sigma: float = checked(number(above=0.0), 1.0)
    prior_sd: float = checked(number(above=0.0), 1.0)
    memory: int = checked(integer(2), 50)

    def init(self, arms: int, **_: Any) -> ChangePointState:
        weight, used = np.zeros(self.memory), np.ones(1, dtype=np.int64)
        weight[0] = 1.0
        count, total = np.zeros((self.memory, arms)), np.zeros((self.memory, arms))
        return ChangePointState(weight, count, total, used, self.hazard, self.sigma, self.prior_sd)
