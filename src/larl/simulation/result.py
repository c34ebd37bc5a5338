"""What a comparison found: labelled traces, totals with their uncertainty, win rates; saved whole and loaded again."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from larl._core.files import write_atomically
from larl._core.validation import InvalidValue, instance, one_of, path_like

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = "larl result 1"
Z95 = 1.959963984540054  # a standard normal stays within ±Z95 with probability 95%


class Result:
    """The outcome of `compare`. Arrays are labelled by policy, trial and time, and by world if there were several.

    Where trials are cohorts, arrays have a unit too. A trial's total is then the mean over its units, whose fates hang
    together: what is uncertain is told from the differences between cohorts.
    """

    def __init__(self, data: xr.Dataset) -> None:
        if not isinstance(data, xr.Dataset) or not {"policy", "trial"} <= set(data.sizes):
            accepted = "the dataset of a Result; larl.compare, larl.load and larl.join make Results"
            raise InvalidValue("Result", "data", data, accepted)
        self.data = data

    @property
    def regret(self) -> xr.DataArray:
        """Regret of every step: (policy, trial, time), with a leading world if there were several."""
        return self._kept("regret")

    @property
    def arm(self) -> xr.DataArray:
        """The arm played at every step."""
        return self._kept("arm")

    @property
    def reward(self) -> xr.DataArray:
        """The reward seen at every step."""
        return self._kept("reward")

    def _kept(self, name: str) -> xr.DataArray:
        if name not in self.data:
            raise InvalidValue("Result", name, "not kept", "compare(..., keep='all') keeps every step")
        return self.data[name]

    @property
    def policies(self) -> list[str]:
        """The names of the policies, as given."""
        return [str(name) for name in self.data["policy"].values]

    @property
    def worlds(self) -> list[str]:
        """The names of the worlds if several were compared, else none."""
        return [str(name) for name in self.data["world"].values] if "world" in self.data.dims else []

    def total(self, skip: int | str = 0) -> xr.DataArray:
        """Total regret of each trial, not counting the first `skip` steps: (policy, trial).

        `skip="k"` leaves out each world's first k steps, which the paper does not count either. Of a cohort it is the
        mean over its units.
        """
        return _over_units(self.unit_total(skip))

    def unit_total(self, skip: int | str = 0) -> xr.DataArray:
        """Total regret of each unit of each trial: (policy, trial, unit); without cohorts a trial is a unit."""
        skip = _skip(skip)
        if "total" in self.data:
            if skip != 0:
                raise InvalidValue("Result.total", "skip", skip, "0, as single steps were not kept (keep='summary')")
            return self.data["total"]
        return self._counted(skip).sum("time").rename("total")

    @property
    def units(self) -> int | None:
        """How many units a cohort has; None where trials are no cohorts."""
        return self.data.sizes.get("unit")

    def _counted(self, skip: int | str) -> xr.DataArray:
        skip = _skip(skip)
        first = self.data["k"] if isinstance(skip, str) else skip
        return self.regret.where(self.data["time"] >= first, 0.0)

    def summary(self, skip: int | str = 0, reference: str | None = None) -> pd.DataFrame:
        """One row for each policy: its total regret, the difference to a reference policy, and its win rates.

        `mean`, `sd`, `se`: mean, standard deviation and standard error of the total regret over trials. `low`, `high`:
        95% interval of the mean. `minus …`: mean regret minus that of the reference policy (the first unless given),
        with its 95% interval in `minus …, low` and `minus …, high`; negative is better than the reference. Policies
        use the same noise, so differences are taken trial by trial; whether two policies differ is read from this
        interval, not from those of the means. `duels won`: share of duels won, a duel
        being a trial of this policy against one other, averaged over the others; ties count half. `beats …`: the same
        against one other policy.
        """
        total, reference = self.total(skip), self._reference(reference)
        trials = total.sizes["trial"]
        sd = total.std("trial", ddof=1) if trials > 1 else total.mean("trial") * np.nan
        mean, error = total.mean("trial"), sd / np.sqrt(trials)
        columns = {"mean": mean, "sd": sd, "se": error, "low": mean - Z95 * error, "high": mean + Z95 * error}
        rates = self.wins(skip)["rate"]
        if len(self.policies) > 1:
            pairs = self.differences(skip, reference)
            columns |= {f"minus {reference}": pairs["mean"]}
            columns |= {f"minus {reference}, {end}": pairs[end] for end in ("low", "high")}
            columns["duels won"] = rates.mean("versus")
            columns |= {f"beats {name}": rates.sel(versus=name, drop=True) for name in self.policies}
        frame = xr.Dataset({name: column.reset_coords(drop=True) for name, column in columns.items()}).to_dataframe()
        if self.worlds:
            order: pd.Index = pd.MultiIndex.from_product([self.worlds, self.policies], names=["world", "policy"])
            frame = frame.reorder_levels(["world", "policy"])
        else:
            order = pd.Index(self.policies, name="policy")
        return frame.loc[order, list(columns)]

    def differences(self, skip: int | str = 0, reference: str | None = None) -> xr.Dataset:
        """Total regret minus that of the reference policy (the first unless given), paired by trial.

        Mean over trials, its standard error `se`, and its 95% interval `low`, `high`. With keep="summary" too, as every
        trial's total is kept.
        """
        total = self.total(skip)
        away = total - total.sel(policy=self._reference(reference), drop=True)
        trials = total.sizes["trial"]
        mean = away.mean("trial")
        error = away.std("trial", ddof=1) / np.sqrt(trials) if trials > 1 else mean * np.nan
        return xr.Dataset({"mean": mean, "se": error, "low": mean - Z95 * error, "high": mean + Z95 * error})

    def _reference(self, name: str | None) -> str:
        return self.policies[0] if name is None else one_of(*self.policies)("Result", "reference", name)

    def wins(self, skip: int | str = 0) -> xr.Dataset:
        """How often the row's policy has less total regret than the column's: rate, and its 95% interval (Wilson 1927).

        A tie counts half for each. A policy against itself is left empty.
        """
        total = self.total(skip)
        other = total.rename(policy="versus")
        n = total.sizes["trial"]
        count = ((total < other) + 0.5 * (total == other)).sum("trial")
        rate = (count / n).where(total["policy"] != other["versus"])
        centre = (rate + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
        half = Z95 / (1 + Z95**2 / n) * np.sqrt(rate * (1 - rate) / n + Z95**2 / (4 * n**2))
        return xr.Dataset({"rate": rate, "low": centre - half, "high": centre + half})

    def curves(self, skip: int | str = 0) -> xr.Dataset:
        """Cumulative regret over time, not counting the first `skip` steps: its mean and sd over trials."""
        if "total" in self.data:
            self.total(skip)
            mean, sd = self.data["mean"], self.data["variance"] ** 0.5
        else:
            cumulative = _over_units(self._counted(skip)).cumsum("time")
            mean, sd = cumulative.mean("trial"), cumulative.std("trial", ddof=min(1, cumulative.sizes["trial"] - 1))
        return xr.Dataset({"mean": mean, "sd": sd}).assign_coords(time=self.data["time"])

    def quartiles(self, skip: int | str = 0) -> xr.Dataset:
        """The quartiles, low and high, of cumulative regret over time, not counting the first `skip` steps."""
        if "total" in self.data:
            self.total(skip)
            low, high = (self.data["quantile"].sel(level=level, drop=True) for level in (0.25, 0.75))
        else:
            cumulative = _over_units(self._counted(skip)).cumsum("time")
            low, high = (cumulative.quantile(level, "trial").drop_vars("quantile") for level in (0.25, 0.75))
        return xr.Dataset({"low": low, "high": high}).assign_coords(time=self.data["time"])

    def to_dataframe(self, skip: int | str = 0) -> pd.DataFrame:
        """One row a (world,) policy and trial: its total regret."""
        return self.total(skip).reset_coords(drop=True).to_dataframe(name="total").reset_index()

    def plot_regret(self, **options: Any) -> "Figure":
        """Mean cumulative regret over time, with a band; see `larl.plots.plot_regret`."""
        from larl.simulation.plots import plot_regret

        return plot_regret(self, **options)

    def plot_wins(self, **options: Any) -> "Figure":
        """Pairwise win rates as a heat map; see `larl.plots.plot_wins`."""
        from larl.simulation.plots import plot_wins

        return plot_wins(self, **options)

    def plot_lookback(self, **options: Any) -> "Figure":
        """Mean total regret over the s of the policies; see `larl.plots.plot_lookback`."""
        from larl.simulation.plots import plot_lookback

        return plot_lookback(self, **options)

    def save(self, path: str | Path) -> Path:
        """Write a NetCDF file (classic format, 64-bit offsets). The same result gives the same bytes."""
        path = path_like("Result.save", "path", path)
        data = self.data.assign_attrs(format=FORMAT)
        largest = max(variable.nbytes for variable in data.variables.values())
        if largest >= 2**31:
            accepted = "keep='summary', or fewer trials: a variable of this file format holds less than 2 GiB"
            raise InvalidValue("Result.save", "largest variable, bytes", largest, accepted)
        wide = [name for name in data.variables if data[name].dtype == np.int64]
        if any(np.abs(data[name]).max(initial=0) >= 2**31 for name in wide):
            accepted = "horizons and trials below 2³¹: this file format has no larger whole numbers"
            raise InvalidValue("Result.save", "time or trial", "too large", accepted)
        encoding = {name: {"dtype": np.int32} for name in wide}
        return write_atomically(
            path, lambda draft: data.to_netcdf(draft, engine="scipy", format="NETCDF3_64BIT", encoding=encoding)
        )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{count} {name}" for name, count in self.data.sizes.items())
        return f"<larl.Result: {sizes}; keep={self.data.attrs['keep']!r}>"


def _skip(value: Any) -> int | str:
    """How many first steps not to count: "k", or a number."""
    if isinstance(value, str) and value == "k":
        return value
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InvalidValue("Result", "skip", value, "a whole number ≥ 0, or 'k' for the k of each world")
    return int(value)


def _over_units(values: xr.DataArray) -> xr.DataArray:
    return values.mean("unit") if "unit" in values.dims else values


def join(results: Iterable[Result]) -> Result:
    """Results of the same policy names, trials and seed in different worlds as one, with a world for each."""
    if isinstance(results, Result) or not isinstance(results, Iterable) or isinstance(results, str | Mapping):
        raise InvalidValue("join", "results", results, "a list of results")
    given = [instance(Result, "a larl.Result")("join", f"results[{i}]", one) for i, one in enumerate(results)]
    if not given:
        raise InvalidValue("join", "results", given, "one result or more")
    parts = [one.data if one.worlds else one.data.expand_dims("world") for one in given]
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


def load(path: str | Path) -> Result:
    """The result that `Result.save` wrote."""
    accepted, path = "a whole file that Result.save wrote", path_like("load", "path", path)
    if not path.is_file():
        raise InvalidValue("load", "path", str(path), f"{accepted}; there is no such file")
    try:
        data = xr.load_dataset(path, engine="scipy")
    except Exception as error:  # whatever a damaged file makes the reader raise
        raise InvalidValue("load", "path", str(path), f"{accepted}; this one cannot be read ({error})") from error
    if data.attrs.pop("format", None) != FORMAT:
        raise InvalidValue("load", "path", str(path), f"{accepted} (format {FORMAT!r})")
    wide = {name: data[name].astype(np.int64) for name in data.variables if data[name].dtype == np.int32}
    return Result(data.assign(wide).assign_coords({n: wide[n] for n in wide if n in data.coords}))
