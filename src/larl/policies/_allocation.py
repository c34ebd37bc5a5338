"""Allocations: the probability of each arm as a function of the posterior of its mean reward.

The posterior of an arm is normal with the mean and the standard deviation that `predict` implies, independent between
arms. `"best"` is the probability that the arm's mean is the largest. `"smooth"` is the average over the posterior of a
generalised logistic function of the advantage (docs/allocation.md). Both are functions of the State, and the arm is
drawn from exactly these probabilities.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from larl._core.compile import generic, implement, inline, inner
from larl._core.html import html_fields
from larl._core.validation import InvalidValue, check_fields, checked, known_fields, number, one_of, spec
from larl.policies._context_scale import ContextScaleState
from larl.policies._contract import Policy, predict
from larl.policies._first_scale import FirstScaleState
from larl.policies._probabilities import (
    BREAKPOINTS,
    NODES,
    WEIGHTS,
    Floats,
    Mask,
    argmax_normal_probabilities,
    insertion_sort,
)
from larl.policies._shared_scale import SharedScaleState, is_fixed
from larl.policies._standardise import StandardState

KINDS = ("ucb", "best", "smooth")
OWN, BEST, SMOOTH = range(3)
# Policies whose bonus is `alpha` posterior standard deviations of the arm's mean, and those whose bonus is one.
ALPHA_POLICIES = (
    *("AdaptiveLARL", "Auto", "BeliefLinUCB", "CohortAuto", "CohortLARL", "DiscountedLinUCB", "KalmanUCB", "LARL"),
    *("LARLBIC", "SharedLARL", "SlidingWindowLinUCB", "UCB"),
)
THOMPSON_POLICIES = (
    *("BetaThompson", "ChangePointThompson", "DiscountedBetaThompson", "DiscountedThompson", "LatentThompson"),
    *("ParticleLatentThompson", "PredictiveSampling", "ResetThompson", "SlidingWindowBetaThompson"),
    *("SlidingWindowThompson", "ThompsonSampling"),
)
LEAST_SD = 1e-300  # of a posterior; quotients by it are finite or infinite, not nan
LOGISTIC_POINTS = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 40.0])  # of the quadrature, in widths of the logistic
MAX_EXPONENT = 700.0  # exp of a larger number overflows


@spec
class Allocation:
    """How the probabilities of arms follow from a policy's posterior.

    Parameters
    ----------
    kind : {"ucb", "best", "smooth"}, default "ucb"
        ``"ucb"``: the policy's own choice, most often the largest upper confidence bound. ``"best"``: the posterior
        probability that the arm is best. ``"smooth"``: with two arms, the second one has the posterior mean of
        low + (high − low) / (1 + c exp(−slope x))^k, where x is its advantage over the first.
    low, high : float, 0 to 1, default 0.2 and 0.8
        Limits of ``"smooth"``. Every arm but the first has at least `low`; the first has at least 1 − `high`.
    slope : float, > 0, default 5.0
        How fast the probability rises, per unit of the reward; per scale of the rewards for policies with
        ``standardise=True``, and for `CohortLARL` and `ParticleLatentThompson`.
    c : float, 10⁻⁶ to 10⁶, default 1.0
        Above 1, the first arm is preferred if the advantage is 0.
    k : float, 0.1 to 10, default 1.0
        Asymmetry; with more than two arms it must be 1.

    Examples
    --------
    >>> import larl
    >>> allocation = larl.Allocation("smooth", low=0.1, high=0.9)
    >>> agent = larl.Agent(larl.UCB(), arms=["nothing", "prompt"], allocation=allocation)
    >>> for arm, reward in (("nothing", 0.0), ("prompt", 0.8), ("prompt", 0.9)):
    ...     _ = agent.observe(agent.record(arm), reward)
    >>> round(agent.decide().probabilities["prompt"], 2)
    0.67
    """

    kind: str = checked(one_of(*KINDS), "ucb")
    low: float = checked(number(0.0, 1.0), 0.2)
    high: float = checked(number(0.0, 1.0), 0.8)
    slope: float = checked(number(1e-100, 1e100), 5.0)
    c: float = checked(number(1e-6, 1e6), 1.0)
    k: float = checked(number(0.1, 10.0), 1.0)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.low > self.high:
            raise InvalidValue("Allocation", "low", self.low, f"at most high = {self.high:g}")

    def _repr_html_(self) -> str:
        return html_fields(self)

    def to_json_type(self) -> str | dict[str, Any]:
        """Return the allocation as a JSON type: its kind, or all fields of a smooth one."""
        return asdict(self) if self.kind == "smooth" else self.kind


def as_allocation(owner: str, name: str, value: Any) -> Allocation:
    """Check that a value is an allocation, the name of one or a mapping with its fields."""
    if isinstance(value, Allocation):
        return value
    if isinstance(value, Mapping):
        try:
            return Allocation(**known_fields(Allocation, value, f"{owner}.{name}"))
        except InvalidValue as error:
            raise InvalidValue(owner, f"{name}.{error.name}", error.value, error.accepted) from error
    if not isinstance(value, str) or value not in KINDS:
        accepted = f"{' or '.join(map(repr, KINDS))}, or larl.Allocation(…)"
        raise InvalidValue(owner, name, value, accepted)
    return Allocation(value)


class AllocationRule(NamedTuple):
    """An allocation in a kernel."""

    kind: int
    bonus_sds: float  # standard deviations of the posterior in the bonus of `predict`
    low: float
    high: float
    slope: float
    log_c: float
    k: float


def allocation_rule(owner: str, policy: Policy, arms: int, allocation: Allocation) -> AllocationRule:
    """Return the rule of a policy; raise InvalidValue if the policy has no posterior or `allocation` does not fit."""
    kind, name = KINDS.index(allocation.kind), type(policy).__name__
    is_thompson = name in THOMPSON_POLICIES
    if kind == BEST and is_thompson:
        kind = OWN  # its own probabilities are those that the arm is best, and more exact
    if kind != OWN:
        if not is_thompson and (name not in ALPHA_POLICIES or getattr(policy, "radius", "alpha") != "alpha"):
            names = ", ".join(sorted((*ALPHA_POLICIES, *THOMPSON_POLICIES)))
            accepted = f"'ucb', or a policy with a posterior: {names} (LARL with radius = 'alpha')"
            raise InvalidValue(owner, "allocation", f"{allocation.kind} of {name}", accepted)
        if not is_thompson and getattr(policy, "alpha", 0.0) <= 0.0:
            raise InvalidValue(owner, "allocation", allocation.kind, "'ucb', or a policy with alpha > 0")
    if kind == SMOOTH and arms > 2:
        if allocation.k != 1.0:
            raise InvalidValue(owner, "allocation.k", allocation.k, f"1 with {arms} arms")
        if (arms - 1) * allocation.low > allocation.high:
            accepted = f"at most high / {arms - 1} = {allocation.high / (arms - 1):g} with {arms} arms"
            raise InvalidValue(owner, "allocation.low", allocation.low, accepted)
    return AllocationRule(
        kind=kind,
        bonus_sds=1.0 if is_thompson else float(getattr(policy, "alpha", 1.0)),
        low=allocation.low,
        high=allocation.high,
        slope=allocation.slope,
        log_c=math.log(allocation.c),
        k=allocation.k,
    )


@generic
def posterior(state: Any, arm: int) -> tuple[float, float]:
    """Return the posterior mean of an arm's mean reward, and the bonus, in the units in which the policy learns."""
    return predict(state, arm)


