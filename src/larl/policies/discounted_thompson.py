"""Discounted Thompson sampling with Gaussian rewards (Raj & Kalyani 2017)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from larl._core.validation import checked, number, required
from larl.policies._contract import Policy
from larl.policies._registry import register
from larl.policies.thompson_sampling import ThompsonState, act, action_probabilities, predict, update, update_missing


@register(
    ThompsonState,
    act,
    update,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class DiscountedThompson(Policy):
    """Thompson sampling with discounted counts and sums (Raj & Kalyani 2017): an unplayed arm returns to its prior.

    Parameters
    ----------
    discount : float, 0 < discount <= 1
        Factor by which the weight of a past reward decays per step.
    sigma : float, > 0, default 1.0
        Standard deviation of the rewards around their mean, in units of the reward.
    prior_sd : float, > 0, default 1.0
        Prior standard deviation of the means, which have prior mean 0, in units of the reward.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.DiscountedThompson(discount=0.95)
    >>> result = larl.compare({"D-TS": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    178.0
    """

    discount: float = required(number(above=0.0, high=1.0))
    sigma: float = checked(number(above=0.0), 1.0)
    prior_sd: float = checked(number(above=0.0), 1.0)

    def init(self, arms: int, **_: Any) -> ThompsonState:
        return ThompsonState(np.zeros(arms), np.zeros(arms), self.discount, self.sigma, self.prior_sd)
