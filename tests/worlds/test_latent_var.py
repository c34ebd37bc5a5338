"""LatentVAR: validation, moments, paths. With one component it equals LatentAR bit for bit."""

import json
import math

import gymnasium
import numpy as np
import pytest

import larl
import larl.simulation.gym
from larl import worlds
from larl.simulation.study import read_study
from larl.statespace.kalman import filter_path
from larl.statespace.steady_state import steady_state
from larl.worlds import Simulator, variants
from tests.stepping import decide, learn

VALID = {"gammas": [[[0.5, 0.2], [-0.3, 0.6]]], "beta": [[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]], "mu": [0.0, 0.1, 0.2]}
TWO = larl.LatentVAR(**VALID, gamma0=[0.3, -0.1], cov_z=[[1.0, 0.4], [0.4, 0.5]], sigma_r=0.7)


def random_world(
    seed: int, m: int | None = None, noise: str = "scaled", start: object = "stationary"
) -> larl.LatentVAR:
    """Return a random world, of 2 or 3 components unless `m` is given."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 4)) if m is None else m
    k, arms = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    base = worlds.random_vector(m, k, arms, seed, radius=float(rng.uniform(0.2, 0.97))).to_dict()
    factor = rng.normal(size=(m, m))
    values = {"gamma0": rng.normal(size=m), "cov_z": factor @ factor.T, "sigma_r": float(rng.uniform(0.2, 2))}
    if start == "joint":
        factor = rng.normal(size=(m * k, m * k))
        start = larl.JointNormal(rng.normal(size=m * k), factor @ factor.T)
    return larl.LatentVAR.from_dict(base | values | {"noise": noise, "start": start})


def as_scalar(world: larl.LatentVAR) -> larl.LatentAR:
    """Return the LatentAR that equals a world with one component."""
    start = world.start
    return larl.LatentAR(
        [gamma[0][0] for gamma in world.gammas],
        [row[0] for row in world.beta],
        world.mu,
        gamma0=world.gamma0[0],
        sigma_z=math.sqrt(world.cov_z[0][0]),
        sigma_r=world.sigma_r,
        noise=world.noise,
        start=start,
    )


def play(world: larl.LatentVAR, seed: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random arms and simulated rewards."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(0, world.arms, steps)
    means = world.means(world.path(steps, seed=seed))[np.arange(steps), arms]
    return arms, means + world.sd[arms] * rng.normal(size=steps)


def joint_gaussian(world: larl.LatentVAR, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of (z_0 … z_{steps−1}), from z as a linear map of its start and shocks."""
    k, m, gammas = world.k, world.m, np.array(world.gammas)
    mean0, cov0 = world.start_moments
    maps, offsets = [], []
    for t in range(max(steps, k)):
        row, offset = np.zeros((m, m * (k + max(steps, k)))), np.zeros(m)
        if t < k:
            row[:, m * t : m * (t + 1)] = np.eye(m)
        else:
            row = sum(gammas[j] @ maps[t - 1 - j] for j in range(k))
            row[:, m * (k + t) : m * (k + t + 1)] += np.eye(m)
            offset = np.array(world.gamma0) + sum(gammas[j] @ offsets[t - 1 - j] for j in range(k))
        maps.append(row)
        offsets.append(offset)
    linear_map, shift = np.vstack(maps[:steps]), np.concatenate(offsets[:steps])
    sources = np.kron(np.eye(k + max(steps, k)), np.array(world.cov_z))
    sources[: m * k, : m * k] = cov0
    return shift + linear_map[:, : m * k] @ mean0, linear_map @ sources @ linear_map.T


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"gammas": [[[1.2, 0.0], [0.0, 0.1]]]}, ["gammas", "spectral radius", "1.2"]),
        ({"gammas": []}, ["gammas", "1 or more matrices"]),
        ({"gammas": 0.5}, ["gammas = 0.5", "1 or more matrices"]),
        ({"gammas": [0.5]}, ["gammas[0] = 0.5", "rows"]),
        ({"gammas": [[[0.5, 0.1]]]}, ["gammas[0]", "1 rows of 1"]),
        ({"gammas": [[[0.5, 0.1], [0.1]]]}, ["gammas[0]", "equally many"]),
        ({"gammas": [np.eye(2) / 4, np.eye(3) / 4]}, ["gammas[1]", "2 rows of 2"]),
        ({"gammas": [[[0.5, math.nan], [0.0, 0.1]]]}, ["gammas[0][0][1]", "nan", "finite"]),
        ({"beta": [[1.0, 0.0]], "mu": [0.0]}, ["mu", "2 or more"]),
        ({"beta": [[1.0, 0.0]]}, ["beta", "2 or more rows"]),
        ({"beta": [[1.0], [2.0], [3.0]]}, ["beta", "2 numbers, one for each component"]),
        ({"beta": [[1.0, 0.0], [0.0, math.inf]]}, ["beta[1][1]", "inf"]),
        ({"beta": [1.0, 2.0]}, ["beta[0] = 1.0"]),
        ({"mu": [0.0, 0.0]}, ["mu", "3 numbers, one for each arm"]),
        ({"gamma0": [1.0]}, ["gamma0", "2 numbers"]),
        ({"gamma0": 1.0}, ["gamma0 = 1.0"]),
        ({"cov_z": [[1.0, 2.0], [2.0, 1.0]]}, ["cov_z", "no negative eigenvalue"]),
        ({"cov_z": [[1.0, 0.5], [0.1, 1.0]]}, ["cov_z", "symmetric"]),
        ({"cov_z": [1.0, 1.0]}, ["cov_z[0] = 1.0"]),
        ({"cov_z": [[1.0]]}, ["cov_z", "2 rows of 2"]),
        ({"sigma_r": -1.0}, ["sigma_r = -1.0", "≥ 0"]),
        ({"noise": "loud"}, ["noise = 'loud'", "'common'"]),
        ({"start": "cold"}, ["start = 'cold'", "dimension 2"]),
        ({"start": larl.JointNormal([0.0], [[1.0]])}, ["start.mean", "2 numbers, one for each lag and component"]),
    ],
)
def test_invalid_value_names_field_and_value(change, parts):
    with pytest.raises(larl.InvalidValue) as error:
        larl.LatentVAR(**(VALID | change))
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize("start", ["stationary", larl.Normal(1.0, 2.0), "joint"])
def test_json_round_trip(start):
    world = random_world(3, start=start)
    again = variants.from_dict(json.loads(json.dumps(world.to_dict())))
    assert again == world == larl.LatentVAR.from_dict(world.to_dict())
    assert hash(again) == hash(world)
    assert (larl.LatentVAR(**VALID).gamma0, larl.LatentVAR(**VALID).cov_z) == ((0.0, 0.0), ((1.0, 0.0), (0.0, 1.0)))
    with pytest.raises(larl.InvalidValue, match="world = 'LatentVAR'"):
        larl.LatentAR.from_dict(world.to_dict())


