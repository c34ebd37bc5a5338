"""Kalman filters for the world: predict and condition, the exact filter from its start, and the steady state.

Everything is about predictions: `mean` and `cov` are those of the latent state given the rewards *before* it.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from larl._core.compile import assign, inline, kernel
from larl._core.validation import InvalidValue, array, instance, integer, number
from larl.worlds.base import LinearGaussianWorld
from larl.worlds.latent_ar import LatentAR

linear = instance(LinearGaussianWorld, "a larl.LatentAR or a larl.LatentVAR")

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
    """What an exact filter knows before step t. Until t = k the state is (z_{k−1} … z_0), later (z_t … z_{t−k+1}).

    The m components of each z are neighbours.
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


def belief(world: LinearGaussianWorld) -> Belief:
    """The exact filter before the first step: the world's start."""
    (mean, cov), system = world.start_moments, world.system
    latest_first = np.ravel(np.reshape(np.arange(mean.size), (world.k, world.m))[::-1])
    return Belief(
        mean[latest_first],
        cov[np.ix_(latest_first, latest_first)],
        np.zeros(1, dtype=np.int64),
        system.gamma,
        system.drift,
        system.noise,
        world.loadings,
        system.mu,
        system.sd**2,
    )


@kernel
def place(belief: Belief) -> int:
    """Where in the state z_t begins."""
    m = belief.beta.shape[1]
    return max(belief.mean.size - m - m * belief.time[0], 0)


@inline
def expected(mu: Floats, beta: Floats, state: Floats, at: int, arm: int) -> float:
    """μ_a + β_aᵀz, where z begins at `at` of the state."""
    mean = mu[arm]
    for i in range(beta.shape[1]):
        mean += beta[arm, i] * state[at + i]
    return mean


@inline
def dot(c: Floats, state: Floats) -> float:
    """cᵀz⃗."""
    total = 0.0
    for i in range(c.size):
        total += c[i] * state[i]
    return total


@inline
def best_arm(mu: Floats, beta: Floats, state: Floats, at: int) -> int:
    """The lowest arm with the largest μ_a + β_aᵀz, where z begins at `at` of the state."""
    best, choice = -math.inf, 0
    for arm in range(mu.size):
        mean = expected(mu, beta, state, at, arm)
        if mean > best:
            best, choice = mean, arm
    return choice


@kernel
def observe(belief: Belief, arm: int, reward: float) -> None:
    """Condition on this step's reward and move on to the next step."""
    c, at, m = np.zeros(belief.mean.size), place(belief), belief.beta.shape[1]
    for i in range(m):
        c[at + i] = belief.beta[arm, i]
    mean, cov = condition(belief.mean, belief.cov, c, belief.variance[arm], reward - belief.mu[arm])
    _move_on(belief, mean, cov)


@kernel
def advance(belief: Belief) -> None:
    """Move on to the next step: this one had no reward."""
    _move_on(belief, belief.mean, belief.cov)


@inline
def _move_on(belief: Belief, mean: Floats, cov: Floats) -> None:
    """From what is known after this step's reward to what is known before the next."""
    if belief.beta.shape[1] * (belief.time[0] + 1) >= belief.mean.size:
        mean, cov = predict(mean, cov, belief.gamma, belief.drift, belief.noise)
    assign(belief.mean, mean)
    for i in range(mean.size):
        assign(belief.cov[i], cov[i])
    belief.time[0] += 1


def filter_path(world: LinearGaussianWorld, arms: ArrayLike, rewards: ArrayLike) -> tuple[Floats, Floats]:
    """Exact mean and variance of each z_t given the actions and rewards before step t: (steps,) each.

    Where z_t is a vector, (steps, m) and (steps, m, m).
    """
    world, played, seen = (
        linear("filter_path", "world", world),
        np.asarray(arms),
        array("filter_path", "rewards", rewards),
    )
    if played.shape != seen.shape or played.ndim != 1:
        raise InvalidValue("filter_path", "rewards", seen.shape, f"as many rewards as arms: shape {played.shape}")
    now, m = belief(world), world.m
    means, variances = np.empty((seen.size, m)), np.empty((seen.size, m, m))
    for t in range(seen.size):
        arm = integer(0, world.arms - 1)("filter_path", f"arms[{t}]", played[t])
        at = slice(place(now), place(now) + m)
        means[t], variances[t] = now.mean[at], now.cov[at, at]
        observe(now, arm, number()("filter_path", f"rewards[{t}]", seen[t]))
    return (means[:, 0], variances[:, 0, 0]) if isinstance(world, LatentAR) else (means, variances)


