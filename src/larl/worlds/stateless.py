"""Worlds without a latent process: means that now and then are drawn anew, means that swing."""

import math
from typing import NamedTuple

import numpy as np

from larl._core.compile import implement, inline
from larl._core.random import GOLDEN, START, bits_to_uniform, normal_pair, random_bits, stream
from larl._core.validation import InvalidValue, Vector, check_fields, checked, integer, number, numbers, required, spec
from larl.worlds.base import World
from larl.worlds.kernels import Floats, advance, begin


class ChangeState(NamedTuple):
    means: Floats
    sd: Floats
    hazard: float
    spread: float


@inline
def redraw(latent: ChangeState, key: np.uint64) -> None:
    for arm in range(latent.means.size):
        draw, _ = normal_pair(key, arm)
        latent.means[arm] = latent.spread * draw


def change_begin(latent: ChangeState, seed: int, trial: int) -> None:
    redraw(latent, stream(seed, trial, START))


def change_advance(latent: ChangeState, key: np.uint64, t: int) -> float:
    chance = random_bits(key ^ GOLDEN, t)
    if t > 0 and bits_to_uniform(chance) < latent.hazard:
        redraw(latent, chance)
    _, noise = normal_pair(key, t)
    return noise


implement(begin, ChangeState, change_begin)
implement(advance, ChangeState, change_advance)


@spec
class ChangePoints(World):
    """Means that stand still and now and then, with probability `hazard` a step, are all drawn anew: N(0, spread²)."""

    arms: int = checked(integer(2), 2)
    hazard: float = checked(number(0.0, 1.0), 0.02)
    spread: float = checked(number(0.0), 1.0)
    sigma_r: float = checked(number(0.0), 1.0)
    k = 0

    def __post_init__(self) -> None:
        check_fields(self)

    def latent(self) -> ChangeState:
        return ChangeState(np.zeros(self.arms), np.full(self.arms, self.sigma_r), self.hazard, self.spread)


class SeasonState(NamedTuple):
    means: Floats
    sd: Floats
    mu: Floats
    amplitude: Floats
    phase: Floats
    period: float


def season_begin(latent: SeasonState, seed: int, trial: int) -> None:
    pass


def season_advance(latent: SeasonState, key: np.uint64, t: int) -> float:
    for arm in range(latent.means.size):
        angle = 2.0 * math.pi * t / latent.period + latent.phase[arm]
        latent.means[arm] = latent.mu[arm] + latent.amplitude[arm] * math.sin(angle)
    _, noise = normal_pair(key, t)
    return noise


implement(begin, SeasonState, season_begin)
implement(advance, SeasonState, season_advance)


@spec
class Seasonal(World):
    """Means that swing: μ_a + amplitude_a · sin(2πt/period + phase_a), and noise of sd σ_r."""

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
        """The number of arms."""
        return len(self.mu)

    def latent(self) -> SeasonState:
        vectors = (np.array(self.mu), np.array(self.amplitude), np.array(self.phase))
        return SeasonState(np.zeros(self.arms), np.full(self.arms, self.sigma_r), *vectors, self.period)
