"""The table of a log: read from a file, its columns found, its cells checked. Refusals name row and column."""

import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from larl._core.validation import LARGEST, InvalidValue
from larl.diagnosis.kernels import Floats, Ints
from larl.diagnosis.times import Times, read_times

NAMES = {
    "time": ("t", "time", "step", "timestamp"),
    "action": ("a", "action", "arm"),
    "reward": ("r", "reward"),
    "unit": ("u", "unit", "user", "id"),
}
CALENDAR = ("at", "timestamp", "datetime", "date", "time")  # where dates may be if the time column numbers steps
MOST_ARMS = 100
MOST_CATEGORIES = 50  # of a context column
GZIP = b"\x1f\x8b"
TRUTH = {"true": 1.0, "false": 0.0}


def read_table(path: str | Path) -> pd.DataFrame:
    """The table of a CSV file (all cells as text), of a gzipped one, or of a Parquet file."""
    path = Path(path)
    if not path.is_file():
        raise InvalidValue("diagnose", "log", str(path), "the path of a CSV or Parquet file; there is no such file")
    with path.open("rb") as file:
        beginning = file.read(4)
    if beginning == b"PAR1" or path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path)
    content = _unpacked(path) if beginning[:2] == GZIP else path.read_bytes()
    if not content.strip():
        raise InvalidValue("diagnose", "log", str(path), "a CSV file with a header and rows; this file is empty")
    accepted = "a CSV or Parquet file; this one cannot be read as either"
    if b"\0" in content[:4096]:
        raise InvalidValue("diagnose", "log", str(path), f"{accepted} (it holds zero bytes)")
    try:
        header = content.split(b"\n", 1)[0].decode("utf-8-sig")
        separator = max(",;\t", key=header.count)
        frame = pd.read_csv(io.BytesIO(content), dtype=str, sep=separator, encoding="utf-8-sig", skipinitialspace=True)
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InvalidValue("diagnose", "log", str(path), f"{accepted} ({str(error).strip()})") from error
    return frame.rename(columns=lambda name: str(name).strip())


