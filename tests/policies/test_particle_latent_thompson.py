"""ParticleLatentThompson against the exact posterior by enumeration of all paths, and its invariances."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t

import larl
from larl._core.states import copy_state
from larl.policies._markov_particles import NOISE_RATE, NOISE_SHAPE
from tests.policies.test_live_functions import simulate_choices
from tests.stepping import decide, learn

ARMS, REWARDS = [0, 1, 2, 0, 1, 0], [0.3, -1.2, 0.4, 1.9, -0.7, math.nan]
STATES, PERSISTENCE, PRIOR_MOVES, PRIOR_SD = 2, 0.7, 3.0, 1.5


def path_probability(path: tuple[int, ...]) -> float:
    """Return the prior probability of a path, transition by transition, with Dirichlet rows integrated out."""
    counts = PRIOR_MOVES * np.where(np.eye(STATES, dtype=bool), PERSISTENCE, 1.0 - PERSISTENCE)
    value = 1.0 / STATES
    for i, j in itertools.pairwise(path):
        value *= counts[i, j] / counts[i].sum()
        counts[i, j] += 1.0
    return value


def enumerated(sigma: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and sd of each arm's mean at the next step: all paths, rewards jointly normal or Student's t."""
    steps = len(ARMS)
    seen = [t for t in range(steps) if not math.isnan(REWARDS[t])]
    rewards, rate, shape = np.array([REWARDS[t] for t in seen]), NOISE_RATE, NOISE_SHAPE
    weights, means, variances = [], [], []
    for path in itertools.product(range(STATES), repeat=steps + 1):
        cells = [(path[t], ARMS[t]) for t in seen]
        same = np.array([[float(a == b) for b in cells] for a in cells])
        cov = np.eye(len(seen)) + PRIOR_SD**2 * same
        if sigma is None:
            density = multivariate_t(shape=rate / shape * cov, df=2.0 * shape).pdf(rewards)
            noise = (rate + 0.5 * rewards @ np.linalg.solve(cov, rewards)) / (shape + 0.5 * len(seen))
        else:
            density = multivariate_normal(cov=sigma**2 * cov).pdf(rewards)
            noise = sigma**2
        weights.append(path_probability(path) * density)
        cross = PRIOR_SD**2 * np.array([[float(cell == (path[-1], arm)) for cell in cells] for arm in range(3)])
        means.append(cross @ np.linalg.solve(cov, rewards))
        variances.append(noise * (PRIOR_SD**2 - np.diag(cross @ np.linalg.solve(cov, cross.T))))
    weight, mean = np.array(weights)[:, None] / sum(weights), np.array(means)
    average = np.sum(weight * mean, axis=0)
    return average, np.sqrt(np.sum(weight * (mean**2 + np.array(variances)), axis=0) - average**2)


@pytest.mark.parametrize("sigma", [None, 0.6])
def test_predictions_equal_the_exact_posterior(sigma: float | None) -> None:
    # 40,000 particles: the standard error of a mean is about its posterior sd / 200; 5 of them, as paths are shared.
    spec = larl.ParticleLatentThompson(STATES, 40_000, PERSISTENCE, PRIOR_MOVES, PRIOR_SD, sigma, standardise=False)
    state = copy_state(spec.init(3))
    for arm, reward in zip(ARMS, REWARDS, strict=True):
        learn(state, arm, reward)
    mean, sd = enumerated(sigma)
    for arm in range(3):
        _, seen, _ = simulate_choices(state, [arm == 0, arm == 1, arm == 2])
        assert seen[arm, 0] == pytest.approx(mean[arm], abs=5.0 * sd[arm] / 200.0)
        assert seen[arm, 1] == pytest.approx(sd[arm], rel=0.03)


def test_resampling_keeps_the_number_and_drops_the_unlikely() -> None:
    state = copy_state(larl.ParticleLatentThompson(particles=50, sigma=0.01, standardise=False).init(2))
    for t in range(20):
        learn(state, 0, 5.0 * (t // 5 % 2))
        assert state.weight.sum() == pytest.approx(1.0)
        assert np.allclose(state.plays.sum(axis=(1, 2)), t + 1)
        assert state.moves.sum(axis=(1, 2)) == pytest.approx(np.full(50, 20.0 + t))
        assert 1.0 / np.sum(state.weight**2) >= 25.0
    # The two levels are in different states in every particle that is left.
    levels = np.sort(np.where(state.plays[:, :, 0] > 0.0, state.total[:, :, 0] / state.plays[:, :, 0], np.nan), axis=1)
    assert np.nanmax(levels[:, 0]) < 0.1
    assert np.nanmin(levels[:, 1]) > 4.0


def test_particles_differ_from_the_first_step() -> None:
    state = copy_state(larl.ParticleLatentThompson(3, particles=60, standardise=False).init(2))
    arms = {decide(state, seed * 2**40) for seed in range(50)}
    assert arms == {0, 1}
    learn(state, 0, 1.0)
    assert set(state.current.tolist()) == {0, 1, 2}


@pytest.mark.parametrize(("factor", "offset"), [(1e-6, 0.0), (1000.0, 1e6)])
def test_decisions_do_not_depend_on_offset_and_unit(factor: float, offset: float) -> None:
    draws, spec = np.random.default_rng(2), larl.ParticleLatentThompson(particles=20)
    state, other = copy_state(spec.init(3)), copy_state(spec.init(3))
    for t in range(60):
        bits = int(draws.integers(2**63))
        assert decide(state, bits) == decide(other, bits)
        arm, reward = int(draws.integers(3)), round(float(draws.normal()) + t // 15 % 2, 3)
        learn(state, arm, reward)
        learn(other, arm, offset + factor * reward)


def test_first_rewards_are_passed_on_when_the_scale_is_fixed() -> None:
    state, reference = (larl.ParticleLatentThompson(particles=20, standardise=flag).init(2) for flag in (True, False))
    rewards, arms = [4.0] * 10 + [6.0, 5.0, 9.0], [0, 1, 1] * 4 + [0]
    for t, (arm, reward) in enumerate(zip(arms, rewards, strict=True)):
        learn(state, arm, reward)
        assert state.is_fixed[0] == (t >= 10)  # equal rewards have no scale
    centre, width = state.first.standard
    assert centre == 4.0
    assert width == pytest.approx(math.sqrt(4.0 / 8.0))  # more than half of 8 rewards are equal: root mean square
    for t in range(3, 13):
        learn(reference, arms[t], (rewards[t] - centre) / width)
    assert all(np.array_equal(a, b) for a, b in zip(state.inner, reference, strict=True))


def test_it_learns_the_model() -> None:
    # 150 trials of 400 steps; paired differences of regret in steps 200–399, 4 standard errors.
    world = larl.worlds.LatentMarkov(((0.97, 0.03), (0.03, 0.97)), ((0.0, 2.0), (2.0, 0.0)), sigma_r=0.7)
    policies: dict[str, Any] = {"UCB": larl.UCB(), "random": larl.Random(), "oracle": larl.MarkovOracle()}
    policies["particles"] = larl.ParticleLatentThompson(2, particles=60)
    result = larl.compare(policies, world, horizon=400, trials=150)
    late = {
        name: result.data["regret"].sel(policy=name).to_numpy()[..., 200:].sum(axis=-1).ravel() for name in policies
    }
    for better, worse in (("particles", "UCB"), ("particles", "random"), ("oracle", "particles")):
        gap = late[worse] - late[better]
        assert gap.mean() > 4.0 * gap.std() / math.sqrt(150)
