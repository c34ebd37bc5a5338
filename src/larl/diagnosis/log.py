"""A log of decisions: read, checked cell by cell, put in order. What cannot be used is refused with row and column."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from larl._check import LARGEST, InvalidValue
from larl.diagnosis._kernels import Floats, Ints

NAMES = {
    "time": ("t", "time", "step", "timestamp"),
    "action": ("a", "action", "arm"),
    "reward": ("r", "reward"),
    "unit": ("u", "unit", "user", "id"),
}
MOST_ARMS = 100
LONGEST_GAP = 1000  # steps; a longer gap counts as this one
SPARSE = 20.0  # steps a row beyond which times are taken for a clock, not for steps
WHOLE = 0.01  # how far from a multiple of the smallest difference a time may be


@dataclass(frozen=True)
class Log:
    """Rows with a reward, unit by unit, in order of time. Steps without a reward are gaps between rows."""

    arm: Ints
    gap: Ints  # steps since the row before; 0 at a unit's first row, −1 at the first row of a later piece of a unit
    reward: Floats
    unit: Ints
    step: Ints  # of the unit, from 0
    labels: tuple[str, ...]  # of the arms
    units: int
    missing: int  # rows without a reward
    notes: tuple[str, ...]  # what was decided about the log and is worth knowing

    @property
    def rows(self) -> int:
        """How many rewards there are."""
        return int(self.reward.size)

    @property
    def arms(self) -> int:
        """How many different actions there are."""
        return len(self.labels)

    @property
    def plays(self) -> Ints:
        """How many rewards each arm has."""
        return np.bincount(self.arm, minlength=self.arms)


def read_table(path: str | Path) -> pd.DataFrame:
    """The table of a CSV file (all cells as text) or of a Parquet file."""
    path = Path(path)
    if not path.is_file():
        raise InvalidValue("diagnose", "log", str(path), "the path of a CSV or Parquet file; there is no such file")
    with path.open("rb") as file:
        beginning = file.read(4096)
    if beginning[:4] == b"PAR1" or path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path)
    if not beginning.strip():
        raise InvalidValue("diagnose", "log", str(path), "a CSV file with a header and rows; this file is empty")
    accepted = "a CSV or Parquet file; this one cannot be read as either"
    if b"\0" in beginning:
        raise InvalidValue("diagnose", "log", str(path), f"{accepted} (it holds zero bytes)")
    try:
        header = beginning.splitlines()[0].decode("utf-8-sig")
        separator = max(",;\t", key=header.count)
        frame = pd.read_csv(path, dtype=str, sep=separator, encoding="utf-8-sig", skipinitialspace=True)
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InvalidValue("diagnose", "log", str(path), f"{accepted} ({str(error).strip()})") from error
    return frame.rename(columns=lambda name: str(name).strip())


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError as error:
        accepted = "a CSV file; Parquet needs pyarrow, which is not installed: pip install 'larl[parquet]'"
        raise InvalidValue("diagnose", "log", str(path), accepted) from error
    except Exception as error:  # whatever a damaged file makes the reader raise
        accepted = f"a whole Parquet file; this one cannot be read ({error})"
        raise InvalidValue("diagnose", "log", str(path), accepted) from error


def make_log(frame: pd.DataFrame, columns: Mapping[str, str | None] | None = None, *, lines: bool = False) -> Log:
    """The log in a table. `columns` names the columns of time, action, reward and unit where their names are unusual;
    `lines`: rows are lines of a file below a header, and refusals say which."""
    if not isinstance(frame, pd.DataFrame):
        raise InvalidValue("diagnose", "frame", type(frame).__name__, "a pandas DataFrame with a row for each decision")
    table = _Table(frame, lines)
    found = {part: table.column(part, (columns or {}).get(part)) for part in NAMES}
    if frame.empty:
        raise InvalidValue(
            "diagnose", "log", "0 rows", "a table with a row for each decision; this one has a header only"
        )
    arm, labels = table.actions(str(found["action"]), str(found["reward"]))
    reward = table.rewards(str(found["reward"]))
    times = table.times(str(found["time"]))
    unit = table.units(found["unit"])
    order = np.lexsort((np.arange(unit.size), unit))
    table.check_order(unit[order], times[order], order, str(found["time"]))
    step, notes = _steps(unit[order], times[order])
    seen = np.isfinite(reward[order])
    return _assembled(
        arm[order][seen], reward[order][seen], unit[order][seen], step[seen], labels, int((~seen).sum()), notes
    )


def _assembled(
    arm: Ints, reward: Floats, unit: Ints, step: Ints, labels: tuple[str, ...], missing: int, notes: list[str]
) -> Log:
    kept, arm = np.unique(arm, return_inverse=True)
    names, unit = np.unique(unit, return_inverse=True)
    first = np.diff(unit, prepend=-1) != 0
    gap = np.where(first, 0, np.diff(step, prepend=0))
    if (gap > LONGEST_GAP).any():
        notes = [*notes, f"Gaps longer than {LONGEST_GAP:,} steps count as {LONGEST_GAP:,}."]
    never = [name for number, name in enumerate(labels) if number not in kept]
    if never:
        notes = [*notes, f"Left out, as they never have a reward: {', '.join(never)}."]
    return Log(
        arm.astype(np.int64), np.minimum(gap, LONGEST_GAP).astype(np.int64), reward, unit.astype(np.int64),
        step.astype(np.int64), tuple(labels[i] for i in kept), names.size, missing, tuple(notes),
    )  # fmt: skip


def _steps(unit: Ints, times: Floats) -> tuple[Ints, list[str]]:
    """Times as whole steps since the unit's first: multiples of the smallest difference if they are such, else rows."""
    first = np.diff(unit, prepend=-1) != 0
    begun = np.maximum.accumulate(np.where(first, np.arange(unit.size), 0))
    apart = np.diff(times, prepend=0.0)[~first]
    if apart.size == 0:
        return np.zeros(unit.size, dtype=np.int64), []
    whole = bool(np.all(apart == np.rint(apart))) and apart.max() < 2**53
    least = float(np.gcd.reduce(apart.astype(np.int64))) if whole else float(apart.min())
    passed = (times - times[begun]) / least
    off_grid = np.abs(passed - np.rint(passed)).max() > WHOLE * max(1.0, np.sqrt(apart.size))
    if off_grid or apart.sum() / least > SPARSE * unit.size:
        text = "Times are not on a grid of steps, so rows of a unit count as consecutive steps."
        return np.arange(unit.size) - begun, [text]
    notes = [] if least == 1.0 else [f"A step is {least:g} in units of the time column."]
    return np.rint(passed).astype(np.int64), notes