def _unpacked(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        accepted = f"a whole gzip file; this one cannot be unpacked ({error})"
        raise InvalidValue("diagnose", "log", str(path), accepted) from error


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError as error:
        accepted = "a CSV file; Parquet needs pyarrow, which is not installed: pip install 'larl[parquet]'"
        raise InvalidValue("diagnose", "log", str(path), accepted) from error
    except Exception as error:  # whatever a damaged file makes the reader raise
        accepted = f"a whole Parquet file; this one cannot be read ({error})"
        raise InvalidValue("diagnose", "log", str(path), accepted) from error


class Table:
    """A table whose cells are refused by row and column. `lines`: rows are lines of a file below a header."""

    def __init__(self, frame: pd.DataFrame, lines: bool) -> None:
        self.frame, self.lines = frame, lines
        self.names = [str(name) for name in frame.columns]
        self.notes: list[str] = []

    def column(self, part: str, asked: str | None) -> str:
        """The name of a column: the one asked for, else the first that has a common name."""
        if asked is not None:
            return self.asked(part, asked)
        for common in NAMES[part]:
            name = self.named(common)
            if name is not None:
                return self._played_for(name) if common == "arm" else name
        accepted = f"a column named {' or '.join(NAMES[part])}, or --{part} NAME (there are: {self.there})"
        raise InvalidValue("diagnose", f"column of the {part}", None, accepted)

    def unit_column(self, asked: str | Literal[False] | None) -> str | None:
        """The unit's column: as asked, none if False, else one with a common name, but not an `id` of rows."""
        if asked is False:
            return None
        if asked is not None:
            return self.asked("unit", asked)
        for common in NAMES["unit"]:
            name = self.named(common)
            if name is None:
                continue
            if common == "id" and len(self.frame) > 1 and self.cells(name).is_unique:
                self.notes.append(f"Column {name!r} is different in every row, so it is not taken for the unit.")
                continue
            return name
        return None

    def asked(self, part: str, name: str) -> str:
        """A column that was named; refuse a name that is not there or there twice."""
        if self.names.count(name) != 1:
            raise InvalidValue("diagnose", part, name, f"one of the log's columns: {self.there}")
        return name

    @property
    def there(self) -> str:
        """The names of all columns."""
        return ", ".join(self.names) or "none"

    def named(self, common: str) -> str | None:
        """The column of this name in upper or lower case, if there is exactly one."""
        lower = [name.lower() for name in self.names]
        return self.names[lower.index(common)] if lower.count(common) == 1 else None

    def _played_for(self, arm: str) -> str:
        """Column `played` in place of `arm` where both hold arms: the reward belongs to the arm that was played."""
        played = self.named("played")
        if played is None:
            return arm
        decided, done = (set(self.cells(name).dropna().astype(str)) for name in (arm, played))
        if not decided & done:
            return arm
        self.notes.append(
            f"Actions are read from column {played!r}, not from {arm!r}: rewards belong to what was played."
        )
        return played

    def refuse(self, row: int, column: str, value: object, accepted: str) -> None:
        """Refuse the cell of a row (from 0)."""
        where = f"row {row + 1} (line {row + 2})" if self.lines else f"row {row + 1}"
        plain = value.item() if isinstance(value, np.generic) else value
        plain = str(plain) if isinstance(plain, pd.Timestamp) else plain
        raise InvalidValue("diagnose", f"{where}, column {column!r}", plain, accepted)

    def cells(self, column: str) -> pd.Series:
        """A column by its name, in the order of the table."""
        return self.frame.iloc[:, self.names.index(column)].reset_index(drop=True)

    def rewards(self, column: str) -> Floats:
        """Rewards, nan where there is none; true and false are 1 and 0."""
        cells = self.cells(column)
        result = numbers_of(cells)
        bad = np.isnan(result) & cells.notna().to_numpy() | (np.abs(result) > LARGEST)
        if bad.any():
            row = int(bad.argmax())
            self.refuse(row, column, cells[row], "a finite number, true or false, or nothing where there was no reward")
        if not np.isfinite(result).any():
            accepted = "a column with rewards; here every one is missing"
            raise InvalidValue("diagnose", f"column {column!r}", "no reward", accepted)
        return result

    def actions(self, column: str, reward: str) -> tuple[Ints, tuple[str, ...]]:
        """Arms as numbers and their labels, in the order of numbers or of the alphabet."""
        cells = self.cells(column)
        there = cells.notna().to_numpy()
        rewarded = self.cells(reward).notna().to_numpy()
        if (~there & rewarded).any():
            row = int((~there & rewarded).argmax())
            self.refuse(row, column, None, "the action that was taken, as there is a reward")
        values = numbers_of(cells)
        if np.isfinite(values[there]).all():
            bad = there & (values != np.rint(values))
            if bad.any():
                row = int(bad.argmax())
                self.refuse(row, column, cells[row], "a whole number or a name of the action")
            known = np.where(there, values, values[there][0] if there.any() else 0.0)
            found, number = np.unique(known, return_inverse=True)
            labels = tuple(f"{value:.0f}" for value in found)
        else:
            text = np.array([str(value).strip() if here else "" for value, here in zip(cells, there, strict=True)])
            found, number = np.unique(np.where(there, text, text[there][0]), return_inverse=True)
            labels = tuple(str(name) for name in found)
        if len(labels) > MOST_ARMS:
            accepted = f"at most {MOST_ARMS} different actions; name the column of the action with --action"
            raise InvalidValue("diagnose", f"column {column!r}", f"{len(labels):,} different actions", accepted)
        return number.astype(np.int64), labels

    def times(self, column: str, day_first: bool | None) -> Times:
        """Times of the rows."""
        return read_times(self.cells(column), lambda row, value, why: self.refuse(row, column, value, why), day_first)

    def calendar(self, time: str, day_first: bool | None) -> Floats | None:
        """Local times from a further column of dates, if there is one, for a log whose time column numbers steps."""
        for common in CALENDAR:
            name = self.named(common)
            if name is None or name == time:
                continue
            try:
                clock = self.times(name, day_first).clock
            except InvalidValue:
                continue
            if clock is not None:
                self.notes.append(f"The time of day and the day of the week are read from column {name!r}.")
                return clock
        return None

    def units(self, column: str | None) -> Ints:
        """Units as numbers; one where there is no such column."""
        if column is None:
            return np.zeros(len(self.frame), dtype=np.int64)
        cells = self.cells(column)
        if cells.isna().any():
            self.refuse(int(cells.isna().to_numpy().argmax()), column, None, "the unit that the row belongs to")
        return pd.factorize(cells.astype(str))[0].astype(np.int64)

    def context(self, column: str) -> Floats:
        """A context column as (rows, columns): numbers as they are, names as an indicator for all but the first."""
        cells = self.cells(self.asked("context", column))
        if cells.isna().any():
            self.refuse(int(cells.isna().to_numpy().argmax()), column, None, "a value: a context is known at every row")
        values = numbers_of(cells)
        if np.isfinite(values).all():
            if np.abs(values).max() > LARGEST:
                self.refuse(
                    int(np.abs(values).argmax()), column, cells[int(np.abs(values).argmax())], "a finite number"
                )
            return values[:, None]
        return indicators(cells.astype(str).str.strip().to_numpy(dtype=str), column)


def indicators(labels: Sequence[str] | np.ndarray, column: str) -> Floats:
    """One column for each category but the first."""
    found, number = np.unique(labels, return_inverse=True)
    if found.size > MOST_CATEGORIES:
        accepted = f"a column of numbers, or of at most {MOST_CATEGORIES} categories"
        raise InvalidValue("diagnose", "context", column, f"{accepted} (it has {found.size:,})")
    result: Floats = (number[:, None] == np.arange(1, found.size)).astype(float)
    return result


def numbers_of(cells: pd.Series) -> Floats:
    """Cells as numbers, true and false as 1 and 0; nan where a cell is neither."""
    if pd.api.types.is_bool_dtype(cells.dtype):
        return cells.to_numpy(dtype=float, na_value=np.nan)
    result = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    unread = np.isnan(result) & cells.notna().to_numpy()
    if unread.any():
        text = cells[unread].astype(str).str.strip().str.lower()
        result = result.copy()
        result[unread] = text.map(TRUTH).to_numpy(dtype=float)
    return result
