"""The latent auto-regressive bandit (Definition 1): its parameters and their checks, its paths, its mean rewards.

z_t = γ₀ + Σ_{j≤k} γ_j z_{t−j} + ξ_t,  ξ ~ N(0, σ_z²);  r_t(a) = μ_a + β_a z_t + ε_t,  ε ~ N(0, sd_a²).
The first k states z_0 … z_{k−1} are drawn from `start`; a policy acts from t = 0.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from larl._check import (
    InvalidValue,
    Matrix,
    Vector,
    array,
    check_fields,
    checked,
    instance,
    known_fields,
    mapping,
    number,
    numbers,
    one_of,
    required,
    spec,
    whole,
)
from larl._latent import Floats, Latent, react_to, trace_path, walk
from larl._start import JointNormal as JointNormal
from larl._start import Normal as Normal
from larl._words import policy_word


class LinearSystem(NamedTuple):
    """Lemma 1: z⃗_t = Γ z⃗_{t−1} + drift + N(0, W) and r_t(a) = μ_a + c_aᵀ z⃗_t + N(0, sd_a²), z⃗_t = (z_t … z_{t−k+1})."""

    gamma: Floats  # (mk, mk) companion matrix
    drift: Floats  # (mk,) γ₀, then zeros
    noise: Floats  # (mk, mk) W
    c: Floats  # (arms, mk) β_a, then zeros
    mu: Floats  # (arms,)
    sd: Floats  # (arms,) of the reward noise


class World:
    """What policies can be compared in: so many arms, and a latent state for kernels."""

    arms: int
    k: int  # how many first steps the world's start decides; 0 where none

    def latent(self) -> Any:
        """The world as kernels take it, before a trial begins: a NamedTuple with `means` and `sd` of every arm."""
        raise TypeError(f"{type(self).__name__} has no latent state: it is not a world")

    def state_of(self, latent: Any) -> Any:  # noqa: ARG002
        """The latent state of the current step in what `latent` made, nan where there is none."""
        return math.nan

    def to_dict(self) -> dict[str, Any]:
        """The world as JSON types."""
        return {"world": type(self).__name__} | asdict(cast(Any, self))


a_world = instance(World, "a world, such as larl.worlds.paper(1) or a larl.LatentAR")


class Linear(World):
    """What `LatentAR` and `LatentVAR` share: a latent state of m components that is a linear Gaussian process."""

    m: int  # components of z
    mu: Vector
    beta: Vector | Matrix
    sigma_r: float
    noise: str
    start: str | Normal | JointNormal
    system: LinearSystem
    long_run_mean: Floats  # (m,) E z_t in the long run
    shock_factor: Floats  # (m, m): the covariance of a shock is factor @ factor.T

    def _check_arms_and_start(self) -> None:
        owner, size = type(self).__name__, self.m * self.k
        if len(self.mu) != len(self.beta):
            raise InvalidValue(owner, "mu", self.mu, f"{len(self.beta)} numbers, one for each arm of beta")
        named = isinstance(self.start, str) and self.start == "stationary"
        if not named and not isinstance(self.start, Normal | JointNormal):
            accepted = f"'stationary', larl.Normal(mean, sd), or larl.JointNormal(mean, cov) of dimension {size}"
            raise InvalidValue(owner, "start", self.start, accepted)
        if isinstance(self.start, JointNormal) and len(self.start.mean) != size:
            accepted = f"{size} numbers, one for each lag" + (" and component" if self.m > 1 else "")
            raise InvalidValue(owner, "start.mean", self.start.mean, accepted)

    @property
    def arms(self) -> int:  # type: ignore[override]
        """The number of arms."""
        return len(self.beta)

    @property
    def loadings(self) -> Floats:
        """β as a matrix: (arms, m)."""
        return np.reshape(np.array(self.beta), (self.arms, self.m))

    @cached_property
    def spectral_radius(self) -> float:
        """The largest modulus of an eigenvalue of Γ: the rate at which the past is forgotten."""
        return float(np.abs(np.linalg.eigvals(self.system.gamma)).max())

    @property
    def sd(self) -> Floats:
        """The standard deviation of each arm's reward noise."""
        length = np.abs(np.hypot.reduce(self.loadings, axis=1))
        return self.sigma_r * (length if self.noise == "scaled" else np.ones(self.arms))

    @cached_property
    def stationary_cov(self) -> Floats:
        """The covariance S of (z_t … z_{t−k+1}) in the long run: S = ΓSΓᵀ + W."""
        from scipy.linalg import solve_discrete_lyapunov

        cov = solve_discrete_lyapunov(self.system.gamma, self.system.noise)
        return np.asarray((cov + cov.T) / 2.0)

    @cached_property
    def start_moments(self) -> tuple[Floats, Floats]:
        """Mean and covariance of (z_0 … z_{k−1})."""
        k, m = self.k, self.m
        if isinstance(self.start, Normal):
            return np.full(m * k, self.start.mean), self.start.sd**2 * np.eye(m * k)
        if isinstance(self.start, JointNormal):
            return np.array(self.start.mean), np.array(self.start.cov)
        # Backwards in time, each lag's covariance is the transpose of what it is forwards.
        forwards = np.transpose(np.reshape(self.stationary_cov, (k, m, k, m)), (0, 3, 2, 1))
        return np.tile(self.long_run_mean, k), np.reshape(forwards, (m * k, m * k))

    def latent(self) -> Latent:
        """The world as kernels take it, before a trial begins."""
        (mean, cov), system, m = self.start_moments, self.system, self.m
        size, vectors = np.linalg.eigh(cov)
        start_factor = np.ascontiguousarray(vectors * np.sqrt(np.maximum(size, 0.0)))
        return Latent(
            system.gamma[:m].copy(), system.drift[:m].copy(), self.shock_factor, system.mu, self.loadings,
             self.sd, mean, start_factor, np.zeros(mean.size), np.zeros(mean.size), np.zeros(m),
            np.zeros(m), np.zeros(self.arms),
        )  # fmt: skip

    def _path(self, horizon: int, seed: int, trial: int) -> Floats:
        path = np.empty((whole(1)("path", "horizon", horizon), self.m))
        seed, trial = (whole(0, 2**63 - 1)("path", *each) for each in (("seed", seed), ("trial", trial)))
        trace_path(self.latent(), seed, trial, path)
        return path

    def means(self, path: Any) -> Floats:
        """Mean rewards μ_a + β_aᵀz along a path of shape (…, m): shape (…, arms)."""
        z, result = array(type(self).__name__, "path", path), np.array(self.mu)
        if z.shape[-1:] != (self.m,):
            raise InvalidValue(type(self).__name__, "path", z.shape, f"an array of shape (…, {self.m})")
        for i in range(self.m):  # in the order of the kernels, so that they are equal to the last bit
            result = result + np.multiply.outer(z[..., i], self.loadings[:, i])
        return result

    def optimal_arm(self, path: Any) -> NDArray[np.int64]:
        """The arm with the largest mean (the lowest such arm) along a path."""
        return np.argmax(self.means(path), axis=-1)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], owner: str = "") -> Self:
        """The world that `to_dict` wrote (fields left out take their defaults)."""
        owner = owner or cls.__name__
        values = mapping(owner, "fields", values)
        if values.get("world", cls.__name__) != cls.__name__:
            accepted = f"'{cls.__name__}'; larl.variants.from_dict reads every kind"
            raise InvalidValue(owner, "world", values["world"], accepted)
        given = known_fields(cls, {name: value for name, value in values.items() if name != "world"}, owner)
        start = given.get("start")
        if isinstance(start, Mapping):
            kind = JointNormal if "cov" in start else Normal
            given["start"] = kind(**known_fields(kind, start, f"{owner}.start"))
        return cls(**given)


