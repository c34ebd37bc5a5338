"""The latent autoregressive bandit with a vector latent state."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl._core.validation import (
    InvalidValue,
    Matrix,
    Vector,
    check_fields,
    checked,
    covariance,
    matrix,
    number,
    numbers,
    one_of,
    required,
    spec,
)
from larl.worlds.base import LinearGaussianWorld, LinearSystem
from larl.worlds.kernels import Floats
from larl.worlds.start import JointNormal, Normal


def matrices(owner: str, name: str, value: Any) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Validate one or more square matrices of equal size; return them as tuples."""
    if isinstance(value, str | bytes | set | Mapping) or not isinstance(value, Iterable):
        raise InvalidValue(owner, name, value, "1 or more matrices, each m rows of m finite numbers")
    given = list(value)
    if not given:
        raise InvalidValue(owner, name, (), "1 or more matrices, each m rows of m finite numbers")
    m = len(matrix()(owner, f"{name}[0]", given[0]))
    return tuple(matrix(m, m)(owner, f"{name}[{j}]", each) for j, each in enumerate(given))


@spec
class LatentVAR(LinearGaussianWorld):
    """The latent VAR(k) bandit: the latent state is a vector of m components.

    z_t = γ₀ + Σ_{j≤k} G_j z_{t−j} + ξ_t in R^m, ξ_t ~ N(0, Σ_z); r_t(a) = μ_a + β_aᵀz_t + ε_t, ε_t ~ N(0, sd_a²).
    With m = 1 it equals the `LatentAR` with the same parameters, draw for draw.

    Parameters
    ----------
    gammas : sequence of k matrices, each m × m
        Coefficients G_1 … G_k. The process must be stable: the companion matrix has spectral radius < 1.
    beta : matrix, arms × m
        Effect of each component of z on each arm's reward, in units of the reward per unit of z.
    mu : sequence of float, one per arm
        Mean reward of each arm at z = 0.
    gamma0 : sequence of m floats, optional
        Intercept γ₀ of the latent process; zeros by default.
    cov_z : matrix, m × m, optional
        Covariance Σ_z of the shocks; the identity by default.
    sigma_r : float, >= 0, default 1.0
        Scale of the reward noise.
    noise : {"scaled", "common"}, default "scaled"
        ``"scaled"``: sd_a = ‖β_a‖ σ_r with the Euclidean norm. ``"common"``: sd_a = σ_r.
    start : "stationary", Normal or JointNormal, default "stationary"
        Distribution of z_0 … z_{k−1}. A `Normal` holds for every component. A `JointNormal` has mk numbers: the
        components of z_0, then those of z_1, ….

    Raises
    ------
    InvalidValue
        If a value is not accepted or the process is not stable.

    Examples
    --------
    >>> import larl
    >>> world = larl.LatentVAR(gammas=[[[0.9, 0.0], [0.0, 0.5]]], beta=[[1, 0], [0, 1]], mu=(0, 0))
    >>> world.k, world.m, world.arms
    (1, 2, 2)
    >>> world.path(2, seed=1).round(2)
    array([[ 0.57,  0.82],
           [ 2.31, -1.34]])
    """

    gammas: Sequence[Matrix] | NDArray[np.floating[Any] | np.integer[Any]] = required(matrices)
    beta: Matrix = required(matrix())
    mu: Vector = required(numbers(2))
    gamma0: Vector | None = None
    cov_z: Matrix | None = None
    sigma_r: float = checked(number(0.0), 1.0)
    noise: str = checked(one_of("scaled", "common"), "scaled")
    start: str | Normal | JointNormal = "stationary"

    def __post_init__(self) -> None:
        check_fields(self)
        m = self.m
        if len(self.beta) < 2 or len(self.beta[0]) != m:
            accepted = f"2 or more rows, one for each arm, of {m} numbers, one for each component of z"
            raise InvalidValue("LatentVAR", "beta", self.beta, accepted)
        gamma0 = numbers()("LatentVAR", "gamma0", np.zeros(m) if self.gamma0 is None else self.gamma0)
        if len(gamma0) != m:
            raise InvalidValue("LatentVAR", "gamma0", gamma0, f"{m} numbers, one for each component of z")
        cov = covariance(m)("LatentVAR", "cov_z", np.eye(m) if self.cov_z is None else self.cov_z)
        object.__setattr__(self, "gamma0", gamma0)
        object.__setattr__(self, "cov_z", cov)
        self._check_arms_and_start()
        if not self.spectral_radius < 1.0:
            accepted = (
                f"matrices of a stable VAR process: spectral radius of their companion matrix < 1, "
                f"here {self.spectral_radius:.4g}"
            )
            raise InvalidValue("LatentVAR", "gammas", self.gammas, accepted)

    @property
    def k(self) -> int:  # type: ignore[override]
        """Order of the latent process."""
        return len(self.gammas)

    @property
    def m(self) -> int:  # type: ignore[override]
        """Number of components of the latent state."""
        return len(self.gammas[0])

    @cached_property
    def system(self) -> LinearSystem:  # type: ignore[override]
        """The world as a linear dynamical system in companion form, of size mk (Lemma 1)."""
        m, size = self.m, self.m * self.k
        gamma = np.eye(size, k=-m)
        gamma[:m] = np.concatenate(list(np.array(self.gammas)), axis=1)
        drift, noise, c = np.zeros(size), np.zeros((size, size)), np.zeros((self.arms, size))
        drift[:m], noise[:m, :m], c[:, :m] = np.array(self.gamma0), np.array(self.cov_z), self.loadings
        return LinearSystem(gamma=gamma, drift=drift, noise=noise, c=c, mu=np.array(self.mu), sd=self.sd)

    @cached_property
    def stationary_mean(self) -> Floats:
        """E z_t in the stationary distribution, (m,): (I − ΣG_j)⁻¹γ₀."""
        total = np.array(
            [[sum(entries) for entries in zip(*rows, strict=True)] for rows in zip(*self.gammas, strict=True)]
        )
        return np.asarray(np.linalg.solve(np.eye(self.m) - total, np.array(self.gamma0)))

    @property
    def stationary_var(self) -> Floats:
        """Covariance of z_t in the stationary distribution, (m, m)."""
        return self.stationary_cov[: self.m, : self.m]

    @property
    def long_run_mean(self) -> Floats:  # type: ignore[override]
        """E z_t in the stationary distribution, (m,)."""
        return self.stationary_mean

    @property
    def shock_factor(self) -> Floats:  # type: ignore[override]
        """The symmetric square root of cov_z, (m, m)."""
        eigenvalues, vectors = np.linalg.eigh(np.array(self.cov_z))
        return np.ascontiguousarray((vectors * np.sqrt(np.maximum(eigenvalues, 0.0))) @ vectors.T)

    def path(self, horizon: int, seed: int = 0, trial: int = 0) -> Floats:
        """Return z_0 … z_{horizon−1} of one trial, (horizon, m): the path that `compare` uses for it."""
        return self._path(horizon, seed, trial)

    def state_of(self, latent: Any) -> Floats:
        """Return z_t, (m,)."""
        return np.array(latent.recent[: self.m])
