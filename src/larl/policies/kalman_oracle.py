"""KalmanOracle: the Kalman filter with the world's true parameters (Kalman 1960), played greedily."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from larl._core.compile import assign
from larl._core.random import Bits
from larl._core.states import share_fields
from larl._core.validation import checked, one_of
from larl.policies._bounds import STEPS, Bound
from larl.policies._contract import Policy
from larl.policies._oracle import Floats, known_world
from larl.policies._registry import bind, register
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
from larl.worlds.variants.contextual import Contextual

if TYPE_CHECKING:
    from larl.worlds.base import World


class ExactState(NamedTuple):
    belief: FilterState
    level: Floats  # (arms,) μ_a + η_aᵀx_t; (0,) without a context
    eta: Floats  # (arms, p) effect of the context; p = 0 without one


share_fields(ExactState, ("eta",))


def exact_bounds(initial: ExactState, state: ExactState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"belief.time": STEPS}


def exact_act(state: ExactState, bits: Bits) -> int:
    belief = state.belief
    level = state.level if state.level.size > 0 else belief.mu
    return best_arm(level, belief.beta, belief.mean, current_offset(belief))


def exact_update(state: ExactState, arm: int, reward: float) -> None:
    effect = state.level[arm] - state.belief.mu[arm] if state.level.size > 0 else 0.0
    update_filter(state.belief, arm, reward - effect)


def exact_update_missing(state: ExactState, arm: int) -> None:
    update_filter_missing(state.belief)


def exact_predict(state: ExactState, arm: int) -> tuple[float, float]:
    belief = state.belief
    level = state.level if state.level.size > 0 else belief.mu
    return expected_reward(level, belief.beta, belief.mean, current_offset(belief), arm), 0.0


def exact_set_context(state: ExactState, context: Floats) -> None:
    for arm in range(state.level.size):
        state.level[arm] = state.belief.mu[arm]
        for j in range(min(state.eta.shape[1], context.size)):
            state.level[arm] += state.eta[arm, j] * context[j]


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
    """Advance the filter with the predicted value in place of the measurement."""
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


@register(
    ExactState,
    exact_act,
    exact_update,
    bounds=exact_bounds,
    update_missing=exact_update_missing,
    predict=exact_predict,
    set_context=exact_set_context,
)
@dataclass(frozen=True)
class KalmanOracle(Policy):
    """Play the arm with the largest mean at the Kalman prediction of z_t, with the world's true parameters.

    It does not explore. No policy has less expected regret in a world in which all arms give the same information about
    z. If the arms differ in that (common noise and unequal |β|, an arm with β = 0, vectors β in different directions),
    a policy that explores, such as `KalmanUCB`, may have less.

    Parameters
    ----------
    filter : {"exact", "steady"}, default "exact"
        ``"exact"`` starts from the world's start. ``"steady"`` is the steady-state filter of Trella et al. (2025),
        started at the stationary mean; it needs a world with a steady state.

    Raises
    ------
    larl.InvalidValue
        By ``init``, if the world is no `LatentAR`, `LatentVAR`, `HeavyTails` or `Contextual`, or lacks the steady state
        it needs.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.KalmanOracle()
    >>> result = larl.compare({"Kalman": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    61.0
    """

    filter: str = checked(one_of("exact", "steady"), "exact")

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        has_context = isinstance(world, Contextual) and self.filter == "exact"
        eta = np.array(world.eta) if isinstance(world, Contextual) else np.zeros((arms, 0))
        world = known_world("KalmanOracle", getattr(world, "base", None) if has_context else world, arms)
        if self.filter == "exact":
            belief = initial_filter_state(world)
            return ExactState(belief=belief, level=belief.mu.copy() if eta.size > 0 else np.zeros(0), eta=eta)
        steady, z = steady_state(world), np.tile(world.long_run_mean, world.k)
        return SteadyFilterState(
            z=z,
            next=z.copy(),
            closed=steady.closed_loop,
            push=steady.predictor_gain,
            drift=steady.drift,
            mu=world.system.mu,
            beta=world.loadings,
            scale=steady.scale,
            c=steady.c,
        )
