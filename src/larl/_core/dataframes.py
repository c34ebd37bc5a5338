"""Tables of other libraries (polars, pyarrow, … through narwhals) as pandas tables. It does not need pyarrow."""

from typing import TYPE_CHECKING, Any

from larl._core.validation import InvalidValue

if TYPE_CHECKING:
    import narwhals as nw
    import pandas as pd

ACCEPTED = "a table of pandas, polars, pyarrow or another library that narwhals supports"


def to_pandas(owner: str, name: str, table: Any, accepted: str = ACCEPTED) -> "pd.DataFrame":
    """Return a table as a pandas table, a pandas table itself; raise InvalidValue for anything else."""
    import narwhals as nw
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table
    try:
        frame = nw.from_native(table)
    except TypeError as error:
        raise InvalidValue(owner, name, table, accepted) from error
    except nw.exceptions.DuplicateError as error:
        raise InvalidValue(owner, name, table, f"{accepted}; two columns of this table have the same name") from error
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return pd.DataFrame({column: _to_series(frame[column]) for column in frame.columns})


def _to_series(cells: "nw.Series[Any]") -> "pd.Series":
    """Return a column with the dtype that pandas infers for its values; a missing value is missing."""
    import narwhals as nw
    import pandas as pd

    dtype = cells.dtype
    if isinstance(dtype, nw.Datetime):  # Python's datetimes have no nanoseconds
        unit = "us" if dtype.time_unit == "s" else dtype.time_unit
        ticks = pd.Series(cells.dt.timestamp(unit).to_list(), dtype="Int64")
        times = pd.to_datetime(ticks, unit=unit, utc=True)
        return times.dt.tz_convert(dtype.time_zone) if dtype.time_zone else times.dt.tz_localize(None)
    if (dtype.is_integer() or dtype.is_float()) and cells.null_count() == 0:
        return pd.Series(cells.to_numpy())
    return pd.Series(cells.to_list())
