"""The rows of a log with validated cells: what `larl.diagnose` and warm starts read."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from larl._core.dataframes import ACCEPTED, to_pandas
from larl._core.validation import InvalidValue
from larl.logs.table import Table, read_table
from larl.logs.times import Floats, Ints, Times

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

Columns = Mapping[str, str | Literal[False] | None]


@dataclass(frozen=True)
class Rows:
    """One entry for each row of a log, in the order of the table."""

    table: Table
    columns: Mapping[str, str | None]  # of time, action, reward and unit
    arm: Ints  # −1: no action
    labels: tuple[str, ...]  # of the arms
    reward: Floats  # nan: missing
    unit: Ints
    units: tuple[str, ...]  # names; none if the log has no column of the unit
    times: Times

    def reject_duplicates(self, order: Ints) -> None:
        """Raise InvalidValue if a unit has a time twice; `order` sorts rows by unit and time."""
        unit, time, column = self.unit[order], self.times.order[order], self.columns["time"]
        is_duplicate = (np.diff(unit) == 0) & (np.diff(time) == 0)
        if not is_duplicate.any():
            return
        first = np.flatnonzero(is_duplicate)
        later = np.maximum(order[first], order[first + 1])
        row, other = int(later.min()), int(np.minimum(order[first], order[first + 1])[later.argmin()])
        accepted = f"a time that occurs once in its unit; row {other + 1} has the same time"
        if self.columns["unit"] is None:
            accepted += f" (for a log of several units use {self.table.option('unit')})"
        assert column is not None
        self.table.reject(row, column, self.table.cells(column)[row], accepted)


def read_rows(
    log: "IntoFrame | str | Path",
    columns: Columns | None = None,
    *,
    day_first: bool | None = None,
    from_file: bool = False,
    owner: str = "diagnose",
) -> Rows:
    """Return the rows of a table or file.

    Parameters
    ----------
    log : table of pandas, polars, pyarrow or another library that narwhals supports, str or Path
        One row per decision, or the path of a CSV or Parquet file.
    columns : mapping, optional
        The columns of `time`, `action`, `reward` and `unit` if they do not have common names. `unit=False`: the log has
        one unit.
    day_first : bool, optional
        Whether dates such as 03/04/2026 have the day first.
    from_file : bool, default False
        Whether rows of a table are lines of a file below a header; error messages then name the line.
    owner : str, default "diagnose"
        The function that a user has called, for error messages.
    """
    if isinstance(log, str | Path):
        log, from_file = read_table(log, owner), True
    frame = to_pandas(owner, "frame" if owner == "diagnose" else "log", log, f"{ACCEPTED}, with one row per decision")
    table, names = Table(frame, from_file, owner), columns or {}
    time, action, reward = (table.column(role, names.get(role) or None) for role in ("time", "action", "reward"))
    unit = table.unit_column(names.get("unit"))
    if table.frame.empty:
        accepted = "a table with one row per decision; this table has only a header"
        raise InvalidValue(owner, "log", "0 rows", accepted)
    arm, labels = table.actions(action, reward)
    rewards = table.rewards(reward)
    number, units = table.units(unit)
    return Rows(
        table=table,
        columns={"time": time, "action": action, "reward": reward, "unit": unit},
        arm=arm,
        labels=labels,
        reward=rewards,
        unit=number,
        units=units,
        times=table.times(time, day_first),
    )
