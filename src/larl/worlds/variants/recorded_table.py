"""The table of a `Recorded` world: rewards of all arms at all times, from a file, a data frame or an array."""

import hashlib
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from larl._core.validation import LARGEST, WITHIN_LIMITS, InvalidValue
from larl.worlds.kernels import Floats

if TYPE_CHECKING:
    import pandas as pd

OWNER = "Recorded"
ACCEPTED = (
    "a table of numbers, time × arms: a path of a CSV or Parquet file, a data frame (pandas, polars, pyarrow, …), "
    "an xarray.DataArray, an array or rows of numbers"
)
CELL = f"{WITHIN_LIMITS}, true, false, or a missing cell"
MAX_NAMES = 5  # names of arms in a repr


class RewardTable:
    """Rewards (rows, arms) with the names of the arms; nan if missing. Equal tables have equal cells and names.

    `path` is the file that they were read from, or None. A table with a path is pickled as its path and checksum.
    """

    def __init__(self, values: Floats, names: tuple[str, ...], path: str | None = None) -> None:
        self.values = np.ascontiguousarray(values, dtype=np.float64)
        self.values.flags.writeable = False
        self.names, self.path = names, path
        digest = hashlib.sha256(repr((names, self.values.shape)).encode())
        canonical = np.where(np.isnan(self.values), np.nan, self.values + 0.0)  # one nan, and no −0
        digest.update(canonical.astype("<f8").tobytes())
        self.checksum = digest.hexdigest()[:32]

    @property
    def rows(self) -> int:
        """Number of times."""
        return self.values.shape[0]

    @property
    def has_missing(self) -> bool:
        """Whether a cell is missing."""
        return bool(np.isnan(self.values).any())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RewardTable) and self.checksum == other.checksum

    def __hash__(self) -> int:
        return hash(self.checksum)

    def __repr__(self) -> str:
        names = ", ".join(self.names[:MAX_NAMES]) + (", …" if len(self.names) > MAX_NAMES else "")
        source = f" of {Path(self.path).name}" if self.path else ""
        return f"<{self.rows:,} rows × {len(self.names):,} arms ({names}){source}>"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        if self.path is None:
            return RewardTable, (self.values, self.names)
        return load_unchanged, (self.path, self.names, self.checksum)

    def to_json(self) -> Any:
        """Return the path, or the rows with None for missing cells."""
        if self.path is not None:
            return self.path
        return [[None if cell != cell else cell for cell in row] for row in self.values.tolist()]


def read_rewards(table: Any, columns: tuple[str, ...] | None) -> RewardTable:
    """Return the table that a user gave; raise InvalidValue if it cannot be used."""
    if isinstance(table, RewardTable):
        return table if columns in (None, table.names) else _choose(table, columns or ())
    if isinstance(table, str | PathLike):
        path = str(Path(table).absolute())
        from larl._core.table_files import read_table_file

        found = _from_frame(read_table_file(OWNER, "table", path), columns)
        return RewardTable(found.values, found.names, path)
    if "xarray" in sys.modules and isinstance(table, sys.modules["xarray"].DataArray):
        if table.ndim != 2:
            raise InvalidValue(OWNER, "table", table, "an xarray.DataArray with two dimensions, time and arms")
        named = table.dims[1] in table.coords
        names = tuple(str(name) for name in table.coords[table.dims[1]].values) if named else None
        return _from_array(table.values, names, columns)
    if isinstance(table, np.ndarray | list | tuple):
        return _from_array(table, None, columns)
    from larl._core.dataframes import to_pandas

    return _from_frame(to_pandas(OWNER, "table", table, ACCEPTED), columns)


@lru_cache(4)
def load_unchanged(path: str, names: tuple[str, ...], checksum: str) -> RewardTable:
    """Return the table of a file; raise InvalidValue if it is not the one that had this checksum."""
    table = read_rewards(path, names)
    check_unchanged(table, checksum)
    return table


def check_unchanged(table: RewardTable, checksum: str) -> None:
    """Raise InvalidValue unless the table has the checksum."""
    if table.checksum != checksum:
        accepted = f"{checksum}, the checksum of the table when the world was written; the table has changed"
        raise InvalidValue(OWNER, "checksum", table.checksum, accepted)


def _choose(table: RewardTable, columns: tuple[str, ...]) -> RewardTable:
    """Return some arms of a table."""
    for name in columns:
        _check_column(name, table.names)
    return RewardTable(table.values[:, [table.names.index(name) for name in columns]], columns)


def _from_array(table: Any, names: tuple[str, ...] | None, columns: tuple[str, ...] | None) -> RewardTable:
    """Return the table of an array. If its columns have no names, `columns` are their names."""
    try:
        values = np.array(table, dtype=np.float64)  # None is nan
    except (TypeError, ValueError) as error:
        raise InvalidValue(OWNER, "table", table, ACCEPTED) from error
    if values.ndim != 2:
        raise InvalidValue(OWNER, "table", table, ACCEPTED)
    if names is None:
        if columns is not None and len(columns) != values.shape[1]:
            accepted = f"{values.shape[1]} names, one for each column, because the columns of the table have none"
            raise InvalidValue(OWNER, "columns", columns, accepted)
        return _checked(values, columns or tuple(map(str, range(values.shape[1]))))
    whole = _checked(values, names)
    return whole if columns is None else _choose(whole, columns)


