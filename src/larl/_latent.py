"""Worlds inside kernels: what every latent state can do, and the latent AR process."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._compile import assign, entry, generic, implement, kernel
from larl._words import START, WORLD, normal_pair, stream

Floats = NDArray[np.float64]


class Latent(NamedTuple):
    """A world inside a kernel: its parameters, the last k latent states (latest first) and the current means."""

    gammas: Floats
    gamma0: float
    sigma_z: float
    mu: Floats
    beta: Floats
    sd: Floats
    start_mean: Floats  # of z_0 … z_{k−1}
    start_factor: Floats  # its covariance is factor @ factor.T
    first: Floats  # z_0 … z_{k−1} of this trial
    recent: Floats
    means: Floats


@generic
def begin(latent: Any, seed: int, trial: int) -> None:
    """Draw what a trial starts from."""
    raise TypeError("not a world's latent state")


@generic
def advance(latent: Any, key: np.uint64, t: int) -> float:
    """Move to step t and set `latent.means`. Returns the draw of this step's reward noise, of variance 1.

    One draw serves whichever arm is played: only that arm's noise is ever seen, so the law of the trial is the same
    as with a draw per arm, and policies that are compared meet the same luck.
    """
    raise TypeError("not a world's latent state")


@generic
def react(latent: Any, arm: int) -> None:
    """Let the world feel which arm was played. Most worlds do not."""


def begin_latent(latent: Latent, seed: int, trial: int) -> None:
    """Draw z_0 … z_{k−1} of this trial."""
    key, k = stream(seed, trial, START), latent.first.size
    assign(latent.first, latent.start_mean)
    for j in range(k):
        draw, _ = normal_pair(key, j)
        for i in range(k):
            latent.first[i] += latent.start_factor[i, j] * draw


def advance_latent(latent: Latent, key: np.uint64, t: int) -> float:
    """Move z and the means to step t; the noise is standard normal."""
    shock, luck = normal_pair(key, t)
    k = latent.recent.size
    if t < k:
        z = latent.first[t]
    else:
        z = latent.gamma0 + latent.sigma_z * shock
        for j in range(k):
            z += latent.gammas[j] * latent.recent[j]
    for j in range(k - 1, 0, -1):
        latent.recent[j] = latent.recent[j - 1]
    latent.recent[0] = z
    for arm in range(latent.mu.size):
        latent.means[arm] = latent.mu[arm] + latent.beta[arm] * z
    return luck


implement(begin, Latent, begin_latent)
implement(advance, Latent, advance_latent)


@entry
def walk(latent: Any, seed: int, trial: int, t: int) -> float:
    """Move to step t, drawing the start first where t = 0; returns the draw of its reward noise."""
    if t == 0:
        begin(latent, seed, trial)
    return advance(latent, stream(seed, trial, WORLD), t)


@entry
def react_to(latent: Any, arm: int) -> None:
    react(latent, arm)


@kernel
def trace_path(latent: Latent, seed: int, trial: int, path: Floats) -> None:
    begin(latent, seed, trial)
    key = stream(seed, trial, WORLD)
    for t in range(path.size):
        advance(latent, key, t)
        path[t] = latent.recent[0]
