"""Base classes of all worlds, and of the linear Gaussian ones (`LatentAR`, `LatentVAR`)."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from larl._core.html import html_fields
from larl._core.validation import (
    InvalidValue,
    Matrix,
    Vector,
    array,
    instance,
    integer,
    known_fields,
    mapping,
)
from larl.worlds.kernels import Floats, Latent, trace_path
from larl.worlds.start import JointNormal as JointNormal
from larl.worlds.start import Normal as Normal


class LinearSystem(NamedTuple):
    """A world as a linear dynamical system (Lemma 1).

    z⃗_t = Γ z⃗_{t−1} + drift + N(0, W) and r_t(a) = μ_a + c_aᵀ z⃗_t + N(0, sd_a²), with z⃗_t = (z_t … z_{t−k+1}).

    Parameters
    ----------
    gamma : array, (mk, mk)
        Γ, the companion matrix.
    drift : array, (mk,)
        γ₀, then zeros.
    noise : array, (mk, mk)
        W, the covariance of the shocks.
    c : array, (arms, mk)
        β_a, then zeros.
    mu : array, (arms,)
        μ_a.
    sd : array, (arms,)
        Standard deviation of each arm's reward noise.

    Examples
    --------
    >>> import larl
    >>> larl.LatentAR(gammas=(0.5, 0.2), beta=(1, 2), mu=(0, 0)).system.gamma
    array([[0.5, 0.2],
           [1. , 0. ]])
    """

    gamma: Floats
    drift: Floats
    noise: Floats
    c: Floats
    mu: Floats
    sd: Floats


class World:
    """An environment in which policies are compared. A subclass sets `arms` and `k` and implements `latent`.

    `arms` is the number of arms. `k` is the number of first steps whose state is drawn from the start distribution.
    """

    arms: int
    k: int

    def latent(self) -> Any:
        """Return the State of the world before a trial: a NamedTuple for kernels, with the `means` of the arms."""
        raise TypeError(f"{type(self).__name__} must define latent()")

    def state_of(self, latent: Any) -> Any:  # noqa: ARG002
        """Return the latent state of the current step; nan if the world has none. `latent` comes from `latent()`."""
        return math.nan

    def _repr_html_(self) -> str:
        return html_fields(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the world as JSON types. `larl.worlds.from_dict` reads them."""
        return {"world": type(self).__name__} | asdict(cast(Any, self))


validate_world = instance(World, "a world, such as larl.worlds.paper(1) or a larl.LatentAR")


