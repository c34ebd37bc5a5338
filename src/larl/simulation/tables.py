"""What the designer of a trial looks at: candidates × worlds, what the average unit and the worse-off quarter get.

A trial of the comparison is one unit, or a cohort of units. For each candidate in each world: mean, 25th and 75th
percentile over units of total regret and, where every step was kept, of total reward, each with its standard error. Of
reward the worse-off quarter is below the 25th percentile, of regret above the 75th.

The standard error of a percentile is Woodruff's (1952), from order statistics alone: with e = √(p(1−p)/n), half of the
distance between the percentiles p − e and p + e. Units of one cohort are not independent of each other: there each
figure is taken over the units of a cohort, and shown are its mean and standard error over cohorts.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from larl._core.validation import InvalidValue, instance
from larl.simulation.result import Z95, Result

PERCENTILES = {"p25": 0.25, "p75": 0.75}
SIGNS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    sign: f"\\{sign}" for sign in "&%$#_{}"
}


def percentile_error(sample: NDArray[np.float64], level: float) -> float:
    """The standard error of a percentile (Woodruff 1952); nan for a single unit."""
    if sample.size < 2:
        return float("nan")
    away = np.sqrt(level * (1 - level) / sample.size)
    low, high = np.quantile(sample, [max(level - away, 0.0), min(level + away, 1.0)])
    return float(high - low) / 2


def units(result: Result, reference: str | None = None) -> pd.DataFrame:
    """One row a world, candidate and measure: mean, percentiles and their standard errors (columns …_se).

    `difference` is the mean minus that of the policy `reference` (the first unless given), taken trial by trial.
    Candidates of a grid carry its name and their hyper-parameters, a column each.
    """
    reference = instance(Result, "a larl.Result")("units", "result", result)._reference(reference)
    measures = {"regret": result.unit_total()}
    if "reward" in result.data:
        measures["reward"] = result.reward.sum("time")
    points = grid(result)
    keys = list(dict.fromkeys(key for point in points.values() for key in point["parameters"]))
    rows: list[dict[str, Any]] = []
    statistics: dict[str, float] = {}
    for place in result.worlds or [""]:
        for name in result.policies:
            point = points.get(name, {"grid": "", "parameters": {}})
            about = {"world": place, "policy": name}
            if points:
                about |= {"grid": point["grid"]} | {key: point["parameters"].get(key) for key in keys}
            for measure, values in measures.items():
                here = (values.sel(world=place) if place else values).transpose("policy", "trial", ...)
                statistics = _statistics(here.sel(policy=name).values)
                statistics |= _difference(here.sel(policy=name).values, here.sel(policy=reference).values)
                rows.append(about | {"measure": measure, "reference": reference} | statistics)
    # As objects, for whole numbers would become fractions beside a candidate that has none.
    return pd.DataFrame(rows, dtype=object).astype({name: type(value) for name, value in statistics.items()})


def _difference(sample: NDArray[np.float64], reference: NDArray[np.float64]) -> dict[str, float]:
    """Mean of the differences between two samples of the same trials, and its standard error."""
    away = (sample - reference).reshape(sample.shape[0], -1).mean(axis=1)
    return {"difference": float(away.mean()), "difference_se": _error(away)}


def _statistics(sample: NDArray[np.float64]) -> dict[str, float]:
    found = {"units": sample.size, "mean": float(sample.mean())}
    if sample.ndim == 1:
        found["mean_se"] = _error(sample)
        for name, level in PERCENTILES.items():
            found[name], found[f"{name}_se"] = float(np.quantile(sample, level)), percentile_error(sample, level)
        return found
    found["mean_se"] = _error(sample.mean(axis=1))
    for name, level in PERCENTILES.items():
        each = np.quantile(sample, level, axis=1)
        found[name], found[f"{name}_se"] = float(each.mean()), _error(each)
    return found


def _error(sample: NDArray[np.float64]) -> float:
    """The standard error of a mean; nan for a single value."""
    return float(sample.std(ddof=1) / np.sqrt(sample.size)) if sample.size > 1 else float("nan")


def grid(result: Result) -> dict[str, dict[str, Any]]:
    """Candidate → its grid and its hyper-parameters; empty if the study had no grid."""
    found: dict[str, dict[str, Any]] = json.loads(result.data.attrs.get("grid", "{}"))
    return found


def leading(result: Result) -> Result:
    """The result without the candidates of a grid that are best in no world: what figures have room for.

    `shown_note` says which these are.
    """
    points, mean = grid(result), result.total().mean("trial")
    best = set()
    for title in {point["grid"] for point in points.values()}:
        mine = [name for name, point in points.items() if point["grid"] == title]
        best |= {str(name) for name in np.ravel(mean.sel(policy=mine).idxmin("policy").values)}
    kept = [name for name in result.policies if name not in points or name in best]
    return Result(result.data.sel(policy=kept)) if points else result


def shown_note(result: Result) -> str:
    """Which candidates of each grid `leading` shows, out of how many; empty if the study had no grid."""
    points, shown = grid(result), set(leading(result).policies)
    notes = []
    for title in dict.fromkeys(point["grid"] for point in points.values()):
        mine = [name for name, point in points.items() if point["grid"] == title]
        some = sum(name in shown for name in mine)
        notes.append(f"{title}: the best of {len(mine)} candidates" if some == 1 else f"{title}: {some} of {len(mine)}")
    if not notes:
        return ""
    return "; ".join(notes) + " (those with the least mean regret in a world, chosen on these same trials)"


def latex(table: pd.DataFrame) -> str:
    r"""The table of `units` in LaTeX, for \usepackage{booktabs}: standard errors in parentheses."""
    if not isinstance(table, pd.DataFrame) or not {"measure", "policy", "reference"} <= set(table):
        raise InvalidValue("latex", "table", table, "the table that larl.tables.units makes")
    measures = [name for name in ("regret", "reward") if name in set(table["measure"])]
    parts = ["mean", *(["difference"] if table["policy"].nunique() > 1 else []), *PERCENTILES]
    columns = [(name, part) for name in measures for part in parts]
    reference = _escaped(str(table["reference"].iloc[0]))
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
    for place, rows in table.groupby("world", sort=False):
        lines.append(r"\midrule")
        if place:
            lines.append(rf"\multicolumn{{{len(columns) + 1}}}{{l}}{{\textit{{{_escaped(str(place))}}}}} \\")
        for name, each in rows.groupby("policy", sort=False):
            values = each.set_index("measure")
            cells = [_cell(values.loc[measure, part], values.loc[measure, f"{part}_se"]) for measure, part in columns]
            lines.append(" & ".join([_escaped(str(name)), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _cell(value: Any, error: Any) -> str:
    text = f"{value:.1f}" if np.isnan(error) else f"{value:.1f} ({error:.1f})"
    return text.replace("-", "$-$")


def _escaped(text: str) -> str:
    return "".join(SIGNS.get(sign, sign) for sign in text)


def check_axes(text: str, points: Mapping[str, Any]) -> tuple[str, ...]:
    """The one or two hyper-parameters in `s` or `s,alpha`, if one grid of a study's candidates has them."""
    names = [name.strip() for name in text.split(",")] if isinstance(text, str) else []
    grids = {tuple(point.parameters) for point in points.values()}
    if len(names) not in (1, 2) or len(set(names)) < len(names) or not any(set(names) <= set(keys) for keys in grids):
        some = "; ".join(", ".join(keys) for keys in sorted(grids)) or "there is no grid in this study"
        raise InvalidValue("heat map", "hyper-parameters", text, f"one or two of one grid, as s or s,alpha ({some})")
    return tuple(names)