def test_study_file_with_vector_worlds(tmp_path):
    text = """
        horizon = 20
        trials = 3
        [worlds.w]
        world = "LatentVAR"
        gammas = [[[0.5, 0.2], [-0.3, 0.6]]]
        beta = [[1, 0], [0, 1], [1, -1]]
        mu = [0, 0.1, 0.2]
        gamma0 = [0.3, -0.1]
        cov_z = [[1, 0.4], [0.4, 0.5]]
        sigma_r = 0.7
        [worlds.r]
        random = {m = 2, k = 3, arms = 4, seed = 5, radius = 0.8}
        [worlds.tails]
        world = "HeavyTails"
        base = {world = "LatentVAR", gammas = [[[0.5]]], beta = [[1], [2]], mu = [0, 0]}
        [policies.p]
        policy = "LARL"
        s = 1
    """
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    study = read_study(tmp_path / "study.toml")
    assert study.worlds["w"] == TWO
    assert study.worlds["r"] == worlds.random_vector(2, 3, 4, seed=5, radius=0.8)
    assert study.worlds["tails"].base == larl.LatentVAR([[[0.5]]], [[1], [2]], [0, 0])
    assert study.run().regret.shape == (3, 1, 3, 20)


@pytest.mark.parametrize(("m", "k", "radius"), [(1, 2, 0.9), (2, 1, 0.3), (3, 2, 0.99), (2, 4, 0.7)])
def test_random_world_has_the_given_radius(m, k, radius):
    world = worlds.random_vector(m, k, 3, seed=1, radius=radius)
    assert (world.m, world.k, world.arms) == (m, k, 3)
    assert world.spectral_radius == pytest.approx(radius, rel=1e-6)
    assert world != worlds.random_vector(m, k, 3, seed=2, radius=radius)
    if m == 1:
        assert as_scalar(world) == worlds.random(k, 3, seed=1, radius=radius)


