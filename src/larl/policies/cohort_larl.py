"""CohortLARL: LARL with a long look-back and a penalty that grows with the lag, for units that learn together.

LARL has to be told how many past steps s matter. This policy always uses many, and lets the regression decide: the
penalty of the coefficients of lag j is proportional to 1 + j (as in the Minnesota prior of vector autoregressions), so
coefficients of long lags stay near 0 unless the rewards of many units show otherwise. Lags without a reward, as in a
unit's first steps, are 0: it decides and learns from the first step. docs/cohort.md has the model of partial pooling.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits
from larl._core.validation import checked, integer, number
from larl.policies._bounds import STEPS, Bound
from larl.policies._context_scale import check_context
from larl.policies._contract import Policy
from larl.policies._lags import (
    lag_bounds,
    pair_count,
    push,
    push_missing,
    scaled_lags_init,
    write_context,
)
from larl.policies._linalg.packed_ridge import PackedRidge, SparseContext, add_row, packed_ridge_init, predict_arm
from larl.policies._linalg.simd4 import aligned_zeros
from larl.policies._partial_pooling import DROPPED, add_unit_row, drop_unlikely, most_likely, predict_unit
from larl.policies._pooling import PARTIAL_STATES
from larl.policies._probabilities import Floats
from larl.policies._registry import bind, register
from larl.policies._shared_scale import SharedScaleState, shared_scale_init
from larl.policies.larl import best_ucb_arm

if TYPE_CHECKING:
    from larl.worlds.base import World

INDICATOR_PENALTY = 10.0  # penalty of the coefficient of an indicator, relative to that of its reward
# Candidates for the precision of a unit's coefficients around the common ones, in multiples of the precision of the
# common ones around 0: of lag 0, and of intercept and contexts. The multiple of lag j is (1 + j)² times that of lag 0.
PRECISIONS = (
    (1000.0, 1000.0),
    (100.0, 100.0),
    (10.0, 10.0),
    (1.0, 1.0),
    (10.0, 1.0),
    (1.0, 10.0),
    (1.0, 100.0),
    (10.0, 100.0),
)


class CohortLARLState(NamedTuple):
    ridge: PackedRidge
    lags: Any  # a ScaledContext
    s: int
    arms: int
    alpha: float


class HierarchicalState(NamedTuple):
    """The State of a unit with partial pooling."""

    own: PackedRidge  # slot i|A| + a: the unit's regression for arm a under candidate i
    pooled: PackedRidge  # slot i|A| + a: the regression for the common coefficients
    precisions: Floats  # (candidates, pairs)
    evidence: Floats  # (candidates, 2) sums of the logarithm of the predictive variance, and of e² divided by it
    rows: NDArray[np.int64]  # (1,) number of rows
    dense: SparseContext  # scratch, zero between calls
    lags: Any  # a ScaledContext
    s: int
    arms: int
    alpha: float


def bounds(initial: CohortLARLState, state: CohortLARLState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"lags.indices": lag_bounds(initial.lags, initial.s, initial.arms)}


def hierarchical_bounds(initial: HierarchicalState, state: HierarchicalState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    dense = initial.dense.indices
    lags = lag_bounds(initial.lags, initial.s, initial.arms)
    return {"lags.indices": lags, "dense.indices": (dense, dense), "rows": STEPS}


def act(state: CohortLARLState, bits: Bits) -> int:
    return best_ucb_arm(state.ridge, state.lags, state.lags.indices.size, state.arms, state.alpha)


def update(state: CohortLARLState, arm: int, reward: float) -> None:
    add_row(state.ridge, arm, state.lags, state.lags.indices.size, state.ridge.column.size // 4, reward)
    push(state.lags, state.s, state.arms, arm, reward)


def update_missing(state: CohortLARLState | HierarchicalState, arm: int) -> None:
    """Push an empty lag."""
    push_missing(state.lags, state.s, state.arms)


def predict(state: CohortLARLState, arm: int) -> tuple[float, float]:
    mean, width = predict_arm(state.ridge, arm, state.lags, state.lags.indices.size)
    return mean, state.alpha * width


def set_context(state: CohortLARLState | HierarchicalState, context: Floats) -> None:
    write_context(state.lags, state.s, context)


@inline
def predict_candidate(state: HierarchicalState, candidate: int, arm: int) -> tuple[float, float]:
    """Return mean and sd of the unit's xᵀθ under one candidate."""
    row = candidate * state.arms + arm
    return predict_unit(state.own, state.pooled, state.dense, state.lags, row, state.precisions[candidate])


def hierarchical_act(state: HierarchicalState, bits: Bits) -> int:
    best, choice, candidate = -math.inf, 0, most_likely(state.evidence, state.rows[0])
    for arm in range(state.arms):
        mean, width = predict_candidate(state, candidate, arm)
        if mean + state.alpha * width > best:
            best, choice = mean + state.alpha * width, arm
    return choice


