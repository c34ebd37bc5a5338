"""The world as a Gymnasium environment.

`import larl.simulation.gym`, then `gymnasium.make("larl/LatentAR-v0", world=…)`.

Episode n after `reset(seed=seed)` is trial n of the engine with that seed: the same path and noise.
"""

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
    """One action an arm. A bandit has nothing to observe: the observation is the last reward, 0 before the first.

    `info` carries what only the simulator knows, of the step just played: `mean_rewards`, `optimal_action`, `regret`
    and `latent_state` (after `reset`: of the step to come, without regret).
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, world: World | None = None, horizon: int | None = None, render_mode: str | None = None) -> None:
        self.world = paper(1) if world is None else world
        if not isinstance(self.world, World):
            raise InvalidValue("LatentAREnv", "world", world, "a larl.LatentAR or another world")
        self.horizon = optional(integer(1))("LatentAREnv", "horizon", horizon)
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
        self._walk = Simulator(self.world, self._seed, self._episode)
        return np.zeros(1), self._info()

    def _info(self) -> dict[str, Any]:
        means = self._walk.means
        return {
            "mean_rewards": means,
            "optimal_action": int(np.argmax(means)),
            "latent_state": self._walk.z,
        }

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if self._episode < 0:
            raise gymnasium.error.ResetNeeded("call reset before step")
        arm = integer(0, self.world.arms - 1)("step", "action", np.asarray(action).item())
        info = self._info()
        info["regret"] = float(info["mean_rewards"].max() - info["mean_rewards"][arm])
        reward = self._walk.reward(arm)
        self._walk.advance(arm)
        truncated = self.horizon is not None and self._walk.time >= self.horizon
        return np.array([reward]), reward, False, truncated, info


gymnasium.register("larl/LatentAR-v0", entry_point="larl.simulation.gym:LatentAREnv")