class LinearGaussianWorld(World):
    """Base class of `LatentAR` and `LatentVAR`: the latent state z_t of m components is a linear Gaussian process."""

    m: int
    mu: Vector
    beta: Vector | Matrix
    sigma_r: float
    noise: str
    start: str | Normal | JointNormal
    system: LinearSystem
    long_run_mean: Floats  # (m,) E z_t in the stationary distribution
    shock_factor: Floats  # (m, m): the covariance of a shock is factor @ factor.T

    def _check_arms_and_start(self) -> None:
        """Raise InvalidValue if `mu` and `beta` differ in length or `start` does not fit the process."""
        owner, size = type(self).__name__, self.m * self.k
        if len(self.mu) != len(self.beta):
            raise InvalidValue(owner, "mu", self.mu, f"{len(self.beta)} numbers, one for each arm of beta")
        is_stationary = isinstance(self.start, str) and self.start == "stationary"
        if not is_stationary and not isinstance(self.start, Normal | JointNormal):
            accepted = f"'stationary', larl.Normal(mean, sd), or larl.JointNormal(mean, cov) of dimension {size}"
            raise InvalidValue(owner, "start", self.start, accepted)
        if isinstance(self.start, JointNormal) and len(self.start.mean) != size:
            accepted = f"{size} numbers, one for each lag" + (" and component" if self.m > 1 else "")
            raise InvalidValue(owner, "start.mean", self.start.mean, accepted)

    @property
    def arms(self) -> int:  # type: ignore[override]
        """Number of arms."""
        return len(self.beta)

    @property
    def loadings(self) -> Floats:
        """β as a matrix, (arms, m)."""
        return np.reshape(np.array(self.beta), (self.arms, self.m))

    @cached_property
    def spectral_radius(self) -> float:
        """Largest modulus of an eigenvalue of Γ. The influence of z_{t−j} on z_t decays like its jth power."""
        return float(np.abs(np.linalg.eigvals(self.system.gamma)).max())

    @property
    def sd(self) -> Floats:
        """Standard deviation of each arm's reward noise, (arms,)."""
        length = np.abs(np.hypot.reduce(self.loadings, axis=1))
        return self.sigma_r * (length if self.noise == "scaled" else np.ones(self.arms))

    @cached_property
    def stationary_cov(self) -> Floats:
        """Stationary covariance S of (z_t … z_{t−k+1}): S = ΓSΓᵀ + W."""
        from scipy.linalg import solve_discrete_lyapunov

        cov = solve_discrete_lyapunov(self.system.gamma, self.system.noise)
        return np.asarray((cov + cov.T) / 2.0)

    @cached_property
    def start_moments(self) -> tuple[Floats, Floats]:
        """Mean and covariance of the start (z_0 … z_{k−1})."""
        k, m = self.k, self.m
        if isinstance(self.start, Normal):
            return np.full(m * k, self.start.mean), self.start.sd**2 * np.eye(m * k)
        if isinstance(self.start, JointNormal):
            return np.array(self.start.mean), np.array(self.start.cov)
        # `stationary_cov` has the latest state first. In reversed time each lag's covariance is transposed.
        forwards = np.transpose(np.reshape(self.stationary_cov, (k, m, k, m)), (0, 3, 2, 1))
        return np.tile(self.long_run_mean, k), np.reshape(forwards, (m * k, m * k))

    def latent(self) -> Latent:
        """Return the State of the world before a trial: its parameters and arrays, for kernels."""
        (mean, cov), system, m = self.start_moments, self.system, self.m
        eigenvalues, vectors = np.linalg.eigh(cov)
        return Latent(
            gammas=system.gamma[:m].copy(),
            gamma0=system.drift[:m].copy(),
            factor=self.shock_factor,
            mu=system.mu,
            beta=self.loadings,
            sd=self.sd,
            start_mean=mean,
            start_factor=np.ascontiguousarray(vectors * np.sqrt(np.maximum(eigenvalues, 0.0))),
            first=np.zeros(mean.size),
            recent=np.zeros(mean.size),
            shock=np.zeros(m),
            next=np.zeros(m),
            means=np.zeros(self.arms),
        )

    def _path(self, horizon: int, seed: int, trial: int) -> Floats:
        """Return z_0 … z_{horizon−1} of one trial, (horizon, m)."""
        path = np.empty((integer(1)("path", "horizon", horizon), self.m))
        seed, trial = (integer(0, 2**63 - 1)("path", *each) for each in (("seed", seed), ("trial", trial)))
        trace_path(self.latent(), seed, trial, path)
        return path

    def means(self, path: Any) -> Floats:
        """Return the mean rewards μ_a + β_aᵀz, (…, arms), along a path of shape (…, m)."""
        z, result = array(type(self).__name__, "path", path), np.array(self.mu)
        if z.shape[-1:] != (self.m,):
            raise InvalidValue(type(self).__name__, "path", z.shape, f"an array of shape (…, {self.m})")
        for i in range(self.m):  # in the order of the kernels, so that the results are bit-identical
            result = result + np.multiply.outer(z[..., i], self.loadings[:, i])
        return result

    def optimal_arm(self, path: Any) -> NDArray[np.int64]:
        """Return the arm with the largest mean at each point of a path; of equal arms the lowest."""
        return np.argmax(self.means(path), axis=-1)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], owner: str = "") -> Self:
        """Return the world that `to_dict` wrote. Fields left out have their defaults."""
        return cls(**read_process_fields(cls, values, owner or cls.__name__))


def read_process_fields(world_class: type[World], values: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Return the fields of a world with a latent AR or VAR process, from what `to_dict` wrote."""
    values, name = mapping(owner, "fields", values), world_class.__name__
    if values.get("world", name) != name:
        raise InvalidValue(owner, "world", values["world"], f"'{name}'; larl.worlds.from_dict reads every kind")
    given = known_fields(world_class, {key: value for key, value in values.items() if key != "world"}, owner)
    start = given.get("start")
    if isinstance(start, Mapping):
        kind = JointNormal if "cov" in start else Normal
        given["start"] = kind(**known_fields(kind, start, f"{owner}.start"))
    return given
