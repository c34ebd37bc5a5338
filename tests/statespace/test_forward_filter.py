"""The exact forward filter against enumeration of all state paths, and its limits."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import larl
from larl.statespace.forward_filter import forward_path, initial_forward_state, update_forward
from larl.worlds import LatentMarkov, random_markov

STEPS = 6
SPARSE = LatentMarkov(
    ((0.0, 1.0, 0.0), (0.2, 0.0, 0.8), (0.5, 0.0, 0.5)),
    ((0.0, 1.0), (2.0, -1.0), (0.5, 0.4)),
    sigma_r=0.7,
    start=(0.5, 0.5, 0.0),
)


def enumerated(world: LatentMarkov, arms: Any, rewards: Any) -> np.ndarray:
    """Return P(x_t | rewards before t) for every t: sums over all paths of states."""
    beliefs = np.zeros((len(arms), world.states))
    with np.errstate(divide="ignore"):
        start, transition = np.log(world.start_probabilities), np.log(world.transition)
    for t in range(len(arms)):
        terms: list[list[float]] = [[] for _ in range(world.states)]
        for path in itertools.product(range(world.states), repeat=t + 1):
            value = start[path[0]] + sum(transition[i, j] for i, j in itertools.pairwise(path))
            value += sum(norm.logpdf(rewards[s], world.means[path[s]][arms[s]], world.sigma_r) for s in range(t))
            terms[path[t]].append(float(value))
        logs = np.array([logsumexp(each) for each in terms])
        beliefs[t] = np.exp(logs - logsumexp(logs))
    return beliefs


@pytest.mark.parametrize(
    "world", [random_markov(2, 3, 0), random_markov(3, 2, 1, 0.6, 0.3), SPARSE], ids=["2", "3", "0"]
)
def test_beliefs_equal_sums_over_all_paths(world: LatentMarkov) -> None:
    draws = np.random.default_rng(0)
    arms, rewards = draws.integers(world.arms, size=STEPS), draws.normal(size=STEPS)
    assert forward_path(world, arms, rewards) == pytest.approx(enumerated(world, arms, rewards), rel=1e-9, abs=1e-12)


def test_states_with_negligible_probability_are_not_lost() -> None:
    # The chain never moves. 3,000 rewards support state 0, then 6,000 state 1: the product of all likelihoods decides.
    world = LatentMarkov(np.eye(2), ((1.0, 0.0), (-1.0, 0.0)), start=(0.5, 0.5))
    state = initial_forward_state(world)
    for t in range(9_001):
        if t == 3_000:
            assert state.belief.tolist() == [1.0, 0.0]
            assert state.log_belief[1] == pytest.approx(-6_000.0)
        update_forward(state, 0, 1.0 if t < 3_000 else -0.5)
    assert state.belief[0] == pytest.approx(1 / (1 + np.exp(1.0)), rel=1e-6)


@pytest.mark.parametrize("sigma_r", [0.0, 1e-300, 1e-100, 1.0, 1e100])
@pytest.mark.parametrize("reward", [0.0, 1e6, -1e30, 1e100, -1e100, 1e-300])
def test_outlying_rewards_leave_a_valid_belief(sigma_r: float, reward: float) -> None:
    for world in (SPARSE, random_markov(4, 2, 0)):
        state = initial_forward_state(
            LatentMarkov(world.transition, world.means, sigma_r=sigma_r, start=world.start_probabilities)
        )
        for t in range(40):
            update_forward(state, t % 2, reward * (-1.0) ** (t // 2))
            assert all(np.isfinite(field).all() for field in state)
            assert state.belief.min() >= 0.0
            assert state.belief.sum() == pytest.approx(1.0, abs=1e-12)


def test_without_noise_a_reward_reveals_the_state() -> None:
    world = random_markov(4, 3, 2, sigma_r=0.0)
    path = world.path(30, seed=1)
    beliefs = forward_path(world, np.zeros(30, dtype=int), np.array(world.means)[path, 0])
    assert beliefs[1:] == pytest.approx(np.array(world.transition)[path[:-1]], abs=1e-12)


def test_invalid_arguments_are_named() -> None:
    with pytest.raises(larl.InvalidValue, match=r"forward_path: arms\[1\] = 2"):
        forward_path(random_markov(2, 2, 0), [0, 2], [0.0, 0.0])
    with pytest.raises(larl.InvalidValue, match=r"forward_path: rewards = .*shape"):
        forward_path(random_markov(2, 2, 0), [0, 1], [0.0])
    with pytest.raises(larl.InvalidValue, match=r"forward_path: world = .*larl\.worlds\.LatentMarkov"):
        forward_path(larl.worlds.paper(1), [0], [0.0])  # type: ignore[arg-type]