@spec
class LatentAR(Linear):
    """The latent AR(k) bandit. `noise="scaled"` (the paper's) gives arm a the sd |β_a|σ_r, `"common"` gives all σ_r."""

    gammas: Vector = required(numbers())
    beta: Vector = required(numbers(2))
    mu: Vector = required(numbers(2))
    gamma0: float = checked(number(), 0.0)
    sigma_z: float = checked(number(0.0), 1.0)
    sigma_r: float = checked(number(0.0), 1.0)
    noise: str = checked(one_of("scaled", "common"), "scaled")
    start: str | Normal | JointNormal = "stationary"
    m = 1

    def __post_init__(self) -> None:
        check_fields(self)
        self._check_arms_and_start()
        if not self.spectral_radius < 1.0:
            accepted = (
                f"coefficients of a stable AR process: spectral radius < 1, here {self.spectral_radius:.4g} "
                f"(|Σγ| < 1 is not enough; here Σγ = {sum(self.gammas):.4g})"
            )
            raise InvalidValue("LatentAR", "gammas", self.gammas, accepted)

    @property
    def k(self) -> int:  # type: ignore[override]
        """The order of the latent process."""
        return len(self.gammas)

    @cached_property
    def system(self) -> LinearSystem:  # type: ignore[override]
        """The world as a linear dynamical system (Lemma 1)."""
        gamma = np.eye(self.k, k=-1)
        gamma[0] = self.gammas
        unit = np.eye(self.k)[0]
        noise = self.sigma_z**2 * np.outer(unit, unit)
        return LinearSystem(gamma, self.gamma0 * unit, noise, np.outer(self.beta, unit), np.array(self.mu), self.sd)

    @property
    def stationary_mean(self) -> float:
        """E z_t = γ₀ / (1 − Σγ)."""
        return self.gamma0 / (1.0 - sum(self.gammas))

    @property
    def long_run_mean(self) -> Floats:  # type: ignore[override]
        """E z_t in the long run as a vector of one."""
        return np.array([self.stationary_mean])

    @property
    def shock_factor(self) -> Floats:  # type: ignore[override]
        """σ_z as a matrix."""
        return np.array([[self.sigma_z]])

    @property
    def stationary_var(self) -> float:
        """Var z_t in the long run."""
        return float(self.stationary_cov[0, 0])

    def path(self, horizon: int, seed: int = 0, trial: int = 0) -> Floats:
        """z_0 … z_{horizon−1} of one trial: the very path on which `compare` scores its policies."""
        return self._path(horizon, seed, trial)[:, 0]

    def state_of(self, latent: Any) -> float:
        """z_t."""
        return float(latent.recent[0])

    def means(self, path: Any) -> Floats:
        """Mean rewards μ_a + β_a z along a path: shape (…, arms)."""
        return super().means(array("LatentAR", "path", path)[..., None])


