"""LARL: LinUCB on the last s actions and rewards (Trella et al. 2025, Algorithm 1)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits, pick
from larl._core.validation import InvalidValue, boolean, checked, integer, number, one_of, required
from larl.policies import _confidence_radius as _theory_radius
from larl.policies._contract import Policy, register
from larl.policies._lags import lags_init, pair_count, push, push_missing, write_context
from larl.policies._linalg.packed_ridge import (
    PackedRidge,
    SparseContext,
    add_row,
    packed_ridge_init,
    predict_arm,
    predict_two_arms,
)
from larl.policies._probabilities import Floats
from larl.policies._standardise import standard_init

if TYPE_CHECKING:
    from larl.worlds.base import World


class LARLState(NamedTuple):
    ridge: PackedRidge
    lags: SparseContext
    time: NDArray[np.int64]  # (1,)
    s: int
    arms: int
    alpha: float


@inline
def best_arm(ridge: PackedRidge, lags: SparseContext, count: int, arms: int, alpha: float) -> int:
    """The lowest arm with the largest Φᵀθ_a + α√(ΦᵀV_a⁻¹Φ), Φ the first `count` pairs of a list."""
    best, choice = -math.inf, 0
    for arm in range(0, arms, 2):
        other = min(arm + 1, arms - 1)  # the last of an odd number is its own other
        mean, width, other_mean, other_width = predict_two_arms(ridge, arm, other, lags, count)
        if mean + alpha * width > best:
            best, choice = mean + alpha * width, arm
        if other_mean + alpha * other_width > best:
            best, choice = other_mean + alpha * other_width, other
    return choice


def act(state: LARLState, bits: Bits) -> int:
    if state.time[0] < state.s:
        return pick(bits, state.arms)
    return best_arm(state.ridge, state.lags, state.lags.indices.size, state.arms, state.alpha)


def update(state: LARLState, arm: int, reward: float) -> None:
    if state.time[0] >= state.s:
        add_row(state.ridge, arm, state.lags, state.lags.indices.size, state.ridge.column.size // 4, reward)
    push(state.lags, state.s, state.arms, arm, reward)
    state.time[0] += 1


def update_missing(state: LARLState, arm: int) -> None:
    """A lag of which nothing is known: neither its reward nor its indicator is in the context."""
    push_missing(state.lags, state.s, state.arms)
    state.time[0] += 1


def predict(state: LARLState, arm: int) -> tuple[float, float]:
    if state.time[0] < state.s:
        return math.nan, math.nan
    mean, width = predict_arm(state.ridge, arm, state.lags, state.lags.indices.size)
    return mean, state.alpha * width


def set_context(state: LARLState, context: Floats) -> None:
    write_context(state.lags, state.s, context)


@register(LARLState, act, update, ("ridge",), update_missing=update_missing, predict=predict, set_context=set_context)
@dataclass(frozen=True)
class LARL(Policy):
    """LARL with s past steps in its context; the first s steps are random. s = 0 is UCB.

    The width of an arm's confidence interval is `alpha`, or with `radius="theory"` the radius of Lemma 3 at level
    `delta`, which takes the world's true parameters and a horizon, and a filter that has long been running when the
    trial begins (`theory.steady_start`); from another start its level holds only after a transient.

    `context` further numbers may be shown to it at every step: each arm has a coefficient for each. `standardise` takes
    the rewards' running median off and divides by their running spread, so that neither offset nor unit matters.
    """

    s: int = required(integer(0))
    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 1.0)
    radius: str = checked(one_of("alpha", "theory"), "alpha")
    delta: float = checked(number(above=0.0, below=1.0), 0.05)
    context: int = checked(integer(0), 0)
    standardise: bool = checked(boolean(), False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius == "theory" and (self.context or self.standardise):
            accepted = "'alpha' where there is a context or a standard: the theory knows neither"
            raise InvalidValue("LARL", "radius", self.radius, accepted)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        given = getattr(world, "context", 0)
        if self.context not in (0, given) and world is not None:
            raise InvalidValue("LARL", "context", self.context, f"0, or {given}: as many numbers as its world shows")
        ridge = packed_ridge_init(arms, pair_count(self.s, arms) + (self.context + 1) // 2, self.ridge)
        lags, time = lags_init(self.s, arms, self.context), np.zeros(1, dtype=np.int64)
        if self.radius == "theory":
            return _theory_radius.init(ridge, lags, time, self.delta, horizon, world)
        state = LARLState(ridge, lags, time, self.s, arms, self.alpha)
        return standard_init(state) if self.standardise else state
