"""Read the time column of a log, dates or numbers, and count the steps."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from larl._core.validation import InvalidValue

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
GRID_TOLERANCE = 0.01  # largest distance of a time from a multiple of the grid's step, as a share of the step
MAX_STEPS_PER_ROW = 1000.0  # of a clock grid
NUMERIC_DATE = re.compile(r"^(\d{1,2})([/.\-])(\d{1,2})\2(\d{4})(?:[ T]+(.*))?$")
OFFSET = r"\s*(?:Z|z|[+-]\d{2}:?\d{2})$"
TWELVE_HOURS = r"(?i)\d\s*[ap]m$"
EPOCH = (1e9, 2e9)  # numbers in this range are seconds since 1970: 2001 to 2033
UNITS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"), (1.0, "second"))
Reject = Callable[[int, object, str], None]  # raises InvalidValue for: row, value, accepted values


class Times(NamedTuple):
    """A time for each row."""

    order: Floats  # sort key: the numbers, or seconds of universal time
    clock: Floats | None  # local time in seconds since 1970-01-01 00:00; None if times are plain numbers
    notes: tuple[str, ...] = ()


def read_times(cells: pd.Series, reject: Reject, day_first: bool | None = None) -> Times:
    """Return the times of a column: numbers or dates."""
    if cells.isna().any():
        reject(int(cells.isna().to_numpy().argmax()), None, "a time")
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        local = cells.dt.tz_localize(None) if cells.dt.tz is not None else cells
        return Times(
            _seconds(cells.dt.tz_convert("UTC").dt.tz_localize(None) if cells.dt.tz else cells), _seconds(local)
        )
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    is_not_finite = ~np.isfinite(numbers)
    if not is_not_finite.any():
        return _from_numbers(numbers)
    text, notes = _year_first(cells.astype(str).str.strip(), reject, day_first)
    layout = "mixed" if text.str.contains(TWELVE_HOURS).any() else "ISO8601"
    dates = pd.to_datetime(text, errors="coerce", format=layout, utc=True)
    if dates.isna().any():
        row = int((dates.isna() if is_not_finite.all() else pd.Series(is_not_finite)).to_numpy().argmax())
        reject(row, cells[row], "a number, or a date such as 2026-03-01, 2026-03-01 14:30 or 31/03/2026 14:30")
    local = pd.to_datetime(text.str.replace(OFFSET, "", regex=True), errors="coerce", format=layout, utc=True)
    return Times(_seconds(dates.dt.tz_localize(None)), _seconds(local.dt.tz_localize(None)), notes)


def _from_numbers(numbers: Floats) -> Times:
    """Return numeric times. Large numbers are seconds or milliseconds since 1970."""
    for factor, name in ((1.0, "seconds"), (1e3, "milliseconds")):
        if EPOCH[0] * factor <= numbers.min() and numbers.max() < EPOCH[1] * factor:
            return Times(numbers / factor, numbers / factor, (f"Times are read as {name} since 1970 (UTC).",))
    return Times(numbers, None)


def _seconds(dates: pd.Series) -> Floats:
    """Return seconds since 1970-01-01 00:00."""
    return np.asarray((dates - pd.Timestamp(0)).dt.total_seconds(), dtype=np.float64)


def _year_first(text: pd.Series, reject: Reject, day_first: bool | None) -> tuple[pd.Series, tuple[str, ...]]:
    """Rewrite dates such as 31/03/2026 as 2026-03-31. Reject the column if day and month cannot be told apart."""
    matches = {row: match for row, cell in enumerate(text) if (match := NUMERIC_DATE.match(cell))}
    if not matches:
        return text, ()
    day = [row for row, match in matches.items() if int(match[1]) > 12]  # rows whose first number can only be a day
    month = [row for row, match in matches.items() if int(match[3]) > 12]
    if day and month:
        row = max(day[0], month[0])
        reject(row, text[row], "dates in one notation; in this column some have the day first and some the month first")
    first = next(iter(matches))
    if day_first is None and not day and not month and matches[first][2] != ".":
        accepted = (
            "a date such as 2026-03-01, or --day-first or --month-first (day_first=True or False) to say which number "
            "is the day"
        )
        reject(first, text[first], accepted)
    with_day_first = day_first if day_first is not None else not month
    wrong = month if with_day_first else day
    if wrong:
        reject(wrong[0], text[wrong[0]], f"a date with the {'day' if with_day_first else 'month'} first")
    result = text.copy()
    for row, match in matches.items():
        d, m = (match[1], match[3]) if with_day_first else (match[3], match[1])
        result[row] = f"{match[4]}-{int(m):02}-{int(d):02} {match[5] or ''}".strip()
    return result, (f"Dates are read with the {'day' if with_day_first else 'month'} first.",)


class Steps(NamedTuple):
    """The step of each row, from 0 in each unit."""

    step: Ints
    name: str  # what one step is, as part of a sentence
    notes: tuple[str, ...]


def count_steps(unit: Ints, times: Times, column: str, clock_grid: bool) -> Steps:
    """Return the steps of rows that are sorted by unit and time.

    If times are whole numbers whose most frequent difference is 1, they number the steps, and a missing number is a
    skipped step. Otherwise a step is a row. With `clock_grid` a step is the greatest common divisor of all differences.
    """
    first = np.diff(unit, prepend=-1) != 0
    unit_start = np.maximum.accumulate(np.where(first, np.arange(unit.size), 0))
    differences = np.diff(times.order, prepend=0.0)[~first]
    elapsed = times.order - times.order[unit_start]
    if clock_grid:
        return _count_on_grid(elapsed, differences, times, column)
    rows = Steps(np.arange(unit.size) - unit_start, "one decision of a unit", ())
    if differences.size == 0:
        return rows
    sizes, counts = np.unique(differences, return_counts=True)
    is_integer = bool(np.all(differences == np.rint(differences)))
    if times.clock is None and is_integer and sizes[counts.argmax()] == 1.0:
        skipped = int(differences.sum()) - differences.size
        note = f"{skipped:,} step numbers are missing from column {column!r}; they count as steps without a reward."
        name = f"one number of column {column!r}"
        return Steps(np.rint(elapsed).astype(np.int64), name, (note,) if skipped else ())
    if times.clock is not None:
        median = duration(float(np.median(differences)))
        note = (
            f"A step is a decision of a unit, whatever the time between decisions (median: {median}). "
            "--clock-grid (clock_grid=True) counts steps on the clock instead."
        )
    else:
        note = (
            f"Column {column!r} does not number the steps one by one, so rows of a unit count as consecutive steps. "
            "--clock-grid (clock_grid=True) uses its values as they are."
        )
    return rows._replace(notes=(note,))


def _count_on_grid(elapsed: Floats, differences: Floats, times: Times, column: str) -> Steps:
    """Return the steps on a regular grid of times."""
    if differences.size == 0:
        return Steps(np.zeros(elapsed.size, dtype=np.int64), "one decision of a unit", ())
    is_integer = bool(np.all(differences == np.rint(differences))) and differences.max() < 2**53
    unit = float(np.gcd.reduce(differences.astype(np.int64))) if is_integer else float(differences.min())
    steps = elapsed / unit
    size = duration(unit) if times.clock is not None else f"{unit:g} of column {column!r}"
    accepted = f"False: the times of column {column!r} are not multiples of a common step"
    if np.abs(steps - np.rint(steps)).max() > GRID_TOLERANCE * max(1.0, np.sqrt(differences.size)):
        raise InvalidValue("diagnose", "clock_grid", True, accepted)
    if differences.sum() / unit > MAX_STEPS_PER_ROW * differences.size:
        raise InvalidValue("diagnose", "clock_grid", True, f"{accepted} that is long enough (the largest is {size})")
    note = f"Steps are counted on the clock. Replays decide at every step of {size}, even if the log has no decision."
    return Steps(np.rint(steps).astype(np.int64), size, (note,))


def duration(seconds: float) -> str:
    """Return a length of time in the largest unit that is not longer than it: 5 hours, 1.5 days."""
    size, name = next(((size, name) for size, name in UNITS if seconds >= size), UNITS[-1])
    text = f"{seconds / size:.3g}"
    return f"{text} {name}{'' if text == '1' else 's'}"
