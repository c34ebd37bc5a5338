"""A latent AR bandit whose state depends on the actions."""

from typing import NamedTuple

import numpy as np

from larl._core.compile import assign, implement
from larl._core.validation import InvalidValue, Vector, numbers, required, spec
from larl.worlds.kernels import Floats, Latent, advance, apply_action, begin, set_means
from larl.worlds.latent_ar import LatentAR
from larl.worlds.variants.wrapped import WrappedWorld


class BurdenState(NamedTuple):
    """A `Burden` world inside a kernel."""

    base: Latent
    means: Floats
    sd: Floats
    effect: Floats  # (arms,)
    next_effect: Floats  # (1,) effect of the last action, added to the next z


def burden_begin(latent: BurdenState, seed: int, trial: int) -> None:
    """Draw z_0 … z_{k−1} of the base world."""
    begin(latent.base, seed, trial)


def burden_advance(latent: BurdenState, key: np.uint64, t: int) -> float:
    """Move the base world to step t and add the effect of the last action to z_t."""
    noise = advance(latent.base, key, t)
    if t >= latent.base.recent.size:
        latent.base.recent[0] += latent.next_effect[0]
        set_means(latent.base)
    assign(latent.means, latent.base.means)
    return noise


def burden_apply_action(latent: BurdenState, arm: int) -> None:
    """Store the action's effect for the next step."""
    latent.next_effect[0] = latent.effect[arm]


implement(begin, BurdenState, burden_begin)
implement(advance, BurdenState, burden_advance)
implement(apply_action, BurdenState, burden_apply_action)


@spec
class Burden(WrappedWorld):
    """A latent AR bandit in which actions change the state: playing arm a adds ``effect[a]`` to the next z.

    It models treatment burden: a prompt that reduces the effect of later prompts. Regret compares each action with the
    best arm at the state that the policy's own actions led to.

    Parameters
    ----------
    base : LatentAR
        The world without effects of actions.
    effect : sequence of float, one per arm
        Amount added to the next latent state, in units of z.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.Burden(larl.worlds.paper(1), effect=(0.0, -0.5))
    >>> result = larl.compare({"UCB": larl.UCB()}, world, horizon=50, trials=20, progress=False)
    >>> round(float(result.total().mean()), 1)
    110.0
    """

    effect: Vector = required(numbers(2))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.base, LatentAR):
            raise InvalidValue("Burden", "base", self.base, "a larl.LatentAR: an effect is one number")
        if len(self.effect) != self.base.arms:
            raise InvalidValue("Burden", "effect", self.effect, f"{self.base.arms} numbers, one for each arm")

    def latent(self) -> BurdenState:
        """Return the State of the world before a trial: its parameters and arrays, for kernels."""
        return BurdenState(self.base.latent(), np.zeros(self.arms), self.base.sd, np.array(self.effect), np.zeros(1))
