"""FilterOracle: a particle filter with the world's true parameters (Gordon, Salmond & Smith 1993), played greedily."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from larl._core.random import Bits
from larl._core.validation import InvalidValue, checked, integer
from larl.policies._bounds import STEPS, Bound
from larl.policies._contract import Policy
from larl.policies._registry import register
from larl.statespace.particle_filter import (
    PARTICLES,
    ParticleFilterState,
    best_expected,
    condition_particles,
    initial_particles,
    move_particles,
)
from larl.worlds.latent_ar import LatentAR
from larl.worlds.latent_glm import LatentGLM

if TYPE_CHECKING:
    from larl.worlds.base import World


class FilterOracleState(NamedTuple):
    filter: ParticleFilterState


def bounds(initial: FilterOracleState, state: FilterOracleState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"filter.time": STEPS}


def act(state: FilterOracleState, bits: Bits) -> int:
    return best_expected(state.filter.expected)


def update(state: FilterOracleState, arm: int, reward: float) -> None:
    condition_particles(state.filter, arm, reward)
    move_particles(state.filter)


def update_missing(state: FilterOracleState, arm: int) -> None:
    move_particles(state.filter)


def predict(state: FilterOracleState, arm: int) -> tuple[float, float]:
    return state.filter.expected[arm], 0.0


@register(FilterOracleState, act, update, bounds=bounds, update_missing=update_missing, predict=predict)
@dataclass(frozen=True)
class FilterOracle(Policy):
    """Play the arm with the largest expected mean under a particle filter with the world's true parameters.

    It is the counterpart of `KalmanOracle` in a `larl.worlds.LatentGLM`: a bootstrap filter with systematic resampling
    when the effective number of particles is below one half. It does not explore; if the arms differ in what they
    reveal about the state, a policy that explores may have less regret. The draws of the particles depend on the step
    only: they are the same in all trials and units. A reward that the world cannot give is treated as missing.

    Parameters
    ----------
    particles : int, >= 2, default 1000
        Number of particles.

    Raises
    ------
    larl.InvalidValue
        By ``init``, if the world is no `larl.worlds.LatentGLM` or `larl.LatentAR`.

    Examples
    --------
    >>> import larl
    >>> policies = {"oracle": larl.policies.FilterOracle(), "random": larl.Random()}
    >>> result = larl.compare(policies, larl.worlds.binary(), horizon=200, trials=20)
    >>> result.summary()["mean"].round(0).tolist()
    [19.0, 45.0]
    """

    particles: int = checked(integer(2), PARTICLES)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> FilterOracleState:
        if not isinstance(world, LatentGLM | LatentAR):
            accepted = "a larl.worlds.LatentGLM or a larl.LatentAR, whose parameters it knows"
            raise InvalidValue("FilterOracle", "world", world, accepted)
        if arms != world.arms:
            raise InvalidValue("FilterOracle", "arms", arms, f"{world.arms}, as many as its world has")
        return FilterOracleState(initial_particles(world, self.particles))
