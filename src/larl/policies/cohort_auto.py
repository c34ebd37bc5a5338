"""CohortAuto: CohortLARL, which all units share, and an Auto for each unit, weighted by their errors.

CohortLARL describes how units differ by one normal distribution of regression coefficients. A unit that is unlike the
others, or of another kind, is described better by Auto, which has filters with parameters of the unit's own; in a
cohort, one of its models has a prior that units estimate together (auto/pooled.py). Every unit has both. Let e
and f be the errors with which CohortLARL and Auto predicted a reward, before they learnt from it, and v the smaller of
their mean squared errors in the cohort. The reward changes the log odds of Auto by (e² − f²)/2v, the log ratio of two
normal densities. Changes are discounted, because what units learn together improves with time: the unit's own count as
1/(1 − DISCOUNT) rewards in the long run. As many rewards with the cohort's mean change are the prior of each unit.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from larl._core.compile import implement, inline
from larl._core.random import Bits, pick
from larl._core.validation import checked, integer, number
from larl.policies._allocation import posterior
from larl.policies._bounds import Bound, inner_bounds
from larl.policies._contract import Policy, act, action_probabilities, predict, set_context, update, update_missing
from larl.policies._pooling import PARTIAL_STATES
from larl.policies._probabilities import Floats, Mask, argmax_probabilities
from larl.policies._registry import register
from larl.policies.auto.policy import Auto, AutoState
from larl.policies.auto.pooled import pooled_auto_state
from larl.policies.cohort_larl import CohortLARL

if TYPE_CHECKING:
    from larl.worlds.base import World

AUTO_ALPHA = 0.5  # alpha of Auto for alpha = 1: both defaults
DISCOUNT = 0.95  # of the log odds, for each reward of the unit
COHORT_DISCOUNT = 0.99  # of the sums over the cohort, for each reward of any unit
PRIOR_REWARDS = 1.0 / (1.0 - DISCOUNT)  # rewards with the cohort's mean change, as the prior of a unit
MAX_CHANGE = 5.0  # of the log odds by one reward: one outlier does not decide
MAX_ERROR = 1e150  # sums of its square are finite


class CohortAutoState(NamedTuple):
    inner: Any  # the State of CohortLARL
    alone: Any  # the State of Auto, alone or in a cohort
    changes: Floats  # (1,) discounted sum of the unit's changes of the log odds of Auto
    cohort: Floats  # (4,) discounted sums over all units: squared errors of CohortLARL and Auto, changes, their number
    arms: int
    alpha: float


def bounds(initial: CohortAutoState, state: CohortAutoState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers of both States."""
    return inner_bounds(initial.inner, state.inner, "inner") | inner_bounds(initial.alone, state.alone, "alone")


@inline
def auto_weight(state: CohortAutoState) -> float:
    """Return the weight of Auto's prediction; it is ½ before the first reward."""
    prior = PRIOR_REWARDS * state.cohort[2] / state.cohort[3] if state.cohort[3] > 0.0 else 0.0
    return 1.0 / (1.0 + math.exp(-prior - state.changes[0]))


@inline
def is_auto_only(state: CohortAutoState) -> bool:
    """Return whether CohortLARL has no prediction: first, and as long as all rewards are equal.

    Auto draws arms with equal scores at random, and plays each of them a few times before it trusts equal rewards.
    """
    return math.isnan(predict(state.inner, 0)[0])


def cohort_auto_predict(state: CohortAutoState, arm: int) -> tuple[float, float]:
    mean, bonus = predict(state.inner, arm)
    auto_mean, auto_bonus = predict(state.alone, arm)
    if math.isnan(mean):
        return auto_mean, auto_bonus
    if math.isnan(auto_mean):
        return mean, bonus
    weight = auto_weight(state)
    return (1.0 - weight) * mean + weight * auto_mean, (1.0 - weight) * bonus + weight * auto_bonus


def cohort_auto_act(state: CohortAutoState, bits: Bits) -> int:
    if is_auto_only(state):
        return act(state.alone, bits)
    best, choice = -math.inf, -1
    for arm in range(state.arms):
        mean, bonus = predict(state, arm)
        if mean + bonus > best:
            best, choice = mean + bonus, arm
    return choice if choice >= 0 else pick(bits, state.arms)


def cohort_auto_action_probabilities(state: CohortAutoState, available: Mask, out: Floats) -> None:
    if is_auto_only(state):
        action_probabilities(state.alone, available, out)
        return
    score = np.empty(out.size)
    for arm in range(out.size):
        mean, bonus = predict(state, arm)
        score[arm] = mean + bonus
    argmax_probabilities(score, available, out)


@inline
def squared(error: float) -> float:
    """Return the square of an error, at most MAX_ERROR²."""
    return min(abs(error), MAX_ERROR) ** 2


