"""The time column of a log: dates in the usual notations or numbers, and the step that each row is."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from larl._core.validation import InvalidValue
from larl.diagnosis.kernels import Floats, Ints

WHOLE = 0.01  # how far from a multiple of the grid's step a time may be, as a share of the step
SPARSE = 1000.0  # grid steps a row, at most
NUMERIC_DATE = re.compile(r"^(\d{1,2})([/.\-])(\d{1,2})\2(\d{4})(?:[ T]+(.*))?$")
OFFSET = r"\s*(?:Z|z|[+-]\d{2}:?\d{2})$"
TWELVE_HOURS = r"(?i)\d\s*[ap]m$"
EPOCH = (1e9, 2e9)  # numbers in this range are seconds since 1970: 2001 to 2033
UNITS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"), (1.0, "second"))
Refuse = Callable[[int, object, str], None]  # row, value, what is accepted


class Times(NamedTuple):
    """A time for each row."""

    order: Floats  # numbers, or seconds of universal time: what rows are sorted by
    clock: Floats | None  # local time in seconds since 1970-01-01 00:00; None where times are plain numbers
    notes: tuple[str, ...] = ()


def read_times(cells: pd.Series, refuse: Refuse, day_first: bool | None = None) -> Times:
    """Times of a column's cells: numbers or dates."""
    if cells.isna().any():
        refuse(int(cells.isna().to_numpy().argmax()), None, "a time")
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        local = cells.dt.tz_localize(None) if cells.dt.tz is not None else cells
        return Times(
            _seconds(cells.dt.tz_convert("UTC").dt.tz_localize(None) if cells.dt.tz else cells), _seconds(local)
        )
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    bad = ~np.isfinite(numbers)
    if not bad.any():
        return _of_numbers(numbers)
    text, notes = _year_first(cells.astype(str).str.strip(), refuse, day_first)
    layout = "mixed" if text.str.contains(TWELVE_HOURS).any() else "ISO8601"
    dates = pd.to_datetime(text, errors="coerce", format=layout, utc=True)
    if dates.isna().any():
        row = int((dates.isna() if bad.all() else pd.Series(bad)).to_numpy().argmax())
        refuse(row, cells[row], "a number, or a date such as 2026-03-01, 2026-03-01 14:30 or 31/03/2026 14:30")
    local = pd.to_datetime(text.str.replace(OFFSET, "", regex=True), errors="coerce", format=layout, utc=True)
    return Times(_seconds(dates.dt.tz_localize(None)), _seconds(local.dt.tz_localize(None)), notes)


def _of_numbers(numbers: Floats) -> Times:
    for factor, name in ((1.0, "seconds"), (1e3, "milliseconds")):
        if EPOCH[0] * factor <= numbers.min() and numbers.max() < EPOCH[1] * factor:
            return Times(numbers / factor, numbers / factor, (f"Times are read as {name} since 1970 (UTC).",))
    return Times(numbers, None)


def _seconds(dates: pd.Series) -> Floats:
    return np.asarray((dates - pd.Timestamp(0)).dt.total_seconds(), dtype=np.float64)


def _year_first(text: pd.Series, refuse: Refuse, day_first: bool | None) -> tuple[pd.Series, tuple[str, ...]]:
    """Dates such as 31/03/2026 as 2026-03-31. Which number is the day follows from the column, or is asked for."""
    found = {row: match for row, cell in enumerate(text) if (match := NUMERIC_DATE.match(cell))}
    if not found:
        return text, ()
    day = [row for row, match in found.items() if int(match[1]) > 12]  # rows whose first number can only be a day
    month = [row for row, match in found.items() if int(match[3]) > 12]
    if day and month:
        row = max(day[0], month[0])
        refuse(row, text[row], "dates in one notation; in this column some have the day first and some the month")
    first = next(iter(found))
    if day_first is None and not day and not month and found[first][2] != ".":
        accepted = "a date such as 2026-03-01; is the day or the month first? Say --day-first or --month-first"
        refuse(first, text[first], accepted)
    with_day_first = day_first if day_first is not None else not month
    wrong = month if with_day_first else day
    if wrong:
        refuse(wrong[0], text[wrong[0]], f"a date with the {'day' if with_day_first else 'month'} first")
    result = text.copy()
    for row, match in found.items():
        d, m = (match[1], match[3]) if with_day_first else (match[3], match[1])
        result[row] = f"{match[4]}-{int(m):02}-{int(d):02} {match[5] or ''}".strip()
    return result, (f"Dates are read with the {'day' if with_day_first else 'month'} first.",)