class Walk:
    """One trial of a world, step by step: the same path and luck as the engine's trial of that seed and number."""

    def __init__(self, world: World, seed: int, trial: int) -> None:
        seed, trial = (whole(0, 2**63 - 1)("Walk", *each) for each in (("seed", seed), ("trial", trial)))
        world = a_world("Walk", "world", world)
        self._world, self._latent, self._seed, self._trial = world, world.latent(), seed, trial
        self.time = -1
        self.advance()

    def advance(self, arm: int | None = None) -> None:
        """Go to the next step, after `arm` was played."""
        if arm is not None:
            react_to(self._latent, self._known(arm))
        self.time += 1
        self._luck = walk(self._latent, self._seed, self._trial, self.time)

    @property
    def word(self) -> int:
        """The random word that the engine hands a policy at this step."""
        return int(policy_word(self._seed, self._trial, self.time))

    @property
    def z(self) -> Any:
        """The latent state of this step: a number, (m,) numbers where it is a vector, nan in a world that has none."""
        return self._world.state_of(self._latent)

    @property
    def means(self) -> Floats:
        """The mean reward of each arm at this step."""
        return self._latent.means.copy()

    @property
    def context(self) -> Floats:
        """What the world shows before this step: nothing, in most."""
        return getattr(self._latent, "context", np.zeros(0)).copy()

    def reward(self, arm: int) -> float:
        """The reward that `arm` gives at this step."""
        arm = self._known(arm)
        return float(self._latent.means[arm] + self._latent.sd[arm] * self._luck)

    def _known(self, arm: int) -> int:
        return int(whole(0, self._latent.means.size - 1)("Walk", "arm", arm))
