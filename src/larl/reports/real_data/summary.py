"""Tables and sentences of the report on real data, all from the outcomes."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import t as student

from larl.reports.real_data.experiments import FORECASTER, OWN, Outcome
from larl.reports.real_data.problems import window_count
from larl.simulation.result_recorded import FIXED

REFERENCE = "Auto"
BENCHMARKS = (FIXED, FORECASTER)  # known only afterwards, or with the rewards of all arms


def policy_names(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the bandit policies of any problem: the largest mean share first, those of few problems last."""
    names = list(dict.fromkeys(name for outcome in outcomes for name in outcome.policies))
    shares = share_table(outcomes).loc[names]
    return sorted(names, key=lambda name: (shares.loc[name].isna().any(), -shares.loc[name].mean()))


def share_table(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Return the share of every policy and benchmark, policies × problems; nan where a policy did not play."""
    columns = {
        outcome.problem.name: {name: outcome.share(name) for name in (*outcome.policies, *BENCHMARKS)}
        for outcome in outcomes
    }
    return pd.DataFrame(columns)


def interval(difference: float, error: float, windows: int) -> tuple[float, float]:
    """Return the 95% interval of a paired difference over windows, by Student's t; infinite if there is one window."""
    if windows < 2:
        return -math.inf, math.inf
    width = float(student.ppf(0.975, windows - 1)) * error
    return difference - width, difference + width


def verdict(outcome: Outcome, name: str, other: str) -> int:
    """Return 1 if a policy is clearly ahead of another, −1 if clearly behind, 0 if the interval contains 0."""
    low, high = interval(*outcome.difference(name, other), outcome.windows)
    return int(low > 0.0) - int(high < 0.0)


def best_policy(outcome: Outcome, *, baselines: bool = False) -> str:
    """Return the policy with the largest share, of all or of the baselines."""
    names = [name for name in outcome.policies if not (baselines and name in OWN)]
    return max(names, key=outcome.share)


def _mean(values: np.ndarray) -> str:
    """Return a mean and its standard error."""
    if values.size < 2:
        return signed(float(values.mean()))
    return f"{signed(float(values.mean()))} ± {values.std(ddof=1) / math.sqrt(values.size):.1f}"


def signed(value: float) -> str:
    """Return a number with one digit and a typographic minus."""
    return f"{value:.1f}".replace("-", "−")


def summary_table(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Return one row for each policy: means over problems and over data sets, and Auto minus the policy."""
    shares, rows = share_table(outcomes), {}
    for name in (*policy_names(outcomes), *BENCHMARKS):
        played = [outcome for outcome in outcomes if name in outcome.earnings]
        values = shares.loc[name, [outcome.problem.name for outcome in played]].to_numpy(dtype=float)
        by_source = pd.Series(values).groupby([outcome.problem.source for outcome in played]).mean()
        differences = np.array([outcome.difference(REFERENCE, name)[0] for outcome in played])
        verdicts = [verdict(outcome, REFERENCE, name) for outcome in played]
        is_reference = name == REFERENCE
        rows[name] = {
            "problems": len(played),
            "tuned": "yes" if name in played[0].tuned else "no",
            "share": _mean(values),
            "share, data sets": _mean(by_source.to_numpy()),
            f"{REFERENCE} minus it": "–" if is_reference else _mean(differences),
            f"{REFERENCE} ahead": "–" if is_reference else str(verdicts.count(1)),
            f"{REFERENCE} behind": "–" if is_reference else str(verdicts.count(-1)),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def problem_table(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Return one row for each problem: what it is, and its windows."""
    rows = {}
    for outcome in outcomes:
        problem = outcome.problem
        rows[problem.name] = {
            "data": problem.source,
            "rewards": problem.kind,
            "arms": problem.table.shape[1],
            "a step is": problem.step,
            "steps": f"{problem.window:,}",
            "windows: tuning": window_count(problem.tuning_world()),
            "reporting": outcome.windows,
            "missing": f"{100.0 * problem.table.isna().to_numpy().mean():.0f}%",
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def cells_table(outcomes: Sequence[Outcome], names: Sequence[str]) -> pd.DataFrame:
    """Return shares ± standard error over windows; bold: the largest of a policy, and those not clearly behind it."""
    table = pd.DataFrame("–", index=[outcome.problem.name for outcome in outcomes], columns=list(names))
    for outcome in outcomes:
        best = best_policy(outcome)
        for name in names:
            if name in outcome.earnings:
                cell = f"{signed(outcome.share(name))} ± {outcome.error(name):.1f}"
                is_best = name in outcome.policies and (name == best or verdict(outcome, name, best) == 0)
                table.loc[outcome.problem.name, name] = f"**{cell}**" if is_best else cell
    return table


def baseline_table(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Return the best baseline of each problem, and the difference of larl's own policies to it with its interval."""
    rows = {}
    for outcome in outcomes:
        best = best_policy(outcome, baselines=True)
        rows[outcome.problem.name] = {"best baseline": best, "windows": str(outcome.windows)} | {
            name: _difference(outcome, name, best) for name in OWN if name in outcome.earnings
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _difference(outcome: Outcome, name: str, other: str) -> str:
    difference, error = outcome.difference(name, other)
    low, high = interval(difference, error, outcome.windows)
    return f"{signed(difference)} ({signed(low)} to {signed(high)})"


def settings_table(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Return the settings that tuning chose; a star marks one at an end of its grid."""
    names = list(dict.fromkeys(name for outcome in outcomes for name in outcome.tuned))
    table = pd.DataFrame("–", index=[outcome.problem.name for outcome in outcomes], columns=names)
    for outcome in outcomes:
        for name, choice in outcome.tuned.items():
            table.loc[outcome.problem.name, name] = choice.description + (" *" if choice.limits else "")
    return table


def losses(outcomes: Sequence[Outcome]) -> str:
    """Return sentences about where larl's own policies lose to the best baseline."""
    lines = []
    for name in OWN:
        played = [outcome for outcome in outcomes if name in outcome.earnings]
        if not played:
            continue
        rivals = [best_policy(outcome, baselines=True) for outcome in played]
        below = [outcome.share(name) < outcome.share(rival) for outcome, rival in zip(played, rivals, strict=True)]
        verdicts = [verdict(outcome, name, rival) for outcome, rival in zip(played, rivals, strict=True)]
        listed = [
            f"\n    - {outcome.problem.name}: {_difference(outcome, name, rival)}, compared with {rival}"
            for outcome, rival, found in zip(played, rivals, verdicts, strict=True)
            if found < 0
        ]
        lines.append(
            f"- **{name}** earns less than the best baseline in {sum(below)} of {len(played)} problems. It is clearly "
            f"ahead in {verdicts.count(1)} and clearly behind in {len(listed)}{':' if listed else '.'}{''.join(listed)}"
        )
    return "\n".join(lines)


def comparisons_with_benchmarks(outcomes: Sequence[Outcome]) -> str:
    """Return sentences about the reference, the best fixed arm, the forecaster and a random arm."""
    lines = []
    for benchmark, meaning in (
        (FIXED, "the best fixed arm of each window, known only afterwards"),
        (FORECASTER, "the forecaster, which sees the rewards of all arms"),
    ):
        verdicts = [verdict(outcome, REFERENCE, benchmark) for outcome in outcomes]
        lines.append(
            f"- Against {meaning}: {REFERENCE} is clearly ahead in {verdicts.count(1)} problems, "
            f"clearly behind in {verdicts.count(-1)} of {len(outcomes)}."
        )
    worse = [
        f"{name} in {outcome.problem.name} ({signed(outcome.share(name))})"
        for outcome in outcomes
        for name in outcome.policies
        if outcome.share(name) < 0.0
    ]
    lines.append(f"- Worse than a random arm: {', '.join(worse) or 'none'}.")
    return "\n".join(lines)


def leader(outcomes: Sequence[Outcome]) -> str:
    """Return a sentence that names the policy with the largest mean share, and the place of each of larl's own."""
    shares = share_table(outcomes)
    everywhere = [name for name in policy_names(outcomes) if not shares.loc[name].isna().any()]
    means = shares.loc[everywhere].mean(axis=1).sort_values(ascending=False)
    order = list(means.index)
    places = ", ".join(f"{name} {order.index(name) + 1}" for name in OWN if name in order)
    return (
        f"Of the {len(order)} policies that play every problem, {order[0]} has the largest mean share, "
        f"{signed(means.iloc[0])}. Places of larl's own policies: {places}."
    )
