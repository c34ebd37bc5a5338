"""Thompson sampling of a hidden Markov chain with an unknown model, by particles (Hong et al. 2020)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from larl._core.compile import inline
from larl._core.random import Bits, normal_pair, random_bits, uniform
from larl._core.validation import boolean, checked, integer, number, optional
from larl.policies._contract import Policy
from larl.policies._first_scale import first_scale_init
from larl.policies._markov_model import draw_index
from larl.policies._markov_particles import (
    NOISE_RATE,
    ParticleState,
    advance,
    bounds,
    next_probability,
    noise_variance,
)
from larl.policies._probabilities import Floats, Mask, one_hot
from larl.policies._registry import register
from larl.policies._thompson import MIN_SD

DRAWS = np.uint64(0x5EED0F7A21C3D4B9)  # stream of the means that particles draw


@inline
def drawn_mean(state: ParticleState, particle: int, j: int, arm: int) -> float:
    """Return the mean that a particle draws at this step, from a stream of its own: `act` has no choice left in it."""
    n, arms = state.plays.shape[1], state.plays.shape[2]
    count = state.shrink + state.plays[particle, j, arm]
    draw, _ = normal_pair(random_bits(DRAWS, state.time[0]), (particle * n + j) * arms + arm)
    return state.total[particle, j, arm] / count + math.sqrt(noise_variance(state, particle) / count) * draw


def act(state: ParticleState, bits: Bits) -> int:
    n = state.moves.shape[1]
    particle, chance = draw_index(state.weight, uniform(bits)), np.empty(n)
    for j in range(n):
        chance[j] = next_probability(state, particle, j)
    j, best, choice = draw_index(chance, uniform(bits)), -math.inf, 0
    for arm in range(state.plays.shape[2]):
        mean = drawn_mean(state, particle, j, arm)
        if mean > best:
            best, choice = mean, arm
    return choice


def update(state: ParticleState, arm: int, reward: float) -> None:
    advance(state, arm, reward)


def update_missing(state: ParticleState, arm: int) -> None:
    advance(state, -1, 0.0)


def predict(state: ParticleState, arm: int) -> tuple[float, float]:
    """Return mean and standard deviation of the arm's mean over particles, states and means."""
    mean, square = 0.0, 0.0
    for p in range(state.weight.size):
        variance = noise_variance(state, p)
        for j in range(state.moves.shape[1]):
            count, chance = state.shrink + state.plays[p, j, arm], state.weight[p] * next_probability(state, p, j)
            own = state.total[p, j, arm] / count
            mean += chance * own
            square += chance * (own * own + variance / count)
    return mean, math.sqrt(max(square - mean * mean, 0.0))


def action_probabilities(state: ParticleState, available: Mask, out: Floats) -> None:
    one_hot(-1, out)
    for p in range(state.weight.size):
        for j in range(state.moves.shape[1]):
            best, choice = -math.inf, 0
            for arm in range(out.size):
                if available[arm]:
                    mean = drawn_mean(state, p, j, arm)
                    if mean > best:
                        best, choice = mean, arm
            out[choice] += state.weight[p] * next_probability(state, p, j)


@register(
    ParticleState,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class ParticleLatentThompson(Policy):
    """Thompson sampling of a hidden Markov chain whose parameters are unknown, by particles (Hong et al. 2020).

    It draws a particle, a state from the particle's prediction and the means of that state, and plays the best arm.
    Each particle draws its means once per step, so the probability of an arm is an exact sum over particles and states.
    The draws inside particles depend on the step only: they are the same in all trials and units, and another seed does
    not change them.

    Parameters
    ----------
    states : int, >= 1, default 2
        Number of hidden states.
    particles : int, >= 2, default 100
        Number of particles.
    persistence : float, 0 < persistence < 1, default 0.9
        Prior mean of the probability of staying in a state.
    prior_moves : float, > 0, default 10.0
        Weight of the prior of each row of the transition matrix, in number of transitions.
    prior_sd : float, >= 1e-50, default 2.0
        Prior standard deviation of the mean of each state and arm, in standard deviations of the noise.
    sigma : float, >= 1e-50, optional
        Standard deviation of the reward noise, in units of the standardised rewards. By default it is learnt.
    standardise : bool, default True
        Subtract the median of the first rewards, which come from random arms, and divide by their scale. There are 8
        first rewards, or two per arm if that is more.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.random_markov(states=2, arms=2, seed=0)
    >>> policy = larl.policies.ParticleLatentThompson(states=2)
    >>> result = larl.compare({"particles": policy}, world, horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    54.0
    """

    states: int = checked(integer(1), 2)
    particles: int = checked(integer(2), 100)
    persistence: float = checked(number(above=0.0, below=1.0), 0.9)
    prior_moves: float = checked(number(above=0.0), 10.0)
    prior_sd: float = checked(number(MIN_SD), 2.0)
    sigma: float | None = checked(optional(number(MIN_SD)), None)
    standardise: bool = checked(boolean(), True)

    def init(self, arms: int, **_: Any) -> Any:
        n = self.states
        row = (1.0 - self.persistence) / max(n - 1, 1)
        prior = self.prior_moves * np.where(np.eye(n, dtype=bool), self.persistence, row)
        state = ParticleState(
            weight=np.full(self.particles, 1.0 / self.particles),
            current=np.full(self.particles, -1),
            moves=np.tile(prior, (self.particles, 1, 1)),
            plays=np.zeros((self.particles, n, arms)),
            total=np.zeros((self.particles, n, arms)),
            rate=np.full(self.particles, NOISE_RATE),
            seen=np.zeros(1),
            time=np.zeros(1, dtype=np.int64),
            sigma=self.sigma or 0.0,
            shrink=1.0 / self.prior_sd**2,
        )
        return first_scale_init(state, arms) if self.standardise else state
