"""The Kalman filter: predict, condition, and the exact filter of a world from its start distribution.

`mean` and `cov` are the moments of the latent state given the rewards of *earlier* steps (one-step predictions).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from larl._core.compile import assign, inline, kernel
from larl._core.validation import InvalidValue, array, instance, integer, number
from larl.worlds.base import LinearGaussianWorld
from larl.worlds.latent_ar import LatentAR

validate_linear_world = instance(LinearGaussianWorld, "a larl.LatentAR or a larl.LatentVAR")

Floats = NDArray[np.float64]


@kernel
def predict(mean: Floats, cov: Floats, gamma: Floats, drift: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Return the moments one step later.

    z⃗_{t+1} = Γ z⃗_t + drift + N(0, W):  m ← Γm + drift,  P ← ΓPΓᵀ + W.
    """
    k = mean.size
    next_mean, gamma_cov, next_cov = drift.copy(), np.zeros((k, k)), noise.copy()
    for i in range(k):
        for j in range(k):
            if gamma[i, j] != 0.0:  # most entries of a companion matrix are 0
                next_mean[i] += gamma[i, j] * mean[j]
                for column in range(k):
                    gamma_cov[i, column] += gamma[i, j] * cov[j, column]
    for i in range(k):
        for j in range(k):
            if gamma[i, j] != 0.0:
                for row in range(k):
                    next_cov[row, i] += gamma_cov[row, j] * gamma[i, j]
    return next_mean, next_cov


@kernel
def condition(mean: Floats, cov: Floats, c: Floats, variance: float, value: float) -> tuple[Floats, Floats]:
    """Return the moments given a scalar observation y = cᵀz⃗ + N(0, V), with y = `value` and V = `variance`.

    S = cᵀPc + V,  K = Pc/S:  m ← m + K(y − cᵀm),  P ← P − K(Pc)ᵀ.
    If S = 0 the observation has no information, and the moments stay the same.

    `measurement_update` is the same step for callers that have Pc, S and y − cᵀm already. It divides before it
    multiplies, (Pc/S)·x in place of (Pc·x)/S, so the last bits differ. Both orders are kept: results are reproducible
    bit for bit between versions. `policies/auto/particle_kalman.py` has a third one, which updates many particles at
    once in a structure of arrays; one call per particle would be much slower.
    """
    k = mean.size
    cov_c, innovation_variance, innovation = np.zeros(k), variance, value
    for i in range(k):
        for j in range(k):
            cov_c[i] += cov[i, j] * c[j]
        innovation -= c[i] * mean[i]
    for i in range(k):
        innovation_variance += c[i] * cov_c[i]
    if innovation_variance <= 0.0:
        return mean.copy(), cov.copy()
    new_mean, new_cov = np.empty(k), np.empty((k, k))
    for i in range(k):
        new_mean[i] = mean[i] + cov_c[i] * innovation / innovation_variance
        for j in range(k):
            new_cov[i, j] = cov[i, j] - cov_c[i] * cov_c[j] / innovation_variance
    return new_mean, new_cov


@inline
def measurement_update(mean: Floats, cov: Floats, cov_c: Floats, innovation_variance: float, innovation: float) -> None:
    """Condition `mean` and `cov` in place on a scalar observation, given Pc, S = cᵀPc + V and y − cᵀm.

    K = Pc/S:  m ← m + K(y − cᵀm),  P ← P − K(Pc)ᵀ. See `condition` for the difference between the two.
    """
    for i in range(mean.size):
        gain = cov_c[i] / innovation_variance
        mean[i] += gain * innovation
        for j in range(mean.size):
            cov[i, j] -= gain * cov_c[j]


class FilterState(NamedTuple):
    """The exact filter before step t. The state vector is (z_{k−1} … z_0) until t = k, later (z_t … z_{t−k+1}).

    The m components of each z are adjacent.
    """

    mean: Floats
    cov: Floats
    time: NDArray[np.int64]  # (1,)
    gamma: Floats
    drift: Floats
    noise: Floats
    beta: Floats  # (arms, m)
    mu: Floats
    variance: Floats  # (arms,) of the reward noise


def initial_filter_state(world: LinearGaussianWorld) -> FilterState:
    """Return the exact filter before the first step: the moments of the world's start."""
    (mean, cov), system = world.start_moments, world.system
    latest_first = np.ravel(np.reshape(np.arange(mean.size), (world.k, world.m))[::-1])
    return FilterState(
        mean=mean[latest_first],
        cov=cov[np.ix_(latest_first, latest_first)],
        time=np.zeros(1, dtype=np.int64),
        gamma=system.gamma,
        drift=system.drift,
        noise=system.noise,
        beta=world.loadings,
        mu=system.mu,
        variance=system.sd**2,
    )


