"""KL-UCB with discounted counts and sums (Garivier & Cappé 2011; Garivier & Moulines 2011)."""

from dataclasses import dataclass
from typing import Any

from larl._core.validation import Vector, checked, interval, number, required
from larl.policies._contract import Policy
from larl.policies._registry import register
from larl.policies.kl_ucb import KLUCBState, act, kl_ucb_init, predict, update, update_missing


@register(KLUCBState, act, update, update_missing=update_missing, predict=predict)
@dataclass(frozen=True)
class DiscountedKLUCB(Policy):
    """`KLUCB` with discounted counts and sums, as in discounted UCB (Garivier & Moulines 2011).

    Parameters
    ----------
    discount : float, 0 < discount <= 1
        Factor by which the weight of a past reward decays per step.
    c : float, >= 0, default 0.0
        Exploration constant, as for `KLUCB`; n is the discounted number of all plays.
    reward_range : (float, float), low < high, default (0.0, 1.0)
        Rewards are mapped from this interval to [0, 1]; rewards outside are clipped.

    Examples
    --------
    >>> import larl
    >>> agent = larl.Agent(larl.DiscountedKLUCB(discount=0.5), arms=["off", "on"])
    >>> for arm, reward in [("off", 0.0), ("on", 1.0), ("on", 0.0)]:
    ...     _ = agent.observe(agent.record(arm), reward)
    >>> decision = agent.decide()
    >>> decision.arm, round(decision.expected + decision.width, 4)
    ('off', 0.8934)
    """

    discount: float = required(number(above=0.0, high=1.0))
    c: float = checked(number(0.0), 0.0)
    reward_range: Vector = checked(interval(), (0.0, 1.0))

    def init(self, arms: int, **_: Any) -> KLUCBState:
        return kl_ucb_init(arms, self.discount, self.c, self.reward_range)