def test_linear_system_equals_the_recursion():
    world, rng = random_world(4, m=3), np.random.default_rng(0)
    past = rng.normal(size=(world.k, 3))  # latest first
    following = world.system.gamma @ past.ravel() + world.system.drift
    expected = np.array(world.gamma0) + sum(np.array(g) @ z for g, z in zip(world.gammas, past, strict=True))
    assert np.allclose(following[:3], expected)
    assert np.array_equal(following[3:], past.ravel()[:-3])
    assert np.allclose(world.system.c @ past.ravel(), np.array(world.beta) @ past[0])
    assert world.stationary_mean == pytest.approx(
        np.array(world.gamma0) + sum(np.array(g) @ world.stationary_mean for g in world.gammas)
    )


JOINT = larl.JointNormal([1, -1, 0, 2], [[2, 1, 0, 0], [1, 1, 0, 0.2], [0, 0, 1, 0], [0, 0.2, 0, 3]])


@pytest.mark.parametrize("start", ["stationary", larl.Normal(2.0, 3.0), JOINT])
def test_paths_have_the_moments_of_the_recursion(start):
    # 20,000 paths of 5 steps: each mean within 5 standard errors of its own, and every covariance between components
    # and steps, whose sample variance is (c_ii c_jj + c_ij²)/n. 10 means and 100 covariances.
    n, steps = 20_000, 5
    world = larl.LatentVAR(
        gammas=[[[0.5, 0.3], [-0.2, 0.4]], [[0.1, 0.0], [0.3, -0.2]]],
        beta=[[1, 0], [0, 1]],
        mu=[0, 0],
        gamma0=[0.4, -1],
        cov_z=[[1.0, 0.6], [0.6, 0.8]],
        start=start,
    )
    paths = np.array([world.path(steps, seed=5, trial=trial).ravel() for trial in range(n)])
    mean, cov = joint_gaussian(world, steps)
    assert np.all(np.abs(paths.mean(0) - mean) < 5 * np.sqrt(np.diag(cov) / n))
    errors = np.sqrt((np.outer(np.diag(cov), np.diag(cov)) + cov**2) / n)
    assert np.all(np.abs(np.cov(paths.T) - cov) < 5 * errors)


def test_stationary_covariance_equals_that_of_a_long_path():
    # One path of 200,000 steps. Its covariance averages over autocorrelated steps: the standard error comes from the
    # means of 200 blocks of 1,000 steps, far longer than the memory at radius 0.8.
    world = worlds.random_vector(2, 2, 2, seed=3, radius=0.8)
    path = world.path(200_000, seed=1)
    both = np.hstack([path[1:], path[:-1]])[:199_000].reshape(199, 1000, 4)
    products = np.einsum("bti,btj->bij", both, both) / 1000
    errors = products.std(0, ddof=1) / np.sqrt(199)
    assert np.all(np.abs(products.mean(0) - world.stationary_cov) < 5 * errors)


def test_shocks_and_reward_noise_are_independent():
    # m = 4 and no memory: 40,000 draws of four shocks and the noise; correlations within 5/√n of 0, variances of 1.
    world, n = larl.LatentVAR([np.zeros((4, 4))], np.eye(4)[:2], [0, 0]), 40_000
    simulator, draws = Simulator(world, 1, 0), np.empty((n, 5))
    for t in range(n):
        draws[t, :4], draws[t, 4] = simulator.z, simulator.reward(0) - simulator.means[0]
        simulator.advance()
    cov = draws.T @ draws / n
    assert np.abs(draws.mean(0)).max() < 5 / np.sqrt(n)
    assert np.abs(cov - np.eye(5)).max() < 5 * np.sqrt(2 / n)


