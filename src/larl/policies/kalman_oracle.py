"""The Kalman filter with the world's true parameters: the best that can be known without seeing z_t."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from larl._check import checked, one_of
from larl._compile import assign
from larl.filter import Belief, belief, observe, place, steady_state, steady_step
from larl.policies._contract import Policy, register, tie
from larl.policies._oracle import Floats, best_line, the_world

if TYPE_CHECKING:
    from larl.world import World


class ExactState(NamedTuple):
    belief: Belief


def exact_act(state: ExactState, word: np.uint64) -> int:
    belief = state.belief
    return best_line(belief.mu, belief.beta, belief.mean[place(belief)])


def exact_update(state: ExactState, arm: int, reward: float) -> None:
    observe(state.belief, arm, reward)


class SteadyFilterState(NamedTuple):
    z: Floats  # (k,) z̃_t
    next: Floats  # (k,) scratch
    closed: Floats  # (k, k) Γ − ΓKC
    push: Floats  # (k,) ΓK
    drift: Floats  # (k,)
    mu: Floats
    beta: Floats


def steady_act(state: SteadyFilterState, word: np.uint64) -> int:
    return best_line(state.mu, state.beta, state.z[0])


def steady_update(state: SteadyFilterState, arm: int, reward: float) -> None:
    steady_step(state.z, state.next, state.closed, state.push, state.drift, (reward - state.mu[arm]) / state.beta[arm])
    assign(state.z, state.next)


tie(SteadyFilterState, steady_act, steady_update)


@register(ExactState, exact_act, exact_update)
@dataclass(frozen=True)
class KalmanOracle(Policy):
    """The arm with the best mean at the Kalman prediction of z_t, with the world's true parameters.

    It never pays for information. Nothing beats it on average where every arm tells as much of z as any other;
    where arms differ in that (common noise and unequal |β|, a β of 0), one that explores may.

    `filter="exact"` starts from the world's start; `"steady"` is the paper's steady-state filter, started at the
    stationary mean.
    """

    filter: str = checked(one_of("exact", "steady"), "exact")

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        world = the_world("KalmanOracle", world, arms)
        if self.filter == "exact":
            return ExactState(belief(world))
        steady, z = steady_state(world), np.full(world.k, world.stationary_mean)
        return SteadyFilterState(
            z, z.copy(), steady.closed, steady.push, steady.drift, np.array(world.mu), np.array(world.beta)
        )
