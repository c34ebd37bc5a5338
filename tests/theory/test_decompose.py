"""The split of regret into floor and learning cost: against a plain NumPy filter, and as an identity."""

from dataclasses import replace

import numpy as np
import pytest

import larl
from larl import worlds
from larl.statespace.steady_state import steady_state
from larl.theory import decompose, expected_best_mean, floor_path, regret_floor, steady_start
from tests.conftest import THREE_ARMS
from tests.statespace.test_kalman_vector import collinear_world

POLICIES = {
    "LARL": larl.LARL(1),
    "UCB": larl.UCB(),
    "Kalman": larl.KalmanOracle(),
    "random": larl.Random(),
}


def steady_predictions(world: larl.LatentAR, arms: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    """Return z̃_t of the steady-state filter, (trials, steps, k), for all trials at once."""
    steady, z = steady_state(world), np.full((arms.shape[0], world.k), world.stationary_mean)
    path = np.empty((*arms.shape, world.k))
    for t in range(arms.shape[1]):
        path[:, t] = z
        y = (rewards[:, t] - np.array(world.mu)[arms[:, t]]) / np.array(world.beta)[arms[:, t]]
        z = (z + np.outer(y - z[:, 0], steady.gain)) @ world.system.gamma.T + world.system.drift
    return path


@pytest.mark.parametrize("world", [worlds.paper(1), THREE_ARMS, replace(worlds.paper(5), gamma0=0.4, mu=(0.0, 0.5))])
def test_regret_minus_gap_has_the_conditional_mean_of_the_filter(world):
    # Given the past, z_t ~ N(z̃_t, P₁₁). So regret_t − gap_t − h(z̃_t), h(z̃) = E max_a(μ_a + β_a z) − max_a(μ_a + β_a z̃),
    # has mean 0 given the past: multiplied by any function of the past its sum has mean 0. 300 trials, 4.5 errors.
    world = steady_start(world)
    result = larl.compare(POLICIES, world, horizon=60, trials=300, seed=3)
    gaps, variance = decompose(result, world).gaps, float(steady_state(world).cov[0, 0])
    mu, beta = np.array(world.mu), np.array(world.beta)
    for i, name in enumerate(result.policies):
        arms, rewards = result.arm.values[i].astype(int), result.reward.values[i]
        z = steady_predictions(world, arms, rewards)[..., 0]
        means = mu + np.multiply.outer(z, beta)
        played = np.take_along_axis(means, arms[..., None], axis=-1)[..., 0]
        assert np.allclose(gaps[i], means.max(axis=-1) - played, atol=1e-8)
        grid = np.linspace(z.min(), z.max(), 400)
        h = [expected_best_mean(mu, beta, x, variance) - (mu + beta * x).max() for x in grid]
        error = result.regret.values[i] - gaps[i] - np.interp(z, grid, h)
        for past in (np.ones_like(z), z, np.abs(z), arms == 0, gaps[i], np.roll(rewards, 1, axis=1) * (z != z[:, :1])):
            total = (error * past).sum(axis=1)
            assert abs(total.mean()) <= 4.5 * total.std() / np.sqrt(total.size), name


@pytest.mark.parametrize(
    "world",
    [
        steady_start(worlds.paper(1)),
        worlds.paper(5),
        replace(worlds.paper(1), start="stationary", gamma0=0.3),
        replace(THREE_ARMS, start=larl.Normal(3.0, 2.0)),
        collinear_world(4),
    ],
)
def test_regret_is_floor_plus_learning(world):
    # 1,000 trials of 80 steps; within 4 standard errors for each policy, from any start.
    policies = {name: each for name, each in POLICIES.items() if name != "LARL"} | {"LARL": larl.LARL(2)}
    split = decompose(larl.compare(policies, world, horizon=80, trials=1000, seed=7), world)
    table = split.table
    assert (table["remainder"].abs() <= 4 * table["remainder se"]).all()
    assert np.allclose(table["regret"], table["floor"] + table["learning"] + table["remainder"])
    assert table["learning"]["Kalman"] == pytest.approx(0.0, abs=1e-9)
    assert table["learning"]["random"] > 20 * table["learning se"]["random"]
    assert (split.gaps >= 0.0).all()


def test_floors_converge_to_the_regret_floor_and_begin_at_the_start():
    for world in (steady_start(worlds.paper(1)), worlds.paper(10), THREE_ARMS, collinear_world(4)):
        assert floor_path(world, 3000)[-1] == pytest.approx(regret_floor(world), rel=1e-6)
    world = steady_start(worlds.paper(1))
    first = expected_best_mean(world.mu, world.beta, 0.0, float(steady_state(world).cov[0, 0]))
    assert floor_path(world, 1)[0] == pytest.approx(first)


def test_results_and_worlds_that_do_not_fit_are_refused():
    world = steady_start(worlds.paper(1))
    policies = {"UCB": larl.UCB()}
    named = larl.compare(policies, {"steady": world, "paper": worlds.paper(1)}, horizon=10, trials=4)
    assert np.array_equal(
        decompose(named, world).gaps, decompose(larl.compare(policies, world, horizon=10, trials=4), world).gaps
    )
    with pytest.raises(larl.InvalidValue, match="the world, with the same start"):
        decompose(named, worlds.paper(5))
    with pytest.raises(larl.InvalidValue, match="keep='all'"):
        decompose(larl.compare(policies, world, horizon=10, trials=4, keep="summary"), world)
    with pytest.raises(larl.InvalidValue, match="without units"):
        decompose(larl.compare(policies, world, horizon=10, trials=2, units=2), world)
    common = larl.LatentAR(gammas=[0.9], beta=[1, 2], mu=[0, 0], noise="common")
    with pytest.raises(larl.InvalidValue, match="no β of 0"):
        decompose(larl.compare(policies, common, horizon=10, trials=4), common)