def standard_posterior(state: StandardState, arm: int) -> tuple[float, float]:
    """Return the posterior in units of the scale of the first rewards."""
    return posterior(state.inner, arm)


def first_scale_posterior(state: FirstScaleState, arm: int) -> tuple[float, float]:
    """Return the posterior in units of the fixed scale; nan until it is fixed."""
    return posterior(state.inner, arm) if state.is_fixed[0] else (math.nan, math.nan)


def shared_scale_posterior(state: SharedScaleState, arm: int) -> tuple[float, float]:
    """Return the posterior in units of the scale of all units; nan until it is fixed."""
    return posterior(state.inner, arm) if is_fixed(state) else (math.nan, math.nan)


def context_scale_posterior(state: ContextScaleState, arm: int) -> tuple[float, float]:
    """Return the posterior of the policy that gets standardised contexts."""
    return posterior(state.inner, arm)


implement(posterior, StandardState, standard_posterior)
implement(posterior, ContextScaleState, context_scale_posterior)
implement(posterior, FirstScaleState, first_scale_posterior)
implement(posterior, SharedScaleState, shared_scale_posterior)


@inner
def allocation_probabilities(state: Any, rule: AllocationRule, available: Mask, probabilities: Floats) -> None:
    """Write the probability of each available arm under a rule of kind BEST or SMOOTH.

    Arms with an infinite bonus come first, then arms without a prediction: as long as there are some, they share what
    the limits of the rule leave equally.
    """
    arms, infinite, unknown = probabilities.size, 0, 0
    mean, sd = np.zeros(arms), np.ones(arms)
    for arm in range(arms):
        if available[arm]:
            mean[arm], bonus = posterior(state, arm)
            sd[arm] = bonus / rule.bonus_sds
            infinite += sd[arm] == math.inf
            unknown += math.isnan(mean[arm] + sd[arm])
            sd[arm] = LEAST_SD if sd[arm] < LEAST_SD else sd[arm]
    first = infinite if infinite > 0 else unknown
    if first > 0:
        for arm in range(arms):
            is_first = sd[arm] == math.inf if infinite > 0 else math.isnan(mean[arm] + sd[arm])
            probabilities[arm] = 1.0 / first if available[arm] and is_first else 0.0
    elif rule.kind == BEST:
        argmax_normal_probabilities(mean, sd, available, probabilities)
    elif arms == 2 and available[0] and available[1]:
        probabilities[1] = mean_logistic(mean[1] - mean[0], math.hypot(sd[0], sd[1]), rule.slope, rule.log_c, rule.k)
        probabilities[0] = 1.0 - probabilities[1]
    else:  # noise of the variance of the logistic distribution, half of it for each arm
        for arm in range(arms):
            mean[arm] -= rule.log_c / rule.slope if arm > 0 else 0.0
            sd[arm] = math.hypot(sd[arm], math.pi / math.sqrt(6.0) / rule.slope)
        argmax_normal_probabilities(mean, sd, available, probabilities)
    if rule.kind == SMOOTH:
        _apply_limits(rule, available, probabilities)


