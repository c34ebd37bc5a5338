"""The steady-state Kalman filter: the Riccati equation, its gain, and one step of the filter."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.validation import InvalidValue
from larl.statespace.kalman import validate_linear_world
from larl.worlds.base import LinearGaussianWorld

Floats = NDArray[np.float64]


class CommonMeasurement(NamedTuple):
    """The measurement y_t = (r_t − μ_a)/b_a = uᵀz_t + N(0, V) that every arm gives, with β_a = b_a u."""

    direction: Floats  # (m,) u, of length 1; 1 if m = 1
    scale: Floats  # (arms,) b; β if m = 1
    variance: float  # V


def common_measurement(world: LinearGaussianWorld) -> CommonMeasurement | None:
    """Return the measurement that all arms share; None if it depends on the arm."""
    beta = validate_linear_world("common_measurement", "world", world).loadings
    length = np.abs(np.hypot.reduce(beta, axis=1))
    if length.min() == 0.0:
        return None
    direction = beta[int(np.argmax(length))] / length.max()
    direction = direction * np.sign(direction[np.flatnonzero(direction)[0]])
    scale = beta @ direction
    if np.abs(beta - np.outer(scale, direction)).max() > 1e-12 * length.max():
        return None
    if world.noise == "scaled":
        return CommonMeasurement(direction, scale, world.sigma_r**2)
    has_equal_lengths = np.ptp(length) <= 1e-12 * length.max()
    return CommonMeasurement(direction, scale, float((world.sigma_r / length[0]) ** 2)) if has_equal_lengths else None


def _require_common_measurement(world: LinearGaussianWorld) -> CommonMeasurement:
    """Return the measurement that all arms share; raise InvalidValue if it depends on the arm."""
    measurement = common_measurement(world)
    if measurement is None:
        accepted = "no β of 0, and noise='scaled' or all |β| equal: else the steady state depends on the arms played"
        if world.m > 1:
            accepted = f"all β on one line through 0, {accepted}"
        raise InvalidValue("steady_state", "world", world, accepted)
    return measurement


def measurement_variance(world: LinearGaussianWorld) -> float:
    """Return V, the variance of y_t = (r_t − μ_a)/b_a given z_t. A steady state exists only if all arms share it."""
    return _require_common_measurement(world).variance


class SteadyState(NamedTuple):
    """The steady-state filter z̃_{t+1} = (Γ − ΓKC) z̃_t + ΓK y_t + drift, with y_t = (r_t − μ_a)/b_a.

    For a LatentAR C = e₁ᵀ and b = β.
    """

    cov: Floats  # (mk, mk) P, the covariance of z⃗_t given the rewards before t
    gain: Floats  # (mk,) K = PCᵀ(CPCᵀ + V)⁻¹, the Kalman gain
    closed_loop: Floats  # (mk, mk) Γ − ΓKC, the weight of the last prediction
    predictor_gain: Floats  # (mk,) ΓK, the weight of the measurement
    drift: Floats  # (mk,) γ₀, then zeros
    c: Floats  # (mk,) C: u, then zeros
    scale: Floats  # (arms,) b


def _solve_riccati(gamma: Floats, noise: Floats, c: Floats, variance: float) -> Floats:
    """Return P. If scipy's solver fails or is inaccurate, as it may be without noise, iterate the recursion."""
    from scipy.linalg import solve_discrete_are

    def riccati_step(cov: Floats) -> Floats:
        cov_c = cov @ c
        innovation_variance = float(c @ cov_c) + variance
        conditioned = cov - np.outer(cov_c, cov_c) / innovation_variance if innovation_variance > 0.0 else cov
        following: Floats = gamma @ conditioned @ gamma.T + noise
        return following

    try:
        cov = np.asarray(solve_discrete_are(gamma.T, c[:, None], noise, np.array([[variance]])))
        if np.allclose(cov, riccati_step(cov), rtol=1e-8, atol=1e-10 * np.abs(cov).max()):
            return (cov + cov.T) / 2.0
    except (ValueError, np.linalg.LinAlgError):
        pass
    cov = noise
    for _ in range(1_000_000):
        previous, cov = cov, riccati_step(cov)
        if np.allclose(previous, cov, rtol=1e-13, atol=0.0):
            break
    return cov


def steady_state(world: LinearGaussianWorld) -> SteadyState:
    """Return the steady-state filter of a world (Appendix C, with the intercept γ₀ that the paper leaves out).

    P solves P = ΓPΓᵀ + W − ΓPCᵀ(CPCᵀ + V)⁻¹CPΓᵀ.

    Parameters
    ----------
    world : LatentAR or LatentVAR
        A world in which every arm measures the same combination of z equally well.

    Returns
    -------
    SteadyState

    Raises
    ------
    InvalidValue
        If the steady state depends on the arms played.

    Examples
    --------
    >>> import larl
    >>> from larl.statespace.steady_state import steady_state
    >>> steady = steady_state(larl.worlds.paper(1))
    >>> steady.cov.round(3), steady.gain.round(3)
    (array([[1.484]]), array([0.597]))
    """
    return _steady_state(validate_linear_world("steady_state", "world", world))


@lru_cache(maxsize=256)
def _steady_state(world: LinearGaussianWorld) -> SteadyState:
    """Compute `steady_state` once per world."""
    system, (direction, scale, variance), m = world.system, _require_common_measurement(world), world.m
    c = np.concatenate([direction, np.zeros(m * (world.k - 1))])
    shock_variance = float(np.diag(system.noise).max())
    if shock_variance == 0.0 or (variance == 0.0 and m == 1):
        cov = system.noise  # there are no shocks, or z is observed without noise: only the last shock is unknown
    else:
        cov = shock_variance * _solve_riccati(system.gamma, system.noise / shock_variance, c, variance / shock_variance)
    cov_c = cov @ c
    innovation_variance = float(c @ cov_c) + variance
    gain = cov_c / innovation_variance if innovation_variance > 0.0 else np.zeros(m * world.k)
    predictor_gain = system.gamma @ gain
    return SteadyState(
        cov=cov,
        gain=gain,
        closed_loop=system.gamma - np.outer(predictor_gain, c),
        predictor_gain=predictor_gain,
        drift=system.drift,
        c=c,
        scale=scale,
    )


@inline
def steady_state_step(
    z: Floats, next_z: Floats, closed_loop: Floats, predictor_gain: Floats, drift: Floats, y: float
) -> None:
    """Set `next_z` to the prediction after z and its measurement y: (Γ − ΓKC) z + ΓK y + drift."""
    for i in range(z.size):
        next_z[i] = drift[i] + predictor_gain[i] * y
        for j in range(z.size):
            next_z[i] += closed_loop[i, j] * z[j]
