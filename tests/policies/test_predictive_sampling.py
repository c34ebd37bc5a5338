"""Predictive sampling against the joint normal distribution of a long path and all its rewards."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import larl
from larl import worlds
from larl._core.compile import kernel
from larl.policies.predictive_sampling import sampling_variance
from tests.stepping import decide, learn

FUTURE = 120  # steps; at radius 0.9, later rewards change a variance by a share of at most 0.9²⁴⁰ ≈ 10⁻¹¹


@kernel
def variance_of(state):
    return sampling_variance(state)


def random_world(k, seed):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(k, k))
    starts = ["stationary", larl.Normal(1.0, 3.0), larl.JointNormal(rng.normal(size=k), factor @ factor.T + np.eye(k))]
    base = worlds.random(k, int(rng.integers(2, 5)), seed, radius=float(rng.uniform(0.3, 0.9))).to_dict()
    scales = {"sigma_z": float(rng.uniform(0.3, 2)), "sigma_r": float(rng.uniform(0.3, 2))}
    noise = ("scaled", "common")[seed % 2]
    return larl.LatentAR.from_dict(
        base | scales | {"gamma0": float(rng.normal()), "noise": noise, "start": starts[seed % 3]}
    )


def posterior(world, plays, future):
    """Return mean and variance of z_t given the plays before t = len(plays) and all rewards of `future` steps after t.

    The path z_0 … has precision Σ dᵀd/σ_z² over its equations d·z = γ₀, plus that of the start; each reward adds
    (β/sd)². The mean ignores the future rewards, because the variance does not depend on their values.
    """
    k, t = world.k, len(plays)
    n = max(k, t + 1 + future)
    mean0, cov0 = world.start_moments
    equations = np.eye(n)[k:]
    for row, step in enumerate(range(k, n)):
        equations[row, step - k : step] = -np.array(world.gammas)[::-1]
    precision = equations.T @ equations / world.sigma_z**2
    moment = equations.sum(axis=0) * world.gamma0 / world.sigma_z**2
    precision[:k, :k] += np.linalg.inv(cov0)
    moment[:k] += np.linalg.solve(cov0, mean0)
    for step, (arm, reward) in enumerate(plays):
        precision[step, step] += (world.beta[arm] / world.sd[arm]) ** 2
        moment[step] += world.beta[arm] * (reward - world.mu[arm]) / world.sd[arm] ** 2
    for step in range(t + 1, t + 1 + future):
        for arm in range(world.arms):
            precision[step, step] += (world.beta[arm] / world.sd[arm]) ** 2
    cov = np.linalg.inv(precision)
    return (cov @ moment)[t], cov[t, t]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_sampling_variance_is_the_reduction_by_future_rewards(k, seed):
    world, rng, plays = random_world(k, seed), np.random.default_rng(seed), []
    state = larl.PredictiveSampling().init(world.arms, horizon=20, world=world)
    for t in range(12):
        if t < 6 or t == 11:
            _, before = posterior(world, plays, 0)
            _, after = posterior(world, plays, FUTURE)
            assert variance_of(state) == pytest.approx(before - after, rel=1e-7, abs=1e-10 * before)
        plays.append((int(rng.integers(world.arms)), float(rng.normal())))
        learn(state, *plays[-1])


@pytest.mark.parametrize("steps", [0, 1, 9])
def test_choice_frequencies_are_exact(steps):
    world = larl.LatentAR(gammas=(0.5, 0.4), beta=(-1.0, 0.6), mu=(0.2, 0.0), gamma0=0.1, sigma_z=0.7, sigma_r=0.9)
    state, rng, plays, size = larl.PredictiveSampling().init(2, world=world), np.random.default_rng(1), [], 5000
    for t in range(steps):
        plays.append((t % 2, float(rng.normal())))
        learn(state, *plays[-1])
    mean, before = posterior(world, plays, 0)
    sd = math.sqrt(before - posterior(world, plays, FUTURE)[1])
    p = norm.cdf((mean - 0.2 / 1.6) / sd)  # arm 1 is better where 0.6z > 0.2 − z
    seeds = rng.integers(0, 2**64, size, dtype=np.uint64)
    share = np.mean([decide(state, seed) for seed in seeds])
    assert 0.05 < p < 0.95
    assert abs(share - p) < 4 * math.sqrt(p * (1 - p) / size)  # 4 standard errors


def test_no_exploration_without_future_information():
    # If γ = 0, later rewards do not depend on z_t: the choice is always the best arm at E z_t = γ₀.
    world = larl.LatentAR(gammas=(0.0,), beta=(-1.0, 1.0), mu=(0.0, 0.0), gamma0=0.01)
    state = larl.PredictiveSampling().init(2, world=world)
    assert {decide(state, seed) for seed in range(200)} == {1}
    assert variance_of(state) == 0.0


def test_arm_without_information_does_not_count():
    with_it = larl.LatentAR(gammas=(0.8,), beta=(0.0, 1.0, -2.0), mu=(0.5, 0.0, 0.0))
    without = larl.LatentAR(gammas=(0.8,), beta=(1.0, -2.0), mu=(0.0, 0.0))
    variances = [variance_of(larl.PredictiveSampling().init(w.arms, world=w)) for w in (with_it, without)]
    assert variances[0] == variances[1] > 0.0
