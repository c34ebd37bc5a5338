"""The result of a comparison: regret of every policy, statistics over trials, and figures."""

from pathlib import Path

import pandas as pd
import xarray as xr

from larl._core.validation import InvalidValue, one_of, path_like
from larl.simulation.netcdf import write_netcdf
from larl.simulation.result_figures import ResultFigures
from larl.simulation.result_recorded import RecordedSummary
from larl.simulation.result_statistics import Z95 as Z95
from larl.simulation.result_statistics import check_skip, mean_interval, mean_over_units, to_table, win_rates


class Result(ResultFigures, RecordedSummary):
    """The result of `compare`: arrays labelled by policy, trial and time, and by world if there are several.

    For cohorts, arrays also have a unit. A trial's total is then the mean over its units, and standard errors come from
    the differences between cohorts, because the units of a cohort are not independent.

    Attributes
    ----------
    data : xarray.Dataset
        All arrays; its attributes hold the seed and the specifications of policies and worlds.

    Examples
    --------
    >>> import larl
    >>> result = larl.compare(
    ...     {"LARL": larl.LARL(s=1), "UCB": larl.UCB()}, larl.worlds.paper(1), horizon=200, trials=50
    ... )
    >>> result
    <larl.Result: 2 policies, 50 trials, 200 steps; keep='all'>
    >>> result.regret.shape, result.policies
    ((2, 50, 200), ['LARL', 'UCB'])
    """

    def __init__(self, data: xr.Dataset) -> None:
        if not isinstance(data, xr.Dataset) or not {"policy", "trial"} <= set(data.sizes):
            accepted = "the dataset of a Result; larl.compare, larl.load and larl.join make Results"
            raise InvalidValue("Result", "data", data, accepted)
        self.data = data

    @property
    def regret(self) -> xr.DataArray:
        """Regret of every step: (policy, trial, time), with world first if there are several."""
        return self._step_variable("regret")

    @property
    def arm(self) -> xr.DataArray:
        """Chosen arm of every step."""
        return self._step_variable("arm")

    @property
    def reward(self) -> xr.DataArray:
        """Observed reward of every step."""
        return self._step_variable("reward")

    def _step_variable(self, name: str) -> xr.DataArray:
        if name not in self.data:
            raise InvalidValue("Result", name, "not kept", "compare(..., keep='all') keeps every step")
        return self.data[name]

    @property
    def policies(self) -> list[str]:
        """Names of the policies, in the order of `compare`."""
        return [str(name) for name in self.data["policy"].values]

    @property
    def worlds(self) -> list[str]:
        """Names of the worlds; empty if `compare` got a single world without a name."""
        return [str(name) for name in self.data["world"].values] if "world" in self.data.dims else []

    @property
    def units(self) -> int | None:
        """Units of a cohort, or None if trials are not cohorts."""
        return self.data.sizes.get("unit")

    def total(self, skip: int | str = 0) -> xr.DataArray:
        """Return the total regret of each trial; for a cohort, the mean over its units.

        Parameters
        ----------
        skip : int, >= 0, or "k", default 0
            Number of first steps that do not count. "k" skips the first k steps of each world, as in the paper.

        Returns
        -------
        xarray.DataArray
            Total regret: (policy, trial), with world first if there are several.

        Examples
        --------
        >>> import larl
        >>> result = larl.compare({"UCB": larl.UCB()}, larl.worlds.paper(1), horizon=50, trials=4)
        >>> result.total().values.round(1)
        array([[52.1, 53.6, 66.8, 16.2]])
        """
        return mean_over_units(self.unit_total(skip))

    def unit_total(self, skip: int | str = 0) -> xr.DataArray:
        """Return the total regret of each unit: (policy, trial, unit). Without cohorts it equals `total`.

        Examples
        --------
        >>> import larl
        >>> result = larl.compare({"UCB": larl.UCB()}, larl.worlds.paper(1), horizon=50, trials=2, units=3)
        >>> result.unit_total().values.round(1)
        array([[[52.1, 53.6, 66.8],
                [16.2, 78.1, 63.8]]])
        """
        skip = check_skip(skip)
        if "total" in self.data:
            if skip != 0:
                raise InvalidValue("Result.total", "skip", skip, "0, because keep='summary' does not keep single steps")
            return self.data["total"]
        return self._regret_after(skip).sum("time").rename("total")

    def _regret_after(self, skip: int | str) -> xr.DataArray:
        """Return the regret of every step, with 0 for the first `skip` steps."""
        skip = check_skip(skip)
        first = self.data["k"] if isinstance(skip, str) else skip
        return self.regret.where(self.data["time"] >= first, 0.0)

    def summary(self, skip: int | str = 0, reference: str | None = None) -> pd.DataFrame:
        """Return one row for each policy: its total regret, the difference to a reference policy, and its win rates.

        Policies get the same noise, so differences are taken trial by trial. Use the interval of the difference, not
        the intervals of the means, to decide whether two policies differ.

        Parameters
        ----------
        skip : int, >= 0, or "k", default 0
            Number of first steps that do not count; see `total`.
        reference : str, optional
            Name of the reference policy; the first policy by default.

        Returns
        -------
        pandas.DataFrame
            Indexed by policy, or by world and policy. Columns: `mean`, `sd`, `se` (mean, standard deviation and
            standard error of the total regret over trials); `low`, `high` (95% interval of the mean);
            `minus REFERENCE` (mean difference, negative if the policy is better) with `minus REFERENCE, low` and
            `minus REFERENCE, high` (its 95% interval); `duels won` (mean win rate against each other policy; a tie
            counts half); `beats NAME` (win rate against one policy).

        Examples
        --------
        >>> import larl
        >>> policies = {"LARL": larl.LARL(s=1), "UCB": larl.UCB()}
        >>> result = larl.compare(policies, larl.worlds.paper(1), horizon=200, trials=50)
        >>> result.summary()[["mean", "se", "minus LARL", "duels won"]].round(2).reset_index()
          policy    mean     se  minus LARL  duels won
        0   LARL   92.76   4.30        0.00        1.0
        1    UCB  278.55  17.38      185.79        0.0
        """
        total, reference = self.total(skip), self._check_reference(reference)
        columns = {str(name): values for name, values in mean_interval(total).items()}
        if len(self.policies) > 1:
            pairs, rates = self.differences(skip, reference), win_rates(total)["rate"]
            columns |= {f"minus {reference}": pairs["mean"]}
            columns |= {f"minus {reference}, {end}": pairs[end] for end in ("low", "high")}
            columns["duels won"] = rates.mean("versus")
            columns |= {f"beats {name}": rates.sel(versus=name, drop=True) for name in self.policies}
        return to_table(columns, self.worlds, self.policies)

    def differences(self, skip: int | str = 0, reference: str | None = None) -> xr.Dataset:
        """Return total regret minus that of a reference policy, paired by trial.

        Parameters
        ----------
        skip : int, >= 0, or "k", default 0
            Number of first steps that do not count; see `total`.
        reference : str, optional
            Name of the reference policy; the first policy by default.

        Returns
        -------
        xarray.Dataset
            `mean` over trials, its standard error `se`, and its 95% interval `low`, `high`.

        Examples
        --------
        >>> import larl
        >>> policies = {"LARL": larl.LARL(s=1), "UCB": larl.UCB()}
        >>> result = larl.compare(policies, larl.worlds.paper(1), horizon=200, trials=50)
        >>> result.differences().sel(policy="UCB")["mean"].round(1).item()
        185.8
        """
        difference = (total := self.total(skip)) - total.sel(policy=self._check_reference(reference), drop=True)
        return mean_interval(difference)[["mean", "se", "low", "high"]]

    def _check_reference(self, name: str | None) -> str:
        return self.policies[0] if name is None else one_of(*self.policies)("Result", "reference", name)

    def wins(self, skip: int | str = 0) -> xr.Dataset:
        """Return how often one policy has less total regret than another in the same trial.

        Parameters
        ----------
        skip : int, >= 0, or "k", default 0
            Number of first steps that do not count; see `total`.

        Returns
        -------
        xarray.Dataset
            `rate`, and its 95% interval `low`, `high` (Wilson 1927), with dimensions policy and versus. A tie counts
            half; a policy against itself is nan.

        Examples
        --------
        >>> policies = {"LARL": larl.LARL(s=1), "UCB": larl.UCB()}
        >>> result = larl.compare(policies, larl.worlds.paper(1), horizon=200, trials=50)
        >>> result.wins()["rate"].sel(policy="LARL", versus="UCB").item()
        1.0
        """
        return win_rates(self.total(skip))

    def curves(self, skip: int | str = 0) -> xr.Dataset:
        """Return `mean` and `sd` over trials of cumulative regret at each time; for `skip` see `total`.

        Examples
        --------
        >>> import larl
        >>> result = larl.compare({"UCB": larl.UCB()}, larl.worlds.paper(1), horizon=200, trials=50)
        >>> result.curves()["mean"].isel(time=[49, 99, 199]).values.round(1)
        array([[ 49.6, 128.2, 278.5]])
        """
        if "total" in self.data:
            self.total(skip)
            mean, sd = self.data["mean"], self.data["variance"] ** 0.5
        else:
            cumulative = mean_over_units(self._regret_after(skip)).cumsum("time")
            mean, sd = cumulative.mean("trial"), cumulative.std("trial", ddof=min(1, cumulative.sizes["trial"] - 1))
        return xr.Dataset({"mean": mean, "sd": sd}).assign_coords(time=self.data["time"])

    def quartiles(self, skip: int | str = 0) -> xr.Dataset:
        """Return the quartiles `low` and `high` of cumulative regret at each time; for `skip` see `total`.

        Examples
        --------
        >>> import larl
        >>> result = larl.compare({"UCB": larl.UCB()}, larl.worlds.paper(1), horizon=200, trials=50)
        >>> result.quartiles()["low"].isel(time=[49, 99, 199]).values.round(1)
        array([[ 26.1,  72. , 194.9]])
        """
        if "total" in self.data:
            self.total(skip)
            low, high = (self.data["quantile"].sel(level=level, drop=True) for level in (0.25, 0.75))
        else:
            cumulative = mean_over_units(self._regret_after(skip)).cumsum("time")
            low, high = (cumulative.quantile(level, "trial").drop_vars("quantile") for level in (0.25, 0.75))
        return xr.Dataset({"low": low, "high": high}).assign_coords(time=self.data["time"])

    def to_dataframe(self, skip: int | str = 0) -> pd.DataFrame:
        """Return the total regret as a table with columns (world,) policy, trial and total; for `skip` see `total`.

        Examples
        --------
        >>> import larl
        >>> result = larl.compare({"UCB": larl.UCB()}, larl.worlds.paper(1), horizon=50, trials=2)
        >>> result.to_dataframe().round(1)
          policy  trial  total
        0    UCB      0   52.1
        1    UCB      1   53.6
        """
        return self.total(skip).reset_coords(drop=True).to_dataframe(name="total").reset_index()

    def save(self, path: str | Path) -> Path:
        """Write a NetCDF file that `larl.load` reads. Equal results give identical files.

        Parameters
        ----------
        path : str or Path
            The file. It is complete or absent, also if the process is killed.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InvalidValue
            A variable has 2 GiB or more: use ``keep="summary"`` or fewer trials.

        Examples
        --------
        >>> import larl, tempfile
        >>> result = larl.compare({"UCB": larl.UCB()}, larl.worlds.paper(1), horizon=50, trials=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     larl.load(result.save(f"{folder}/run.nc")).data.identical(result.data)
        True
        """
        return write_netcdf(self.data, path_like("Result.save", "path", path))

    def __repr__(self) -> str:
        keep = self.data.attrs["keep"]
        plurals = {"policy": "policies", "time": "steps" if keep == "all" else "times"}
        names = {
            name: name if count == 1 else plurals.get(str(name), f"{name}s") for name, count in self.data.sizes.items()
        }
        sizes = ", ".join(f"{count} {names[name]}" for name, count in self.data.sizes.items())
        return f"<larl.Result: {sizes}; keep={keep!r}>"
