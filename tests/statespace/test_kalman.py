"""The Kalman filter and its steady state against statsmodels, a brute-force joint Gaussian, and each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.statespace.mlemodel import MLEModel

import larl
from larl import worlds
from larl._core.compile import kernel
from larl.statespace.kalman import condition, filter_path, measurement_update, predict
from larl.statespace.steady_state import measurement_variance, steady_state
from tests.conftest import THREE_ARMS


def random_world(seed: int, noise: str = "scaled", start: object = "stationary") -> larl.LatentAR:
    rng = np.random.default_rng(seed)
    k, arms = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    base = worlds.random(k, arms, seed, radius=float(rng.uniform(0.2, 0.97)))
    values = base.to_dict() | {"noise": noise, "start": start, "gamma0": float(rng.normal())}
    return larl.LatentAR.from_dict(
        values | {"sigma_z": float(rng.uniform(0.2, 2)), "sigma_r": float(rng.uniform(0.2, 2))}
    )


def play(world: larl.LatentAR, seed: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random arms and simulated rewards."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(0, world.arms, steps)
    path = world.path(steps, seed=seed)
    means = world.means(path)[np.arange(steps), arms]
    return arms, means + world.sd[arms] * rng.normal(size=steps)


def joint_gaussian(world: larl.LatentAR, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of (z_0 … z_{steps−1}), from z as a linear map of its start and shocks."""
    k = world.k
    mean0, cov0 = world.start_moments
    map_, offset = np.zeros((steps, k + steps)), np.zeros(steps)
    map_[:k, :k] = np.eye(k)[:steps]
    for t in range(k, steps):
        map_[t] = sum(world.gammas[j] * map_[t - 1 - j] for j in range(k))
        map_[t, k + t] = world.sigma_z
        offset[t] = world.gamma0 + sum(world.gammas[j] * offset[t - 1 - j] for j in range(k))
    sources = np.zeros((k + steps, k + steps))
    sources[:k, :k], sources[k:, k:] = cov0, np.eye(steps)
    return offset + map_[:, :k] @ mean0, map_ @ sources @ map_.T


