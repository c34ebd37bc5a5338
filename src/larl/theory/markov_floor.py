"""Long-run regret per step in a `LatentMarkov` world: of the exact filter, with full information, of random choices.

The simulated regret of a step is its expectation given the belief b of the filter, Σ_i b_i (max_a m_ia − m_ic) for the
arm c that is played. It has the mean of the regret and a smaller variance.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, kernel
from larl._core.random import GOLDEN, WORLD, normal_pair, stream
from larl.statespace.forward_filter import (
    ForwardState,
    best_expected_arm,
    condition_belief,
    expected_mean,
    initial_forward_state,
    predict_belief,
)
from larl.theory._burn_in import burn_in_steps
from larl.worlds.kernels import advance, begin
from larl.worlds.latent_markov import LatentMarkov

Floats = NDArray[np.float64]


@inline
def _expected_regret(state: ForwardState, arm: int) -> float:
    """Return the expected regret of an arm given the belief."""
    best = 0.0
    for i in range(state.belief.size):
        largest = state.means[i, 0]
        for other in range(1, state.means.shape[1]):
            largest = max(largest, state.means[i, other])
        best += state.belief[i] * largest
    return best - expected_mean(state.belief, state.means, arm)


@kernel
def _simulate(world: Any, state: Any, seed: int, trial: int, burn_in: int, steps: int, is_full: bool) -> float:
    """Return a trial's mean regret per step after `burn_in` steps of the arm with the largest expected mean.

    The filter sees the reward of that arm, or if `is_full` the rewards of all arms, with independent noise.
    """
    total = 0.0
    begin(world, seed, trial)
    key = stream(seed, trial, WORLD)
    for t in range(burn_in + steps):
        noise = advance(world, key, t)
        arm = best_expected_arm(state.belief, state.means)
        if t >= burn_in:
            total += _expected_regret(state, arm)
        for seen in range(world.means.size):
            if is_full and seen > 0:
                noise, _ = normal_pair(~key ^ GOLDEN, t * world.means.size + seen)
            if is_full or seen == arm:
                reward = world.means[seen] + world.sd[seen] * noise
                condition_belief(state.log_belief, state.means, state.sigma, seen, reward)
        predict_belief(state)
    return max(total / steps, 0.0)


@lru_cache(maxsize=256)
def simulated_regrets(world: LatentMarkov, trials: int, steps: int, seed: int, is_full: bool) -> tuple[float, ...]:
    """Return each trial's mean regret per step, from a stationary start, after a burn-in."""
    eigenvalues = np.sort(np.abs(np.linalg.eigvals(np.array(world.transition))))
    second = float(eigenvalues[-2]) if world.states > 1 else 0.0
    burn_in = burn_in_steps(1, second)
    stationary = replace(world, start=tuple(world.stationary.tolist()))
    return tuple(
        _simulate(stationary.latent(), initial_forward_state(stationary), seed, trial, burn_in, steps, is_full)
        for trial in range(trials)
    )


def random_markov_regret(world: LatentMarkov) -> float:
    """Return Σ_i π_i (max_a m_ia − mean_a m_ia) for the stationary distribution π."""
    means = np.array(world.means)
    return float(world.stationary @ (means.max(axis=1) - means.mean(axis=1)))