class Steps(NamedTuple):
    """The step of each row, from 0 in each unit."""

    step: Ints
    one: str  # what one step is, as part of a sentence
    notes: tuple[str, ...]


def count_steps(unit: Ints, times: Times, column: str, clock_grid: bool) -> Steps:
    """Steps of rows that are sorted by unit and time.

    Whole numbers whose most frequent difference is 1 number the steps, and a number that is absent is a skipped step.
    In all other columns a step is a row. With `clock_grid` it is the greatest common divisor of all differences.
    """
    first = np.diff(unit, prepend=-1) != 0
    begun = np.maximum.accumulate(np.where(first, np.arange(unit.size), 0))
    apart = np.diff(times.order, prepend=0.0)[~first]
    passed = times.order - times.order[begun]
    if clock_grid:
        return _on_grid(passed, apart, times, column)
    rows = Steps(np.arange(unit.size) - begun, "one decision of a unit", ())
    if apart.size == 0:
        return rows
    sizes, counts = np.unique(apart, return_counts=True)
    if times.clock is None and bool(np.all(apart == np.rint(apart))) and sizes[counts.argmax()] == 1.0:
        skipped = int(apart.sum()) - apart.size
        note = f"{skipped:,} step numbers are absent from column {column!r}; they count as steps without a reward."
        one = f"one number of column {column!r}"
        return Steps(np.rint(passed).astype(np.int64), one, (note,) if skipped else ())
    if times.clock is not None:
        usual = duration(float(np.median(apart)))
        note = (
            f"Steps are decisions of a unit, in order of time, however much time passed in between (median: {usual}). "
            "--clock-grid (clock_grid=True) counts steps on the clock instead."
        )
    else:
        note = (
            f"Column {column!r} does not number the steps one by one, so rows of a unit count as consecutive steps. "
            "--clock-grid (clock_grid=True) takes its values as they are."
        )
    return rows._replace(notes=(note,))


def _on_grid(passed: Floats, apart: Floats, times: Times, column: str) -> Steps:
    if apart.size == 0:
        return Steps(np.zeros(passed.size, dtype=np.int64), "one decision of a unit", ())
    whole = bool(np.all(apart == np.rint(apart))) and apart.max() < 2**53
    least = float(np.gcd.reduce(apart.astype(np.int64))) if whole else float(apart.min())
    steps = passed / least
    size = duration(least) if times.clock is not None else f"{least:g} of column {column!r}"
    accepted = f"False: the times of column {column!r} are not multiples of one step that a log could count"
    if np.abs(steps - np.rint(steps)).max() > WHOLE * max(1.0, np.sqrt(apart.size)):
        raise InvalidValue("diagnose", "clock_grid", True, accepted)
    if apart.sum() / least > SPARSE * apart.size:
        raise InvalidValue("diagnose", "clock_grid", True, f"{accepted} (the largest is {size})")
    note = (
        f"Steps are counted on the clock. Replays decide at every step of {size}, also where the log has no decision."
    )
    return Steps(np.rint(steps).astype(np.int64), size, (note,))


def duration(seconds: float) -> str:
    """A length of time in the largest unit that it fills: 5 hours, 1.5 days."""
    size, name = next(((size, name) for size, name in UNITS if seconds >= size), UNITS[-1])
    text = f"{seconds / size:.3g}"
    return f"{text} {name}{'' if text == '1' else 's'}"
