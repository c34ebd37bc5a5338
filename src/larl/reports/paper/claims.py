"""A claim with what was measured and a verdict, and the rules by which a verdict is reached."""

import json
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl.policies import Policy, from_dict
from larl.reports.paper.settings import setting
from larl.simulation.result import Z95, Result

HOLDS, CHANGED, FAILS, OPEN = "holds", "holds with a change", "does not hold", "not settled by so few trials"
UNINFORMATIVE = "agrees, and so does choosing at random"
VERDICTS = (HOLDS, CHANGED, UNINFORMATIVE, FAILS, OPEN)
Z_LIMIT = 3.0  # a published mean is reproduced if it is within so many standard errors of ours
LIKE = 0.1  # "performs like Stationary": within this share of the winnable gap

Floats = NDArray[np.float64]
Span = tuple[float, float, float]  # an estimate and its 95% interval


class Claim(NamedTuple):
    """A claim, where the paper makes it, what was measured, and whether it holds."""

    claim: str
    where: str
    measured: str
    verdict: str
    note: str


def verdict(differences: Iterable[Span]) -> str:
    """Whether all differences are positive, one is negative, or their intervals leave it open."""
    spans = list(differences)
    if any(high < 0.0 for _, _, high in spans):
        return FAILS
    return HOLDS if all(low > 0.0 for _, low, _ in spans) else OPEN


def similar(differences: Iterable[Span], limit: float) -> str:
    """Whether all differences are within ± `limit`, one is beyond it, or their intervals leave it open."""
    spans = list(differences)
    if any(low > limit or high < -limit for _, low, high in spans):
        return FAILS
    return HOLDS if all(-limit < low and high < limit for _, low, high in spans) else OPEN


def interval(sample: Floats) -> Span:
    """Mean and 95% interval."""
    mean, error = float(sample.mean()), float(sample.std(ddof=1) / math.sqrt(sample.size))
    return mean, mean - Z95 * error, mean + Z95 * error


def ratio(above: Floats, below: Floats) -> Span:
    """Mean of `above` over mean of `below`, trials paired, with a 95% interval by the delta method."""
    value = float(above.mean() / below.mean())
    rest = above - value * below
    error = float(rest.std(ddof=1) / math.sqrt(rest.size) / abs(below.mean()))
    return value, value - Z95 * error, value + Z95 * error


def totals(result: Result, world: str, skip: str | int = "k") -> dict[str, Floats]:
    """Total regret of every trial, by policy, the first k steps not counted."""
    total = result.total(skip).sel(world=world)
    return {each: total.sel(policy=each).values for each in result.policies}


def saved(total: dict[str, Floats], ours: str, theirs: str) -> Span:
    """How much less regret `ours` has than `theirs`, trials paired."""
    return interval(total[theirs] - total[ours])


def share(total: dict[str, Floats], policy: str, start: str, end: str) -> Span:
    """The share of the gap in regret from `start` to `end` that a policy closes."""
    return ratio(total[start] - total[policy], total[start] - total[end])


def specs(result: Result, world: str) -> dict[str, Policy]:
    """The policies that were played in a world, by name."""
    return {name: from_dict(fields) for name, fields in json.loads(result.data.attrs["policies"])[world].items()}


def settings(result: Result, world: str) -> dict[str, str]:
    """The settings of the policies that were played in a world, in words."""
    return {name: setting(policy) for name, policy in specs(result, world).items()}


def mean_text(sample: Floats) -> str:
    """A mean and its standard error."""
    return f"{sample.mean():.1f} ± {sample.std(ddof=1) / math.sqrt(sample.size):.1f}"


def span_text(values: Span) -> str:
    """An estimate and its interval."""
    return f"{values[0]:.1f} ({values[1]:.1f} to {values[2]:.1f})"


def share_text(values: Span) -> str:
    """A share and its interval, in percent."""
    return f"{values[0]:.0%} ({values[1]:.0%} to {values[2]:.0%})"


def to_json(claims: list[Claim]) -> list[dict[str, Any]]:
    """The claims as JSON types."""
    return [claim._asdict() for claim in claims]