@pytest.mark.parametrize("noise", ["scaled", "common"])
@pytest.mark.parametrize("start", ["stationary", larl.Normal(1.0, 3.0)])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_exact_filter_equals_joint_gaussian(noise, start, seed):
    world, steps = random_world(seed, noise, start), 12
    arms, rewards = play(world, seed, steps)
    means, variances = filter_path(world, arms, rewards)
    mean, cov = joint_gaussian(world, steps)
    beta = np.array(world.beta)[arms]
    for t in range(steps):
        seen = cov[:t, :t] * np.outer(beta[:t], beta[:t]) + np.diag(world.sd[arms[:t]] ** 2)
        weights = np.linalg.solve(seen, cov[:t, t] * beta[:t])
        expected = mean[t] + weights @ (rewards[:t] - np.array(world.mu)[arms[:t]] - beta[:t] * mean[:t])
        variance = cov[t, t] - weights @ (cov[:t, t] * beta[:t])
        assert means[t] == pytest.approx(expected, rel=1e-8, abs=1e-8)
        assert variances[t] == pytest.approx(variance, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_exact_filter_equals_statsmodels(seed):
    world = random_world(seed)
    arms, rewards = play(world, seed, 60)
    system, k = world.system, world.k
    model = MLEModel(rewards, k_states=k, k_posdef=1)
    model["design"] = (np.array(world.beta)[arms][None, None, :] * np.eye(k)[0][None, :, None]).reshape(1, k, 60)
    model["obs_intercept"] = np.array(world.mu)[arms][None, :]
    model["obs_cov"] = (world.sd[arms] ** 2)[None, None, :]
    model["transition"], model["selection"] = system.gamma, np.eye(k)[:, :1]
    model["state_intercept"] = system.drift[:, None]
    model["state_cov"] = np.array([[world.sigma_z**2]])
    model.ssm.initialize_known(np.full(k, world.stationary_mean), world.stationary_cov)
    theirs = model.ssm.filter()
    # From a stationary start, statsmodels' state (z_0, z_{−1} …) at t = 0 has the same distribution as ours.
    means, variances = filter_path(world, arms, rewards)
    assert np.allclose(means, theirs.predicted_state[0, :-1], rtol=1e-7, atol=1e-9)
    assert np.allclose(variances, theirs.predicted_state_cov[0, 0, :-1], rtol=1e-7, atol=1e-9)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_steady_state_solves_the_riccati_equation(seed):
    world = random_world(seed)
    steady, system = steady_state(world), world.system
    c, v, p = np.eye(world.k)[:1], world.sigma_r**2, steady.cov
    gain = p @ c.T / (c @ p @ c.T + v)
    right = system.gamma @ p @ system.gamma.T + system.noise - system.gamma @ gain @ c @ p @ system.gamma.T
    assert np.allclose(p, right, rtol=1e-8, atol=1e-10)
    assert np.allclose(steady.gain, gain[:, 0])
    assert np.abs(np.linalg.eigvals(steady.closed_loop)).max() < 1.0


def test_exact_filter_converges_to_the_steady_state():
    arms, rewards = play(THREE_ARMS, 0, 200)
    means, variances = filter_path(THREE_ARMS, arms, rewards)
    steady = steady_state(THREE_ARMS)
    assert variances[-1] == pytest.approx(steady.cov[0, 0], rel=1e-10)
    z = np.full(2, THREE_ARMS.stationary_mean)
    for t in range(200):
        if t > 100:
            assert z[0] == pytest.approx(means[t], rel=1e-9)
        y = (rewards[t] - THREE_ARMS.mu[arms[t]]) / THREE_ARMS.beta[arms[t]]
        z = steady.gain * (y - z[0]) + z
        z = THREE_ARMS.system.gamma @ z + steady.drift


def test_predict_and_condition_equal_the_matrix_formulas():
    mean, cov = np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    gamma, drift, noise = np.array([[0.5, 0.3], [1.0, 0.0]]), np.array([0.1, 0.0]), np.diag([0.64, 0.0])
    next_mean, next_cov = predict(mean, cov, gamma, drift, noise)
    assert np.allclose(next_mean, gamma @ mean + drift)
    assert np.allclose(next_cov, gamma @ cov @ gamma.T + noise)
    c = np.array([2.0, -1.0])
    new_mean, new_cov = condition(mean, cov, c, 0.3, 4.0)
    gain = cov @ c / (c @ cov @ c + 0.3)
    assert np.allclose(new_mean, mean + gain * (4.0 - c @ mean))
    assert np.allclose(new_cov, cov - np.outer(gain, c @ cov))


@kernel
def update_in_place(mean, cov, cov_c, innovation_variance, innovation):
    measurement_update(mean, cov, cov_c, innovation_variance, innovation)


@given(seed=st.integers(0, 10_000), k=st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_measurement_update_equals_condition(seed, k):
    rng = np.random.default_rng(seed)
    factor, mean, c = rng.normal(size=(k, k)), rng.normal(size=k), rng.normal(size=k)
    cov, value = factor @ factor.T, float(rng.normal())
    expected_mean, expected_cov = condition(mean, cov, c, 0.3, value)
    new_mean, new_cov = mean.copy(), cov.copy()
    update_in_place(new_mean, new_cov, cov @ c, float(c @ cov @ c) + 0.3, value - float(c @ mean))
    assert np.allclose(new_mean, expected_mean, rtol=1e-10, atol=1e-10)
    assert np.allclose(new_cov, expected_cov, rtol=1e-10, atol=1e-10)


def test_rewards_of_an_arm_with_beta_zero_have_no_information():
    world = larl.LatentAR(gammas=[0.8], beta=[0.0, 1.0], mu=[1.0, 0.0])
    means, variances = filter_path(world, [0] * 5, [1.0] * 5)
    assert np.allclose(means, 0.0)
    assert np.allclose(variances, world.stationary_var)


def test_without_reward_noise_the_variance_is_that_of_one_shock():
    world = larl.LatentAR(gammas=(0.5, 0.3), beta=(1, -2), mu=(0, 0), sigma_r=0.0, sigma_z=1.5)
    arms = [0, 1] * 10
    path = world.path(20)
    _, variances = filter_path(world, arms, world.means(path)[np.arange(20), arms])
    assert variances[-1] == pytest.approx(1.5**2)
    assert steady_state(world).cov[0, 0] == 1.5**2


@pytest.mark.parametrize("scale", [1e-10, 1e-4, 1.0, 1e6])
def test_steady_state_is_scale_equivariant(scale):
    world = larl.LatentAR(gammas=worlds.paper(5).gammas, beta=(-1, 1), mu=(0, 0))
    scaled = larl.LatentAR(gammas=world.gammas, beta=(-1, 1), mu=(0, 0), sigma_z=scale, sigma_r=scale)
    assert np.allclose(steady_state(scaled).cov, scale**2 * steady_state(world).cov, rtol=1e-9, atol=0)


def test_steady_state_if_the_riccati_solver_fails():
    world = larl.LatentAR(gammas=(1.98, -0.9801), beta=(-1, 1), mu=(0, 0), sigma_r=300.0)
    steady, system = steady_state(world), world.system
    updated = steady.cov - np.outer(steady.cov[:, 0], steady.cov[0]) / (steady.cov[0, 0] + 300.0**2)
    assert np.allclose(steady.cov, system.gamma @ updated @ system.gamma.T + system.noise, rtol=1e-9)


def test_no_steady_state_if_arms_differ_in_precision():
    world = larl.LatentAR(gammas=[0.8], beta=[0.5, 1.0], mu=[0, 0], noise="common")
    with pytest.raises(larl.InvalidValue, match=r"noise='scaled' or all \|β\| equal"):
        steady_state(world)
    equal = larl.LatentAR(gammas=[0.8], beta=[-2.0, 2.0], mu=[0, 0], noise="common", sigma_r=3.0)
    assert measurement_variance(equal) == pytest.approx((3.0 / 2.0) ** 2)


def test_filter_path_rejects_invalid_arms_and_rewards():
    with pytest.raises(larl.InvalidValue, match=r"arms\[1\] = .*0 to 2"):
        filter_path(THREE_ARMS, [0, 3], [0.0, 0.0])
    with pytest.raises(larl.InvalidValue, match=r"rewards\[0\] = .*nan"):
        filter_path(THREE_ARMS, [0, 1], [np.nan, 0.0])
    with pytest.raises(larl.InvalidValue, match="as many rewards as arms"):
        filter_path(THREE_ARMS, [0, 1], [0.0])