def hierarchical_update(state: HierarchicalState, arm: int, reward: float) -> None:
    for i in range(state.precisions.shape[0]):
        if state.evidence[i, 0] < DROPPED:
            row, precisions = i * state.arms + arm, state.precisions[i]
            add_unit_row(state.own, state.pooled, state.dense, state.lags, row, precisions, reward, state.evidence[i])
    state.rows[0] += 1
    drop_unlikely(state.evidence, state.rows[0])
    push(state.lags, state.s, state.arms, arm, reward)


def hierarchical_predict(state: HierarchicalState, arm: int) -> tuple[float, float]:
    mean, width = predict_candidate(state, most_likely(state.evidence, state.rows[0]), arm)
    return mean, state.alpha * width


def hierarchical_init(state: CohortLARLState, candidates: Any = PRECISIONS) -> HierarchicalState:
    """Return the State of a unit without data; `candidates` are pairs as in PRECISIONS."""
    arms, size, penalty = state.arms, state.ridge.column.size // 4, state.ridge.penalty
    lag = (np.arange(size) - 1) // arms
    is_lag = (lag >= 0) & (lag < state.s)
    precisions = np.array([np.where(is_lag, of_lag * (1.0 + lag) ** 2, other) for of_lag, other in candidates])
    own, pooled = (packed_ridge_init(arms * len(precisions), size, penalty) for _ in range(2))
    corners = 2 * np.arange(size) * (np.arange(size) + 3)  # of the diagonal tiles
    for i in range(arms * len(precisions)):
        own.inverse[i, corners] /= precisions[i // arms]
        own.inverse[i, corners + 1] /= precisions[i // arms]
    return HierarchicalState(
        own=own,
        pooled=pooled,
        precisions=penalty * precisions,
        evidence=np.zeros((len(precisions), 2)),
        rows=np.zeros(1, dtype=np.int64),
        dense=SparseContext(np.arange(size), aligned_zeros(4 * size)),
        lags=state.lags,
        s=state.s,
        arms=arms,
        alpha=state.alpha,
    )


PARTIAL_STATES[CohortLARLState] = hierarchical_init

bind(
    HierarchicalState,
    hierarchical_act,
    hierarchical_update,
    "CohortLARL",
    ("pooled", "precisions", "evidence", "rows", "dense"),
    hierarchical_bounds,
    update_missing=update_missing,
    predict=hierarchical_predict,
    set_context=set_context,
)


@register(
    CohortLARLState,
    act,
    update,
    ("ridge",),
    bounds,
    update_missing=update_missing,
    predict=predict,
    set_context=set_context,
)
@dataclass(frozen=True)
class CohortLARL(Policy):
    """LARL with a long look-back whose coefficients shrink with the lag; the recommended policy for cohorts.

    Use it with ``pooling="partial"``: the units of a cohort then learn common coefficients, and each its own as far as
    units differ. There is no s to choose. The arms of the cohort's first 16 rewards (four per arm if that is more) are
    random. Their median and spread standardise all later rewards and do not change any more, so decisions depend
    neither on the offset nor on the unit of rewards. A unit alone learns faster with `Auto`; if units may differ much,
    use `CohortAuto`.

    Parameters
    ----------
    s : int, >= 1, default 10
        Largest number of past steps in the context. Cost and memory grow with its square.
    alpha : float, >= 0, default 1.0
        Width of the confidence interval, in standard errors of the prediction for noise with the sd of the rewards.
    penalty : float, 10⁻⁶ to 10⁶, default 3.0
        Penalty of the coefficients of the latest reward, for standardised rewards; that of lag j is 1 + j times as
        large, and that of the coefficient that says which arm was played ten times.
    context : int, >= 0, default 0
        Length of the observed context of a step; each arm has a coefficient for each of its numbers, with penalty 1.

    Raises
    ------
    larl.InvalidValue
        If a parameter is out of range.

    Examples
    --------
    >>> import larl
    >>> world = larl.LatentAR(gammas=[0.9], beta=[-1, 1], mu=[0, 0])
    >>> options = dict(horizon=60, trials=4, units=20, progress=False)
    >>> apart = larl.compare({"it": larl.CohortLARL()}, world, pooling="none", **options).summary()["mean"].item()
    >>> together = larl.compare({"it": larl.CohortLARL()}, world, pooling="partial", **options).summary()["mean"].item()
    >>> together < 0.8 * apart
    True
    """

    s: int = checked(integer(1), 10)
    alpha: float = checked(number(0.0), 1.0)
    penalty: float = checked(number(1e-6, 1e6), 3.0)
    context: int = checked(integer(0), 0)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> SharedScaleState:
        check_context("CohortLARL", self.context, world)
        factors = 1.0 / np.sqrt(self.penalty * (1.0 + np.arange(self.s)))
        size = pair_count(self.s, arms) + (self.context + 1) // 2
        inner = CohortLARLState(
            ridge=packed_ridge_init(arms, size, 1.0),
            lags=scaled_lags_init(factors, 1.0 / math.sqrt(INDICATOR_PENALTY), arms, self.context),
            s=self.s,
            arms=arms,
            alpha=self.alpha,
        )
        return shared_scale_init(inner, arms)
