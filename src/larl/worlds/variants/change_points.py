"""A world whose arm means are constant between random change points."""

from typing import NamedTuple

import numpy as np

from larl._core.compile import implement, inline
from larl._core.random import GOLDEN, START, bits_to_uniform, normal_pair, random_bits, stream
from larl._core.validation import check_fields, checked, integer, number, spec
from larl.worlds.base import World
from larl.worlds.kernels import Floats, advance, begin


class ChangeState(NamedTuple):
    """A `ChangePoints` world inside a kernel."""

    means: Floats
    sd: Floats
    hazard: float
    spread: float


@inline
def draw_means(latent: ChangeState, key: np.uint64) -> None:
    """Draw the mean of every arm from N(0, spread²)."""
    for arm in range(latent.means.size):
        draw, _ = normal_pair(key, arm)
        latent.means[arm] = latent.spread * draw


def change_begin(latent: ChangeState, seed: int, trial: int) -> None:
    """Draw the means of the first segment."""
    draw_means(latent, stream(seed, trial, START))


def change_advance(latent: ChangeState, key: np.uint64, t: int) -> float:
    """Draw new means with probability `hazard`; return the standard normal noise of step t."""
    bits = random_bits(key ^ GOLDEN, t)
    if t > 0 and bits_to_uniform(bits) < latent.hazard:
        draw_means(latent, bits)
    _, noise = normal_pair(key, t)
    return noise


implement(begin, ChangeState, change_begin)
implement(advance, ChangeState, change_advance)


@spec
class ChangePoints(World):
    """A bandit with constant means that all change at random times.

    At every step, with probability ``hazard``, every arm's mean is drawn again from N(0, spread²).

    Parameters
    ----------
    arms : int, >= 2, default 2
        Number of arms.
    hazard : float, in [0, 1], default 0.02
        Probability of a change at a step.
    spread : float, >= 0, default 1.0
        Standard deviation of the means, in units of the reward.
    sigma_r : float, >= 0, default 1.0
        Standard deviation of the reward noise, in units of the reward.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.ChangePoints(arms=3, hazard=0.05)
    >>> simulator = larl.worlds.Simulator(world, seed=0, trial=0)
    >>> simulator.means.round(2).tolist()
    [-1.66, -0.45, 0.82]
    """

    arms: int = checked(integer(2), 2)
    hazard: float = checked(number(0.0, 1.0), 0.02)
    spread: float = checked(number(0.0), 1.0)
    sigma_r: float = checked(number(0.0), 1.0)
    k = 0

    def __post_init__(self) -> None:
        check_fields(self)

    def latent(self) -> ChangeState:
        """Return the State of the world before a trial: its parameters and arrays, for kernels."""
        return ChangeState(np.zeros(self.arms), np.full(self.arms, self.sigma_r), self.hazard, self.spread)
