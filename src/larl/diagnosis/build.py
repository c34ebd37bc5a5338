"""Build a log from a table of decisions: find columns, sort rows, count steps, remove the effects of contexts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from larl._core.validation import InvalidValue
from larl.diagnosis.context import CALENDAR_COLUMNS, adjust
from larl.diagnosis.kernels import Floats, Ints
from larl.diagnosis.log import Log
from larl.logs.rows import Columns, Rows, read_rows
from larl.logs.table import Table
from larl.logs.times import Times, count_steps

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

MAX_GAP = 1000  # steps; longer gaps count as this one


def make_log(
    frame: "IntoFrame | str | Path",
    columns: Columns | None = None,
    *,
    context: str | Sequence[str] | None = None,
    clock_grid: bool = False,
    day_first: bool | None = None,
    from_file: bool = False,
) -> Log:
    """Return the log of a table.

    Parameters
    ----------
    frame : table of pandas, polars, pyarrow or another library that narwhals supports, str or Path
        One row per decision, or the path of a CSV or Parquet file.
    columns : mapping, optional
        The columns of `time`, `action`, `reward` and `unit` if they do not have common names. `unit=False`: the log has
        one unit.
    context : str or sequence of str, optional
        Columns whose linear effect in each arm is removed from the rewards. `hour` and `weekday` are made from dates.
    clock_grid : bool, default False
        Whether to count steps on the clock instead of by decisions.
    day_first : bool, optional
        Whether dates such as 03/04/2026 have the day first.
    from_file : bool, default False
        Whether rows of a table are lines of a file below a header; error messages then name the line.
    """
    rows = read_rows(frame, columns, day_first=day_first, from_file=from_file)
    table, arm, rewards, times = rows.table, rows.arm, rows.reward, rows.times
    units = _sorted_units(rows)
    time = rows.columns["time"] or ""
    has_dates = times.clock is not None
    if not has_dates:
        times = times._replace(clock=table.calendar(time, day_first))
    contexts, context_names = _contexts(table, context, times)
    order = np.lexsort((times.order, units))
    rows.reject_duplicates(order)
    counted = Times(times.order[order], times.order[order] if has_dates else None)
    steps = count_steps(units[order], counted, time, clock_grid)
    notes = [*table.notes, *times.notes]
    if _is_unsorted(units, times.order):
        notes.append("The rows of the log were not in order of time; they were sorted.")
    has_reward = np.isfinite(rewards[order])
    kept = order[has_reward]
    log = _assemble(
        arm=arm[kept],
        reward=rewards[kept],
        unit=units[kept],
        step=steps.step[has_reward],
        labels=rows.labels,
        missing=int((~has_reward).sum()),
        notes=[*notes, *steps.notes],
    )
    clock = None if times.clock is None else times.clock[kept]
    log = replace(log, step_name=steps.name, time=times.order[kept], clock=clock, unit_column=rows.columns["unit"])
    return adjust(log, contexts[kept], context_names) if context_names else log


def _sorted_units(rows: Rows) -> Ints:
    """Return the units as numbers in order of their names, short names first, whatever the order of the rows."""
    if not rows.units:
        return rows.unit
    by_name = sorted(range(len(rows.units)), key=lambda unit: (len(rows.units[unit]), rows.units[unit]))
    return np.argsort(by_name)[rows.unit]


def _is_unsorted(unit: Ints, time: Floats) -> bool:
    """Whether a row has an earlier time than the previous row of the same unit."""
    order = np.argsort(unit, kind="stable")
    return bool(((np.diff(unit[order]) == 0) & (np.diff(time[order]) < 0)).any())


def _contexts(table: Table, context: str | Sequence[str] | None, times: Times) -> tuple[Floats, tuple[str, ...]]:
    """Return the columns of all contexts side by side, and their names in notes."""
    names = [context] if isinstance(context, str) else list(context or ())
    blocks: list[Floats] = []
    for name in names:
        if not isinstance(name, str) or names.count(name) > 1:
            raise InvalidValue("diagnose", "context", name, "names of columns, each once")
        if name in CALENDAR_COLUMNS and name not in table.names and times.clock is not None:
            blocks.append(CALENDAR_COLUMNS[name](times.clock))
        elif name in CALENDAR_COLUMNS and name not in table.names:
            accepted = f"one of the log's columns: {table.all_names} ({name} needs dates, and the log has none)"
            raise InvalidValue("diagnose", "context", name, accepted)
        else:
            blocks.append(table.context(name))
    if not blocks:
        return np.zeros((len(table.frame), 0)), ()
    return np.concatenate(blocks, axis=1), tuple(f"the context {name!r}" for name in names)


def _assemble(
    arm: Ints, reward: Floats, unit: Ints, step: Ints, labels: tuple[str, ...], missing: int, notes: list[str]
) -> Log:
    """Return the log of rows that are sorted by unit and step; arms without a reward are left out."""
    kept, arm = np.unique(arm, return_inverse=True)
    names, unit = np.unique(unit, return_inverse=True)
    first = np.diff(unit, prepend=-1) != 0
    gap = np.where(first, 0, np.diff(step, prepend=0))
    if (gap > MAX_GAP).any():
        notes = [*notes, f"Gaps longer than {MAX_GAP:,} steps count as {MAX_GAP:,} steps."]
    unrewarded = [name for number, name in enumerate(labels) if number not in kept]
    if unrewarded:
        notes = [*notes, f"These arms have no rewards and are left out: {', '.join(unrewarded)}."]
    return Log(
        arm=arm.astype(np.int64),
        gap=np.minimum(gap, MAX_GAP).astype(np.int64),
        reward=reward,
        unit=unit.astype(np.int64),
        step=step.astype(np.int64),
        labels=tuple(labels[i] for i in kept),
        units=names.size,
        missing=missing,
        notes=tuple(notes),
    )
