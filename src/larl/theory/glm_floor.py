"""Long-run regret per step in a `LatentGLM` world: of the particle filter, with full information, of random choices."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import kernel
from larl._core.random import GOLDEN, WORLD, normal_pair, stream
from larl._core.states import copy_state
from larl.statespace.particle_filter import (
    PARTICLES,
    best_expected,
    condition_particles,
    initial_particles,
    move_particles,
)
from larl.theory._burn_in import burn_in_steps
from larl.worlds.kernels import advance, begin, draw_reward
from larl.worlds.latent_glm import LatentGLM

Floats = NDArray[np.float64]
RANGE, POINTS = 38.0, 40_001  # of the trapezoid rule, in standard deviations; beyond, the normal density is 0


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
        arm = best_expected(state.expected)
        best = world.means[arm]
        for other in range(world.means.size):
            best = max(best, world.means[other])
        if t >= burn_in:
            total += best - world.means[arm]
        for seen in range(world.means.size):
            if is_full and seen > 0:
                noise, _ = normal_pair(~key ^ GOLDEN, t * world.means.size + seen)
            if is_full or seen == arm:
                condition_particles(state, seen, draw_reward(world, seen, noise))
        move_particles(state)
    return total / steps


@lru_cache(maxsize=256)
def simulated_glm_regrets(world: LatentGLM, trials: int, steps: int, seed: int, is_full: bool) -> tuple[float, ...]:
    """Return each trial's mean regret per step, from a stationary start, after a burn-in."""
    stationary, burn_in = replace(world, start="stationary"), burn_in_steps(world.k, world.process.spectral_radius)
    start = initial_particles(stationary, PARTICLES)
    return tuple(
        _simulate(stationary.latent(), copy_state(start), seed, trial, burn_in, steps, is_full)
        for trial in range(trials)
    )


def random_glm_regret(world: LatentGLM) -> float:
    """Return E[max_a m_a(z) − mean_a m_a(z)] for the conditional means m_a and the stationary z."""
    x = np.linspace(-RANGE, RANGE, POINTS)
    weight = np.exp(-0.5 * x * x)
    means = world.means(world.process.stationary_mean + np.sqrt(world.process.stationary_var) * x)
    return float(weight @ (means.max(axis=1) - means.mean(axis=1)) / weight.sum())
