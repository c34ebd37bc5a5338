"""Rexp3: Exp3 with restarts, for means with a variation budget (Besbes, Gur & Zeevi 2014)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from larl._core.validation import InvalidValue, Vector, checked, integer, interval, number, optional, required
from larl.policies._contract import Policy
from larl.policies._registry import register
from larl.policies.exp3 import Exp3State, act, action_probabilities, bounds, exp3_init, update, update_missing

if TYPE_CHECKING:
    from larl.worlds.base import World


@register(
    Exp3State, act, update, bounds=bounds, update_missing=update_missing, action_probabilities=action_probabilities
)
@dataclass(frozen=True)
class Rexp3(Policy):
    """Exp3 with restarts, for means whose total variation is bounded (Besbes, Gur & Zeevi 2014).

    For K arms, T steps and variation V it restarts every Δ = ⌈(K log K)^⅓ (T/V)^⅔⌉ ≤ T steps, with
    γ = min(1, √(K log K / ((e − 1)Δ))).

    Parameters
    ----------
    variation : float, > 0
        Upper limit V of the total variation of the means over all steps, after mapping `reward_range` to [0, 1].
    reward_range : (float, float), low < high, default (0.0, 1.0)
        Rewards are mapped from this interval to [0, 1]; rewards outside are clipped.
    horizon : int, >= 1, optional
        Number of steps T. By default the horizon of the comparison or agent; one of the two must be given.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.Rexp3(variation=5.0, reward_range=(-4.0, 4.0))
    >>> result = larl.compare({"Rexp3": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    352.0
    """

    variation: float = required(number(above=0.0))
    reward_range: Vector = checked(interval(), (0.0, 1.0))
    horizon: int | None = checked(optional(integer(1)), None)

    def batch(self, arms: int, horizon: int) -> int:
        """Return Δ, at most the horizon."""
        length = (arms * math.log(arms)) ** (1.0 / 3.0) * (horizon / max(self.variation, 1e-9)) ** (2.0 / 3.0)
        return min(math.ceil(length), horizon)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Exp3State:
        steps = self.horizon or horizon
        if steps is None:
            raise InvalidValue("Rexp3", "horizon", None, "the number of steps, which must be known")
        batch = self.batch(arms, steps)
        gamma = min(1.0, math.sqrt(arms * math.log(arms) / ((math.e - 1.0) * batch)))
        return exp3_init(arms, gamma, batch, *self.reward_range)