@inline
def _apply_limits(rule: AllocationRule, available: Mask, probabilities: Floats) -> None:
    """Give every available arm its least probability, and the rest in the given proportions."""
    rest = 1.0
    for arm in range(probabilities.size):
        rest -= (rule.low if arm > 0 else 1.0 - rule.high) if available[arm] else 0.0
    for arm in range(probabilities.size):
        if available[arm]:
            probabilities[arm] = (rule.low if arm > 0 else 1.0 - rule.high) + max(rest, 0.0) * probabilities[arm]


@inline
def logistic(x: float, slope: float, log_c: float, k: float) -> float:
    """Return (1 + c exp(−slope x))^−k."""
    exponent = log_c - slope * x
    return math.exp(-k * (exponent if exponent > MAX_EXPONENT else math.log1p(math.exp(exponent))))


@inner
def mean_logistic(mean: float, sd: float, slope: float, log_c: float, k: float) -> float:
    """Return the mean of (1 + c exp(−slope x))^−k for x ~ N(mean, sd²).

    Gauss–Legendre quadrature between breakpoints of the normal density and of the logistic function.
    """
    width = 1.0 / (slope * min(k, 1.0))
    centre = (log_c - math.log(2.0 ** (1.0 / k) - 1.0)) / slope  # where the function is ½
    points = np.empty(BREAKPOINTS.size + 2 * LOGISTIC_POINTS.size)
    for i in range(BREAKPOINTS.size):
        points[i] = mean + BREAKPOINTS[i] * sd
    low, high = points[0], points[BREAKPOINTS.size - 1]
    for i in range(LOGISTIC_POINTS.size):
        for j in range(2):
            point = centre + (2 * j - 1) * LOGISTIC_POINTS[i] * width
            points[BREAKPOINTS.size + 2 * i + j] = min(max(point, low), high)
    insertion_sort(points)
    total, mass = 0.0, 0.0
    for i in range(points.size - 1):
        middle, half = 0.5 * (points[i] + points[i + 1]), 0.5 * (points[i + 1] - points[i])
        if half > 0.0:
            for node in range(NODES.size):
                x = middle + half * NODES[node]
                deviation = (x - mean) / sd
                weight = half / sd * WEIGHTS[node] * math.exp(-0.5 * deviation * deviation)
                total += weight * logistic(x, slope, log_c, k)
                mass += weight
    return min(total / mass, 1.0) if mass > 0.0 else logistic(mean, slope, log_c, k)
