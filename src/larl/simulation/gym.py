"""Worlds of every class as Gymnasium environments. Importing this module registers "larl/LatentAR-v0"."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from larl._core.validation import InvalidValue, integer, optional
from larl.worlds import paper
from larl.worlds.base import World
from larl.worlds.simulator import Simulator

Observation = NDArray[np.float64]


class LatentAREnv(gymnasium.Env[Observation, np.int64]):
    """A world of any class as a Gymnasium environment, with one action for each arm.

    A bandit has no observations, so the observation is the last reward, and 0 before the first. `info` has quantities
    of the step that only the simulator knows: `mean_rewards`, `optimal_action`, `regret` and `latent_state`. After
    `reset` they are those of the next step, without regret. A missing reward (`larl.worlds.Recorded`) is nan.

    Episode n after `reset(seed=seed)` has the states and noise of trial n of `larl.compare` with that seed.

    Parameters
    ----------
    world : World, optional
        The world; `larl.worlds.paper(1)` by default.
    horizon : int, >= 1, optional
        Steps after which an episode is truncated. By default episodes do not end, except those of a
        `larl.worlds.Recorded`, which end after its window.
    render_mode : str, optional
        Not used; required by Gymnasium.

    Examples
    --------
    >>> import gymnasium
    >>> import larl.simulation.gym
    >>> env = gymnasium.make("larl/LatentAR-v0", world=larl.worlds.paper(1), horizon=50)
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(1)
    >>> sorted(info)
    ['latent_state', 'mean_rewards', 'optimal_action', 'regret']
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, world: World | None = None, horizon: int | None = None, render_mode: str | None = None) -> None:
        self.world = paper(1) if world is None else world
        if not isinstance(self.world, World):
            raise InvalidValue("LatentAREnv", "world", world, "a larl.LatentAR or another world")
        self.horizon = optional(integer(1))("LatentAREnv", "horizon", horizon) or self.world.max_horizon
        if self.horizon is not None:
            self.world.check_horizon("LatentAREnv", self.horizon)
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(self.world.arms)
        self.observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
        self._seed, self._episode = 0, -1

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._seed, self._episode = seed % 2**63, -1
        elif self._episode < 0:
            self._seed = int(self.np_random.integers(2**62))
        self._episode += 1
        self._simulator = Simulator(self.world, self._seed, self._episode)
        return np.zeros(1), self._info()

    def _info(self) -> dict[str, Any]:
        means = self._simulator.means
        return {
            "mean_rewards": means,
            "optimal_action": int(np.argmax(np.where(np.isnan(means), -np.inf, means))),
            "latent_state": self._simulator.z,
        }

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if self._episode < 0:
            raise gymnasium.error.ResetNeeded("call reset before step")
        arm = integer(0, self.world.arms - 1)("step", "action", np.asarray(action).item())
        info = self._info()
        info["regret"] = self._simulator.regret(arm)
        reward = self._simulator.reward(arm)
        self._simulator.advance(arm)
        truncated = self.horizon is not None and self._simulator.time >= self.horizon
        return np.array([reward]), reward, False, truncated, info


gymnasium.register("larl/LatentAR-v0", entry_point="larl.simulation.gym:LatentAREnv")
