"""Step one trial of a world by hand."""

from typing import Any

import numpy as np

from larl._core.random import policy_bits
from larl._core.validation import integer
from larl.worlds.base import World, a_world
from larl.worlds.kernels import Floats, react_to, simulate_step


class Simulator:
    """One trial of a world, step by step: the same path and noise as the engine's trial of that seed and number."""

    def __init__(self, world: World, seed: int, trial: int) -> None:
        seed, trial = (integer(0, 2**63 - 1)("Simulator", *each) for each in (("seed", seed), ("trial", trial)))
        world = a_world("Simulator", "world", world)
        self._world, self._latent, self._seed, self._trial = world, world.latent(), seed, trial
        self.time = -1
        self.advance()

    def advance(self, arm: int | None = None) -> None:
        """Go to the next step, after `arm` was played."""
        if arm is not None:
            react_to(self._latent, self._known(arm))
        self.time += 1
        self._noise = simulate_step(self._latent, self._seed, self._trial, self.time)

    @property
    def word(self) -> int:
        """The random word that the engine hands a policy at this step."""
        return int(policy_bits(self._seed, self._trial, self.time))

    @property
    def z(self) -> Any:
        """The latent state of this step: a number, (m,) numbers where it is a vector, nan in a world that has none."""
        return self._world.state_of(self._latent)

    @property
    def means(self) -> Floats:
        """The mean reward of each arm at this step."""
        return self._latent.means.copy()

    @property
    def context(self) -> Floats:
        """What the world shows before this step: nothing, in most."""
        return getattr(self._latent, "context", np.zeros(0)).copy()

    def reward(self, arm: int) -> float:
        """The reward that `arm` gives at this step."""
        arm = self._known(arm)
        return float(self._latent.means[arm] + self._latent.sd[arm] * self._noise)

    def _known(self, arm: int) -> int:
        return int(integer(0, self._latent.means.size - 1)("Simulator", "arm", arm))
