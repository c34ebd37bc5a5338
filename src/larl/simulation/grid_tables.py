"""Tables of a study with a grid: its best candidates, and regret over one or two hyper-parameters."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from larl._core.validation import InvalidValue
from larl.simulation.result import Result
from larl.simulation.result_statistics import Z95
from larl.simulation.unit_tables import grid_points, standard_error, units


def _candidates_by_grid(result: Result) -> dict[str, dict[str, dict[str, Any]]]:
    """Return, for each grid of a study, its candidates and their parameters."""
    grids: dict[str, dict[str, dict[str, Any]]] = {}
    for name, point in grid_points(result).items():
        grids.setdefault(point["grid"], {})[name] = point["parameters"]
    return grids


def best_candidates(result: Result) -> Result:
    """Return the result without the candidates of a grid that have the least mean regret in no world.

    Figures show these candidates only. `candidates_note` says how many there are.

    Parameters
    ----------
    result : Result
        The result of a study.

    Returns
    -------
    Result
        The result with fewer policies; the same result if the study has no grid.

    Examples
    --------
    >>> import larl
    >>> from larl.simulation.study import Candidate, Study
    >>> names = {f"LARL s={s}": s for s in (1, 2)}
    >>> policies = {name: larl.LARL(s) for name, s in names.items()} | {"UCB": larl.UCB()}
    >>> candidates = {name: Candidate("LARL", {"s": s}) for name, s in names.items()}
    >>> study = Study({"k = 1": larl.worlds.paper(1)}, policies, horizon=200, trials=50, candidates=candidates)
    >>> larl.tables.best_candidates(study.run()).policies
    ['LARL s=1', 'UCB']
    """
    grids, mean = _candidates_by_grid(result), result.total().mean("trial")
    if not grids:
        return result
    best, candidates = set[str](), set[str]()
    for names in map(list, grids.values()):
        candidates.update(names)
        best.update(str(name) for name in np.ravel(mean.sel(policy=names).idxmin("policy").values))
    kept = [name for name in result.policies if name not in candidates or name in best]
    return Result(result.data.sel(policy=kept))


def candidates_note(result: Result) -> str:
    """Return a note on how many candidates of each grid `best_candidates` keeps.

    Parameters
    ----------
    result : Result
        The result of a study.

    Returns
    -------
    str
        The note; empty if the study has no grid.

    Examples
    --------
    >>> import larl
    >>> from larl.simulation.study import Candidate, Study
    >>> policies = {f"LARL s={s}": larl.LARL(s) for s in (1, 2)}
    >>> candidates = {f"LARL s={s}": Candidate("LARL", {"s": s}) for s in (1, 2)}
    >>> study = Study({"k = 1": larl.worlds.paper(1)}, policies, horizon=200, trials=50, candidates=candidates)
    >>> larl.tables.candidates_note(study.run())
    'LARL: the best of 2 candidates (those with the least mean regret in a world, chosen on these same trials)'
    """
    shown, notes = set(best_candidates(result).policies), []
    for grid, names in _candidates_by_grid(result).items():
        count = sum(name in shown for name in names)
        notes.append(
            f"{grid}: the best of {len(names)} candidates" if count == 1 else f"{grid}: {count} of {len(names)}"
        )
    if not notes:
        return ""
    return "; ".join(notes) + " (those with the least mean regret in a world, chosen on these same trials)"


def check_axes(text: str, candidates: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the one or two hyper-parameters in `s` or `s,alpha`, or raise InvalidValue if no grid has them."""
    names = [name.strip() for name in text.split(",")] if isinstance(text, str) else []
    grids = {tuple(candidate.parameters) for candidate in candidates.values()}
    if len(names) not in (1, 2) or len(set(names)) < len(names) or not any(set(names) <= set(keys) for keys in grids):
        available = "; ".join(", ".join(keys) for keys in sorted(grids)) or "there is no grid in this study"
        accepted = f"one or two of one grid, as s or s,alpha ({available})"
        raise InvalidValue("heat map", "hyper-parameters", text, accepted)
    return tuple(names)


