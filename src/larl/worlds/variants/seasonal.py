"""A world whose arm means follow sine waves."""

import math
from typing import NamedTuple

import numpy as np

from larl._core.compile import implement
from larl._core.random import normal_pair
from larl._core.validation import InvalidValue, Vector, check_fields, checked, number, numbers, required, spec
from larl.worlds.base import World
from larl.worlds.kernels import Floats, advance, begin


class SeasonState(NamedTuple):
    """A `Seasonal` world inside a kernel."""

    means: Floats
    sd: Floats
    mu: Floats
    amplitude: Floats
    phase: Floats
    period: float


def season_begin(latent: SeasonState, seed: int, trial: int) -> None:
    """Do nothing: the means are not random."""


def season_advance(latent: SeasonState, key: np.uint64, t: int) -> float:
    """Set the means of step t; return its standard normal noise."""
    for arm in range(latent.means.size):
        angle = 2.0 * math.pi * t / latent.period + latent.phase[arm]
        latent.means[arm] = latent.mu[arm] + latent.amplitude[arm] * math.sin(angle)
    _, noise = normal_pair(key, t)
    return noise


implement(begin, SeasonState, season_begin)
implement(advance, SeasonState, season_advance)


@spec
class Seasonal(World):
    """A bandit with periodic means: μ_a + amplitude_a · sin(2πt/period + phase_a).

    Parameters
    ----------
    mu : sequence of float, one per arm
        Average of each arm's mean reward.
    amplitude : sequence of float, one per arm
        Amplitude of each sine wave, in units of the reward.
    phase : sequence of float, one per arm
        Phase of each sine wave at t = 0, in radians.
    period : float, > 0, default 50.0
        Length of one cycle, in steps.
    sigma_r : float, >= 0, default 1.0
        Standard deviation of the reward noise, in units of the reward.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.Seasonal(mu=(0, 0), amplitude=(1, 1), phase=(0.0, 3.1416), period=20)
    >>> simulator = larl.worlds.Simulator(world, seed=0, trial=0)
    >>> for _ in range(5):
    ...     simulator.advance()
    >>> simulator.means.round(2).tolist()
    [1.0, -1.0]
    """

    mu: Vector = required(numbers(2))
    amplitude: Vector = required(numbers(2))
    phase: Vector = required(numbers(2))
    period: float = checked(number(above=0.0), 50.0)
    sigma_r: float = checked(number(0.0), 1.0)
    k = 0

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("amplitude", "phase"):
            if len(getattr(self, name)) != len(self.mu):
                accepted = f"{len(self.mu)} numbers, one for each arm of mu"
                raise InvalidValue("Seasonal", name, getattr(self, name), accepted)

    @property
    def arms(self) -> int:  # type: ignore[override]
        """Number of arms."""
        return len(self.mu)

    def latent(self) -> SeasonState:
        """Return the State of the world before a trial: its parameters and arrays, for kernels."""
        return SeasonState(
            means=np.zeros(self.arms),
            sd=np.full(self.arms, self.sigma_r),
            mu=np.array(self.mu),
            amplitude=np.array(self.amplitude),
            phase=np.array(self.phase),
            period=self.period,
        )
