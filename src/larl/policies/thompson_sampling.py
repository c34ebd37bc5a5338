"""Gaussian Thompson sampling for stationary means (Thompson 1933)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.random import Bits
from larl._core.validation import checked, number
from larl.policies._contract import Policy
from larl.policies._discounting import discount_and_add
from larl.policies._probabilities import Floats, Mask, one_hot
from larl.policies._registry import register
from larl.policies._thompson import best_sample, posterior, sample_action_probabilities


class ThompsonState(NamedTuple):
    plays: NDArray[np.float64]  # (arms,) discounted number of plays
    total: NDArray[np.float64]  # (arms,) discounted sum of rewards
    discount: float
    sigma: float
    prior_sd: float


def act(state: ThompsonState, bits: Bits) -> int:
    return best_sample(bits, state.plays, state.total, state.sigma, state.prior_sd)


def update(state: ThompsonState, arm: int, reward: float) -> None:
    discount_and_add(state.plays, state.total, state.discount, arm, reward)


def update_missing(state: ThompsonState, arm: int) -> None:
    discount_and_add(state.plays, state.total, state.discount, -1, 0.0)


def predict(state: ThompsonState, arm: int) -> tuple[float, float]:
    return posterior(state.plays[arm], state.total[arm], state.sigma, state.prior_sd)


def action_probabilities(state: ThompsonState, available: Mask, out: Floats) -> None:
    one_hot(-1, out)
    sample_action_probabilities(state.plays, state.total, state.sigma, state.prior_sd, 1.0, available, out)


@register(
    ThompsonState,
    act,
    update,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class ThompsonSampling(Policy):
    """Play the arm whose mean, drawn from its posterior, is the largest (Thompson 1933).

    Rewards are N(mean, ``sigma``²) and the means have the prior N(0, ``prior_sd``²).

    Parameters
    ----------
    sigma : float, > 0, default 1.0
        Standard deviation of the rewards around their mean, in units of the reward.
    prior_sd : float, > 0, default 1.0
        Prior standard deviation of the means, in units of the reward.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.ThompsonSampling()
    >>> result = larl.compare({"TS": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    292.0
    """

    sigma: float = checked(number(above=0.0), 1.0)
    prior_sd: float = checked(number(above=0.0), 1.0)

    def init(self, arms: int, **_: Any) -> ThompsonState:
        return ThompsonState(np.zeros(arms), np.zeros(arms), 1.0, self.sigma, self.prior_sd)
