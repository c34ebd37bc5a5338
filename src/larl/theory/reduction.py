"""Lemma 2: rewards as a linear function of past actions and rewards, from the steady-state Kalman filter."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from larl._core.validation import InvalidValue, instance, integer, number
from larl.statespace.kalman import validate_linear_world
from larl.statespace.steady_state import steady_state
from larl.worlds.base import LinearGaussianWorld
from larl.worlds.latent_ar import LatentAR

Floats = NDArray[np.float64]


def validate_scalar_world(function: str, world: object) -> LatentAR:
    """Return `world` if it is a LatentAR; raise InvalidValue otherwise."""
    accepted = "a larl.LatentAR: the paper's bounds are for a scalar latent state"
    scalar_world: LatentAR = instance(LatentAR, accepted)(function, "world", world)
    return scalar_world


def validate_bound_arguments(function: str, s: object, delta: object, horizon: object) -> tuple[int, float, int]:
    """Return s, delta and horizon if they are accepted; raise InvalidValue otherwise."""
    return (
        integer(0)(function, "s", s),
        number(above=0.0, below=1.0)(function, "delta", delta),
        integer(1)(function, "horizon", horizon),
    )


def reward_parameters(world: LinearGaussianWorld, s: int) -> Floats:
    """Return θ_a of Lemma 2 for every arm.

    The context is Φ_t(s) = [R_t, A_t, 1]: rewards, actions and an intercept, oldest lag first. With
    g_j = C(Γ−ΓKC)^j ΓK, the entry of R for lag j and arm b is β_a g_j/β_b, that of A is −β_a g_j μ_b/β_b, and the
    intercept is μ_a + β_a C Σ_{j<s} (Γ−ΓKC)^j drift. For a LatentAR C = e₁ᵀ. For a LatentVAR with β_a = b_a u,
    C = (uᵀ, 0 …) and b replaces β.

    Parameters
    ----------
    world : LatentAR or LatentVAR
        A world whose filter has a steady state.
    s : int, >= 0
        Number of past steps in the context.

    Returns
    -------
    array, (arms, 2·s·arms + 1)

    Raises
    ------
    InvalidValue
        If the world's filter has no steady state.

    Examples
    --------
    >>> import larl
    >>> larl.theory.reward_parameters(larl.worlds.paper(1), s=1).round(3)
    array([[ 0.538, -0.538, -0.   ,  0.   ,  0.   ],
           [-0.538,  0.538,  0.   , -0.   ,  0.   ]])
    """
    world = validate_linear_world("reward_parameters", "world", world)
    return _reward_parameters(world, integer(0)("reward_parameters", "s", s)).copy()


@lru_cache(maxsize=256)
def _reward_parameters(world: LinearGaussianWorld, s: int) -> Floats:
    """Compute `reward_parameters` once per world and s."""
    steady = steady_state(world)
    beta, mu = steady.scale, world.system.mu
    power, weights, drift = steady.c, np.empty(s), 0.0
    for j in range(s):
        weights[j] = power @ steady.predictor_gain
        drift += float(power @ steady.drift)
        power = power @ steady.closed_loop
    rewards = np.kron(weights[::-1], 1.0 / beta)
    actions = np.kron(weights[::-1], -mu / beta)
    return np.concatenate([np.outer(beta, rewards), np.outer(beta, actions), (mu + beta * drift)[:, None]], axis=1)


def bias_row(world: LinearGaussianWorld, s: int) -> Floats:
    """Return C(Γ−ΓKC)^s. The bias of Lemma 2 is b_t(a, s) = β_a · ``bias_row`` · z̃_{t−s}.

    Parameters
    ----------
    world : LatentAR or LatentVAR
        A world whose filter has a steady state. For a LatentVAR b_a replaces β_a.
    s : int, >= 0
        Number of past steps in the context.

    Returns
    -------
    array, (m·k,)

    Examples
    --------
    >>> import larl
    >>> larl.theory.bias_row(larl.worlds.paper(1), s=2).round(3)
    array([0.131])
    """
    steady, s = steady_state(validate_linear_world("bias_row", "world", world)), integer(0)("bias_row", "s", s)
    row: Floats = steady.c @ np.linalg.matrix_power(steady.closed_loop, s)
    return row


def noise_scale(world: LinearGaussianWorld) -> Floats:
    """Return R_a = √(β_a² CPCᵀ + sd_a²), the standard deviation of r_t(a) around its steady-state prediction.

    Parameters
    ----------
    world : LatentAR or LatentVAR
        A world whose filter has a steady state.

    Returns
    -------
    array, (arms,)
        In units of the reward.

    Examples
    --------
    >>> import larl
    >>> larl.theory.noise_scale(larl.worlds.paper(1)).round(3)
    array([1.576, 1.576])
    """
    steady = steady_state(validate_linear_world("noise_scale", "world", world))
    result: Floats = np.sqrt(np.square(steady.scale) * float(steady.c @ steady.cov @ steady.c) + world.sd**2)
    return result


def steady_start(world: LatentAR) -> LatentAR:
    """Return the same world with the start that makes the steady-state filter exact from the first step.

    z⃗_0 ~ N(stationary mean, P) is the distribution of the state given an infinite past. The paper's proofs assume it.

    Parameters
    ----------
    world : LatentAR
        A world whose filter has a steady state.

    Returns
    -------
    LatentAR

    Examples
    --------
    >>> import larl
    >>> world = larl.theory.steady_start(larl.worlds.paper(1))
    >>> round(world.start.cov[0][0], 3)
    1.484
    """
    k, mean = validate_scalar_world("steady_start", world).k, world.stationary_mean
    maps = [np.eye(k, 2 * k - 1)]  # z⃗_t as a linear map of (z_0 … z_{1−k}, ξ_1 … ξ_{k−1})
    for t in range(1, k):
        shock = np.zeros((k, 2 * k - 1))
        shock[0, k - 1 + t] = world.sigma_z
        maps.append(world.system.gamma @ maps[-1] + shock)
    rows = np.array([each[0] for each in maps])
    sources = np.eye(2 * k - 1)
    sources[:k, :k] = steady_state(world).cov
    cov = rows @ sources @ rows.T
    values = world.to_dict() | {"start": {"mean": [mean] * k, "cov": ((cov + cov.T) / 2.0).tolist()}}
    return LatentAR.from_dict(values)


def require_steady_start(function: str, world: LatentAR) -> LatentAR:
    """Return the world if it starts in the steady state of its filter; raise InvalidValue otherwise."""
    expected = steady_start(world).start_moments
    if not all(np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in zip(world.start_moments, expected, strict=True)):
        accepted = "larl.theory.steady_start(world): from another start predictions have other errors at first"
        raise InvalidValue(function, "world.start", world.start, accepted)
    return world