@inline
def compare_errors(state: CohortAutoState, arm: int, reward: float) -> None:
    """Update the odds of Auto with the errors of both predictions of a reward."""
    mean, _ = predict(state.inner, arm)
    auto_mean, _ = predict(state.alone, arm)
    if math.isnan(mean) or math.isnan(auto_mean):
        return
    square, auto_square, cohort = squared(reward - mean), squared(reward - auto_mean), state.cohort
    for i in range(cohort.size):
        cohort[i] *= COHORT_DISCOUNT
    cohort[0] += square
    cohort[1] += auto_square
    cohort[3] += 1.0
    variance = min(cohort[0], cohort[1]) / cohort[3]
    change, limit = square - auto_square, 2.0 * MAX_CHANGE * variance
    if abs(change) < limit:
        change /= 2.0 * variance
    elif change != 0.0:  # the variance can be 0
        change = math.copysign(MAX_CHANGE, change)
    cohort[2] += change
    state.changes[0] = DISCOUNT * state.changes[0] + change


def cohort_auto_update(state: CohortAutoState, arm: int, reward: float) -> None:
    compare_errors(state, arm, reward)
    update(state.inner, arm, reward)
    update(state.alone, arm, reward)


def cohort_auto_update_missing(state: CohortAutoState, arm: int) -> None:
    update_missing(state.inner, arm)
    update_missing(state.alone, arm)


def cohort_auto_set_context(state: CohortAutoState, context: Floats) -> None:
    set_context(state.inner, context)
    set_context(state.alone, context)


def cohort_auto_posterior(state: CohortAutoState, arm: int) -> tuple[float, float]:
    """Return the mean of the mixture of both posteriors and `alpha` times its standard deviation."""
    mean, bonus = predict(state.inner, arm)
    auto_mean, auto_bonus = posterior(state.alone, arm)
    auto_bonus /= AUTO_ALPHA
    if math.isnan(mean):
        return auto_mean, auto_bonus
    if math.isnan(auto_mean):
        return mean, bonus
    weight, difference = auto_weight(state), state.alpha * (auto_mean - mean)
    between = weight * (1.0 - weight) * difference * difference
    square = (1.0 - weight) * bonus * bonus + weight * auto_bonus * auto_bonus + between
    return (1.0 - weight) * mean + weight * auto_mean, math.sqrt(square)


implement(posterior, CohortAutoState, cohort_auto_posterior)


def _partial(state: CohortAutoState) -> CohortAutoState:
    """Return the State of partial pooling; with contexts, every unit has an Auto of its own."""
    alone = pooled_auto_state(state.alone) if isinstance(state.alone, AutoState) else state.alone
    return state._replace(inner=PARTIAL_STATES[type(state.inner)](state.inner), alone=alone)


PARTIAL_STATES[CohortAutoState] = _partial


@register(
    CohortAutoState,
    cohort_auto_act,
    cohort_auto_update,
    ("cohort",),
    bounds,
    update_missing=cohort_auto_update_missing,
    predict=cohort_auto_predict,
    action_probabilities=cohort_auto_action_probabilities,
    set_context=cohort_auto_set_context,
)
@dataclass(frozen=True)
class CohortAuto(Policy):
    """What units learn together and what each learns alone, for cohorts whose units may differ much.

    Every unit has the predictions of `CohortLARL`, which learns from all units, and of its own `Auto`. They are
    averaged; the weights follow from their latest errors. Use it with ``pooling="partial"``: then one of Auto's models
    has a prior that the units estimate together, and a unit that is unlike the others relies on its own rewards. There
    is nothing to choose, and decisions depend neither on the offset nor on the unit of rewards. A step takes two to
    three times as long as one of Auto.

    Parameters
    ----------
    alpha : float, >= 0, default 1.0
        Width of the confidence intervals, in multiples of the defaults of `CohortLARL` and `Auto`.
    context : int, >= 0, default 0
        Length of the observed context of a step; see `CohortLARL` and `Auto`.

    Raises
    ------
    larl.InvalidValue
        If a parameter is out of range.

    Examples
    --------
    >>> import larl
    >>> cohort = larl.Cohort(larl.CohortAuto(), arms=["nothing", "prompt"], pooling="partial")
    >>> decision = cohort.decide("unit-17")
    >>> cohort.observe(decision, reward=0.4)
    <RewardStatus.LEARNT: 'learnt'>
    """

    alpha: float = checked(number(0.0), 1.0)
    context: int = checked(integer(0), 0)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> CohortAutoState:
        return CohortAutoState(
            inner=CohortLARL(alpha=self.alpha, context=self.context).init(arms, horizon=horizon, world=world),
            alone=Auto(alpha=AUTO_ALPHA * self.alpha, context=self.context).init(arms, horizon=horizon, world=world),
            changes=np.zeros(1),
            cohort=np.zeros(4),
            arms=arms,
            alpha=self.alpha,
        )
