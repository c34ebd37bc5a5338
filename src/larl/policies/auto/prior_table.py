"""The table of a component of a learnt prior, for readers."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from larl.policies.auto.prior import Prior, PriorComponent

COLUMNS = ("population mean", "its 90% interval", "90% of units")
QUANTILE_95 = 1.6448536269514722  # of the standard normal distribution


def describe(part: "PriorComponent", prior: "Prior") -> str:
    """Return a component as a table of text."""
    rows = [("", *COLUMNS), *describe_rows(part, prior)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    return "\n".join([f"Order {part.order}, probability {part.weight:.2f}", *(line.rstrip() for line in lines)])


def describe_rows(part: "PriorComponent", prior: "Prior") -> list[tuple[str, str, str, str]]:
    """Return name, population mean, its 90% interval and the central 90% of units, for each parameter."""
    mean, p, arms, is_binary = np.array(part.mean), part.order, prior.arms, prior.rewards == "binary"
    error, spread = np.sqrt(np.diag(part.mean_covariance)), np.array(part.spread)

    def row(label: str, i: int, transform: Callable[[float], float]) -> tuple[str, str, str, str]:
        def interval(sd: float) -> str:
            low, high = (transform(mean[i] + side * QUANTILE_95 * sd) for side in (-1.0, 1.0))
            return f"{low:.2f} … {high:.2f}"

        return label, f"{transform(mean[i]):.2f}", interval(error[i]), interval(spread[i])

    rows = [row(f"partial autocorrelation {j + 1}", j, math.tanh) for j in range(p)]
    rows += [row(f"size of β, {arm}", p + i, float) for i, arm in enumerate(arms)]
    noise, levels = "noise variance ÷ shock variance", "sd of levels ÷ sd of shocks"
    if is_binary:
        noise, levels = "factor of all β, squared", "sd of levels, probits"
    rows.append(row(noise, p + len(arms), exp_or_large))
    rows.append(row(levels, p + len(arms) + 3, exp_or_large))
    rows += [(f"expected level, {arm}", f"{part.level[i]:.2f}", "", "") for i, arm in enumerate(arms)]
    same = list(zip(arms, part.same_sign, strict=True))[1:]
    rows += [(f"probability that β of {arm} has the sign of {arms[0]}", f"{q:.2f}", "", "") for arm, q in same]
    if part.errors > 0.0:
        rows.append(("sd of a latent shock", f"{part.shock_sd:.3g}", "", ""))
    return rows


def exp_or_large(value: float) -> float:
    """Return exp(value), at most e^50."""
    return math.exp(min(value, 50.0))
