"""The Gymnasium environment passes Gymnasium's checker and has the trials of the engine."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import larl
import larl.simulation.gym
from tests.conftest import THREE_ARMS


def test_environment_passes_the_checker():
    with warnings.catch_warnings():
        # The checker warns that rewards have no bounds; nothing else may be wrong.
        warnings.filterwarnings("ignore", message=".*Box observation space m.* value is .*infinity.*")
        check_env(gymnasium.make("larl/LatentAR-v0", horizon=50).unwrapped, skip_render_check=True)


def test_episodes_reproduce_engine_trials():
    env = gymnasium.make("larl/LatentAR-v0", world=THREE_ARMS, horizon=25)
    result = larl.compare({"it": larl.Random()}, THREE_ARMS, horizon=25, trials=3, seed=8)
    for trial in range(3):
        _, info = env.reset(seed=8) if trial == 0 else env.reset()
        path = THREE_ARMS.path(25, seed=8, trial=trial)
        for t in range(25):
            arm = int(result.arm[0, trial, t])
            observation, reward, terminated, truncated, info = env.step(arm)
            assert reward == observation[0] == result.reward[0, trial, t].item()
            assert info["regret"] == result.regret[0, trial, t].item()
            assert info["latent_state"] == path[t]
            assert np.array_equal(info["mean_rewards"], THREE_ARMS.means(path[t]))
            assert info["optimal_action"] == THREE_ARMS.optimal_arm(path[t])
            assert not terminated
            assert truncated == (t == 24)


def test_episodes_without_a_seed_differ():
    env = gymnasium.make("larl/LatentAR-v0")
    first = env.reset()[1]["latent_state"]
    assert env.reset()[1]["latent_state"] != first


def test_invalid_settings_and_actions_are_refused():
    with pytest.raises(larl.InvalidValue, match="horizon = 0"):
        gymnasium.make("larl/LatentAR-v0", horizon=0)
    with pytest.raises(larl.InvalidValue, match="world = 'x'"):
        larl.simulation.gym.LatentAREnv("x")
    env = larl.simulation.gym.LatentAREnv(THREE_ARMS)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=2**63)
    env.step(np.array(1))
    with pytest.raises(larl.InvalidValue, match="action = 3"):
        env.step(3)
