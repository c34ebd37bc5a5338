"""Statistics over trials: means, paired differences and win rates, each with a 95% interval."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from larl._core.validation import InvalidValue

Z95 = 1.959963984540054  # a standard normal lies within ±Z95 with probability 95%


def check_skip(value: Any) -> int | str:
    """Return the number of first steps to skip, or "k"; raise InvalidValue for anything else."""
    if isinstance(value, str) and value == "k":
        return value
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InvalidValue("Result", "skip", value, "a whole number ≥ 0, or 'k' for the k of each world")
    return int(value)


def mean_over_units(values: xr.DataArray) -> xr.DataArray:
    """Return the mean over the units of each cohort; without cohorts, the values."""
    return values.mean("unit") if "unit" in values.dims else values


def mean_interval(sample: xr.DataArray) -> xr.Dataset:
    """Return mean, sd and standard error over trials, and the mean's 95% interval; for one trial only the mean."""
    trials = sample.sizes["trial"]
    mean = sample.mean("trial")
    sd = sample.std("trial", ddof=1) if trials > 1 else mean * np.nan
    error = sd / np.sqrt(trials)
    return xr.Dataset({"mean": mean, "sd": sd, "se": error, "low": mean - Z95 * error, "high": mean + Z95 * error})


def win_rates(total: xr.DataArray) -> xr.Dataset:
    """Return how often the row's policy has less regret than the column's, with its interval (Wilson 1927)."""
    other = total.rename(policy="versus")
    n = total.sizes["trial"]
    count = ((total < other) + 0.5 * (total == other)).sum("trial")
    rate = (count / n).where(total["policy"] != other["versus"])
    centre = (rate + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * np.sqrt(rate * (1 - rate) / n + Z95**2 / (4 * n**2))
    return xr.Dataset({"rate": rate, "low": centre - half, "high": centre + half})


def to_table(columns: Mapping[str, xr.DataArray], worlds: list[str], policies: list[str]) -> pd.DataFrame:
    """Return the columns as a table with one row for each (world and) policy."""
    frame = xr.Dataset({name: column.reset_coords(drop=True) for name, column in columns.items()}).to_dataframe()
    if worlds:
        order: pd.Index = pd.MultiIndex.from_product([worlds, policies], names=["world", "policy"])
        frame = frame.reorder_levels(["world", "policy"])
    else:
        order = pd.Index(policies, name="policy")
    return frame.loc[order, list(columns)]
