"""Discounted Beta–Bernoulli Thompson sampling (Raj & Kalyani 2017)."""

from dataclasses import dataclass
from typing import Any

from larl._core.validation import Vector, checked, interval, number, required
from larl.policies._beta_thompson import prior_pair
from larl.policies._contract import Policy
from larl.policies._registry import register
from larl.policies.beta_thompson import (
    BetaThompsonState,
    act,
    action_probabilities,
    beta_thompson_init,
    predict,
    update,
    update_missing,
)


@register(
    BetaThompsonState,
    act,
    update,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class DiscountedBetaThompson(Policy):
    """`BetaThompson` with discounted successes and failures (Raj & Kalyani 2017): an unplayed arm returns to its prior.

    Parameters
    ----------
    discount : float, 0 < discount <= 1
        Factor by which the weight of a past reward decays per step.
    prior : (float, float), 0.001 to 1e6 each, default (1.0, 1.0)
        Parameters (a, b) of the Beta prior; they are not discounted.
    reward_range : (float, float), low < high, default (0.0, 1.0)
        Rewards are mapped from this interval to [0, 1]; rewards outside are clipped.

    Examples
    --------
    A success of "on" and nine steps without a reward: 0.9⁹ = 0.39 of a success is left, and P = 1.39/2.39.

    >>> import larl
    >>> agent = larl.Agent(larl.DiscountedBetaThompson(discount=0.9), arms=["off", "on"])
    >>> _ = agent.observe(agent.record("on"), 1.0)
    >>> _ = [agent.record(None) for _ in range(9)]
    >>> round(agent.decide().probabilities["on"], 4)
    0.5811
    """

    discount: float = required(number(above=0.0, high=1.0))
    prior: Vector = checked(prior_pair, (1.0, 1.0))
    reward_range: Vector = checked(interval(), (0.0, 1.0))

    def init(self, arms: int, **_: Any) -> BetaThompsonState:
        return beta_thompson_init(arms, self.discount, self.prior, self.reward_range)