def line(result: Result, parameter: str) -> dict[tuple[str, str], pd.DataFrame]:
    """(grid, world) → for each value of a hyper-parameter the mean total regret and its 95% interval `low`, `high`.

    Where a grid has further hyper-parameters, each trial's regret is first averaged over them.
    """
    points, total, found = grid(result), result.total(), {}
    for title in dict.fromkeys(point["grid"] for point in points.values()):
        mine = {name: point["parameters"] for name, point in points.items() if point["grid"] == title}
        if not all(parameter in parameters for parameters in mine.values()):
            continue
        values: dict[str, list[str]] = {}
        for name, parameters in mine.items():
            values.setdefault(json.dumps(parameters[parameter]), []).append(name)
        for place in result.worlds or [""]:
            here = total.sel(world=place) if place else total
            rows = {}
            for value, names in values.items():
                sample = here.sel(policy=names).mean("policy").values
                mean, half = float(sample.mean()), Z95 * _error(sample)
                rows[value] = {"mean": mean, "low": mean - half, "high": mean + half}
            index = pd.Index([json.loads(value) for value in rows], name=parameter)
            found[title, place] = pd.DataFrame(list(rows.values()), index=index)
    return found


def heat(result: Result, across: str, down: str) -> dict[tuple[str, str], pd.DataFrame]:
    """(grid, world) → mean total regret, a row for each value of `down`, a column for each of `across`.

    Where a grid has further hyper-parameters, it is the mean over them.
    """
    if not grid(result):
        raise InvalidValue("heat", "result", result, "the result of a study with a grid")
    table = units(result)
    for name in (across, down):
        if not isinstance(name, str) or name not in table:
            raise InvalidValue("heat", "hyper-parameter", name, "one of a grid of this study")
    table = table[(table["measure"] == "regret") & (table["grid"] != "")]
    found = {}
    for (title, place), rows in table.groupby(["grid", "world"], sort=False):
        if rows[[across, down]].notna().all(axis=None):
            cells = rows.assign(**{name: [str(value) for value in rows[name]] for name in (across, down)})
            square = cells.pivot_table(index=down, columns=across, values="mean", aggfunc="mean")
            found[str(title), str(place)] = square.loc[cells[down].unique(), cells[across].unique()]
    return found
