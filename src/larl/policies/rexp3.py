"""Rexp3: Exp3 restarted in batches, against drift within a budget (Besbes, Gur & Zeevi 2014)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from larl._core.validation import InvalidValue, Vector, checked, integer, interval, number, optional, required
from larl.policies._contract import Policy, register
from larl.policies.exp3 import Exp3State, act, action_probabilities, update, update_missing

if TYPE_CHECKING:
    from larl.worlds.base import World


@register(Exp3State, act, update, update_missing=update_missing, action_probabilities=action_probabilities)
@dataclass(frozen=True)
class Rexp3(Policy):
    """Exp3 restarted every Δ = ⌈(K log K)^⅓ (T/V)^⅔⌉ ≤ T steps, γ = min(1, √(K log K / ((e−1)Δ))), V = `variation`.

    V is how much the means, mapped from `reward_range` to [0, 1], may vary in all over T = `horizon` steps (by
    default the horizon of the comparison).
    """

    variation: float = required(number(above=0.0))
    reward_range: Vector = checked(interval(), (0.0, 1.0))
    horizon: int | None = checked(optional(integer(1)), None)

    def batch(self, arms: int, horizon: int) -> int:
        """Δ, at most the horizon."""
        length = (arms * math.log(arms)) ** (1.0 / 3.0) * (horizon / max(self.variation, 1e-9)) ** (2.0 / 3.0)
        return min(math.ceil(length), horizon)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Exp3State:
        steps = self.horizon or horizon
        if steps is None:
            raise InvalidValue("Rexp3", "horizon", None, "the number of steps it will be played for")
        batch = self.batch(arms, steps)
        gamma = min(1.0, math.sqrt(arms * math.log(arms) / ((math.e - 1.0) * batch)))
        return Exp3State(np.zeros(arms), np.zeros(1, dtype=np.int64), gamma, batch, *self.reward_range)