def _from_frame(frame: "pd.DataFrame", columns: tuple[str, ...] | None) -> RewardTable:
    """Return the chosen columns of a frame, or all columns of numbers."""
    from larl._core.table_files import to_numbers

    names = [str(name) for name in frame.columns]
    for name in columns or ():
        _check_column(name, names)
    cells = {name: _plain(frame.iloc[:, names.index(name)]) for name in columns or dict.fromkeys(names)}
    numbers = {name: to_numbers(each) for name, each in cells.items() if each is not None}
    unread = {
        name: np.flatnonzero(np.isnan(values) & cells[name].notna().to_numpy())  # type: ignore[union-attr]
        for name, values in numbers.items()
    }
    if columns is None:
        chosen = [name for name in numbers if not unread[name].size and not np.isnan(numbers[name]).all()]
        if len(set(names)) < len(names):
            raise InvalidValue(OWNER, "table", names, "a table whose columns have different names")
        for name in [name for name in numbers if unread[name].size and not np.isnan(numbers[name]).all()]:
            accepted = f"{CELL}, like other cells of the column (or choose the arms by columns = …)"
            raise _unreadable(cells[name], name, int(unread[name][0]), accepted)
        _check_no_index(chosen, numbers)
    else:
        for name in columns:
            if name not in numbers:
                accepted = f"columns of numbers; column {name!r} has {frame.iloc[:, names.index(name)].dtype}"
                raise InvalidValue(OWNER, "columns", name, accepted)
            for row in unread[name][:1].tolist():
                raise _unreadable(cells[name], name, row, CELL)
        chosen = list(columns)
    if len(chosen) < 2:
        accepted = f"a table with 2 or more columns of numbers; this one has {', '.join(names) or 'no columns'}"
        raise InvalidValue(OWNER, "table", chosen, accepted)
    return _checked(np.column_stack([numbers[name] for name in chosen]), tuple(chosen))


def _unreadable(cells: "pd.Series | None", name: str, row: int, accepted: str) -> InvalidValue:
    """Return the error of a cell that is not a number."""
    value = cells.iloc[row] if cells is not None else None
    return InvalidValue(OWNER, f"table, row {row + 1}, column {name!r}", value, accepted)


def _plain(cells: "pd.Series") -> "pd.Series | None":
    """Return a column whose cells may be numbers; None for dates, durations and complex numbers."""
    if cells.dtype.kind in "mMc":
        return None
    return cells.astype(object) if str(cells.dtype) == "category" else cells


def _check_column(name: str, names: Sequence[str]) -> None:
    if list(names).count(name) != 1:
        raise InvalidValue(OWNER, "columns", name, f"one of the table's columns: {', '.join(names) or 'none'}")


def _check_no_index(chosen: list[str], numbers: dict[str, Floats]) -> None:
    """Raise InvalidValue if a column rises by the same amount in every row: it counts rows, and is no arm."""
    for name in chosen:
        steps = np.diff(numbers[name])
        if steps.size > 1 and steps[0] > 0.0 and np.all(steps == steps[0]):
            accepted = f"the names of the arms' columns: column {name!r} rises evenly, like a time (or choose it, too)"
            raise InvalidValue(OWNER, "columns", None, accepted)


def _checked(values: Floats, names: tuple[str, ...]) -> RewardTable:
    """Return the table; raise InvalidValue if a cell is infinite or too large, or if there are too few cells."""
    if values.shape[0] < 1 or values.shape[1] < 2:
        raise InvalidValue(OWNER, "table", values.shape, "1 or more rows (times) and 2 or more columns (arms)")
    if len(set(names)) < len(names):
        raise InvalidValue(OWNER, "columns", names, "different names")
    for row, column in np.argwhere(np.abs(values) > LARGEST)[:1].tolist():
        value = float(values[row, column])
        raise InvalidValue(OWNER, f"table, row {row + 1}, column {names[column]!r}", value, CELL)
    for column in np.flatnonzero(np.isnan(values).all(axis=0))[:1].tolist():
        raise InvalidValue(OWNER, f"column {names[column]!r}", "no reward", "a column with rewards; all are missing")
    return RewardTable(values, names)


def column_names(columns: Any) -> tuple[str, ...] | None:
    """Return names of columns as text, or None; raise InvalidValue for anything else."""
    if columns is None:
        return None
    if isinstance(columns, str | bytes) or not isinstance(columns, Iterable):
        raise InvalidValue(OWNER, "columns", columns, "two or more names of columns")
    names = tuple(map(str, columns))
    if len(names) < 2 or len(set(names)) < len(names):
        raise InvalidValue(OWNER, "columns", names, "two or more different names of columns")
    return names