@pytest.mark.parametrize("noise", ["scaled", "common"])
@pytest.mark.parametrize("start", ["stationary", larl.Normal(1.0, 3.0), "joint"])
@pytest.mark.parametrize("seed", range(4))
def test_one_component_equals_the_scalar_world(noise, start, seed):
    world = random_world(seed, 1, noise, start)
    scalar = as_scalar(world)
    assert np.array_equal(world.path(50, seed=2)[:, 0], scalar.path(50, seed=2))
    assert np.array_equal(world.means(world.path(50)), scalar.means(scalar.path(50)))
    assert world.spectral_radius == scalar.spectral_radius
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(world.system, scalar.system, strict=True))
    policies = {"LARL": larl.LARL(2), "Kalman": larl.KalmanOracle(), "UCB": larl.UCB()}
    if noise == "scaled":
        policies["steady"] = larl.KalmanOracle(filter="steady")
        assert all(np.array_equal(*pair) for pair in zip(steady_state(world), steady_state(scalar), strict=True))
        assert (steady_state(scalar).c[0], tuple(steady_state(scalar).scale)) == (1.0, scalar.beta)
    mine, theirs = (larl.compare(policies, each, horizon=40, trials=5, seed=seed) for each in (world, scalar))
    for name in ("regret", "arm", "reward"):
        assert np.array_equal(mine.data[name], theirs.data[name])
    arms, rewards = play(world, seed, 30)
    for mine, theirs in zip(filter_path(world, arms, rewards), filter_path(scalar, arms, rewards), strict=True):
        assert np.array_equal(mine.ravel(), theirs)


def test_simulator_reproduces_engine_and_kalman_oracle_plays_the_best_arm_of_the_filter():
    policies = {"Kalman": larl.KalmanOracle(), "LARL": larl.LARL(2)}
    result = larl.compare(policies, TWO, horizon=40, trials=2, seed=5)
    for trial in range(2):
        path = TWO.path(40, seed=5, trial=trial)
        for i, spec in enumerate(policies.values()):
            simulator, state, played, seen = Simulator(TWO, 5, trial), spec.init(3, horizon=40, world=TWO), [], []
            for t in range(40):
                assert np.array_equal(simulator.z, path[t])
                assert np.array_equal(simulator.means, TWO.means(path[t]))
                arm = decide(state, simulator.bits)
                reward = simulator.reward(arm)
                assert (arm, reward) == (result.arm[i, trial, t], result.reward[i, trial, t].item())
                learn(state, arm, reward)
                simulator.advance(arm)
                played.append(arm)
                seen.append(reward)
            if i == 0:
                means, _ = filter_path(TWO, played, seen)
                assert played == TWO.optimal_arm(means).tolist()


def test_gymnasium_environment_reproduces_the_engine():
    env = gymnasium.make("larl/LatentAR-v0", world=TWO, horizon=10)
    env.reset(seed=8)
    played = larl.compare({"it": larl.RoundRobin()}, TWO, horizon=10, trials=1, seed=8)
    for t, z in enumerate(TWO.path(10, seed=8)):
        _, reward, _, truncated, info = env.step(t % 3)
        assert np.array_equal(info["latent_state"], z)
        assert (reward, info["regret"]) == (played.reward[0, 0, t].item(), played.regret[0, 0, t].item())
        assert info["optimal_action"] == TWO.optimal_arm(z)
    assert truncated


def test_heavy_tails_with_a_vector_state():
    world = variants.HeavyTails(TWO, df=3.0)
    assert np.array_equal(Simulator(world, 3, 0).z, Simulator(TWO, 3, 0).z)
    result = larl.compare({"Kalman": larl.KalmanOracle(), "random": larl.Random()}, world, horizon=50, trials=20)
    assert result.summary().loc["Kalman", "mean"] < result.summary().loc["random", "mean"]
    assert variants.from_dict(json.loads(json.dumps(world.to_dict()))) == world
