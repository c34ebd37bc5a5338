"""LARL: LinUCB on the last s actions and rewards (Trella et al. 2025, Algorithm 1)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits, pick
from larl._core.validation import InvalidValue, boolean, checked, integer, number, one_of, required
from larl.policies import _confidence_radius
from larl.policies._bounds import STEPS, Bound
from larl.policies._context_scale import check_context
from larl.policies._contract import Policy
from larl.policies._lags import lag_bounds, lags_init, pair_count, push, push_missing, write_context
from larl.policies._linalg.packed_ridge import (
    PackedRidge,
    SparseContext,
    add_row,
    packed_ridge_init,
    predict_arm,
    predict_two_arms,
)
from larl.policies._probabilities import Floats
from larl.policies._registry import register
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


def bounds(initial: LARLState, state: LARLState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"lags.indices": lag_bounds(initial.lags, initial.s, initial.arms), "time": STEPS}


@inline
def best_ucb_arm(ridge: PackedRidge, lags: SparseContext, count: int, arms: int, alpha: float) -> int:
    """Return the first arm with the largest Φᵀθ_a + α√(ΦᵀV_a⁻¹Φ), for the first `count` pairs of a context."""
    best, choice = -math.inf, 0
    for arm in range(0, arms, 2):
        other = min(arm + 1, arms - 1)  # the last of an odd number of arms is paired with itself
        mean, width, other_mean, other_width = predict_two_arms(ridge, arm, other, lags, count)
        if mean + alpha * width > best:
            best, choice = mean + alpha * width, arm
        if other_mean + alpha * other_width > best:
            best, choice = other_mean + alpha * other_width, other
    return choice


def act(state: LARLState, bits: Bits) -> int:
    if state.time[0] < state.s:
        return pick(bits, state.arms)
    return best_ucb_arm(state.ridge, state.lags, state.lags.indices.size, state.arms, state.alpha)


def update(state: LARLState, arm: int, reward: float) -> None:
    if state.time[0] >= state.s:
        add_row(state.ridge, arm, state.lags, state.lags.indices.size, state.ridge.column.size // 4, reward)
    push(state.lags, state.s, state.arms, arm, reward)
    state.time[0] += 1


def update_missing(state: LARLState, arm: int) -> None:
    """Push an empty lag: the context has neither its reward nor its indicator."""
    push_missing(state.lags, state.s, state.arms)
    state.time[0] += 1


def predict(state: LARLState, arm: int) -> tuple[float, float]:
    if state.time[0] < state.s:
        return math.nan, math.nan
    mean, width = predict_arm(state.ridge, arm, state.lags, state.lags.indices.size)
    return mean, state.alpha * width


def set_context(state: LARLState, context: Floats) -> None:
    write_context(state.lags, state.s, context)


@register(
    LARLState,
    act,
    update,
    ("ridge",),
    bounds,
    update_missing=update_missing,
    predict=predict,
    set_context=set_context,
)
@dataclass(frozen=True)
class LARL(Policy):
    """LinUCB on the last ``s`` actions and rewards (Trella et al. 2025, Algorithm 1).

    The first ``s`` steps are random.

    Parameters
    ----------
    s : int, >= 0
        Number of past steps in the context. ``s=0`` is UCB. `larl.diagnose` suggests a value for a log.
    alpha : float, >= 0, default 1.0
        Width of the confidence interval, in standard errors of the prediction for noise of sd 1.
    ridge : float, > 0, default 1.0
        Penalty λ of each arm's regression: V_a = λI + Σ ΦΦᵀ.
    radius : {"alpha", "theory", "corrected"}, default "alpha"
        ``"theory"`` uses the confidence radius of Lemma 3 instead of `alpha`, ``"corrected"`` the smaller one that
        ``larl.theory.regret_bound`` is for. Both need the world's true parameters and a horizon. Their level holds from
        a steady start (``larl.theory.steady_start``), otherwise after a transient.
    delta : float, 0 < delta < 1, default 0.05
        Level of the confidence radius of Lemma 3.
    context : int, >= 0, default 0
        Length of the observed context of a step; each arm has a coefficient for each of its numbers.
    standardise : bool, default False
        Subtract the median of the first 32 rewards and divide by their scale, so that decisions do not depend on the
        offset and unit of the rewards.

    Raises
    ------
    larl.InvalidValue
        If a parameter is out of range, or a `radius` of Lemma 3 is combined with `context` or `standardise`.

    Examples
    --------
    >>> import larl
    >>> result = larl.compare({"LARL": larl.LARL(s=1)}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    90.0
    """

    s: int = required(integer(0))
    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 1.0)
    radius: str = checked(one_of("alpha", "theory", "corrected"), "alpha")
    delta: float = checked(number(above=0.0, below=1.0), 0.05)
    context: int = checked(integer(0), 0)
    standardise: bool = checked(boolean(), False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius != "alpha" and (self.context or self.standardise):
            accepted = "'alpha' with context > 0 or standardise = True, which the theory does not cover"
            raise InvalidValue("LARL", "radius", self.radius, accepted)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        check_context("LARL", self.context, world)
        ridge = packed_ridge_init(arms, pair_count(self.s, arms) + (self.context + 1) // 2, self.ridge)
        lags, time = lags_init(self.s, arms, self.context), np.zeros(1, dtype=np.int64)
        if self.radius != "alpha":
            return _confidence_radius.init(ridge, lags, time, self.delta, horizon, world, radius=self.radius)
        state = LARLState(ridge=ridge, lags=lags, time=time, s=self.s, arms=arms, alpha=self.alpha)
        return standard_init(state, arms, self.context) if self.standardise else state
