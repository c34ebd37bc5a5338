"""Kalman-UCB against the joint Gaussian distribution of all states and rewards, and against the greedy oracle."""

import math

import numpy as np
import pytest

import larl
from larl._core.compile import kernel
from larl.policies._contract import predict
from tests.conftest import THREE_ARMS
from tests.stepping import decide, learn
from tests.worlds.test_latent_var import TWO, joint_gaussian, random_world

ONE_TELLS_NOTHING = larl.LatentAR(gammas=(0.9,), beta=(0.0, 1.0), mu=(0.5, 0.0), noise="common")
ALL_TELL_THE_SAME = larl.LatentAR(gammas=(0.9,), beta=(0.2, 1.0), mu=(0.5, 0.0), noise="scaled")


@kernel
def prediction(state, arm):
    return predict(state, arm)


def bounds(world, arms, rewards, alpha, steps):
    """Return mean and bonus of each arm at step len(arms), from the joint distribution of all states and rewards."""
    t, m, (mean, cov) = len(arms), world.m, joint_gaussian(world, steps)
    seen = [i for i in range(t) if not math.isnan(rewards[i])]
    rows = np.zeros((len(seen), steps * m))
    for row, i in enumerate(seen):
        rows[row, m * i : m * (i + 1)] = world.beta[arms[i]]
    noise = np.diag([world.sd[arms[i]] ** 2 for i in seen]).reshape(len(seen), len(seen))
    away = np.array([rewards[i] - world.mu[arms[i]] for i in seen]) - rows @ mean
    gain = np.linalg.solve(rows @ cov @ rows.T + noise, rows @ cov).T
    here = slice(m * t, m * (t + 1))
    z, p = (mean + gain @ away)[here], (cov - gain @ rows @ cov)[here, here]
    beta = np.array(world.beta)
    return np.column_stack([world.mu + beta @ z, alpha * np.sqrt(np.einsum("ai,ij,aj->a", beta, p, beta))])


@pytest.mark.parametrize("noise", ["scaled", "common"])
@pytest.mark.parametrize("start", ["stationary", "joint"])
@pytest.mark.parametrize("seed", [1, 2, 4])  # of order 2, 1 and 3
def test_bounds_equal_those_of_the_joint_gaussian(noise, start, seed):
    world, steps, alpha, rng = random_world(seed, None, noise, start), 12, 0.7, np.random.default_rng(seed)
    state, arms, rewards = larl.KalmanUCB(alpha).init(world.arms, world=world), [], []
    for _ in range(steps):
        expected = bounds(world, arms, rewards, alpha, steps)
        found = [prediction(state, arm) for arm in range(world.arms)]
        assert np.allclose(found, expected, rtol=1e-6, atol=1e-6)
        assert expected[decide(state, 0)].sum() > expected.sum(axis=1).max() - 1e-5
        arms.append(int(rng.integers(world.arms)))
        rewards.append(math.nan if rng.random() < 0.2 else float(rng.normal()))
        learn(state, arms[-1], rewards[-1])


@pytest.mark.parametrize("world", [THREE_ARMS, TWO, ONE_TELLS_NOTHING])
def test_without_exploration_it_is_the_oracle(world):
    policies = {"bound": larl.KalmanUCB(0.0), "oracle": larl.KalmanOracle()}
    result = larl.compare(policies, world, horizon=60, trials=10, seed=3, progress=False)
    assert np.array_equal(result.arm.sel(policy="bound"), result.arm.sel(policy="oracle"))
    assert np.array_equal(result.regret.sel(policy="bound"), result.regret.sel(policy="oracle"))


@pytest.mark.parametrize("noise", ["scaled", "common"])
def test_exploration_changes_nothing_if_all_slopes_are_equally_large(noise):
    world = larl.LatentAR(gammas=(0.5, 0.4), beta=(-1.5, 1.5, 1.5), mu=(0.3, 0.0, -0.2), noise=noise)
    policies = {"bound": larl.KalmanUCB(2.0), "oracle": larl.KalmanOracle()}
    result = larl.compare(policies, world, horizon=100, trials=10, seed=4, progress=False)
    assert np.array_equal(result.arm.sel(policy="bound"), result.arm.sel(policy="oracle"))


def regret_difference(world, alpha):
    """Return mean and standard error of the regret of Kalman-UCB minus that of the oracle, paired by trial."""
    policies = {"bound": larl.KalmanUCB(alpha), "oracle": larl.KalmanOracle()}
    regret = larl.compare(policies, world, horizon=200, trials=1000, seed=8, progress=False).regret.sum("time")
    difference = (regret.sel(policy="bound") - regret.sel(policy="oracle")).values
    return difference.mean(), difference.std(ddof=1) / math.sqrt(difference.size)


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_exploration_pays_if_one_arm_tells_nothing(alpha):
    mean, error = regret_difference(ONE_TELLS_NOTHING, alpha)
    assert mean < -6 * error


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_exploration_costs_if_all_arms_tell_the_same(alpha):
    mean, error = regret_difference(ALL_TELL_THE_SAME, alpha)
    assert mean > 6 * error


def test_heavy_tails_are_filtered_as_normal_noise():
    heavy, plain = (larl.KalmanUCB().init(3, world=world) for world in (larl.worlds.HeavyTails(THREE_ARMS), THREE_ARMS))
    assert all(np.array_equal(*pair) for pair in zip(heavy.belief, plain.belief, strict=True))


def test_a_world_is_required():
    with pytest.raises(larl.InvalidValue, match=r"KalmanUCB: world = None .* a larl\.LatentAR"):
        larl.KalmanUCB().init(2)
