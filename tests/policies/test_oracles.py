"""The oracles against the predictions of the filter and the true path."""

import numpy as np
import pytest

import larl
from larl import worlds
from larl.statespace.kalman import filter_path
from larl.worlds import Simulator
from tests.conftest import THREE_ARMS
from tests.stepping import decide, learn

WORLDS = {
    "three arms": THREE_ARMS,
    "paper 5": worlds.paper(5),
    "random 3": worlds.random(3, 4, seed=1),
    "common noise": larl.LatentAR(gammas=(0.7,), beta=(1, -1), mu=(0.5, 0.0), gamma0=-0.2, noise="common", sigma_r=2.0),
}


def play(world, seed, steps):
    """Return random arms and their rewards in one trial."""
    simulator, rng, arms, rewards = Simulator(world, seed, trial=0), np.random.default_rng(seed), [], []
    for _ in range(steps):
        arms.append(int(rng.integers(world.arms)))
        rewards.append(simulator.reward(arms[-1]))
        simulator.advance()
    return arms, rewards


def mean_rewards(world, z):
    return np.array(world.mu) + np.array(world.beta) * z


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", range(3))
def test_exact_oracle_is_greedy_at_the_filter_mean(name, seed):
    world = WORLDS[name]
    arms, rewards = play(world, seed, 60)
    means, _ = filter_path(world, arms, rewards)
    state, choices = larl.KalmanOracle().init(world.arms, world=world), []
    for t in range(60):
        choices.append(decide(state, t))
        assert choices[-1] == np.argmax(mean_rewards(world, means[t]))
        learn(state, arms[t], rewards[t])
    assert len(set(choices)) > 1


@pytest.mark.parametrize("name", WORLDS)
def test_steady_oracle_converges_to_exact_oracle(name):
    world = WORLDS[name]
    arms, rewards = play(world, 5, 400)
    means, _ = filter_path(world, arms, rewards)
    exact, steady = (larl.KalmanOracle(filter=f).init(world.arms, world=world) for f in ("exact", "steady"))
    assert decide(steady, 0) == np.argmax(mean_rewards(world, world.stationary_mean))
    for t in range(400):
        if t >= 200:
            assert steady.z[0] == pytest.approx(means[t], rel=1e-8, abs=1e-8)
            assert decide(steady, t) == decide(exact, t)
        for state in (exact, steady):
            learn(state, arms[t], rewards[t])


def test_steady_oracle_starts_at_stationary_mean_and_exact_oracle_at_start():
    world = larl.LatentAR(gammas=(0.5,), beta=(-1, 1), mu=(0, 0), gamma0=1.0, start=larl.Normal(-4.0, 1.0))
    choices = [decide(larl.KalmanOracle(filter=f).init(2, world=world), 0) for f in ("exact", "steady")]
    assert choices == [0, 1]


@pytest.mark.parametrize("name", WORLDS)
def test_dynamic_oracle_plays_the_best_arm_of_every_step(name):
    world = WORLDS[name]
    result = larl.compare({"it": larl.DynamicOracle()}, world, horizon=50, trials=4, seed=3, progress=False)
    for trial in range(4):
        path = world.path(50, seed=3, trial=trial)
        assert np.array_equal(result.arm.values[0, trial], [np.argmax(mean_rewards(world, z)) for z in path])
    assert not result.regret.values.any()
    assert np.ptp(result.arm.values) > 0


def test_dynamic_oracle_uses_true_means_not_rewards():
    state = larl.DynamicOracle().init(3)
    for means, best in [([1.0, 3.0, 2.0], 1), ([-1.0, -3.0, -2.0], 0), ([0.0, 1.0, 1.0], 1)]:
        state.means[:] = means
        learn(state, 2, 100.0)
        assert decide(state, 0) == best


@pytest.mark.parametrize("spec", [larl.KalmanOracle(), larl.KalmanOracle(filter="steady"), larl.PredictiveSampling()])
def test_oracle_without_world_is_refused(spec):
    with pytest.raises(larl.InvalidValue, match=r"a larl\.LatentAR or larl\.LatentVAR, whose parameters it knows"):
        spec.init(2)


def test_predictive_sampling_refuses_a_world_without_reward_noise():
    world = larl.LatentAR(gammas=(0.5,), beta=(-1, 1), mu=(0, 0), sigma_r=0.0)
    with pytest.raises(larl.InvalidValue, match="sigma_r > 0"):
        larl.PredictiveSampling().init(2, world=world)
