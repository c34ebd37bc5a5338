"""Worlds inside kernels: the generic functions of every world, and their implementation for a latent AR or VAR process.

A world's latent state is a NamedTuple. `implement(begin, ItsState, its_begin)` binds a world's own version of a generic
function to the class of its state.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import assign, entry_point, generic, implement, inline, kernel
from larl._core.random import START, WORLD, normal_pair, random_bits, stream

Floats = NDArray[np.float64]


class Latent(NamedTuple):
    """A latent AR or VAR world inside a kernel: its parameters, the last k states (latest first), the current means.

    A state has m components. Where an array holds several steps, the components of one step are adjacent.
    """

    gammas: Floats  # (m, mk) coefficients of z_t on `recent`
    gamma0: Floats  # (m,)
    factor: Floats  # (m, m): the covariance of the shocks is factor @ factor.T
    mu: Floats
    beta: Floats  # (arms, m)
    sd: Floats
    start_mean: Floats  # (mk,) of z_0 … z_{k−1}
    start_factor: Floats  # (mk, mk): the start's covariance is start_factor @ start_factor.T
    first: Floats  # (mk,) z_0 … z_{k−1} of this trial
    recent: Floats  # (mk,)
    shock: Floats  # (m,) scratch
    next: Floats  # (m,) scratch
    means: Floats


@generic
def begin(latent: Any, seed: int, trial: int) -> None:
    """Draw the start of a trial."""
    raise TypeError("latent must be the latent state of a world")


@generic
def advance(latent: Any, key: np.uint64, t: int) -> float:
    """Move to step t, set `latent.means` and return this step's reward noise, of variance 1.

    All arms share one draw. Only the played arm's noise is observed, so the distribution of a trial is the same as with
    one draw per arm, and all policies of a comparison get the same random numbers.
    """
    raise TypeError("latent must be the latent state of a world")


@generic
def apply_action(latent: Any, arm: int) -> None:
    """Apply the action's effect on the latent state. By default there is none."""


@generic
def draw_reward(latent: Any, arm: int, noise: float) -> float:
    """Return the reward of an arm at this step, given the step's noise; nan if the reward is missing.

    By default it is the arm's mean plus its standard deviation times the noise.
    """
    return latent.means[arm] + latent.sd[arm] * noise


@generic
def step_regret(latent: Any, arm: int) -> float:
    """Return the regret of an arm at this step: the largest mean minus that of the arm."""
    best = latent.means[0]
    for other in range(1, latent.means.size):
        best = max(best, latent.means[other])
    return best - latent.means[arm]


def begin_latent(latent: Latent, seed: int, trial: int) -> None:
    """Draw z_0 … z_{k−1} of this trial."""
    key, k = stream(seed, trial, START), latent.first.size
    assign(latent.first, latent.start_mean)
    for j in range(k):
        draw, _ = normal_pair(key, j)
        for i in range(k):
            latent.first[i] += latent.start_factor[i, j] * draw


@inline
def draw_shocks(shock: Floats, first: float, key: np.uint64, t: int) -> None:
    """Set the standard normal shocks of step t. `first` was drawn together with the reward noise."""
    shock[0] = first
    if shock.size > 1:
        shock_key = random_bits(~key, t)
        for i in range(1, shock.size, 2):
            left, right = normal_pair(shock_key, i // 2)
            shock[i] = left
            if i + 1 < shock.size:
                shock[i + 1] = right


@inline
def set_means(latent: Latent) -> None:
    """Set the means at the current z: μ_a + β_aᵀz."""
    for arm in range(latent.mu.size):
        mean = latent.mu[arm]
        for i in range(latent.next.size):
            mean += latent.beta[arm, i] * latent.recent[i]
        latent.means[arm] = mean


def advance_latent(latent: Latent, key: np.uint64, t: int) -> float:
    """Move z and the means to step t and return standard normal reward noise."""
    first, noise = normal_pair(key, t)
    size, m = latent.recent.size, latent.next.size
    if t * m < size:
        for i in range(m):
            latent.next[i] = latent.first[t * m + i]
    else:
        draw_shocks(latent.shock, first, key, t)
        for i in range(m):
            z = latent.gamma0[i]
            for j in range(m):
                z += latent.factor[i, j] * latent.shock[j]
            for j in range(size):
                z += latent.gammas[i, j] * latent.recent[j]
            latent.next[i] = z
    for j in range(size - 1, m - 1, -1):
        latent.recent[j] = latent.recent[j - m]
    for i in range(m):
        latent.recent[i] = latent.next[i]
    set_means(latent)
    return noise


implement(begin, Latent, begin_latent)
implement(advance, Latent, advance_latent)


@entry_point
def simulate_step(latent: Any, seed: int, trial: int, t: int) -> float:
    """Move to step t and return its reward noise. At t = 0 draw the start first."""
    if t == 0:
        begin(latent, seed, trial)
    return advance(latent, stream(seed, trial, WORLD), t)


@entry_point
def simulate_action(latent: Any, arm: int) -> None:
    """`apply_action`, for Python."""
    apply_action(latent, arm)


@entry_point
def simulate_reward(latent: Any, arm: int, noise: float) -> float:
    """`draw_reward`, for Python."""
    return draw_reward(latent, arm, noise)


@kernel
def trace_path(latent: Latent, seed: int, trial: int, path: Floats) -> None:
    """Write z_0, z_1, … of one trial into the rows of `path`."""
    begin(latent, seed, trial)
    key = stream(seed, trial, WORLD)
    for t in range(path.shape[0]):
        advance(latent, key, t)
        for i in range(path.shape[1]):
            path[t, i] = latent.recent[i]