def line(result: Result, parameter: str) -> dict[tuple[str, str], pd.DataFrame]:
    """Return mean total regret over one hyper-parameter, for each grid that has it and each world.

    If a grid has further hyper-parameters, each trial's regret is first averaged over them.

    Parameters
    ----------
    result : Result
        The result of a study with a grid.
    parameter : str
        Name of the hyper-parameter.

    Returns
    -------
    dict from (grid, world) to pandas.DataFrame
        Indexed by the values of the parameter; columns `mean`, and its 95% interval `low`, `high`.

    Examples
    --------
    >>> import larl
    >>> from larl.simulation.study import Candidate, Study
    >>> policies = {f"LARL s={s}": larl.LARL(s) for s in (1, 2)}
    >>> candidates = {f"LARL s={s}": Candidate("LARL", {"s": s}) for s in (1, 2)}
    >>> study = Study({"k = 1": larl.worlds.paper(1)}, policies, horizon=200, trials=50, candidates=candidates)
    >>> larl.tables.line(study.run(), "s")["LARL", "k = 1"]["mean"].round(1).to_dict()
    {1: 92.8, 2: 99.7}
    """
    total, tables = result.total(), {}
    for grid, candidates in _candidates_by_grid(result).items():
        if not all(parameter in parameters for parameters in candidates.values()):
            continue
        names_by_value: dict[str, list[str]] = {}
        for name, parameters in candidates.items():
            names_by_value.setdefault(json.dumps(parameters[parameter]), []).append(name)
        for world in result.worlds or [""]:
            totals = total.sel(world=world) if world else total
            rows = []
            for names in names_by_value.values():
                sample = totals.sel(policy=names).mean("policy").values
                mean, half = float(sample.mean()), Z95 * standard_error(sample)
                rows.append({"mean": mean, "low": mean - half, "high": mean + half})
            index = pd.Index([json.loads(value) for value in names_by_value], name=parameter)
            tables[grid, world] = pd.DataFrame(rows, index=index)
    return tables


def heatmap(result: Result, across: str, down: str) -> dict[tuple[str, str], pd.DataFrame]:
    """Return mean total regret over two hyper-parameters, for each grid that has both and each world.

    If a grid has further hyper-parameters, the mean is over them too.

    Parameters
    ----------
    result : Result
        The result of a study with a grid.
    across, down : str
        Hyper-parameters of the columns and of the rows.

    Returns
    -------
    dict from (grid, world) to pandas.DataFrame
        Rows and columns are the values of the hyper-parameters, as strings.

    Raises
    ------
    InvalidValue
        The study has no grid, or no grid with these hyper-parameters.

    Examples
    --------
    >>> import larl
    >>> from larl.simulation.study import Candidate, Study
    >>> points = {f"LARL s={s} alpha={alpha}": (s, alpha) for s in (1, 2) for alpha in (0.5, 1.0)}
    >>> policies = {name: larl.LARL(s, alpha) for name, (s, alpha) in points.items()}
    >>> candidates = {name: Candidate("LARL", {"s": s, "alpha": alpha}) for name, (s, alpha) in points.items()}
    >>> study = Study({"k = 1": larl.worlds.paper(1)}, policies, horizon=200, trials=50, candidates=candidates)
    >>> larl.tables.heatmap(study.run(), "s", "alpha")["LARL", "k = 1"].round(1).loc["0.5"].to_dict()
    {'1': 88.8, '2': 94.6}
    """
    if not grid_points(result):
        raise InvalidValue("heatmap", "result", result, "the result of a study with a grid")
    table = units(result)
    for name in (across, down):
        if not isinstance(name, str) or name not in table:
            raise InvalidValue("heatmap", "hyper-parameter", name, "one of a grid of this study")
    table = table[(table["measure"] == "regret") & (table["grid"] != "")]
    tables = {}
    for (grid, world), rows in table.groupby(["grid", "world"], sort=False):
        if rows[[across, down]].notna().all(axis=None):
            cells = rows.assign(**{name: [str(value) for value in rows[name]] for name in (across, down)})
            square = cells.pivot_table(index=down, columns=across, values="mean", aggfunc="mean")
            tables[str(grid), str(world)] = square.loc[cells[down].unique(), cells[across].unique()]
    return tables
