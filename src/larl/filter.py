"""Kalman filters for the world: predict and condition, the exact filter from its start, and the steady state.

Everything is about predictions: `mean` and `cov` are those of the latent state given the rewards *before* it.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from larl._check import InvalidValue, number, whole
from larl._compile import assign, inline, kernel
from larl.world import LatentAR

Floats = NDArray[np.float64]


@kernel
def predict(mean: Floats, cov: Floats, gamma: Floats, drift: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """One step of time: Γ mean + drift and Γ cov Γᵀ + W. (A companion matrix is mostly zeros: they are passed over.)"""
    k = mean.size
    forward, moved, spread = drift.copy(), np.zeros((k, k)), noise.copy()
    for i in range(k):
        for j in range(k):
            if gamma[i, j] != 0.0:
                forward[i] += gamma[i, j] * mean[j]
                for other in range(k):
                    moved[i, other] += gamma[i, j] * cov[j, other]
    for i in range(k):
        for j in range(k):
            if gamma[i, j] != 0.0:
                for other in range(k):
                    spread[other, i] += moved[other, j] * gamma[i, j]
    return forward, spread


@kernel
def condition(mean: Floats, cov: Floats, c: Floats, variance: float, value: float) -> tuple[Floats, Floats]:
    """Given value = cᵀz + N(0, variance): mean + K(value − cᵀmean) and cov − K cᵀcov, K = cov c/(cᵀcov c + variance).

    An observation that says nothing (c = 0) changes nothing, even without noise.
    """
    k = mean.size
    product, scale, innovation = np.zeros(k), variance, value
    for i in range(k):
        for j in range(k):
            product[i] += cov[i, j] * c[j]
        innovation -= c[i] * mean[i]
    for i in range(k):
        scale += c[i] * product[i]
    if scale <= 0.0:
        return mean.copy(), cov.copy()
    updated, narrowed = np.empty(k), np.empty((k, k))
    for i in range(k):
        updated[i] = mean[i] + product[i] * innovation / scale
        for j in range(k):
            narrowed[i, j] = cov[i, j] - product[i] * product[j] / scale
    return updated, narrowed


class Belief(NamedTuple):
    """What an exact filter knows before step t. Until t = k the state is (z_{k−1} … z_0), later (z_t … z_{t−k+1})."""

    mean: Floats
    cov: Floats
    time: NDArray[np.int64]  # (1,)
    gamma: Floats
    drift: Floats
    noise: Floats
    beta: Floats
    mu: Floats
    variance: Floats  # (arms,) of the reward noise


def belief(world: LatentAR) -> Belief:
    """The exact filter before the first step: the world's start."""
    mean, cov = world.start_moments
    system = world.system
    return Belief(
        mean[::-1].copy(), cov[::-1, ::-1].copy(), np.zeros(1, dtype=np.int64), system.gamma, system.drift,
        system.noise, np.array(world.beta), system.mu, system.sd**2,
    )  # fmt: skip


@kernel
def place(belief: Belief) -> int:
    """Where in the state z_t stands."""
    return max(belief.mean.size - 1 - belief.time[0], 0)


@kernel
def observe(belief: Belief, arm: int, reward: float) -> None:
    """Condition on this step's reward and move on to the next step."""
    c = np.zeros(belief.mean.size)
    c[place(belief)] = belief.beta[arm]
    mean, cov = condition(belief.mean, belief.cov, c, belief.variance[arm], reward - belief.mu[arm])
    if belief.time[0] >= belief.mean.size - 1:
        mean, cov = predict(mean, cov, belief.gamma, belief.drift, belief.noise)
    assign(belief.mean, mean)
    for i in range(mean.size):
        assign(belief.cov[i], cov[i])
    belief.time[0] += 1


