"""Lemma 2 as an identity on random worlds, coverage of Lemmas 3 and 4, and the bound of Theorem 1."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import larl
from larl import worlds
from larl.statespace.kalman import filter_path
from larl.statespace.steady_state import steady_state
from larl.theory import (
    bias_row,
    confidence_radius,
    context_bound,
    decompose,
    expected_best_mean,
    noise_scale,
    predictability,
    random_regret,
    regret_bound,
    regret_floor,
    reward_parameters,
    steady_start,
)
from larl.theory.bounds import filter_regret
from tests.conftest import THREE_ARMS
from tests.statespace.test_kalman import play, random_world


def context(arms: np.ndarray, rewards: np.ndarray, s: int, count: int) -> np.ndarray:
    """Return Φ = [R, A, 1] as in the paper: oldest lag first, one block of arms per lag."""
    r, a = np.zeros((s, count)), np.zeros((s, count))
    for j in range(s):
        r[j, arms[len(arms) - s + j]] = rewards[len(arms) - s + j]
        a[j, arms[len(arms) - s + j]] = 1.0
    return np.concatenate([r.ravel(), a.ravel(), [1.0]])


def steady_predictions(world: larl.LatentAR, arms: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    """Return z̃_0 … z̃_T: predict and condition in two steps, as textbooks do."""
    steady, z, predictions = steady_state(world), np.full(world.k, world.stationary_mean), []
    for arm, reward in zip(arms, rewards, strict=True):
        predictions.append(z)
        z = z + steady.gain * ((reward - world.mu[arm]) / world.beta[arm] - z[0])
        z = world.system.gamma @ z + world.system.drift
    return np.array([*predictions, z])


@given(seed=st.integers(0, 10_000), s=st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_reduction_equals_the_steady_state_filter(seed, s):
    world = random_world(seed)
    arms, rewards = play(world, seed, 12)
    predictions = steady_predictions(world, arms, rewards)
    theta, row = reward_parameters(world, s), bias_row(world, s)
    for t in range(s, 13):
        phi = context(arms[:t], rewards[:t], s, world.arms)
        reduced = theta @ phi + np.array(world.beta) * (row @ predictions[t - s])
        filtered = np.array(world.mu) + np.array(world.beta) * predictions[t, 0]
        assert np.allclose(reduced, filtered, rtol=1e-10, atol=1e-10 * (1.0 + np.abs(theta).max()))


def test_printed_sign_of_mu_is_wrong():
    # The paper prints (β̃, μ̃, μ_a). With μ ≠ 0 only (β̃, −μ̃, μ_a) gives the filter's prediction.
    arms, rewards = play(THREE_ARMS, 1, 12)
    theta, predictions = reward_parameters(THREE_ARMS, 4), steady_predictions(THREE_ARMS, arms, rewards)
    printed = theta.copy()
    printed[:, 12:24] *= -1.0
    phi = context(arms, rewards, 4, 3)
    bias = np.array(THREE_ARMS.beta) * (bias_row(THREE_ARMS, 4) @ predictions[8])
    filtered = np.array(THREE_ARMS.mu) + np.array(THREE_ARMS.beta) * predictions[12, 0]
    assert np.allclose(theta @ phi + bias, filtered)
    assert np.abs(printed @ phi + bias - filtered).max() > 0.1


def test_noise_scale_is_the_sd_of_prediction_errors():
    # 40,000 rewards; a sample sd has standard error about sd/√(2n), a little more as predictions are filtered.
    n = 40_000
    arms, rewards = play(THREE_ARMS, 2, n)
    predictions = steady_predictions(THREE_ARMS, arms, rewards)[:-1, 0]
    for arm in range(3):
        rows = arms == arm
        errors = rewards[rows] - THREE_ARMS.mu[arm] - THREE_ARMS.beta[arm] * predictions[rows]
        assert errors.std() == pytest.approx(noise_scale(THREE_ARMS)[arm], rel=4 / np.sqrt(2 * rows.sum()))


@pytest.mark.parametrize("start", ["stationary", larl.Normal(3.0, 10.0)])
def test_context_bound_has_its_coverage(start):
    world = larl.LatentAR.from_dict(THREE_ARMS.to_dict() | {"start": start})
    s, delta, horizon, runs = 3, 0.2, 50, 400
    bound, exceeded = context_bound(world, s, delta, horizon), 0
    for run in range(runs):
        _, rewards = play(world, run, horizon)
        largest = max(np.sum(rewards[t - s : t] ** 2) for t in range(s, horizon)) + s + 1
        exceeded += largest > bound
    assert exceeded / runs <= delta + 4 * np.sqrt(delta * (1 - delta) / runs)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_expected_best_mean_equals_the_integral(seed):
    # The integrand has kinks, so the trapezoid rule on a fine grid is right to about the square of its step.
    rng = np.random.default_rng(seed)
    arms, mean, variance = int(rng.integers(1, 7)), float(rng.normal()), float(rng.uniform(0.0, 4.0))
    mu, beta = rng.normal(size=arms).round(1), rng.normal(size=arms).round(1)  # rounded, so that lines may coincide
    x = np.linspace(-9, 9, 40_001)
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    values = (mu + np.multiply.outer(mean + np.sqrt(variance) * x, beta)).max(-1)
    assert expected_best_mean(mu, beta, mean, variance) == pytest.approx(np.trapezoid(values * density, x), abs=1e-6)


def test_floor_and_random_regret_of_two_opposite_arms():
    # PAPER: |β₁−β₀|√S(1−ρ)/√(2π), ρ = √(1 − P₁₁/S); random regret is E|z| = √(2S/π).
    for k, floor_known, random_known in [(1, 0.2794, 1.830), (5, 0.4705, 1.010), (10, 0.5928, 0.875)]:
        world = worlds.paper(k)
        s, p = world.stationary_var, steady_state(world).cov[0, 0]
        assert regret_floor(world) == pytest.approx(2 * np.sqrt(s) * (1 - np.sqrt(1 - p / s)) / np.sqrt(2 * np.pi))
        assert regret_floor(world) == pytest.approx(floor_known, abs=5e-5)
        assert random_regret(world) == pytest.approx(np.sqrt(2 * s / np.pi))
        assert random_regret(world) == pytest.approx(random_known, abs=5e-4)
        assert predictability(world) == pytest.approx(1 - regret_floor(world) / random_regret(world))


@pytest.mark.parametrize(("k", "arms", "seed"), [(1, 2, 0), (2, 3, 1), (3, 5, 2), (2, 10, 3)])
def test_floor_equals_simulated_regret(k, arms, seed):
    # 2,000 trials of 150 steps after a burn-in of 50; within 3 standard errors.
    world = worlds.random(k, arms, seed)
    assert regret_floor(world) > 0.01
    policies = {"Kalman": larl.KalmanOracle(), "random": larl.Random()}
    total = larl.compare(policies, world, horizon=200, trials=2000, seed=seed).total(skip=50) / 150
    for name, expected in [("Kalman", regret_floor(world)), ("random", random_regret(world))]:
        sample = total.sel(policy=name).values
        assert sample.mean() == pytest.approx(expected, abs=3 * sample.std() / np.sqrt(sample.size))


def test_regret_of_equal_or_constant_arms():
    same = larl.LatentAR(gammas=[0.9], beta=[1, 1], mu=[0, 0])
    assert regret_floor(same) == 0.0
    assert predictability(same) == 0.0
    still = larl.LatentAR(gammas=[0.9], beta=[1, -1], mu=[0, 1], sigma_z=0.0)
    assert regret_floor(still) == 0.0
    assert predictability(still) == 1.0


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_steady_filter_is_exact_from_a_steady_start(seed):
    world = steady_start(random_world(seed))
    arms, rewards = play(world, seed, 12)
    means, variances = filter_path(world, arms, rewards)
    assert np.allclose(means, steady_predictions(world, arms, rewards)[:-1, 0], rtol=1e-7, atol=1e-7)
    assert np.allclose(variances, steady_state(world).cov[0, 0], rtol=1e-7)


def test_confidence_sets_have_their_coverage():
    # 1,000 runs of 60 random steps, after each the true θ_a of every arm, both forms at δ = 0.1. The printed form is
    # for one arm, the corrected one for all at once.
    world, s, steps, delta, runs = steady_start(worlds.random(2, 2, 3, radius=0.8)), 2, 60, 0.1, 1000
    theta, row, ridge = reward_parameters(world, s), bias_row(world, s), 1.0
    missed = {"printed": np.zeros(2), "corrected": np.zeros(2)}
    for run in range(runs):
        arms, rewards = play(world, run, steps)
        predictions = steady_predictions(world, arms, rewards)
        for arm in range(2):
            steps_of_arm = [t for t in range(s, steps) if arms[t] == arm]
            x = np.array([context(arms[:t], rewards[:t], s, 2) for t in steps_of_arm])
            gram = x.T @ x + ridge * np.eye(x.shape[1])
            error = np.linalg.solve(gram, x.T @ rewards[steps_of_arm]) - theta[arm]
            bias = np.array([world.beta[arm] * row @ predictions[t - s] for t in steps_of_arm])
            tau = np.sqrt(np.trace(np.linalg.solve(gram, x.T @ x)))
            for form, count in missed.items():
                radius = confidence_radius(
                    world,
                    s,
                    len(steps_of_arm),
                    steps,
                    squared_bias=bias @ bias,
                    tau=tau,
                    arm=arm,
                    delta=delta,
                    form=form,
                )
                count[arm] += np.sqrt(error @ gram @ error) > radius
    allowed = delta + 4 * np.sqrt(delta * (1 - delta) / runs)
    assert missed["printed"].max() / runs <= allowed
    assert missed["corrected"].sum() / runs <= allowed


def test_corrected_radius_is_smaller_than_the_printed_one():
    options = {"squared_bias": 2.0, "tau": 3.0}
    for s in (1, 3, 6):
        printed, corrected = (
            confidence_radius(THREE_ARMS, s, 100, 200, form=form, **options) for form in ("printed", "corrected")
        )
        assert corrected < printed


@pytest.mark.parametrize("k", [1, 5, 10])
def test_printed_bound_is_infinite_for_order_above_one(k):
    world = steady_start(worlds.paper(k))
    printed = regret_bound(world, k, 200, form="printed")
    assert np.isinf(printed.total) == (k > 1)
    assert ("σ_max" in printed.reason) == (k > 1)
    corrected = regret_bound(world, k, 200)
    assert np.isfinite(corrected.total)
    assert corrected.nonstationarity < printed.nonstationarity / 10
    assert corrected.learning < printed.learning / 10


def test_first_term_of_the_bound_tends_to_the_floor():
    world = steady_start(worlds.paper(1))
    steps = {horizon: regret_bound(world, 1, horizon).nonstationarity / horizon for horizon in (200, 10**7)}
    assert steps[10**7] == pytest.approx(regret_floor(world), rel=0.1)
    assert regret_floor(world) < steps[200] < 1.0 + np.ptp(world.beta) * np.sqrt(steady_state(world).cov[0, 0])


def test_bound_grows_slower_than_the_horizon_if_s_grows_with_its_logarithm():
    world = steady_start(worlds.paper(1))
    steps = [regret_bound(world, round(0.7 * np.log(t)), t).learning / t for t in (300_000, 3_000_000)]
    assert steps[0] > 2 * steps[1]


def test_first_term_of_the_bound_has_its_coverage_for_every_policy():
    # 1,000 trials; Regret − Σ gap is at most the first term, whose two events fail with probability δ together.
    delta, horizon = 0.2, 100
    for world in (steady_start(worlds.random(2, 3, 1, radius=0.8)), steady_start(worlds.paper(1))):
        result = larl.compare({"random": larl.Random()}, world, horizon=horizon, trials=1000, seed=1)
        excess = result.total().values - decompose(result, world).gaps.sum(axis=-1)
        bound = filter_regret(world, horizon, delta / 2)
        assert np.mean(excess > bound) <= delta + 4 * np.sqrt(delta * (1 - delta) / 1000)
        assert excess.mean() > 0.1 * bound


def test_corrected_bound_has_its_coverage():
    delta, runs = 0.1, 400
    for seed, s in [(0, 1), (1, 2), (2, 0)]:
        world = steady_start(worlds.random(2, 3, seed, radius=0.8))
        bound = regret_bound(world, s, 100, delta=delta)
        policy = larl.LARL(s, radius="corrected", delta=bound.delta)
        total = larl.compare({"it": policy}, world, horizon=100, trials=runs).total().values
        allowed = delta + 4 * np.sqrt(delta * (1 - delta) / runs)
        assert np.mean(total > bound.total) <= allowed
        assert np.mean(total > bound.trivial) <= allowed
        assert total.mean() > 0.0


def test_bound_refuses_other_starts():
    for start in ("stationary", larl.Normal(0.0, 10.0)):
        world = larl.LatentAR.from_dict(worlds.paper(1).to_dict() | {"start": start})
        with pytest.raises(larl.InvalidValue, match=r"world\.start"):
            regret_bound(world, 1, 200)
