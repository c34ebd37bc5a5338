"""A claim of the paper with its measurement and verdict, and the rules that decide a verdict."""

import json
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl.policies import Policy, from_dict
from larl.reports.paper.settings import describe_settings
from larl.simulation.result import Z95, Result

HOLDS, CHANGED, FAILS, OPEN = "holds", "holds with a change", "does not hold", "undecided: too few trials"
UNINFORMATIVE = "agrees, but so does random choice"
VERDICTS = (HOLDS, CHANGED, UNINFORMATIVE, FAILS, OPEN)
Z_LIMIT = 3.0  # a published mean counts as reproduced if it is within this many standard errors of ours
SIMILAR_LIMIT = 0.1  # "performs like Stationary": within this share of the gap from Stationary to the Kalman filter

Floats = NDArray[np.float64]
Estimate = tuple[float, float, float]  # a value and the lower and upper end of its 95% interval


class Claim(NamedTuple):
    """A claim, where the paper makes it, what was measured, and whether it holds."""

    claim: str
    where: str
    measured: str
    verdict: str
    note: str


def judge_positive(differences: Iterable[Estimate]) -> str:
    """Return HOLDS if all differences are significantly positive, FAILS if one is significantly negative, else OPEN."""
    estimates = list(differences)
    if any(high < 0.0 for _, _, high in estimates):
        return FAILS
    return HOLDS if all(low > 0.0 for _, low, _ in estimates) else OPEN


def judge_similar(differences: Iterable[Estimate], limit: float) -> str:
    """Return HOLDS if all intervals are within ± `limit`, FAILS if one is entirely outside, else OPEN."""
    estimates = list(differences)
    if any(low > limit or high < -limit for _, low, high in estimates):
        return FAILS
    return HOLDS if all(-limit < low and high < limit for _, low, high in estimates) else OPEN


def mean_estimate(sample: Floats) -> Estimate:
    """Return the mean with its 95% interval."""
    mean, error = float(sample.mean()), float(sample.std(ddof=1) / math.sqrt(sample.size))
    return mean, mean - Z95 * error, mean + Z95 * error


def ratio_estimate(numerator: Floats, denominator: Floats) -> Estimate:
    """Return the ratio of two means over paired trials, with a 95% interval by the delta method."""
    value = float(numerator.mean() / denominator.mean())
    residual = numerator - value * denominator
    error = float(residual.std(ddof=1) / math.sqrt(residual.size) / abs(denominator.mean()))
    return value, value - Z95 * error, value + Z95 * error


def total_regrets(result: Result, world: str, skip: str | int = "k") -> dict[str, Floats]:
    """Return the total regret of every trial, by policy, without the first `skip` steps."""
    total = result.total(skip).sel(world=world)
    return {policy: total.sel(policy=policy).values for policy in result.policies}


def regret_saved(regret: dict[str, Floats], policy: str, baseline: str) -> Estimate:
    """Return how much less regret `policy` has than `baseline`, over paired trials."""
    return mean_estimate(regret[baseline] - regret[policy])


def share_closed(regret: dict[str, Floats], policy: str, worst: str, best: str) -> Estimate:
    """Return the share of the regret gap between the policies `worst` and `best` that `policy` closes."""
    return ratio_estimate(regret[worst] - regret[policy], regret[worst] - regret[best])


def policies_in(result: Result, world: str) -> dict[str, Policy]:
    """Return the policies that were simulated in a world, by name."""
    return {name: from_dict(fields) for name, fields in json.loads(result.data.attrs["policies"])[world].items()}


def settings_in(result: Result, world: str) -> dict[str, str]:
    """Return the settings of the policies that were simulated in a world, as text."""
    return {name: describe_settings(policy) for name, policy in policies_in(result, world).items()}


def format_mean(sample: Floats) -> str:
    """Return a mean and its standard error as text."""
    return f"{sample.mean():.1f} ± {sample.std(ddof=1) / math.sqrt(sample.size):.1f}"


def format_estimate(estimate: Estimate) -> str:
    """Return a value and its interval as text."""
    return f"{estimate[0]:.1f} ({estimate[1]:.1f} to {estimate[2]:.1f})"


def format_share(estimate: Estimate) -> str:
    """Return a share and its interval as text, in percent."""
    return f"{estimate[0]:.0%} ({estimate[1]:.0%} to {estimate[2]:.0%})"


def to_json(claims: list[Claim]) -> list[dict[str, Any]]:
    """Return the claims as JSON types."""
    return [claim._asdict() for claim in claims]
