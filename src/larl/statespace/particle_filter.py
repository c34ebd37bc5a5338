"""A bootstrap particle filter of a scalar latent AR process (Gordon, Salmond & Smith 1993), with rewards of any family.

Particles move by the law of the process and are weighted by the likelihood of the rewards. Their random draws come
from one fixed stream, so an update is deterministic.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner, kernel
from larl._core.random import bits_to_uniform, normal_pair, random_bits
from larl.worlds.families import GAUSSIAN, RewardFamily, log_likelihood, mean_reward
from larl.worlds.latent_ar import LatentAR
from larl.worlds.latent_glm import LatentGLM

Floats = NDArray[np.float64]
PARTICLES = 1000  # by default
START_STREAM = np.uint64(0xC3A5D71E4F9B2608)  # of the first states
STREAM = np.uint64(0x71F0C46B9D2E85A3)  # of shocks and resampling


class ParticleFilterState(NamedTuple):
    """The filter before step t. Rows of `z` are (z_{k−1} … z_0) until t = k, later (z_t … z_{t−k+1})."""

    z: Floats  # (k, particles)
    weight: Floats  # (particles,)
    expected: Floats  # (arms,) expectation of each arm's mean at step t
    time: NDArray[np.int64]  # (1,)
    gammas: Floats  # (k,)
    gamma0: float
    sigma_z: float
    mu: Floats
    beta: Floats  # (arms,)
    sd: Floats  # (arms,) of normal noise; other families do not use it
    family: RewardFamily


def initial_particles(world: LatentAR | LatentGLM, particles: int) -> ParticleFilterState:
    """Return the filter before the first step: draws from the world's start, with equal weights."""
    process = world.process if isinstance(world, LatentGLM) else world
    mean, latent = process.start_moments[0], process.latent()
    state = ParticleFilterState(
        z=np.empty((mean.size, particles)),
        weight=np.full(particles, 1.0 / particles),
        expected=np.zeros(world.arms),
        time=np.zeros(1, dtype=np.int64),
        gammas=np.array(world.gammas),
        gamma0=world.gamma0,
        sigma_z=world.sigma_z,
        mu=np.array(world.mu),
        beta=np.array(world.beta),
        sd=process.sd,
        family=world.reward_family if isinstance(world, LatentGLM) else RewardFamily(GAUSSIAN, 0.0, 1.0, 0.0),
    )
    draw_start(state, mean, latent.start_factor)
    return state


@kernel
def draw_start(state: ParticleFilterState, mean: Floats, factor: Floats) -> None:
    """Draw z_0 … z_{k−1} of every particle."""
    k, particles = state.z.shape
    for p in range(particles):
        for i in range(k):
            state.z[k - 1 - i, p] = mean[i]
        for j in range(k):
            draw, _ = normal_pair(START_STREAM, p * k + j)
            for i in range(k):
                state.z[k - 1 - i, p] += factor[i, j] * draw
    set_expected(state)


@inline
def current_row(state: ParticleFilterState) -> int:
    """Return the row of `z` that holds z_t."""
    return max(state.z.shape[0] - 1 - state.time[0], 0)


@inner
def set_expected(state: ParticleFilterState) -> None:
    """Set the expectation of each arm's mean over the particles."""
    row = current_row(state)
    for arm in range(state.mu.size):
        total = 0.0
        for p in range(state.weight.size):
            if state.weight[p] > 0.0:
                total += state.weight[p] * mean_reward(state.family, state.mu[arm] + state.beta[arm] * state.z[row, p])
        state.expected[arm] = total


@inner
def condition_particles(state: ParticleFilterState, arm: int, reward: float) -> None:
    """Multiply the weights by the likelihood of a reward. A reward that no particle can explain changes nothing."""
    particles, row, largest, total = state.weight.size, current_row(state), -math.inf, 0.0
    evidence = np.empty(particles)
    for p in range(particles):
        eta = state.mu[arm] + state.beta[arm] * state.z[row, p]
        evidence[p] = log_likelihood(state.family, eta, state.sd[arm], reward)
        if state.weight[p] > 0.0:
            largest = max(largest, evidence[p])
    if largest == -math.inf:
        return
    for p in range(particles):
        if state.weight[p] > 0.0:
            state.weight[p] *= math.exp(evidence[p] - largest)
        total += state.weight[p]
    for p in range(particles):
        state.weight[p] /= total


@inner
def move_particles(state: ParticleFilterState) -> None:
    """Resample if the effective number of particles is below one half, and move to the next step."""
    k, particles = state.z.shape
    key, squares = random_bits(STREAM, state.time[0]), 0.0
    for p in range(particles):
        squares += state.weight[p] * state.weight[p]
    if squares * particles > 2.0:
        resample(state, bits_to_uniform(random_bits(~key, 0)))
    if state.time[0] + 1 >= k:
        for pair in range((particles + 1) // 2):
            left, right = normal_pair(key, pair)
            move_particle(state, 2 * pair, left)
            if 2 * pair + 1 < particles:
                move_particle(state, 2 * pair + 1, right)
    state.time[0] += 1
    set_expected(state)


@inline
def move_particle(state: ParticleFilterState, p: int, draw: float) -> None:
    """Move a particle by the law of the process, with a standard normal draw."""
    z = state.gamma0 + state.sigma_z * draw
    for j in range(state.gammas.size):
        z += state.gammas[j] * state.z[j, p]
    for j in range(state.gammas.size - 1, 0, -1):
        state.z[j, p] = state.z[j - 1, p]
    state.z[0, p] = z


@inline
def systematic_copies(weight: Floats, offset: float) -> NDArray[np.int64]:
    """Return how often systematic resampling chooses each particle; `offset` is a uniform draw."""
    particles = weight.size
    copies, total, position = np.zeros(particles, np.int64), 0.0, 0
    for p in range(particles):
        total += weight[p]
        while position < particles and (position + offset) < total * particles:
            copies[p] += 1
            position += 1
    for p in range(particles - 1, -1, -1):  # rounding of `total` can leave positions at the end
        if weight[p] > 0.0:
            copies[p] += particles - position
            break
    return copies


@inline
def resample(state: ParticleFilterState, offset: float) -> None:
    """Systematic resampling: particles that are not chosen become copies of those that are chosen more than once."""
    copies, source = systematic_copies(state.weight, offset), 0
    for p in range(state.weight.size):
        if copies[p] == 0:
            while copies[source] <= 1:
                source += 1
            copies[source] -= 1
            for j in range(state.z.shape[0]):
                state.z[j, p] = state.z[j, source]
    for p in range(state.weight.size):
        state.weight[p] = 1.0 / state.weight.size


@inline
def best_expected(expected: Floats) -> int:
    """Return the lowest arm with the largest expected mean."""
    choice = 0
    for arm in range(1, expected.size):
        if expected[arm] > expected[choice]:
            choice = arm
    return choice
