"""Tables over units for the design of a trial: how the average unit and the worse-off quarter do under each candidate.

A trial of the comparison is one unit, or a cohort of units. For each candidate in each world, the tables have the mean
and the 25th and 75th percentile over units of total regret and, with keep="all", of total reward, each with its
standard error. The worse-off quarter is below the 25th percentile of reward, and above the 75th percentile of regret.

The standard error of a percentile is Woodruff's (1952): with e = √(p(1−p)/n), half of the distance between the
percentiles p − e and p + e. The units of a cohort are not independent, so for cohorts each statistic is computed within
each cohort, and the tables have its mean and standard error over cohorts.
"""

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from larl._core.dataframes import to_pandas
from larl._core.validation import InvalidValue, instance
from larl.simulation.result import Result

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

PERCENTILES = {"p25": 0.25, "p75": 0.75}
LATEX_ESCAPES = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    character: f"\\{character}" for character in "&%$#_{}"
}


def percentile_error(sample: NDArray[np.float64], level: float) -> float:
    """Return the standard error of a percentile (Woodruff 1952).

    Parameters
    ----------
    sample : array of shape (n,)
        Independent values.
    level : float, in (0, 1)
        0.25 for the 25th percentile.

    Returns
    -------
    float
        The standard error; nan for a single value.

    Examples
    --------
    >>> import larl, numpy
    >>> round(larl.tables.percentile_error(numpy.arange(100.0), 0.25), 2)
    4.29
    """
    if sample.size < 2:
        return float("nan")
    error = np.sqrt(level * (1 - level) / sample.size)
    low, high = np.quantile(sample, [max(level - error, 0.0), min(level + error, 1.0)])
    return float(high - low) / 2


def grid_points(result: Result) -> dict[str, dict[str, Any]]:
    """Return the grid and the parameters of each candidate.

    Parameters
    ----------
    result : Result
        The result of a study.

    Returns
    -------
    dict from str to dict
        For each candidate, `grid` (name of the grid) and `parameters`; empty if the study has no grid.

    Examples
    --------
    >>> import larl
    >>> from larl.simulation.study import Candidate, Study
    >>> candidates = {"LARL s=1": Candidate("LARL", {"s": 1})}
    >>> policies = {"LARL s=1": larl.LARL(1), "UCB": larl.UCB()}
    >>> study = Study({"k = 1": larl.worlds.paper(1)}, policies, horizon=20, trials=2, candidates=candidates)
    >>> larl.tables.grid_points(study.run())
    {'LARL s=1': {'grid': 'LARL', 'parameters': {'s': 1}}}
    """
    points: dict[str, dict[str, Any]] = json.loads(result.data.attrs.get("grid", "{}"))
    return points


def units(result: Result, reference: str | None = None) -> pd.DataFrame:
    """Return statistics over units, with one row for each world, policy and measure (regret, reward).

    Parameters
    ----------
    result : Result
        The result of a comparison or study.
    reference : str, optional
        Policy that the others are compared to, trial by trial; the first by default.

    Returns
    -------
    pandas.DataFrame
        Columns: `world`, `policy`, `measure`, `reference`, `units` (their number), `mean`, `p25`, `p75`, `difference`
        (mean minus that of the reference) and their standard errors (`mean_se`, …). If the study has a grid, also
        `grid` and a column for each hyper-parameter.

    Examples
    --------
    >>> import larl
    >>> policies = {"LARL": larl.LARL(s=1), "UCB": larl.UCB()}
    >>> result = larl.compare(policies, larl.worlds.paper(1), horizon=200, trials=50)
    >>> larl.tables.units(result)[["policy", "measure", "mean", "p75"]].round(1)
      policy measure   mean    p75
    0   LARL  regret   92.8  100.4
    1   LARL  reward  307.4  361.8
    2    UCB  regret  278.5  357.3
    3    UCB  reward  121.6  197.8
    """
    reference = instance(Result, "a larl.Result")("units", "result", result)._check_reference(reference)
    measures = {"regret": result.unit_total()}
    if "reward" in result.data:
        measures["reward"] = result.reward.sum("time")
    points = grid_points(result)
    keys = list(dict.fromkeys(key for point in points.values() for key in point["parameters"]))
    rows: list[dict[str, Any]] = []
    statistics: dict[str, float] = {}
    for world in result.worlds or [""]:
        for name in result.policies:
            point = points.get(name, {"grid": "", "parameters": {}})
            labels = {"world": world, "policy": name}
            if points:
                labels |= {"grid": point["grid"]} | {key: point["parameters"].get(key) for key in keys}
            for measure, values in measures.items():
                totals = (values.sel(world=world) if world else values).transpose("policy", "trial", ...)
                sample = totals.sel(policy=name).values
                statistics = _statistics(sample) | _difference(sample, totals.sel(policy=reference).values)
                rows.append(labels | {"measure": measure, "reference": reference} | statistics)
    # dtype=object: pandas would turn integers into floats in a column that has missing values.
    return pd.DataFrame(rows, dtype=object).astype({name: type(value) for name, value in statistics.items()})


