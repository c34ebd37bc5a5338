"""Particles for a hidden Markov chain with an unknown model.

A particle is a sampled path of states with sufficient statistics (Storvik 2002). Given the path, the posterior of the
parameters is conjugate: Dirichlet for the rows of the transition matrix, normal–inverse-gamma for means and noise. Both
are integrated out of the next state and the next reward, so an update samples states and no parameters.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl._core.random import bits_to_uniform, random_bits
from larl.policies._bounds import STEPS, Bound
from larl.policies._markov_model import draw_index
from larl.policies._probabilities import Floats
from larl.statespace.particle_filter import systematic_copies

STREAM = np.uint64(0x9A57B3C1D2E4F608)  # of the random bits of updates
NOISE_SHAPE, NOISE_RATE = 1.0, 0.5  # prior of the noise variance: inverse gamma, mode 1/4 of the rewards' variance
MAX_DEVIATION = 1e100  # of a reward from its mean, in standard deviations


class ParticleState(NamedTuple):
    weight: Floats  # (particles,)
    current: NDArray[np.int64]  # (particles,) x_{t−1}; −1 before the first step
    moves: Floats  # (particles, n, n) transitions on the path, plus prior counts
    plays: Floats  # (particles, n, arms) rewards of each state and arm
    total: Floats  # (particles, n, arms) their sums
    rate: Floats  # (particles,) of the inverse gamma distribution of the noise variance
    seen: Floats  # (1,) number of rewards
    time: NDArray[np.int64]  # (1,)
    sigma: float  # sd of the noise; 0 if it is learnt
    shrink: float  # 1/prior_sd²: prior plays of each state and arm, with reward 0


def bounds(initial: ParticleState, state: ParticleState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"current": (-1, initial.moves.shape[1] - 1), "time": STEPS}


@inline
def next_probability(state: ParticleState, particle: int, j: int) -> float:
    """Return P(x_t = j) given the particle's path."""
    i, n = state.current[particle], state.moves.shape[1]
    if i < 0:
        return 1.0 / n
    row = 0.0
    for other in range(n):
        row += state.moves[particle, i, other]
    return state.moves[particle, i, j] / row


@inline
def noise_variance(state: ParticleState, particle: int) -> float:
    """Return the noise variance: the given one, or rate/shape of its posterior."""
    if state.sigma > 0.0:
        return state.sigma**2
    return state.rate[particle] / (NOISE_SHAPE + 0.5 * state.seen[0])


@inline
def log_reward_density(state: ParticleState, particle: int, j: int, arm: int, reward: float) -> float:
    """Return the log-density of the next reward in state j, up to a constant: normal, or Student's t."""
    count = state.shrink + state.plays[particle, j, arm]
    variance = noise_variance(state, particle) * (1.0 + 1.0 / count)
    deviation = min(abs(reward - state.total[particle, j, arm] / count) / math.sqrt(variance), MAX_DEVIATION)
    if state.sigma > 0.0:
        return -0.5 * deviation * deviation - 0.5 * math.log(variance)
    shape = NOISE_SHAPE + 0.5 * state.seen[0]
    return -(shape + 0.5) * math.log1p(0.5 * deviation * deviation / shape) - 0.5 * math.log(variance)


@inline
def add_reward(state: ParticleState, particle: int, j: int, arm: int, reward: float) -> None:
    """Add a reward to the statistics of state j."""
    count = state.shrink + state.plays[particle, j, arm]
    error = reward - state.total[particle, j, arm] / count
    state.rate[particle] += 0.5 * error * error * (count / (count + 1.0))
    state.plays[particle, j, arm] += 1.0
    state.total[particle, j, arm] += reward


@inline
def move(state: ParticleState, particle: int, j: int) -> None:
    """Add the transition to state j to the path."""
    if state.current[particle] >= 0:
        state.moves[particle, state.current[particle], j] += 1.0
    state.current[particle] = j


@inner
def advance(state: ParticleState, arm: int, reward: float) -> None:
    """Sample x_t of every particle given the reward (arm −1: none), reweight the particles, and resample."""
    particles, n = state.moves.shape[0], state.moves.shape[1]
    key, largest = random_bits(STREAM, state.time[0]), -math.inf
    chance, evidence = np.empty(n), np.empty(particles)
    for p in range(particles):
        highest, total = -math.inf, 0.0
        for j in range(n):
            chance[j] = math.log(next_probability(state, p, j))
            if arm >= 0:
                chance[j] += log_reward_density(state, p, j, arm, reward)
            highest = max(highest, chance[j])
        for j in range(n):
            chance[j] = math.exp(chance[j] - highest)
            total += chance[j]
        for j in range(n):
            chance[j] /= total
        evidence[p] = highest + math.log(total)
        if state.weight[p] > 0.0:
            largest = max(largest, evidence[p])
        j = draw_index(chance, bits_to_uniform(random_bits(key, p)))
        move(state, p, j)
        if arm >= 0:
            add_reward(state, p, j, arm, reward)
    if arm >= 0:
        state.seen[0] += 1.0
        reweight(state, evidence, largest, bits_to_uniform(random_bits(key, particles)))
    state.time[0] += 1


@inline
def reweight(state: ParticleState, evidence: Floats, largest: float, offset: float) -> None:
    """Multiply the weights by exp(evidence), normalise, and resample if the effective number is below one half."""
    weight, total, squares = state.weight, 0.0, 0.0
    for p in range(weight.size):
        weight[p] = weight[p] * math.exp(evidence[p] - largest) if weight[p] > 0.0 else 0.0
        total += weight[p]
    for p in range(weight.size):
        weight[p] /= total
        squares += weight[p] * weight[p]
    if squares * weight.size > 2.0:
        resample(state, offset)


@inline
def resample(state: ParticleState, offset: float) -> None:
    """Systematic resampling: particles that are not kept become copies of those that are kept more than once."""
    particles, copies = state.weight.size, systematic_copies(state.weight, offset)
    source = 0
    for p in range(particles):
        if copies[p] == 0:
            while copies[source] <= 1:
                source += 1
            copies[source] -= 1
            copy_particle(state, source, p)
    for p in range(particles):
        state.weight[p] = 1.0 / particles


@inline
def copy_particle(state: ParticleState, source: int, target: int) -> None:
    """Overwrite one particle by another."""
    n, arms = state.plays.shape[1], state.plays.shape[2]
    state.current[target], state.rate[target] = state.current[source], state.rate[source]
    for i in range(n):
        for j in range(n):
            state.moves[target, i, j] = state.moves[source, i, j]
        for arm in range(arms):
            state.plays[target, i, arm] = state.plays[source, i, arm]
            state.total[target, i, arm] = state.total[source, i, arm]