def filter_path(world: LatentAR, arms: ArrayLike, rewards: ArrayLike) -> tuple[Floats, Floats]:
    """Exact mean and variance of each z_t given the actions and rewards before step t."""
    played, seen = np.asarray(arms), np.asarray(rewards, dtype=float)
    if played.shape != seen.shape or played.ndim != 1:
        raise InvalidValue("filter_path", "rewards", seen.shape, f"as many rewards as arms: shape {played.shape}")
    now, means, variances = belief(world), np.empty(seen.size), np.empty(seen.size)
    for t in range(seen.size):
        arm = whole(0, world.arms - 1)("filter_path", f"arms[{t}]", played[t])
        at = place(now)
        means[t], variances[t] = now.mean[at], now.cov[at, at]
        observe(now, arm, number()("filter_path", f"rewards[{t}]", seen[t]))
    return means, variances


class SteadyState(NamedTuple):
    """z̃_{t+1} = (Γ − ΓKC) z̃_t + ΓK y_t + γ₀e₁ with y_t = (r_t − μ_a)/β_a."""

    cov: Floats  # (k, k) P, the covariance of z⃗_t given the rewards before t
    gain: Floats  # (k,) K = PCᵀ(CPCᵀ + V)⁻¹
    closed: Floats  # (k, k) Γ − ΓKC: how an old prediction enters the next
    push: Floats  # (k,) ΓK: how a measurement enters it
    drift: Floats  # (k,) γ₀e₁


def measurement_variance(world: LatentAR) -> float:
    """V, the variance of y_t = (r_t − μ_a)/β_a given z_t. Only where all arms share it is there a steady state."""
    beta = np.abs(world.beta)
    if world.noise == "scaled" and beta.min() > 0.0:
        return world.sigma_r**2
    if beta.min() > 0.0 and np.ptp(beta) <= 1e-12 * beta.max():
        return float((world.sigma_r / beta[0]) ** 2)
    accepted = "no β of 0, and noise='scaled' or all |β| equal: else the steady state depends on the arms played"
    raise InvalidValue("steady_state", "world", world, accepted)


def _riccati(gamma: Floats, variance: float) -> Floats:
    """P for a latent shock of variance 1: scipy's solution, or the recursion's limit where that fails or is off."""
    from scipy.linalg import solve_discrete_are

    unit = np.eye(len(gamma))[0]
    noise = np.outer(unit, unit)

    def step(cov: Floats) -> Floats:
        seen = cov[:, 0]
        following: Floats = gamma @ (cov - np.outer(seen, seen) / (cov[0, 0] + variance)) @ gamma.T + noise
        return following

    try:
        cov = np.asarray(solve_discrete_are(gamma.T, unit[:, None], noise, np.array([[variance]])))
        if np.allclose(cov, step(cov), rtol=1e-8, atol=1e-10 * np.abs(cov).max()):
            return (cov + cov.T) / 2.0
    except (ValueError, np.linalg.LinAlgError):
        pass
    cov = noise
    for _ in range(1_000_000):
        before, cov = cov, step(cov)
        if np.allclose(before, cov, rtol=1e-13, atol=0.0):
            break
    return cov


@lru_cache(maxsize=256)
def steady_state(world: LatentAR) -> SteadyState:
    """The steady-state filter: P = ΓPΓᵀ + W − ΓPCᵀ(CPCᵀ + V)⁻¹CPΓᵀ (App. C), with γ₀ where the paper drops it."""
    system, variance, unit = world.system, measurement_variance(world), np.eye(world.k)[0]
    if world.sigma_z == 0.0 or variance == 0.0:
        cov = system.noise  # nothing moves, or every z_t is seen without noise: only the last shock is unknown
    else:
        cov = world.sigma_z**2 * _riccati(system.gamma, variance / world.sigma_z**2)
    scale = cov[0, 0] + variance
    gain = cov[:, 0] / scale if scale > 0.0 else np.zeros(world.k)
    push = system.gamma @ gain
    return SteadyState(cov, gain, system.gamma - np.outer(push, unit), push, system.drift)


@inline
def steady_step(z: Floats, following: Floats, closed: Floats, push: Floats, drift: Floats, y: float) -> None:
    """Write the prediction that follows z and its measurement y: (Γ − ΓKC) z + ΓK y + γ₀e₁."""
    for i in range(z.size):
        following[i] = drift[i] + push[i] * y
        for j in range(z.size):
            following[i] += closed[i, j] * z[j]
