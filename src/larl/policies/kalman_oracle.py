"""The Kalman filter with the world's true parameters: the best that can be known without seeing z_t."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from larl._core.compile import assign
from larl._core.random import Bits
from larl._core.validation import checked, one_of
from larl.policies._contract import Policy, bind, register
from larl.policies._oracle import Floats, the_world
from larl.statespace.kalman import (
    FilterState,
    best_arm,
    current_offset,
    dot,
    expected_reward,
    initial_filter_state,
    update_filter,
    update_filter_missing,
)
from larl.statespace.steady_state import steady_state, steady_state_step

if TYPE_CHECKING:
    from larl.worlds.base import World


class ExactState(NamedTuple):
    belief: FilterState


def exact_act(state: ExactState, bits: Bits) -> int:
    belief = state.belief
    return best_arm(belief.mu, belief.beta, belief.mean, current_offset(belief))


def exact_update(state: ExactState, arm: int, reward: float) -> None:
    update_filter(state.belief, arm, reward)


def exact_update_missing(state: ExactState, arm: int) -> None:
    update_filter_missing(state.belief)


def exact_predict(state: ExactState, arm: int) -> tuple[float, float]:
    belief = state.belief
    return expected_reward(belief.mu, belief.beta, belief.mean, current_offset(belief), arm), 0.0


class SteadyFilterState(NamedTuple):
    z: Floats  # (mk,) z̃_t
    next: Floats  # (mk,) scratch
    closed: Floats  # (mk, mk) Γ − ΓKC
    push: Floats  # (mk,) ΓK
    drift: Floats  # (mk,)
    mu: Floats
    beta: Floats  # (arms, m)
    scale: Floats  # (arms,) b
    c: Floats  # (mk,) C


def steady_act(state: SteadyFilterState, bits: Bits) -> int:
    return best_arm(state.mu, state.beta, state.z, 0)


def steady_update(state: SteadyFilterState, arm: int, reward: float) -> None:
    steady_state_step(
        state.z, state.next, state.closed, state.push, state.drift, (reward - state.mu[arm]) / state.scale[arm]
    )
    assign(state.z, state.next)


def steady_update_missing(state: SteadyFilterState, arm: int) -> None:
    """What was to be measured is taken to be what was predicted."""
    steady_state_step(state.z, state.next, state.closed, state.push, state.drift, dot(state.c, state.z))
    assign(state.z, state.next)


def steady_predict(state: SteadyFilterState, arm: int) -> tuple[float, float]:
    return expected_reward(state.mu, state.beta, state.z, 0, arm), 0.0


bind(
    SteadyFilterState,
    steady_act,
    steady_update,
    "KalmanOracle",
    update_missing=steady_update_missing,
    predict=steady_predict,
)


@register(ExactState, exact_act, exact_update, update_missing=exact_update_missing, predict=exact_predict)
@dataclass(frozen=True)
class KalmanOracle(Policy):
    """The arm with the best mean at the Kalman prediction of z_t, with the world's true parameters.

    It never pays for information. Nothing beats it on average where every arm tells as much of z as any other;
    where arms differ in that (common noise and unequal |β|, a β of 0, vectors β in different directions), one that
    explores may.

    `filter="exact"` starts from the world's start; `"steady"` is the paper's steady-state filter, started at the
    stationary mean, and refused where there is no steady state.
    """

    filter: str = checked(one_of("exact", "steady"), "exact")

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        world = the_world("KalmanOracle", world, arms)
        if self.filter == "exact":
            return ExactState(initial_filter_state(world))
        steady, z = steady_state(world), np.tile(world.long_run_mean, world.k)
        return SteadyFilterState(
            z,
            z.copy(),
            steady.closed_loop,
            steady.predictor_gain,
            steady.drift,
            world.system.mu,
            world.loadings,
            steady.scale,
            steady.c,
        )