@kernel
def current_offset(state: FilterState) -> int:
    """Return the index of the state vector at which z_t begins."""
    m = state.beta.shape[1]
    return max(state.mean.size - m - m * state.time[0], 0)


@inline
def expected_reward(mu: Floats, beta: Floats, z: Floats, offset: int, arm: int) -> float:
    """Return μ_a + β_aᵀz_t, where z_t begins at index `offset` of `z`."""
    mean = mu[arm]
    for i in range(beta.shape[1]):
        mean += beta[arm, i] * z[offset + i]
    return mean


@inline
def dot(c: Floats, z: Floats) -> float:
    """Return cᵀz⃗."""
    total = 0.0
    for i in range(c.size):
        total += c[i] * z[i]
    return total


@inline
def best_arm(mu: Floats, beta: Floats, z: Floats, offset: int) -> int:
    """Return the lowest arm with the largest μ_a + β_aᵀz_t, where z_t begins at index `offset` of `z`."""
    best, choice = -math.inf, 0
    for arm in range(mu.size):
        mean = expected_reward(mu, beta, z, offset, arm)
        if mean > best:
            best, choice = mean, arm
    return choice


@kernel
def update_filter(state: FilterState, arm: int, reward: float) -> None:
    """Condition on this step's reward and predict the next step."""
    c, offset, m = np.zeros(state.mean.size), current_offset(state), state.beta.shape[1]
    for i in range(m):
        c[offset + i] = state.beta[arm, i]
    mean, cov = condition(state.mean, state.cov, c, state.variance[arm], reward - state.mu[arm])
    _predict_next(state, mean, cov)


@kernel
def update_filter_missing(state: FilterState) -> None:
    """Predict the next step: this step has no reward."""
    _predict_next(state, state.mean, state.cov)


@inline
def _predict_next(state: FilterState, mean: Floats, cov: Floats) -> None:
    """Set the state to the prediction of the next step. `mean` and `cov` include this step's reward."""
    if state.beta.shape[1] * (state.time[0] + 1) >= state.mean.size:
        mean, cov = predict(mean, cov, state.gamma, state.drift, state.noise)
    assign(state.mean, mean)
    for i in range(mean.size):
        assign(state.cov[i], cov[i])
    state.time[0] += 1


def filter_path(world: LinearGaussianWorld, arms: ArrayLike, rewards: ArrayLike) -> tuple[Floats, Floats]:
    """Return the exact mean and variance of each z_t given the actions and rewards before step t.

    Parameters
    ----------
    world : LatentAR or LatentVAR
        The world, whose parameters the filter knows.
    arms : sequence of int
        The arm played at each step.
    rewards : sequence of float
        The reward of each step.

    Returns
    -------
    means, variances : arrays
        (steps,) each for a LatentAR; (steps, m) and (steps, m, m) for a LatentVAR.

    Raises
    ------
    InvalidValue
        If an arm is not one of the world's or the lengths differ.

    Examples
    --------
    >>> import larl
    >>> from larl.statespace.kalman import filter_path
    >>> means, variances = filter_path(larl.worlds.paper(1), arms=[1, 1], rewards=[3.0, 2.0])
    >>> means.round(3), variances.round(3)
    (array([0.   , 2.673]), array([100.   ,   1.802]))
    """
    world = validate_linear_world("filter_path", "world", world)
    played, observed = np.asarray(arms), array("filter_path", "rewards", rewards)
    if played.shape != observed.shape or played.ndim != 1:
        raise InvalidValue("filter_path", "rewards", observed.shape, f"as many rewards as arms: shape {played.shape}")
    state, m = initial_filter_state(world), world.m
    means, variances = np.empty((observed.size, m)), np.empty((observed.size, m, m))
    for t in range(observed.size):
        arm = integer(0, world.arms - 1)("filter_path", f"arms[{t}]", played[t])
        current = slice(current_offset(state), current_offset(state) + m)
        means[t], variances[t] = state.mean[current], state.cov[current, current]
        update_filter(state, arm, number()("filter_path", f"rewards[{t}]", observed[t]))
    return (means[:, 0], variances[:, 0, 0]) if isinstance(world, LatentAR) else (means, variances)
