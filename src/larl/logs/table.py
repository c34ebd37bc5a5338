"""Read the table of a log from a file, find its columns and validate its cells. Error messages name row and column."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from larl._core.table_files import read_table_file, to_numbers
from larl._core.validation import LARGEST, WITHIN_LIMITS, InvalidValue
from larl.logs.times import Floats, Ints, Times, read_times

COMMON_NAMES = {
    "time": ("t", "time", "step", "timestamp"),
    "action": ("a", "action", "arm"),
    "reward": ("r", "reward"),
    "unit": ("u", "unit", "user", "id"),
}
DATE_COLUMNS = ("at", "timestamp", "datetime", "date", "time")  # may hold dates if the time column numbers steps
MAX_ARMS = 100
MAX_CATEGORIES = 50  # of a context column


def read_table(path: str | Path, owner: str = "diagnose") -> pd.DataFrame:
    """Return the table of a CSV file (also gzipped; all cells as text) or of a Parquet file."""
    return read_table_file(owner, "log", path)


class Table:
    """A table with validated cells. `from_file`: rows are lines below a header, and error messages name the line."""

    def __init__(self, frame: pd.DataFrame, from_file: bool, owner: str = "diagnose") -> None:
        self.frame, self.from_file, self.owner = frame, from_file, owner
        self.names = [str(name) for name in frame.columns]
        self.notes: list[str] = []

    def column(self, role: str, name: str | None) -> str:
        """Return the column of a role: the given one, else the first with a common name."""
        if name is not None:
            return self.require_column(role, name)
        for common in COMMON_NAMES[role]:
            column = self.find_column(common)
            if column is not None:
                return self._prefer_played(column) if common == "arm" else column
        accepted = (
            f"a column named {' or '.join(COMMON_NAMES[role])}, or {self.option(role)} (there are: {self.all_names})"
        )
        raise InvalidValue(self.owner, f"column of the {role}", None, accepted)

    def unit_column(self, name: str | Literal[False] | None) -> str | None:
        """Return the unit's column: the given one, None if False, else one with a common name that is not a row id."""
        if name is False:
            return None
        if name is not None:
            return self.require_column("unit", name)
        for common in COMMON_NAMES["unit"]:
            column = self.find_column(common)
            if column is None:
                continue
            if common == "id" and len(self.frame) > 1 and self.cells(column).is_unique:
                self.notes.append(f"Column {column!r} has a different value in every row; it is not used as the unit.")
                continue
            return column
        return None

    def require_column(self, role: str, name: str) -> str:
        """Return the name of a column; raise InvalidValue unless exactly one column has it."""
        if self.names.count(name) != 1:
            raise InvalidValue(self.owner, role, name, f"one of the log's columns: {self.all_names}")
        return name

    def option(self, name: str) -> str:
        """Return how a user names the column of a role, for error messages."""
        return f"--{name} NAME" if self.owner == "diagnose" else f"{name}=NAME"

    @property
    def all_names(self) -> str:
        """The names of all columns, for error messages."""
        return ", ".join(self.names) or "none"

    def find_column(self, common: str) -> str | None:
        """Return the column with this name in upper or lower case; None unless exactly one has it."""
        lower = [name.lower() for name in self.names]
        return self.names[lower.index(common)] if lower.count(common) == 1 else None

    def _prefer_played(self, arm: str) -> str:
        """Return column `played` if it contains arms, else `arm`: rewards belong to the arm that was played."""
        played = self.find_column("played")
        if played is None:
            return arm
        decided_arms, played_arms = (set(self.cells(name).dropna().astype(str)) for name in (arm, played))
        if not decided_arms & played_arms:
            return arm
        self.notes.append(
            f"Actions are read from column {played!r}, not from {arm!r}: rewards belong to the arm that was played."
        )
        return played

    def reject(self, row: int, column: str, value: object, accepted: str) -> None:
        """Raise InvalidValue for the cell of a row (from 0)."""
        where = f"row {row + 1} (line {row + 2})" if self.from_file else f"row {row + 1}"
        plain = value.item() if isinstance(value, np.generic) else value
        plain = str(plain) if isinstance(plain, pd.Timestamp) else plain
        raise InvalidValue(self.owner, f"{where}, column {column!r}", plain, accepted)

    def cells(self, column: str) -> pd.Series:
        """Return the cells of a column."""
        return self.frame.iloc[:, self.names.index(column)].reset_index(drop=True)

    def rewards(self, column: str) -> Floats:
        """Return the rewards; nan if missing. True and false are 1 and 0."""
        cells = self.cells(column)
        result = to_numbers(cells)
        is_invalid = np.isnan(result) & cells.notna().to_numpy() | (np.abs(result) > LARGEST)
        if is_invalid.any():
            row = int(is_invalid.argmax())
            self.reject(row, column, cells[row], f"{WITHIN_LIMITS}, true, false, or an empty cell for a missing reward")
        if not np.isfinite(result).any():
            accepted = "a column with rewards; all are missing"
            raise InvalidValue(self.owner, f"column {column!r}", "no reward", accepted)
        return result

    def actions(self, column: str, reward: str) -> tuple[Ints, tuple[str, ...]]:
        """Return the arms as numbers (−1: no action), and their labels in numerical or alphabetical order."""
        cells = self.cells(column)
        has_action = cells.notna().to_numpy()
        has_reward = self.cells(reward).notna().to_numpy()
        if (~has_action & has_reward).any():
            row = int((~has_action & has_reward).argmax())
            self.reject(row, column, None, "the action that was taken, because the row has a reward")
        values = to_numbers(cells)
        if np.isfinite(values[has_action]).all():
            is_invalid = has_action & (values != np.rint(values))
            if is_invalid.any():
                row = int(is_invalid.argmax())
                self.reject(row, column, cells[row], "an integer or a name of the action")
            filled = np.where(has_action, values, values[has_action][0] if has_action.any() else 0.0)
            actions, number = np.unique(filled, return_inverse=True)
            labels = tuple(f"{value:.0f}" for value in actions)
        else:
            text = np.array([str(cell).strip() if given else "" for cell, given in zip(cells, has_action, strict=True)])
            actions, number = np.unique(np.where(has_action, text, text[has_action][0]), return_inverse=True)
            labels = tuple(str(name) for name in actions)
        if len(labels) > MAX_ARMS:
            accepted = (
                f"at most {MAX_ARMS} different actions; set the column of the action with {self.option('action')}"
            )
            raise InvalidValue(self.owner, f"column {column!r}", f"{len(labels):,} different actions", accepted)
        return np.where(has_action, number, -1).astype(np.int64), labels

    def times(self, column: str, day_first: bool | None) -> Times:
        """Return the times of the rows."""
        return read_times(self.cells(column), lambda row, value, why: self.reject(row, column, value, why), day_first)

    def calendar(self, time: str, day_first: bool | None) -> Floats | None:
        """Return local times from a column of dates other than the time column; None if there is none."""
        for common in DATE_COLUMNS:
            name = self.find_column(common)
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

    def units(self, column: str | None) -> tuple[Ints, tuple[str, ...]]:
        """Return the units as numbers, and their names in order of the rows; all 0 and no name without a column."""
        if column is None:
            return np.zeros(len(self.frame), dtype=np.int64), ()
        cells = self.cells(column)
        if cells.isna().any():
            self.reject(int(cells.isna().to_numpy().argmax()), column, None, "the unit of the row")
        number, names = pd.factorize(cells.astype(str))
        return number.astype(np.int64), tuple(str(name) for name in names)

    def numbers(self, role: str, column: str) -> Floats:
        """Return a column of numbers without missing ones; true and false are 1 and 0."""
        cells = self.cells(self.require_column(role, column))
        result = to_numbers(cells)
        is_invalid = ~(np.abs(result) <= LARGEST)  # nan too
        if is_invalid.any():
            row = int(is_invalid.argmax())
            self.reject(row, column, None if pd.isna(cells[row]) else cells[row], f"{WITHIN_LIMITS}, true or false")
        return result

    def context(self, column: str) -> Floats:
        """Return a context as (rows, columns): a number as one column, a category as indicators."""
        cells = self.cells(self.require_column("context", column))
        if cells.isna().any():
            self.reject(int(cells.isna().to_numpy().argmax()), column, None, "a value: a context must not be missing")
        values = to_numbers(cells)
        if np.isfinite(values).all():
            if np.abs(values).max() > LARGEST:
                row = int(np.abs(values).argmax())
                self.reject(row, column, cells[row], WITHIN_LIMITS)
            return values[:, None]
        return indicators(cells.astype(str).str.strip().to_numpy(dtype=str), column)


def indicators(labels: Sequence[str] | np.ndarray, column: str) -> Floats:
    """Return one 0/1 column for each category but the first."""
    categories, number = np.unique(labels, return_inverse=True)
    if categories.size > MAX_CATEGORIES:
        accepted = f"a column of numbers, or of at most {MAX_CATEGORIES} categories"
        raise InvalidValue("diagnose", "context", column, f"{accepted} (it has {categories.size:,})")
    result: Floats = (number[:, None] == np.arange(1, categories.size)).astype(float)
    return result