class _Table:
    """A table whose cells are refused by row and column."""

    def __init__(self, frame: pd.DataFrame, lines: bool) -> None:
        self.frame, self.lines = frame, lines

    def column(self, part: str, asked: str | None) -> str | None:
        """The name of a column: the one asked for, else the first that has a common name."""
        names = [str(name) for name in self.frame.columns]
        there = ", ".join(names) or "none"
        if asked is not None:
            if names.count(asked) != 1:
                raise InvalidValue("diagnose", part, asked, f"one of the log's columns: {there}")
            return asked
        lower = [name.lower() for name in names]
        for common in NAMES[part]:
            if lower.count(common) == 1:
                return names[lower.index(common)]
        if part == "unit":
            return None
        accepted = f"a column named {' or '.join(NAMES[part])}, or --{part} NAME (there are: {there})"
        raise InvalidValue("diagnose", f"column of the {part}", None, accepted)

    def refuse(self, row: int, column: str, value: object, accepted: str) -> None:
        """Refuse the cell of a row (from 0)."""
        where = f"row {row + 1} (line {row + 2})" if self.lines else f"row {row + 1}"
        raise InvalidValue("diagnose", f"{where}, column {column!r}", value, accepted)

    def cells(self, column: str) -> pd.Series:
        """A column by its name as text, in the order of the table."""
        at = [str(name) for name in self.frame.columns].index(column)
        return self.frame.iloc[:, at].reset_index(drop=True)

    def rewards(self, column: str) -> Floats:
        """Rewards, nan where there is none."""
        cells = self.cells(column)
        result = _numbers(cells)
        bad = np.isnan(result) & cells.notna().to_numpy() | (np.abs(result) > LARGEST)
        if bad.any():
            row = int(bad.argmax())
            self.refuse(row, column, cells[row], "a finite number, or nothing where there was no reward")
        if not np.isfinite(result).any():
            accepted = "a column with rewards; here every one is missing"
            raise InvalidValue("diagnose", f"column {column!r}", "no reward", accepted)
        return result

    def actions(self, column: str, reward: str) -> tuple[Ints, tuple[str, ...]]:
        """Arms as numbers and their labels, in the order of numbers or of the alphabet. −1 where nothing was done."""
        cells = self.cells(column)
        there = cells.notna().to_numpy()
        if not there.all() and (~there & self.cells(reward).notna().to_numpy()).any():
            row = int((~there & self.cells(reward).notna().to_numpy()).argmax())
            self.refuse(row, column, None, "the action that was taken, as there is a reward")
        values = _numbers(cells)
        if np.isfinite(values[there]).all():
            bad = there & (values != np.rint(values))
            if bad.any():
                row = int(bad.argmax())
                self.refuse(row, column, cells[row], "a whole number or a name of the action")
            found, number = np.unique(
                np.where(there, values, values[there][0] if there.any() else 0.0), return_inverse=True
            )
            labels = tuple(f"{value:.0f}" for value in found)
        else:
            text = np.array([str(value).strip() if here else "" for value, here in zip(cells, there, strict=True)])
            found, number = np.unique(np.where(there, text, text[there][0]), return_inverse=True)
            labels = tuple(str(name) for name in found)
        if len(labels) > MOST_ARMS:
            accepted = f"at most {MOST_ARMS} different actions; name the column of the action with --action"
            raise InvalidValue("diagnose", f"column {column!r}", f"{len(labels):,} different actions", accepted)
        return number.astype(np.int64), labels

    def times(self, column: str) -> Floats:
        """Times as numbers; dates as seconds."""
        cells = self.cells(column)
        if cells.isna().any():
            self.refuse(int(cells.isna().to_numpy().argmax()), column, None, "a time")
        if pd.api.types.is_datetime64_any_dtype(cells.dtype):
            return _seconds(cells)
        result = _numbers(cells)
        bad = ~np.isfinite(result)
        if not bad.any():
            return result
        dates = pd.to_datetime(cells.astype(str), errors="coerce", format="ISO8601", utc=True)
        if dates.isna().any():
            row = int((dates.isna() if bad.all() else pd.Series(bad)).to_numpy().argmax())
            self.refuse(row, column, cells[row], "a number, or a date such as 2026-03-01 or 2026-03-01 14:30")
        return _seconds(dates)

    def units(self, column: str | None) -> Ints:
        """Units as numbers; one where there is no such column."""
        if column is None:
            return np.zeros(len(self.frame), dtype=np.int64)
        cells = self.cells(column)
        if cells.isna().any():
            self.refuse(int(cells.isna().to_numpy().argmax()), column, None, "the unit that the row belongs to")
        return pd.factorize(cells.astype(str))[0].astype(np.int64)

    def check_order(self, unit: Ints, times: Floats, order: Any, column: str) -> None:
        """Refuse a time that does not come after the one before it in its unit."""
        bad = (np.diff(unit) == 0) & (np.diff(times) <= 0)
        if bad.any():
            row = int(order[np.flatnonzero(bad) + 1].min())
            accepted = "a time after the one before it" + (
                " in its unit" if unit[-1] else "; several units need --unit NAME"
            )
            self.refuse(row, column, self.cells(column)[row], accepted)


def _numbers(cells: pd.Series) -> Floats:
    if cells.dtype == bool:
        return cells.to_numpy(dtype=float)
    return pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float, na_value=np.nan)


def _seconds(dates: pd.Series) -> Floats:
    """Seconds since the first date."""
    result: Floats = (dates - dates.min()).dt.total_seconds().to_numpy(dtype=float)
    return result
