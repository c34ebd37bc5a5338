"""A latent bandit whose parameters differ between trials."""

import math
from typing import NamedTuple

import numpy as np

from larl._core.compile import assign, implement
from larl._core.random import UNIT_PARAMETERS, normal_pair, stream
from larl._core.states import copy_state
from larl._core.validation import checked, number, spec
from larl.worlds.kernels import Floats, Latent, advance, begin
from larl.worlds.variants.wrapped import WrappedWorld


class HeterogeneousState(NamedTuple):
    """A `HeterogeneousUnits` world inside a kernel."""

    base: Latent  # with the parameters of this trial
    means: Floats
    sd: Floats
    mu: Floats  # (arms,) the base world's
    beta: Floats  # (arms, m) the base world's
    mu_sd: float
    beta_sd: float
    sigma_r: float
    is_noise_scaled: bool  # whether the noise of an arm is proportional to |β_a|


def heterogeneous_begin(latent: HeterogeneousState, seed: int, trial: int) -> None:
    """Draw z_0 … z_{k−1} and the parameters μ_a, β_a of this trial."""
    begin(latent.base, seed, trial)
    key, m = stream(seed, trial, UNIT_PARAMETERS), latent.beta.shape[1]
    for arm in range(latent.mu.size):
        draw, length = normal_pair(key, arm * (m + 1))[0], 0.0
        latent.base.mu[arm] = latent.mu[arm] + latent.mu_sd * draw
        for i in range(m):
            draw = normal_pair(key, arm * (m + 1) + 1 + i)[0]
            latent.base.beta[arm, i] = latent.beta[arm, i] + latent.beta_sd * draw
            length = math.hypot(length, latent.base.beta[arm, i])
        latent.sd[arm] = latent.sigma_r * (length if latent.is_noise_scaled else 1.0)


def heterogeneous_advance(latent: HeterogeneousState, key: np.uint64, t: int) -> float:
    """Move the base world to step t."""
    noise = advance(latent.base, key, t)
    assign(latent.means, latent.base.means)
    return noise


implement(begin, HeterogeneousState, heterogeneous_begin)
implement(advance, HeterogeneousState, heterogeneous_advance)


@spec
class HeterogeneousUnits(WrappedWorld):
    """A latent bandit whose μ_a and β_a differ between trials.

    Each trial draws μ_a ~ N(base μ_a, mu²) and each component of β_a ~ N(base β_a, beta²). Every unit of a cohort is a
    trial, so this is a population of units that differ. With ``noise="scaled"`` an arm's noise follows the trial's β_a.

    Parameters
    ----------
    base : LatentAR or LatentVAR
        The world with the population means.
    mu : float, >= 0, default 0.0
        Standard deviation of μ_a between units, in units of the reward.
    beta : float, >= 0, default 0.0
        Standard deviation of β_a between units, in units of the reward per unit of z.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.HeterogeneousUnits(larl.worlds.paper(1), mu=1.0)
    >>> [larl.worlds.Simulator(world, seed=0, trial=unit).means.round(2).tolist() for unit in (0, 1)]
    [[17.29, -15.43], [-16.66, 14.89]]
    """

    mu: float = checked(number(0.0), 0.0)
    beta: float = checked(number(0.0), 0.0)

    def latent(self) -> HeterogeneousState:
        """Return the State of the world before a trial: its parameters and arrays, for kernels."""
        return HeterogeneousState(
            base=copy_state(self.base.latent()),
            means=np.zeros(self.arms),
            sd=np.zeros(self.arms),
            mu=np.array(self.base.mu),
            beta=self.base.loadings,
            mu_sd=self.mu,
            beta_sd=self.beta,
            sigma_r=self.base.sigma_r,
            is_noise_scaled=self.base.noise == "scaled",
        )
