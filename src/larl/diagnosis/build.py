"""A table of decisions becomes a log: columns found, rows sorted, steps counted, contexts taken off."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from larl._core.validation import InvalidValue
from larl.diagnosis.context import CALENDAR, adjust
from larl.diagnosis.kernels import Floats, Ints
from larl.diagnosis.log import Log
from larl.diagnosis.table import Table
from larl.diagnosis.times import Times, count_steps

LONGEST_GAP = 1000  # steps; a longer gap counts as this one
Columns = Mapping[str, str | Literal[False] | None]


def make_log(
    frame: pd.DataFrame,
    columns: Columns | None = None,
    *,
    context: str | Sequence[str] | None = None,
    clock_grid: bool = False,
    day_first: bool | None = None,
    lines: bool = False,
) -> Log:
    """The log in a table.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row for each decision.
    columns : mapping
        The columns of `time`, `action`, `reward` and `unit` where their names are not common ones. `unit=False`: the
        log is of one unit, whatever its columns are called.
    context : str or sequence of str
        Columns whose linear effect in each arm is taken off the rewards. `hour` and `weekday` are made from dates.
    clock_grid : bool
        Count steps on the clock, not by decisions.
    day_first : bool, optional
        How dates such as 03/04/2026 are read.
    lines : bool
        Rows are lines of a file below a header, and refusals say which.
    """
    if not isinstance(frame, pd.DataFrame):
        raise InvalidValue("diagnose", "frame", type(frame).__name__, "a pandas DataFrame with a row for each decision")
    table, asked = Table(frame, lines), columns or {}
    time, action, reward = (table.column(part, asked.get(part) or None) for part in ("time", "action", "reward"))
    unit = table.unit_column(asked.get("unit"))
    if frame.empty:
        accepted = "a table with a row for each decision; this one has a header only"
        raise InvalidValue("diagnose", "log", "0 rows", accepted)
    arm, labels = table.actions(action, reward)
    rewards, units = table.rewards(reward), table.units(unit)
    times = table.times(time, day_first)
    dated = times.clock is not None
    if not dated:
        times = times._replace(clock=table.calendar(time, day_first))
    contexts, names = _contexts(table, context, times)
    order = np.lexsort((times.order, units))
    _refuse_duplicates(table, units[order], times.order[order], order, time, unit)
    counted = Times(times.order[order], times.order[order] if dated else None)
    steps = count_steps(units[order], counted, time, clock_grid)
    notes = [*table.notes, *times.notes]
    if _unsorted(units, times.order):
        notes.append("The rows of the log were not in order of time; they were sorted.")
    seen = np.isfinite(rewards[order])
    kept = order[seen]
    log = _assembled(
        arm[kept], rewards[kept], units[kept], steps.step[seen], labels, int((~seen).sum()), [*notes, *steps.notes]
    )
    clock = None if times.clock is None else times.clock[kept]
    log = replace(log, one_step=steps.one, time=times.order[kept], clock=clock)
    return adjust(log, contexts[kept], names) if names else log


def _unsorted(unit: Ints, time: Floats) -> bool:
    """Whether a row has an earlier time than a row above it of the same unit."""
    order = np.argsort(unit, kind="stable")
    return bool(((np.diff(unit[order]) == 0) & (np.diff(time[order]) < 0)).any())


def _refuse_duplicates(table: Table, unit: Ints, time: Floats, order: Any, column: str, units: str | None) -> None:
    """Refuse a time that a unit has twice."""
    twice = (np.diff(unit) == 0) & (np.diff(time) == 0)
    if not twice.any():
        return
    at = np.flatnonzero(twice)
    later = np.maximum(order[at], order[at + 1])
    row, other = int(later.min()), int(np.minimum(order[at], order[at + 1])[later.argmin()])
    accepted = f"a time that occurs once in its unit; row {other + 1} has the same"
    if units is None:
        accepted += " (a log of several units needs --unit NAME)"
    table.refuse(row, column, table.cells(column)[row], accepted)


def _contexts(table: Table, asked: str | Sequence[str] | None, times: Times) -> tuple[Floats, tuple[str, ...]]:
    """Columns of all contexts side by side, and how the page calls them."""
    names = [asked] if isinstance(asked, str) else list(asked or ())
    found: list[Floats] = []
    for name in names:
        if not isinstance(name, str) or names.count(name) > 1:
            raise InvalidValue("diagnose", "context", name, "names of columns, each once")
        if name in CALENDAR and name not in table.names and times.clock is not None:
            found.append(CALENDAR[name](times.clock))
        elif name in CALENDAR and name not in table.names:
            accepted = f"one of the log's columns: {table.there} ({name} is made from dates, and there are none)"
            raise InvalidValue("diagnose", "context", name, accepted)
        else:
            found.append(table.context(name))
    if not found:
        return np.zeros((len(table.frame), 0)), ()
    return np.concatenate(found, axis=1), tuple(f"the context {name!r}" for name in names)


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
        arm=arm.astype(np.int64),
        gap=np.minimum(gap, LONGEST_GAP).astype(np.int64),
        reward=reward,
        unit=unit.astype(np.int64),
        step=step.astype(np.int64),
        labels=tuple(labels[i] for i in kept),
        units=names.size,
        missing=missing,
        notes=tuple(notes),
    )
