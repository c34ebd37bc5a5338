"""Change-point Thompson sampling: all arms change together, Gaussian rewards (Mellor & Shapiro 2013, Global-CTS)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits, bits_to_uniform, random_bits
from larl._core.validation import checked, integer, number
from larl.policies._bounds import Bound
from larl.policies._contract import Policy
from larl.policies._probabilities import Floats, Mask, one_hot
from larl.policies._registry import register
from larl.policies._thompson import (
    best_sample,
    condition_hypotheses,
    drawn_hypothesis,
    mixture_moments,
    sample_action_probabilities,
)


class ChangePointState(NamedTuple):
    """Hypotheses about the time of the last change, each with the counts and sums since then."""

    weight: NDArray[np.float64]  # (memory,) posterior probability
    plays: NDArray[np.float64]  # (memory, arms)
    total: NDArray[np.float64]  # (memory, arms)
    used: NDArray[np.int64]  # (1,) number of hypotheses
    hazard: float
    sigma: float
    prior_sd: float


def bounds(initial: ChangePointState, state: ChangePointState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"used": (1, initial.weight.size)}


def act(state: ChangePointState, bits: Bits) -> int:
    chosen = drawn_hypothesis(state.weight, state.used[0], bits_to_uniform(random_bits(bits[0], -1)))
    return best_sample(bits, state.plays[chosen], state.total[chosen], state.sigma, state.prior_sd)


def update(state: ChangePointState, arm: int, reward: float) -> None:
    plays, total = state.plays[:, arm], state.total[:, arm]
    mass = condition_hypotheses(state.weight, plays, total, state.used[0], reward, state.sigma, state.prior_sd)
    apply_hazard(state, mass)


@inline
def apply_hazard(state: ChangePointState, mass: float) -> None:
    """Add the hypothesis of a change now with weight `hazard`; scale the others, which have the sum `mass`."""
    weight, plays, total, used = state.weight, state.plays, state.total, state.used[0]
    slot = used
    if used == weight.size:  # replace the least likely hypothesis
        slot = 0
        for i in range(used):
            if weight[i] < weight[slot]:
                slot = i
        mass -= weight[slot]
    else:
        state.used[0] += 1
    for i in range(state.used[0]):
        weight[i] *= (1.0 - state.hazard) / mass
    weight[slot] = state.hazard
    for other in range(plays.shape[1]):
        plays[slot, other] = 0.0
        total[slot, other] = 0.0


def update_missing(state: ChangePointState, arm: int) -> None:
    """Apply the hazard; without a reward, the relative weights of the hypotheses do not change."""
    apply_hazard(state, 1.0)


def predict(state: ChangePointState, arm: int) -> tuple[float, float]:
    plays, total = state.plays[:, arm], state.total[:, arm]
    return mixture_moments(state.weight, plays, total, state.used[0], state.sigma, state.prior_sd)


def action_probabilities(state: ChangePointState, available: Mask, out: Floats) -> None:
    one_hot(-1, out)
    for i in range(state.used[0]):
        sample_action_probabilities(
            state.plays[i], state.total[i], state.sigma, state.prior_sd, state.weight[i], available, out
        )


@register(
    ChangePointState,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class ChangePointThompson(Policy):
    """Thompson sampling for means that are all redrawn at random change points (Mellor & Shapiro 2013).

    Parameters
    ----------
    hazard : float, 0 < hazard < 1, default 0.05
        Probability of a change per step.
    sigma : float, > 0, default 1.0
        Standard deviation of the rewards around their mean, in units of the reward.
    prior_sd : float, > 0, default 1.0
        Standard deviation of the means, which have mean 0, in units of the reward.
    memory : int, >= 2, default 50
        Number of hypotheses about the time of the last change that are kept.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.ChangePointThompson(hazard=0.1)
    >>> result = larl.compare({"change point": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    128.0
    """

    hazard: float = checked(number(above=0.0, below=1.0), 0.05)
    sigma: float = checked(number(above=0.0), 1.0)
    prior_sd: float = checked(number(above=0.0), 1.0)
    memory: int = checked(integer(2), 50)

    def init(self, arms: int, **_: Any) -> ChangePointState:
        weight = np.zeros(self.memory)
        weight[0] = 1.0
        return ChangePointState(
            weight=weight,
            plays=np.zeros((self.memory, arms)),
            total=np.zeros((self.memory, arms)),
            used=np.ones(1, dtype=np.int64),
            hazard=self.hazard,
            sigma=self.sigma,
            prior_sd=self.prior_sd,
        )