def _difference(sample: NDArray[np.float64], reference: NDArray[np.float64]) -> dict[str, float]:
    """Return the mean of paired differences, and its standard error."""
    difference = (sample - reference).reshape(sample.shape[0], -1).mean(axis=1)
    return {"difference": float(difference.mean()), "difference_se": standard_error(difference)}


def _statistics(sample: NDArray[np.float64]) -> dict[str, float]:
    """Return statistics of a sample of shape (trials,) or (cohorts, units)."""
    statistics = {"units": sample.size, "mean": float(sample.mean())}
    if sample.ndim == 1:
        statistics["mean_se"] = standard_error(sample)
        for name, level in PERCENTILES.items():
            statistics[name] = float(np.quantile(sample, level))
            statistics[f"{name}_se"] = percentile_error(sample, level)
        return statistics
    statistics["mean_se"] = standard_error(sample.mean(axis=1))
    for name, level in PERCENTILES.items():
        percentiles = np.quantile(sample, level, axis=1)
        statistics[name], statistics[f"{name}_se"] = float(percentiles.mean()), standard_error(percentiles)
    return statistics


def standard_error(sample: NDArray[np.float64]) -> float:
    """Return the standard error of the mean; nan for a single value."""
    return float(sample.std(ddof=1) / np.sqrt(sample.size)) if sample.size > 1 else float("nan")


def latex(table: "IntoFrame") -> str:
    r"""Return the table of `units` in LaTeX, with standard errors in parentheses. It needs \usepackage{booktabs}.

    Parameters
    ----------
    table : table of pandas, polars, pyarrow or another library that narwhals supports
        The table of `larl.tables.units`, or some of its rows.

    Returns
    -------
    str
        A tabular environment.

    Examples
    --------
    >>> import larl
    >>> result = larl.compare({"UCB": larl.UCB()}, larl.worlds.paper(1), horizon=200, trials=50)
    >>> print(larl.tables.latex(larl.tables.units(result)).splitlines()[0])
    \begin{tabular}{lrrrrrr}
    """
    accepted = "the table that larl.tables.units makes"
    frame = to_pandas("latex", "table", table, accepted)
    if not {"measure", "policy", "reference"} <= set(frame):
        raise InvalidValue("latex", "table", table, accepted)
    measures = [name for name in ("regret", "reward") if name in set(frame["measure"])]
    parts = ["mean", *(["difference"] if frame["policy"].nunique() > 1 else []), *PERCENTILES]
    columns = [(name, part) for name in measures for part in parts]
    reference = _latex_text(str(frame["reference"].iloc[0]))
    titles = {"mean": "mean", "p25": r"25\,\%", "p75": r"75\,\%", "difference": rf"$-$ {reference}"}
    width = len(parts)
    groups = " & ".join(rf"\multicolumn{{{width}}}{{c}}{{total {name}}}" for name in measures)
    rules = " ".join(rf"\cmidrule(lr){{{2 + width * i}-{1 + width * (i + 1)}}}" for i in range(len(measures)))
    lines = [
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        rf" & {groups} \\",
        rules,
        " & ".join(["candidate", *(titles[part] for _, part in columns)]) + r" \\",
    ]
    for world, rows in frame.groupby("world", sort=False):
        lines.append(r"\midrule")
        if world:
            lines.append(rf"\multicolumn{{{len(columns) + 1}}}{{l}}{{\textit{{{_latex_text(str(world))}}}}} \\")
        for name, row in rows.groupby("policy", sort=False):
            values = row.set_index("measure")
            cells = [_cell(values.loc[measure, part], values.loc[measure, f"{part}_se"]) for measure, part in columns]
            lines.append(" & ".join([_latex_text(str(name)), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _cell(value: Any, error: Any) -> str:
    text = f"{value:.1f}" if np.isnan(error) else f"{value:.1f} ({error:.1f})"
    return text.replace("-", "$-$")


def _latex_text(text: str) -> str:
    return "".join(LATEX_ESCAPES.get(character, character) for character in text)
