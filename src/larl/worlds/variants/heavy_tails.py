"""A latent bandit with Student-t reward noise."""

import math
from typing import NamedTuple

import numpy as np

from larl._core.compile import assign, implement
from larl._core.random import GOLDEN, bits_to_uniform, random_bits
from larl._core.validation import checked, number, spec
from larl.worlds.base import LinearGaussianWorld
from larl.worlds.kernels import Floats, Latent, advance, begin
from larl.worlds.variants.wrapped import WrappedWorld


class TailsState(NamedTuple):
    """A `HeavyTails` world inside a kernel."""

    base: Latent
    means: Floats
    sd: Floats
    df: float


def tails_begin(latent: TailsState, seed: int, trial: int) -> None:
    """Draw z_0 … z_{k−1} of the base world."""
    begin(latent.base, seed, trial)


def tails_advance(latent: TailsState, key: np.uint64, t: int) -> float:
    """Move the base world to step t and return Student-t noise of variance 1."""
    advance(latent.base, key, t)
    assign(latent.means, latent.base.means)
    # Student's t by the polar method (Bailey 1994), scaled to variance 1.
    radius = latent.df * ((1.0 - bits_to_uniform(random_bits(key ^ GOLDEN, 2 * t))) ** (-2.0 / latent.df) - 1.0)
    angle = 2.0 * math.pi * bits_to_uniform(random_bits(key ^ GOLDEN, 2 * t + 1))
    return math.sqrt(radius * (latent.df - 2.0) / latent.df) * math.cos(angle)


implement(begin, TailsState, tails_begin)
implement(advance, TailsState, tails_advance)


@spec
class HeavyTails(WrappedWorld):
    """A latent bandit whose reward noise has a Student-t distribution with the variance of the base world's noise.

    Parameters
    ----------
    base : LatentAR or LatentVAR
        The world with normal noise.
    df : float, > 2, default 3.0
        Degrees of freedom. The noise has a variance only for ``df > 2``.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.HeavyTails(larl.worlds.paper(1), df=3.0)
    >>> result = larl.compare({"UCB": larl.UCB()}, world, horizon=50, trials=20, progress=False)
    >>> round(float(result.total().mean()), 1)
    48.2
    """

    df: float = checked(number(above=2.0), 3.0)

    @property
    def filterable(self) -> LinearGaussianWorld:
        """The world with normal noise. Its Kalman filter is the best linear filter here."""
        return self.base

    def latent(self) -> TailsState:
        """Return the State of the world before a trial: its parameters and arrays, for kernels."""
        return TailsState(self.base.latent(), np.zeros(self.arms), self.base.sd, self.df)
