"""The Kalman filter of a vector state against statsmodels and a brute-force joint Gaussian; its steady state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.statespace.mlemodel import MLEModel

import larl
from larl import worlds
from larl.statespace.kalman import filter_path
from larl.statespace.steady_state import measurement_variance, steady_state
from larl.theory import bias_row, noise_scale, reward_parameters
from larl.worlds import variants
from tests.stepping import decide, learn
from tests.worlds.test_latent_var import TWO, joint_gaussian, play, random_world


def collinear_world(seed: int, k: int = 1, m: int = 2, arms: int = 3) -> larl.LatentVAR:
    """Return a world with all β on one line, whose filter has a steady state."""
    world, rng = worlds.random_vector(m, k, arms, seed, radius=0.9), np.random.default_rng(seed)
    beta = np.outer(rng.normal(size=arms), rng.normal(size=m))
    return larl.LatentVAR(
        world.gammas, beta, world.mu, gamma0=rng.normal(size=m), cov_z=np.diag(rng.uniform(0.2, 2, m))
    )


@pytest.mark.parametrize("noise", ["scaled", "common"])
@pytest.mark.parametrize("start", ["stationary", larl.Normal(1.0, 3.0), "joint"])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_exact_filter_equals_joint_gaussian(noise, start, seed):
    world, steps = random_world(seed, None, noise, start), 8
    m, (arms, rewards) = world.m, play(world, seed, steps)
    means, variances = filter_path(world, arms, rewards)
    mean, cov = joint_gaussian(world, steps)
    rows = np.zeros((steps, steps * m))
    for t in range(steps):
        rows[t, m * t : m * (t + 1)] = world.beta[arms[t]]
    away = rewards - np.array(world.mu)[arms] - rows @ mean
    for t in range(steps):
        here, past = slice(m * t, m * (t + 1)), rows[:t]
        seen = past @ cov @ past.T + np.diag(world.sd[arms[:t]] ** 2)
        weights = np.linalg.solve(seen, past @ cov[:, here]).T
        size = np.abs(cov).max()
        assert np.allclose(means[t], mean[here] + weights @ away[:t], rtol=1e-6, atol=1e-7 * (1 + np.sqrt(size)))
        assert np.allclose(variances[t], cov[here, here] - weights @ past @ cov[:, here], rtol=1e-6, atol=1e-8 * size)


@pytest.mark.parametrize("seed", range(6))
def test_exact_filter_equals_statsmodels(seed):
    world, steps = random_world(seed), 80
    arms, rewards = play(world, seed, steps)
    system, m, size = world.system, world.m, world.m * world.k
    model = MLEModel(rewards, k_states=size, k_posdef=m)
    model["design"] = np.ascontiguousarray(system.c[arms].T[None])
    model["obs_intercept"] = system.mu[arms][None]
    model["obs_cov"] = (world.sd[arms] ** 2)[None, None]
    model["transition"], model["selection"] = system.gamma, np.eye(size)[:, :m]
    model["state_intercept"], model["state_cov"] = system.drift[:, None], np.array(world.cov_z)
    # From a stationary start, statsmodels' state (z_0, z_{−1} …) at t = 0 has the same distribution as ours.
    model.ssm.initialize_known(np.tile(world.stationary_mean, world.k), world.stationary_cov)
    theirs = model.ssm.filter()
    means, variances = filter_path(world, arms, rewards)
    assert np.allclose(means, theirs.predicted_state[:m, :-1].T, rtol=1e-6, atol=1e-8)
    assert np.allclose(variances, theirs.predicted_state_cov[:m, :m, :-1].transpose(2, 0, 1), rtol=1e-6, atol=1e-8)
    beta = np.array(world.beta)[arms]
    error = rewards - system.mu[arms] - np.sum(beta * means, axis=1)
    size = np.einsum("ti,tij,tj->t", beta, variances, beta) + world.sd[arms] ** 2
    assert -0.5 * np.sum(np.log(2 * np.pi * size) + error**2 / size) == pytest.approx(theirs.llf, rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("s", [0, 1, 4])
def test_reduction_equals_steady_state_filter_for_collinear_beta(seed, s):
    world = collinear_world(seed, k=1 + seed % 3, m=2 + seed % 2)
    arms, rewards = play(world, seed, 10)
    steady, predictions = steady_state(world), [np.tile(world.stationary_mean, world.k)]
    for arm, reward in zip(arms, rewards, strict=True):  # predict and condition in two steps, as textbooks do
        c, p = world.system.c[arm], steady.cov
        gain = p @ c / (c @ p @ c + world.sd[arm] ** 2)
        after = predictions[-1] + gain * (reward - world.mu[arm] - c @ predictions[-1])
        predictions.append(world.system.gamma @ after + world.system.drift)
    theta, row = reward_parameters(world, s), bias_row(world, s)
    for t in range(s, 11):
        phi = np.zeros(2 * s * world.arms + 1)
        for j in range(s):
            phi[j * world.arms + arms[t - s + j]] = rewards[t - s + j]
            phi[(s + j) * world.arms + arms[t - s + j]] = 1.0
        phi[-1] = 1.0
        reduced = theta @ phi + steady.scale * (row @ predictions[t - s])
        assert np.allclose(reduced, world.system.mu + world.system.c @ predictions[t], rtol=1e-8, atol=1e-8)
    variances = np.einsum("ai,ij,aj->a", world.system.c, steady.cov, world.system.c) + world.sd**2
    assert noise_scale(world) == pytest.approx(np.sqrt(variances))


@pytest.mark.parametrize("seed", range(5))
def test_steady_state_solves_the_riccati_equation_and_is_the_limit(seed):
    world = collinear_world(seed, k=1 + seed % 3, m=2 + seed % 2)
    steady, system = steady_state(world), world.system
    c, p = steady.c, steady.cov
    right = p - np.outer(p @ c, c @ p) / (c @ p @ c + measurement_variance(world))
    assert np.allclose(p, system.gamma @ right @ system.gamma.T + system.noise, rtol=1e-8, atol=1e-9)
    assert np.allclose(np.outer(steady.scale, c[: world.m]), world.beta)
    arms, rewards = play(world, seed, 400)
    _, variances = filter_path(world, arms, rewards)
    assert np.allclose(variances[-1], p[: world.m, : world.m], rtol=1e-6, atol=1e-8)
    exact, fixed = (larl.KalmanOracle(filter=f).init(world.arms, world=world) for f in ("exact", "steady"))
    for t in range(400):
        if t >= 300:
            assert np.allclose(fixed.z, exact.belief.mean, rtol=1e-5, atol=1e-6)
            assert decide(fixed, t) == decide(exact, t)
        for state in (exact, fixed):
            learn(state, int(arms[t]), float(rewards[t]))


def test_steady_state_without_reward_noise_is_the_limit_of_the_filter():
    world = larl.LatentVAR([[[0.6, 0.3], [-0.2, 0.5]]], [[1, 0.5], [-2, -1]], [0, 0], sigma_r=0.0)
    arms = [0, 1] * 100
    rewards = world.means(world.path(200))[np.arange(200), arms]
    assert np.allclose(filter_path(world, arms, rewards)[1][-1], steady_state(world).cov, rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_coefficients_depend_on_other_arms_unless_beta_is_collinear(seed):
    # The filter's mean is affine in the rewards. Its coefficients depend on the whole sequence of arms: the weight of a
    # lag changes if the arm of another step changes. With all β on one line it does not.
    def weight(world, arms, at):
        rewards = np.zeros(len(arms))
        less = filter_path(world, arms, rewards)[0][-1]
        rewards[at] = 1.0
        more = filter_path(world, arms, rewards)[0][-1]
        assert np.allclose(filter_path(world, arms, 3 * rewards)[0][-1] - less, 3 * (more - less), atol=1e-9)
        return more - less

    arms, other = [0, 1, 0, 1, 1, 0] * 20, [0, 1, 0, 1, 1, 0] * 20
    other[-4] = 1 - other[-4]
    general, line = worlds.random_vector(2, 1, 2, seed), collinear_world(seed, arms=2)
    assert np.allclose(weight(line, arms, -3), weight(line, other, -3), atol=1e-9)
    assert np.abs(weight(general, arms, -3) - weight(general, other, -3)).max() > 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_influence_of_the_start_decays_geometrically(seed):
    # The same arms and rewards from two starts: in 40 steps the distance of the means falls to a tenth or less.
    values = worlds.random_vector(2, 2, 3, seed, radius=0.9).to_dict()
    one, two = (larl.LatentVAR.from_dict(values | {"start": start}) for start in (larl.Normal(), larl.Normal(5.0, 3.0)))
    arms, rewards = play(one, seed, 200)
    distance = np.linalg.norm(filter_path(one, arms, rewards)[0] - filter_path(two, arms, rewards)[0], axis=1)
    maxima = np.array([distance[t : t + 20].max() for t in (0, 40, 80, 120)])
    assert maxima[0] > 1.0
    assert np.all(maxima[1:] < 0.1 * maxima[:-1] + 1e-12)


def test_functions_for_scalar_or_steady_worlds_reject_others():
    with pytest.raises(larl.InvalidValue, match=r"steady_state: world = .* all β on one line through 0"):
        larl.KalmanOracle(filter="steady").init(3, world=TWO)
    with pytest.raises(larl.InvalidValue, match=r"LARL: radius = 'theory' .* in a larl\.LatentAR"):
        larl.LARL(1, radius="theory").init(3, horizon=10, world=TWO)
    with pytest.raises(larl.InvalidValue, match=r"PredictiveSampling: world = .* a larl\.LatentAR"):
        larl.PredictiveSampling().init(3, world=TWO)
    with pytest.raises(larl.InvalidValue, match=r"Burden: base = .* a larl\.LatentAR"):
        variants.Burden(TWO, effect=(0.0, 1.0, 2.0))
    for call in (
        lambda: larl.theory.context_bound(TWO, 1, 0.1, 10),
        lambda: larl.theory.regret_bound(TWO, 1, 10),
        lambda: larl.theory.steady_start(TWO),
        lambda: larl.theory.confidence_radius(TWO, 1, 10, 10, squared_bias=0.0),
    ):
        with pytest.raises(larl.InvalidValue, match=r"world = .* a larl\.LatentAR: the paper's bounds"):
            call()
    with pytest.raises(larl.InvalidValue, match=r"path = \(5,\) .* shape \(…, 2\)"):
        TWO.means(np.zeros(5))
