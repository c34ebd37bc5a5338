"""A log as a table of polars, pyarrow or narwhals gives what the same pandas table gives."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import larl
from larl._core.dataframes import to_pandas
from larl.diagnosis.build import make_log
from tests.diagnosis.logs import simulate_logs, stationary

CONVERSIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "polars": pl.DataFrame,
    "lazy polars": pl.LazyFrame,
    "pyarrow": pa.table,
    "narwhals": lambda columns: nw.from_native(pl.DataFrame(columns)),
}
CASES = {
    "numbers": {"t": [3, 1, 2, 0], "a": [0, 1, 1, 0], "r": [0.1, 0.2, 0.3, 0.4]},
    "missing rewards": {"t": [0, 1, 2, 3], "a": [0, 1, None, 0], "r": [1, None, None, 2]},
    "names": {"t": [0, 1, 0, 1], "a": ["x", "y", "x", "y"], "r": [True, None, False, True], "u": ["p", "p", "q", "q"]},
    "large ids": {"t": [0, 0, 1, 1], "a": [0, 1, 1, 0], "r": [1.0, 2.0, 3.0, 4.0], "u": [2**60, 2**60 + 1] * 2},
    "dates": {"t": [date(2026, 3, day) for day in (1, 2, 4)], "a": [0, 1, 0], "r": [1.0, 2.0, 3.0]},
    "clock": {"t": [datetime(2026, 3, 29, hour) for hour in (1, 2, 4)], "a": [0, 1, 0], "r": [1.0, 2.0, 3.0]},
    "text": {"t": ["31/03/2026 14:30", "01/04/2026", "2/4/2026"], "a": [0, 1, 0], "r": ["1", " 2.5 ", None]},
}
FIELDS = ("arm", "gap", "reward", "unit", "step", "time", "clock")


def assert_equal_logs(one: Any, other: Any) -> None:
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)
    assert (one.labels, one.units, one.missing, one.notes, one.step_name) == (
        *(other.labels, other.units, other.missing, other.notes, other.step_name),
    )


@pytest.mark.parametrize("library", CONVERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_log_equals_that_of_pandas(library, case):
    columns = CASES[case]
    assert_equal_logs(make_log(CONVERSIONS[library](columns)), make_log(pd.DataFrame(columns)))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_diagnosis_equals_that_of_pandas(library):
    frame = next(simulate_logs(stationary(1), 120, 1, seed=8))
    other = CONVERSIONS[library]({name: frame[name].to_list() for name in frame})
    one, two = (larl.diagnose(table, replay=False, progress=False) for table in (frame, other))
    pd.testing.assert_frame_equal(one.table, two.table, check_exact=True)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_times_keep_zone_and_nanoseconds(unit, zone):
    ticks = [1_774_746_000_123_456_789 // {"ms": 10**6, "us": 10**3, "ns": 1}[unit], None, 1]
    expected = pd.Series(pd.to_datetime(pd.array(ticks, dtype="Int64"), unit=unit, utc=True))
    expected = expected.dt.tz_convert(zone) if zone else expected.dt.tz_localize(None)
    for table in (
        pl.DataFrame({"t": pl.Series(ticks, dtype=pl.Int64).cast(pl.Datetime(unit, zone))}),
        pa.table({"t": pa.array(ticks, type=pa.timestamp(unit, tz=zone))}),
    ):
        pd.testing.assert_series_equal(to_pandas("it", "table", table)["t"], expected, check_names=False)
    seconds = to_pandas("it", "table", pa.table({"t": pa.array([86_400], type=pa.timestamp("s"))}))["t"]
    assert seconds[0] == pd.Timestamp("1970-01-02")


def test_local_time_of_day_is_kept():
    times = pl.Series([datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (7, 8, 9)]).dt.convert_time_zone("Asia/Tokyo")
    log = make_log(pl.DataFrame({"t": times, "a": [0, 1, 0], "r": [1.0, 2.0, 3.0]}))
    assert list((log.clock % 86_400) / 3600) == [16.0, 17.0, 18.0]
    assert list((log.time % 86_400) / 3600) == [7.0, 8.0, 9.0]


def test_categories_and_decimals_are_read():
    columns = {"t": [0, 1, 2], "a": pl.Series(["y", "x", "y"], dtype=pl.Categorical), "r": [Decimal("1.5"), None, 2]}
    log = make_log(pl.DataFrame(columns, strict=False))
    assert (log.labels, list(log.reward), log.missing) == (("y",), [1.5, 2.0], 1)


def test_pandas_table_is_used_as_it_is():
    frame = pd.DataFrame(CASES["numbers"])
    assert to_pandas("it", "table", frame) is frame


def test_latex_accepts_any_table():
    result = larl.compare({"A": larl.Random(), "B": larl.RoundRobin()}, stationary(1), horizon=5, trials=3)
    table = larl.tables.units(result)
    expected = larl.tables.latex(table)
    columns = {name: table[name].to_list() for name in table}
    assert [larl.tables.latex(make(columns)) for make in CONVERSIONS.values()] == [expected] * len(CONVERSIONS)


def test_errors_name_row_and_accepted_tables():
    columns = {"t": [0, 1], "a": [0, 1], "r": ["good", "1"]}
    for make in CONVERSIONS.values():
        with pytest.raises(larl.InvalidValue, match=r"row 1, column 'r' = 'good'"):
            make_log(make(columns))
    twice = pa.table([pa.array([0]), pa.array([1])], names=["t", "t"])
    for value in (twice, [1, 2], {"t": [1]}, pl.Series([1]), pd.Series([1]), None):
        with pytest.raises(larl.InvalidValue, match="a table of pandas, polars, pyarrow or another library"):
            larl.diagnose(value, progress=False)
    with pytest.raises(larl.InvalidValue, match="to pandas tables, as larl"):
        larl.plots.plot_heatmap({("LARL", ""): pl.DataFrame(columns)})
