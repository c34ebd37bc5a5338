"""A latent bandit with occasional outliers among its rewards."""

from typing import NamedTuple

import numpy as np

from larl._core.compile import assign, implement
from larl._core.random import GOLDEN, bits_to_uniform, random_bits
from larl._core.validation import checked, number, spec
from larl.worlds.base import LinearGaussianWorld
from larl.worlds.kernels import Floats, Latent, advance, begin
from larl.worlds.variants.wrapped import WrappedWorld


class OutliersState(NamedTuple):
    """An `Outliers` world inside a kernel."""

    base: Latent
    means: Floats
    sd: Floats
    share: float
    size: float


def outliers_begin(latent: OutliersState, seed: int, trial: int) -> None:
    """Draw z_0 … z_{k−1} of the base world."""
    begin(latent.base, seed, trial)


def outliers_advance(latent: OutliersState, key: np.uint64, t: int) -> float:
    """Move the base world to step t and return its noise, multiplied by `size` in a share of the steps."""
    noise = advance(latent.base, key, t)
    assign(latent.means, latent.base.means)
    return noise * (latent.size if bits_to_uniform(random_bits(key ^ GOLDEN, t)) < latent.share else 1.0)


implement(begin, OutliersState, outliers_begin)
implement(advance, OutliersState, outliers_advance)


@spec
class Outliers(WrappedWorld):
    """A latent bandit in which the reward noise of a random share of the steps is multiplied by a factor.

    Regret does not change: it compares the means of the arms.

    Parameters
    ----------
    base : LatentAR or LatentVAR
        The world without outliers.
    share : float, 0 to 1, default 0.05
        Probability that a step's reward is an outlier.
    size : float, >= 0, default 20.0
        Factor of an outlier's noise.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.Outliers(larl.worlds.paper(1), share=0.1)
    >>> result = larl.compare({"UCB": larl.UCB()}, world, horizon=50, trials=20, progress=False)
    >>> bool(result.total().mean() > 0.0)
    True
    """

    share: float = checked(number(0.0, 1.0), 0.05)
    size: float = checked(number(0.0), 20.0)

    @property
    def filterable(self) -> LinearGaussianWorld:
        """The world without outliers, whose Kalman filter `KalmanOracle` uses."""
        return self.base

    def latent(self) -> OutliersState:
        """Return the State of the world before a trial: its parameters and arrays, for kernels."""
        return OutliersState(self.base.latent(), np.zeros(self.arms), self.base.sd, self.share, self.size)
