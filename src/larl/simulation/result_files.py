"""Load results from files, and join results of several comparisons."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from larl._core.validation import InvalidValue, instance, path_like
from larl.simulation.netcdf import read_netcdf
from larl.simulation.result import Result


def load(path: str | Path) -> Result:
    """Load a result that `Result.save` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Result
        The result, identical to the saved one.

    Raises
    ------
    InvalidValue
        The file does not exist, is damaged, or was not written by `Result.save`.

    Examples
    --------
    >>> import larl, tempfile
    >>> result = larl.compare({"UCB": larl.UCB()}, larl.worlds.paper(1), horizon=200, trials=50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     loaded = larl.load(result.save(f"{folder}/result.nc"))
    >>> loaded.data.identical(result.data)
    True
    """
    return Result(read_netcdf(path_like("load", "path", path)))


def join(results: Iterable[Result]) -> Result:
    """Join results of the same policy names, trials and seed in different worlds.

    Parameters
    ----------
    results : iterable of Result
        The results. They must agree in seed, keep, names of policies, trials, units and times.

    Returns
    -------
    Result
        One result with all worlds.

    Raises
    ------
    InvalidValue
        The results do not agree, or two worlds have the same name.

    Examples
    --------
    >>> import larl
    >>> parts = [
    ...     larl.compare({"ARUCB": larl.ARUCB(order=k)}, {f"k = {k}": larl.worlds.paper(k)}, horizon=200, trials=50)
    ...     for k in (1, 5)
    ... ]
    >>> larl.join(parts)
    <larl.Result: 2 worlds, 1 policy, 50 trials, 200 steps; keep='all'>
    """
    if isinstance(results, Result) or not isinstance(results, Iterable) or isinstance(results, str | Mapping):
        raise InvalidValue("join", "results", results, "a list of results")
    checked = [instance(Result, "a larl.Result")("join", f"results[{i}]", result) for i, result in enumerate(results)]
    if not checked:
        raise InvalidValue("join", "results", checked, "one or more results")
    parts = [result.data if result.worlds else result.data.expand_dims("world") for result in checked]
    for field, values in (
        ("seed", [part.attrs["seed"] for part in parts]),
        ("keep", [part.attrs["keep"] for part in parts]),
        ("policies", [part["policy"].values.tolist() for part in parts]),
        ("trials", [part.sizes["trial"] for part in parts]),
        ("units", [(part.sizes.get("unit"), part.attrs.get("pooling")) for part in parts]),
        ("times", [part["time"].values.tolist() for part in parts]),
    ):
        if any(value != values[0] for value in values):
            raise InvalidValue("join", field, "not the same", f"results that agree in their {field}")
    names = [name for part in parts for name in part["world"].values.tolist()]
    if len(set(names)) < len(names):
        raise InvalidValue("join", "worlds", names, "worlds of different names")
    data = xr.concat(parts, "world", combine_attrs="drop_conflicts", join="exact")
    for field in ("policies", "worlds"):
        merged: dict[str, Any] = {}
        for part in parts:
            merged |= json.loads(part.attrs[field])
        data.attrs[field] = json.dumps(merged)
    return Result(data)
