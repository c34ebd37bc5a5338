"""The latent autoregressive bandit with a scalar latent state (Definition 1)."""

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
    """The latent AR(k) bandit (Trella et al. 2025, Definition 1).

    z_t = γ₀ + Σ_{j≤k} γ_j z_{t−j} + ξ_t, ξ_t ~ N(0, σ_z²); r_t(a) = μ_a + β_a z_t + ε_t, ε_t ~ N(0, sd_a²).
    The first k states z_0 … z_{k−1} are drawn from `start`; a policy acts from t = 0.

    Parameters
    ----------
    gammas : sequence of k floats
        Coefficients γ_1 … γ_k. The process must be stable: the companion matrix has spectral radius < 1.
    beta : sequence of float, one per arm (2 or more)
        Effect of z on each arm's reward, in units of the reward per unit of z.
    mu : sequence of float, one per arm
        Mean reward of each arm at z = 0.
    gamma0 : float, default 0.0
        Intercept γ₀ of the latent process.
    sigma_z : float, >= 0, default 1.0
        Standard deviation of the shocks ξ_t.
    sigma_r : float, >= 0, default 1.0
        Scale of the reward noise.
    noise : {"scaled", "common"}, default "scaled"
        ``"scaled"`` (as in the paper): sd_a = |β_a| σ_r. ``"common"``: sd_a = σ_r.
    start : "stationary", Normal or JointNormal, default "stationary"
        Distribution of z_0 … z_{k−1}.

    Raises
    ------
    InvalidValue
        If a value is not accepted or the process is not stable.

    Examples
    --------
    >>> import larl
    >>> world = larl.LatentAR(gammas=(0.9,), beta=(-1, 1), mu=(0, 0))
    >>> world.k, world.arms, round(world.stationary_var, 2)
    (1, 2, 5.26)
    >>> world.path(3, seed=1).round(2)
    array([1.63, 3.26, 3.66])
    """

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
        """Order of the latent process."""
        return len(self.gammas)

    @cached_property
    def system(self) -> LinearSystem:  # type: ignore[override]
        """The world as a linear dynamical system (Lemma 1)."""
        gamma = np.eye(self.k, k=-1)
        gamma[0] = self.gammas
        unit = np.eye(self.k)[0]
        noise = self.sigma_z**2 * np.outer(unit, unit)
        return LinearSystem(
            gamma=gamma,
            drift=self.gamma0 * unit,
            noise=noise,
            c=np.outer(self.beta, unit),
            mu=np.array(self.mu),
            sd=self.sd,
        )

    @property
    def stationary_mean(self) -> float:
        """E z_t in the stationary distribution: γ₀ / (1 − Σγ)."""
        return self.gamma0 / (1.0 - sum(self.gammas))

    @property
    def long_run_mean(self) -> Floats:  # type: ignore[override]
        """E z_t in the stationary distribution, (1,)."""
        return np.array([self.stationary_mean])

    @property
    def shock_factor(self) -> Floats:  # type: ignore[override]
        """σ_z as a matrix, (1, 1)."""
        return np.array([[self.sigma_z]])

    @property
    def stationary_var(self) -> float:
        """Var z_t in the stationary distribution."""
        return float(self.stationary_cov[0, 0])

    def path(self, horizon: int, seed: int = 0, trial: int = 0) -> Floats:
        """Return z_0 … z_{horizon−1} of one trial, the path that `compare` uses for the same seed and trial."""
        return self._path(horizon, seed, trial)[:, 0]

    def state_of(self, latent: Any) -> float:
        """Return z_t."""
        return float(latent.recent[0])

    def means(self, path: Any) -> Floats:
        """Return the mean rewards μ_a + β_a z along a path, (…, arms)."""
        return super().means(array("LatentAR", "path", path)[..., None])
