"""Lemma 2 as an identity on random worlds, and the bound on contexts by its coverage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import larl
from larl.filter import steady_state
from larl.theory import bias_row, context_bound, noise_scale, reward_parameters
from tests.conftest import THREE_ARMS
from tests.test_filter import play, random_world


def context(arms: np.ndarray, rewards: np.ndarray, s: int, count: int) -> np.ndarray:
    """Φ = [R, A, 1] as the paper writes it: oldest lag first, one block of arms a lag."""
    r, a = np.zeros((s, count)), np.zeros((s, count))
    for j in range(s):
        r[j, arms[len(arms) - s + j]] = rewards[len(arms) - s + j]
        a[j, arms[len(arms) - s + j]] = 1.0
    return np.concatenate([r.ravel(), a.ravel(), [1.0]])


def steady_predictions(world: larl.LatentAR, arms: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    """z̃_0 … z̃_T: predict and condition in two steps, as textbooks do."""
    steady, z, found = steady_state(world), np.full(world.k, world.stationary_mean), []
    for arm, reward in zip(arms, rewards, strict=True):
        found.append(z)
        z = z + steady.gain * ((reward - world.mu[arm]) / world.beta[arm] - z[0])
        z = world.system.gamma @ z + world.system.drift
    return np.array([*found, z])


@given(seed=st.integers(0, 10_000), s=st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_reduction_is_the_steady_state_filter(seed, s):
    world = random_world(seed)
    arms, rewards = play(world, seed, 12)
    predictions = steady_predictions(world, arms, rewards)
    theta, row = reward_parameters(world, s), bias_row(world, s)
    for t in range(s, 13):
        phi = context(arms[:t], rewards[:t], s, world.arms)
        reduced = theta @ phi + np.array(world.beta) * (row @ predictions[t - s])
        filtered = np.array(world.mu) + np.array(world.beta) * predictions[t, 0]
        assert np.allclose(reduced, filtered, rtol=1e-10, atol=1e-10 * (1.0 + np.abs(theta).max()))


def test_the_printed_sign_would_not_do():
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


def test_noise_scale_is_the_scatter_around_the_prediction():
    # 40,000 rewards; a sample sd has standard error about sd/√(2n), a little more as predictions are filtered.
    n = 40_000
    arms, rewards = play(THREE_ARMS, 2, n)
    predictions = steady_predictions(THREE_ARMS, arms, rewards)[:-1, 0]
    for arm in range(3):
        mine = arms == arm
        away = rewards[mine] - THREE_ARMS.mu[arm] - THREE_ARMS.beta[arm] * predictions[mine]
        assert away.std() == pytest.approx(noise_scale(THREE_ARMS)[arm], rel=4 / np.sqrt(2 * mine.sum()))


@pytest.mark.parametrize("start", ["stationary", larl.Normal(3.0, 10.0)])
def test_contexts_stay_within_their_bound(start):
    world = larl.LatentAR(**THREE_ARMS.to_dict() | {"start": start})
    s, delta, horizon, runs = 3, 0.2, 50, 400
    bound, beyond = context_bound(world, s, delta, horizon), 0
    for run in range(runs):
        _, rewards = play(world, run, horizon)
        largest = max(np.sum(rewards[t - s : t] ** 2) for t in range(s, horizon)) + s + 1
        beyond += largest > bound
    assert beyond / runs <= delta + 4 * np.sqrt(delta * (1 - delta) / runs)
