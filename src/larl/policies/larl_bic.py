"""LARL as in the experiments of Trella et al. (2025, §5): explore, choose s by BIC, then play LARL(s)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl._core.random import Bits, pick
from larl._core.validation import InvalidValue, checked, integer, number, one_of, required
from larl.policies._bounds import STEPS, Bound
from larl.policies._contract import Policy
from larl.policies._lags import dimension, lag_bounds, lags_init, pair_count, push, push_missing
from larl.policies._linalg.packed_ridge import (
    PackedRidge,
    SparseContext,
    add_row,
    clear_rows,
    packed_ridge_init,
    predict_arm,
)
from larl.policies._linalg.simd4 import Floats
from larl.policies._registry import register
from larl.policies.larl import best_ucb_arm


class LARLBICState(NamedTuple):
    ridge: PackedRidge  # large enough for s_max
    lags: SparseContext
    past_arms: NDArray[np.int64]  # (explore,) −1 where the reward is missing
    past_rewards: Floats
    time: NDArray[np.int64]  # (1,)
    chosen: NDArray[np.int64]  # (1,) the chosen s, 0 during exploration
    arms: int
    s_max: int
    alpha: float
    alternate: bool


def bounds(initial: LARLBICState, state: LARLBICState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {
        "lags.indices": lag_bounds(initial.lags, initial.s_max, initial.arms),
        "past_arms": (-1, initial.arms - 1),
        "time": STEPS,
        "chosen": (0, initial.s_max),
    }


@inline
def _push(state: LARLBICState, s: int, arm: int, reward: float) -> None:
    """Push a step to the lags; arm −1 if its reward is missing."""
    if arm >= 0:
        push(state.lags, s, state.arms, arm, reward)
    else:
        push_missing(state.lags, s, state.arms)


@inner
def _fit(state: LARLBICState, s: int) -> None:
    """Fit LARL(s) on the exploration phase; the lags are then those after its last step."""
    size = pair_count(s, state.arms)
    clear_rows(state.ridge, size)
    for t in range(state.past_arms.size):
        arm, reward = state.past_arms[t], state.past_rewards[t]
        if t >= s and arm >= 0:
            add_row(state.ridge, arm, state.lags, s + 1, size, reward)
        _push(state, s, arm, reward)


@inner
def bic(state: LARLBICState, s: int) -> float:
    """Return n log(RSS/n) + (2s|A|+1) log n over the n rows, with the residuals of the ridge fit of each arm."""
    _fit(state, s)
    residual, rows = 0.0, 0
    for t in range(state.past_arms.size):
        arm, reward = state.past_arms[t], state.past_rewards[t]
        if t >= s and arm >= 0:
            mean, _ = predict_arm(state.ridge, arm, state.lags, s + 1)
            residual += (reward - mean) ** 2
            rows += 1
        _push(state, s, arm, reward)
    if rows < 2:
        return math.inf
    return rows * math.log(residual / rows) + dimension(s, state.arms) * math.log(rows)


@inner
def _commit(state: LARLBICState) -> None:
    """Choose the s with the smallest BIC (ties: the smallest s) and fit it."""
    best = math.inf
    state.chosen[0] = 1
    for s in range(1, state.s_max + 1):
        criterion = bic(state, s)
        if criterion < best:
            best, state.chosen[0] = criterion, s
    _fit(state, state.chosen[0])


def act(state: LARLBICState, bits: Bits) -> int:
    if state.time[0] < state.past_arms.size:
        return state.time[0] % state.arms if state.alternate else pick(bits, state.arms)
    return best_ucb_arm(state.ridge, state.lags, state.chosen[0] + 1, state.arms, state.alpha)


def update(state: LARLBICState, arm: int, reward: float) -> None:
    advance(state, arm, reward)


@inline
def advance(state: LARLBICState, arm: int, reward: float) -> None:
    """Update with one step; arm −1 if its reward is missing."""
    t, explore = state.time[0], state.past_arms.size
    if t < explore:
        state.past_arms[t], state.past_rewards[t] = arm, reward
        if t == explore - 1:
            _commit(state)
    else:
        s = state.chosen[0]
        if arm >= 0:
            add_row(state.ridge, arm, state.lags, s + 1, pair_count(s, state.arms), reward)
        _push(state, s, arm, reward)
    state.time[0] += 1


def update_missing(state: LARLBICState, arm: int) -> None:
    """Update as LARL does; during exploration, the step is not a row of the fits."""
    advance(state, -1, 0.0)


def predict(state: LARLBICState, arm: int) -> tuple[float, float]:
    if state.time[0] < state.past_arms.size:
        is_next = state.alternate and arm == state.time[0] % state.arms
        return math.nan, math.inf if is_next else math.nan
    mean, width = predict_arm(state.ridge, arm, state.lags, state.chosen[0] + 1)
    return mean, state.alpha * width


@register(LARLBICState, act, update, bounds=bounds, update_missing=update_missing, predict=predict)
@dataclass(frozen=True)
class LARLBIC(Policy):
    """Explore, choose s in 1 … `s_max` by BIC, then play LARL(s) (Trella et al. 2025, §5).

    The paper does not print the criterion; this is that of the authors' code, which counts the parameters of one arm.

    Parameters
    ----------
    explore : int, >= s_max + 2
        Number of exploration steps; ⌊T/5⌋ for T steps in the paper.
    s_max : int, >= 1, default 15
        Largest s that is considered.
    explore_with : {"random", "alternate"}, default "random"
        How arms are chosen during exploration: at random or in a cycle.
    alpha : float, >= 0, default 1.0
        Width of the confidence interval, in standard errors of the prediction for noise of sd 1.
    ridge : float, > 0, default 1.0
        Penalty λ of each arm's regression: V_a = λI + Σ ΦΦᵀ.

    Raises
    ------
    larl.InvalidValue
        If a parameter is out of range.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.LARLBIC(explore=40)
    >>> result = larl.compare({"BIC": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    198.0
    """

    explore: int = required(integer(3))
    s_max: int = checked(integer(1), 15)
    explore_with: str = checked(one_of("random", "alternate"), "random")
    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.explore < self.s_max + 2:
            accepted = f"a whole number ≥ s_max + 2 = {self.s_max + 2}, so that every s can be fitted on two rows"
            raise InvalidValue("LARLBIC", "explore", self.explore, accepted)

    def init(self, arms: int, **_: Any) -> LARLBICState:
        return LARLBICState(
            ridge=packed_ridge_init(arms, pair_count(self.s_max, arms), self.ridge),
            lags=lags_init(self.s_max, arms),
            past_arms=np.zeros(self.explore, dtype=np.int64),
            past_rewards=np.zeros(self.explore),
            time=np.zeros(1, dtype=np.int64),
            chosen=np.zeros(1, dtype=np.int64),
            arms=arms,
            s_max=self.s_max,
            alpha=self.alpha,
            alternate=self.explore_with == "alternate",
        )