class Measured(NamedTuple):
    """Where every arm measures the same thing equally well: y_t = (r_t − μ_a)/b_a = uᵀz_t + N(0, V), β_a = b_a u."""

    direction: Floats  # (m,) u, of length 1; 1 where m = 1
    scale: Floats  # (arms,) b; β where m = 1
    variance: float  # V


def measured(world: LinearGaussianWorld) -> Measured | None:
    """What a reward measures, whichever arm is played; None where that depends on the arm."""
    beta = linear("measured", "world", world).loadings
    length = np.abs(np.hypot.reduce(beta, axis=1))
    if length.min() == 0.0:
        return None
    direction = beta[int(np.argmax(length))] / length.max()
    direction = direction * np.sign(direction[np.flatnonzero(direction)[0]])
    scale = beta @ direction
    if np.abs(beta - np.outer(scale, direction)).max() > 1e-12 * length.max():
        return None
    if world.noise == "scaled":
        return Measured(direction, scale, world.sigma_r**2)
    equal = np.ptp(length) <= 1e-12 * length.max()
    return Measured(direction, scale, float((world.sigma_r / length[0]) ** 2)) if equal else None


def _must_be_measured(world: LinearGaussianWorld) -> Measured:
    found = measured(world)
    if found is None:
        accepted = "no β of 0, and noise='scaled' or all |β| equal: else the steady state depends on the arms played"
        if world.m > 1:
            accepted = f"all β on one line through 0, {accepted}"
        raise InvalidValue("steady_state", "world", world, accepted)
    return found


def measurement_variance(world: LinearGaussianWorld) -> float:
    """V, the variance of y_t = (r_t − μ_a)/b_a given z_t. Only where all arms share it is there a steady state."""
    return _must_be_measured(world).variance


class SteadyState(NamedTuple):
    """z̃_{t+1} = (Γ − ΓKC) z̃_t + ΓK y_t + drift with y_t = (r_t − μ_a)/b_a; for a LatentAR C = e₁ᵀ and b = β."""

    cov: Floats  # (mk, mk) P, the covariance of z⃗_t given the rewards before t
    gain: Floats  # (mk,) K = PCᵀ(CPCᵀ + V)⁻¹
    closed: Floats  # (mk, mk) Γ − ΓKC: how an old prediction enters the next
    push: Floats  # (mk,) ΓK: how a measurement enters it
    drift: Floats  # (mk,) γ₀, then zeros
    c: Floats  # (mk,) C: u, then zeros
    scale: Floats  # (arms,) b


def _riccati(gamma: Floats, noise: Floats, c: Floats, variance: float) -> Floats:
    """P: scipy's solution, or the recursion's limit where that fails or is off (as it may be without noise)."""
    from scipy.linalg import solve_discrete_are

    def step(cov: Floats) -> Floats:
        seen = cov @ c
        size = float(c @ seen) + variance
        narrowed = cov - np.outer(seen, seen) / size if size > 0.0 else cov
        following: Floats = gamma @ narrowed @ gamma.T + noise
        return following

    try:
        cov = np.asarray(solve_discrete_are(gamma.T, c[:, None], noise, np.array([[variance]])))
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


def steady_state(world: LinearGaussianWorld) -> SteadyState:
    """The steady-state filter: P = ΓPΓᵀ + W − ΓPCᵀ(CPCᵀ + V)⁻¹CPΓᵀ (App. C), with γ₀ where the paper drops it."""
    return _steady_state(linear("steady_state", "world", world))


@lru_cache(maxsize=256)
def _steady_state(world: LinearGaussianWorld) -> SteadyState:
    system, (direction, scale, variance), m = world.system, _must_be_measured(world), world.m
    c = np.concatenate([direction, np.zeros(m * (world.k - 1))])
    unit = float(np.diag(system.noise).max())
    if unit == 0.0 or (variance == 0.0 and m == 1):
        cov = system.noise  # nothing moves, or every z_t is seen without noise: only the last shock is unknown
    else:
        cov = unit * _riccati(system.gamma, system.noise / unit, c, variance / unit)
    seen = cov @ c
    size = float(c @ seen) + variance
    gain = seen / size if size > 0.0 else np.zeros(m * world.k)
    push = system.gamma @ gain
    return SteadyState(cov, gain, system.gamma - np.outer(push, c), push, system.drift, c, scale)


@inline
def steady_step(z: Floats, following: Floats, closed: Floats, push: Floats, drift: Floats, y: float) -> None:
    """Write the prediction that follows z and its measurement y: (Γ − ΓKC) z + ΓK y + γ₀e₁."""
    for i in range(z.size):
        following[i] = drift[i] + push[i] * y
        for j in range(z.size):
            following[i] += closed[i, j] * z[j]
