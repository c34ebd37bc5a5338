"""LatentAR: validation, moments, paths."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import larl
from larl.worlds import Simulator
from tests.conftest import THREE_ARMS

VALID = {"gammas": [0.9], "beta": [-1.0, 1.0], "mu": [0.0, 0.0]}


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"gammas": [2.0, -1.5]}, ["gammas", "spectral radius", "1.225", "|Σγ| < 1 is not enough", "0.5"]),
        ({"gammas": [1.0]}, ["gammas", "spectral radius"]),
        ({"gammas": []}, ["gammas", "1 or more"]),
        ({"gammas": [math.nan]}, ["gammas[0]", "nan", "finite"]),
        ({"beta": [1.0, math.inf]}, ["beta[1]", "inf", "finite"]),
        ({"mu": [0.0, math.nan]}, ["mu[1]", "nan"]),
        ({"mu": [0.0, 0.0, 0.0]}, ["mu", "2 numbers"]),
        ({"beta": [1.0], "mu": [0.0]}, ["beta", "2 or more"]),
        ({"beta": "ab"}, ["beta", "'ab'"]),
        ({"sigma_z": -1.0}, ["sigma_z", "-1.0", "≥ 0"]),
        ({"sigma_r": -0.1}, ["sigma_r", "-0.1", "≥ 0"]),
        ({"sigma_r": math.nan}, ["sigma_r", "nan"]),
        ({"gamma0": math.inf}, ["gamma0", "inf"]),
        ({"noise": "loud"}, ["noise", "'loud'", "'scaled'", "'common'"]),
        ({"start": np.array([0.0, 1.0])}, ["start", "array"]),
        ({"sigma_z": 1e200}, ["sigma_z", "1e+200"]),
        ({"sigma_r": 10**400}, ["sigma_r"]),
        ({"beta": {3.0, 1.0}}, ["beta"]),
        ({"start": "cold"}, ["start", "'cold'", "'stationary'"]),
        ({"start": larl.JointNormal((0.0, 0.0), ((1.0, 0.0), (0.0, 1.0)))}, ["start.mean", "1 numbers"]),
    ],
)
def test_invalid_value_names_field_and_value(change, parts):
    with pytest.raises(larl.InvalidValue) as error:
        larl.LatentAR(**(VALID | change))
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("mean", "cov", "message"),
    [
        ((0.0, 0.0), ((1.0,),), "2 rows of 2"),
        ((0.0, 0.0), ((1.0, 2.0), (2.0, 1.0)), "no negative eigenvalue"),
        ((0.0, 0.0), ((1.0, 0.5), (0.1, 1.0)), "symmetric"),
    ],
)
def test_invalid_joint_start_is_rejected(mean, cov, message):
    with pytest.raises(larl.InvalidValue, match=message):
        larl.JointNormal(mean, cov)


@given(
    st.lists(st.floats(-1.2, 1.2), min_size=1, max_size=4),
    st.integers(2, 5),
    st.sampled_from(["scaled", "common"]),
    st.sampled_from(["stationary", larl.Normal(1.0, 2.0)]),
)
def test_json_round_trip(gammas, arms, noise, start):
    beta, mu = list(range(arms)), [0.5] * arms
    radius = np.abs(np.roots([1.0, *(-np.array(gammas))])).max(initial=0.0)
    if radius > 0.99:  # scale every root by the same factor, as worlds.random does
        gammas = (np.array(gammas) * (0.9 / radius) ** np.arange(1, len(gammas) + 1)).tolist()
    world = larl.LatentAR(gammas=gammas, beta=beta, mu=mu, noise=noise, start=start)
    assert larl.LatentAR.from_dict(world.to_dict()) == world
    assert hash(larl.LatentAR.from_dict(world.to_dict())) == hash(world)


def test_json_round_trip_of_joint_start():
    world = larl.LatentAR(**VALID, start=larl.JointNormal([1.0], [[4.0]]))
    assert larl.LatentAR.from_dict(world.to_dict()) == world


def test_linear_system_equals_the_recursion():
    system, rng = THREE_ARMS.system, np.random.default_rng(0)
    state = rng.normal(size=2)
    following = system.gamma @ state + system.drift
    assert following[0] == pytest.approx(0.3 + 0.5 * state[0] + 0.3 * state[1])
    assert following[1] == state[0]
    assert np.array_equal(system.noise, [[0.8**2, 0.0], [0.0, 0.0]])
    assert np.allclose(system.c @ state, np.array(THREE_ARMS.beta) * state[0])


def test_stationary_moments_of_ar1_in_closed_form():
    world = larl.LatentAR(gammas=[0.9], beta=[-1, 1], mu=[0, 0], gamma0=0.5, sigma_z=2.0)
    assert world.stationary_mean == pytest.approx(0.5 / 0.1)
    assert world.stationary_var == pytest.approx(4.0 / (1 - 0.81))
    assert world.spectral_radius == pytest.approx(0.9)


def test_stationary_covariance_is_a_fixed_point():
    cov, system = THREE_ARMS.stationary_cov, THREE_ARMS.system
    assert np.allclose(cov, system.gamma @ cov @ system.gamma.T + system.noise, rtol=1e-12)


@pytest.mark.parametrize(
    "start", ["stationary", larl.Normal(2.0, 3.0), larl.JointNormal((1.0, -1.0), ((2.0, 1.2), (1.2, 1.0)))]
)
def test_paths_have_the_moments_of_the_recursion(start):
    # 20,000 paths of 6 steps; a sample mean has standard error √(v/n), a sample variance about v√(2/n).
    n, steps = 20_000, 6
    world = larl.LatentAR(gammas=(0.5, 0.3), beta=(1, 2), mu=(0, 0), gamma0=0.4, sigma_z=0.7, start=start)
    paths = np.array([world.path(steps, seed=5, trial=trial) for trial in range(n)])
    mean, cov = world.start_moments
    means, variances = list(mean), list(np.diag(cov))
    state, spread = mean[::-1], cov[::-1, ::-1]
    for _ in range(2, steps):
        state = world.system.gamma @ state + world.system.drift
        spread = world.system.gamma @ spread @ world.system.gamma.T + world.system.noise
        means.append(state[0])
        variances.append(spread[0, 0])
    errors = np.sqrt(np.array(variances) / n)
    assert np.all(np.abs(paths.mean(0) - means) < 4 * errors)
    assert np.all(np.abs(paths.var(0) / variances - 1) < 4 * np.sqrt(2 / n))
    assert np.cov(paths[:, 0], paths[:, 1])[0, 1] == pytest.approx(cov[0, 1], abs=4 * np.sqrt(2 / n) * cov.max())


def test_means_and_optimal_arm_along_a_path():
    path = np.array([-2.0, 0.0, 3.0])
    assert np.allclose(THREE_ARMS.means(path)[2], [0.2 - 3.0, 0.5 + 1.2, -0.1 + 4.5])
    assert THREE_ARMS.optimal_arm(path).tolist() == [0, 1, 2]
    tie = larl.LatentAR(gammas=[0.5], beta=[1, 1], mu=[0, 0])
    assert tie.optimal_arm([0.3]).tolist() == [0]


def test_noise_is_scaled_or_common():
    scaled = larl.LatentAR(gammas=[0.5], beta=[-2, 0.5], mu=[0, 0], sigma_r=3.0)
    assert scaled.sd.tolist() == [6.0, 1.5]
    common = larl.LatentAR(gammas=[0.5], beta=[-2, 0.5], mu=[0, 0], sigma_r=3.0, noise="common")
    assert common.sd.tolist() == [3.0, 3.0]


def test_simulator_follows_the_path_with_noise_sd():
    simulator, path = Simulator(THREE_ARMS, 3, 7), THREE_ARMS.path(200, seed=3, trial=7)
    noise = []
    for z in path:
        assert simulator.z == z
        assert np.array_equal(simulator.means, THREE_ARMS.means(z))
        noise.append((simulator.reward(1) - simulator.means[1]) / THREE_ARMS.sd[1])
        simulator.advance()
    assert abs(np.mean(noise)) < 4 / np.sqrt(len(noise))
    assert abs(np.var(noise) - 1) < 4 * np.sqrt(2 / len(noise))
