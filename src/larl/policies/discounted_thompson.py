"""Thompson sampling that forgets by a factor a step (Raj & Kalyani 2017), Gaussian rewards."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from larl._core.validation import checked, number, required
from larl.policies._contract import Policy, register
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
    """Thompson sampling whose counts and sums fade by `discount` every step: an unplayed arm returns to its prior."""

    discount: float = required(number(above=0.0, high=1.0))
    sigma: float = checked(number(above=0.0), 1.0)
    prior_sd: float = checked(number(above=0.0), 1.0)

    def init(self, arms: int, **_: Any) -> ThompsonState:
        return ThompsonState(np.zeros(arms), np.zeros(arms), self.discount, self.sigma, self.prior_sd)
