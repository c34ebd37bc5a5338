"""The latent auto-regressive bandit (Definition 1), with a scalar latent state.

z_t = γ₀ + Σ_{j≤k} γ_j z_{t−j} + ξ_t,  ξ ~ N(0, σ_z²);  r_t(a) = μ_a + β_a z_t + ε_t,  ε ~ N(0, sd_a²).
The first k states z_0 … z_{k−1} are drawn from `start`; a policy acts from t = 0.
"""

from functools import cached_property
from typing import Any

import numpy as np

from larl._core.validation import (
    InvalidValue,
    Vector,
    array,
    check_fields,
    checked,
    number,
    numbers,
    one_of,
    required,
    spec,
)
from larl.worlds.base import LinearGaussianWorld, LinearSystem
from larl.worlds.kernels import Floats
from larl.worlds.start import JointNormal, Normal


@spec
class LatentAR(LinearGaussianWorld):
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
