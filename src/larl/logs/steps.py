"""The steps of a log in order of time, for warm starts of agents, cohorts and studies."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from larl._core.validation import InvalidValue, boolean, optional
from larl.logs.rows import Columns, Rows, read_rows
from larl.logs.times import Floats

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame


class Step(NamedTuple):
    """A row of a log as a step that was decided elsewhere."""

    unit: str  # empty if the log has no column of the unit
    arm: str | None  # None: there was no action
    reward: float | None  # None: missing
    context: list[float]


@dataclass(frozen=True)
class LogSteps:
    """The steps of all units of a log, in order of time; rows with the same time in the order of the table."""

    arms: tuple[str, ...]
    units: tuple[str, ...]  # names; none if the log has no column of the unit
    steps: list[Step]


def load_steps(
    log: "IntoFrame | str | Path",
    columns: Columns,
    *,
    arms: Sequence[str] | None,
    context: Sequence[str],
    day_first: bool | None,
    owner: str,
) -> LogSteps:
    """Return the steps of a log; raise InvalidValue for an action that is not one of `arms`, if they are given."""
    unit = columns.get("unit")
    if not (unit is None or unit is False or isinstance(unit, str)):
        raise InvalidValue(owner, "unit", unit, "the name of a column, None, or False for a log of one unit")
    optional(boolean())(owner, "day_first", day_first)
    rows = read_rows(log, columns, day_first=day_first, owner=owner)
    rows.reject_duplicates(np.lexsort((rows.times.order, rows.unit)))
    if arms is not None:
        _reject_unknown(rows, arms)
    contexts = _contexts(rows, context, owner)
    units = rows.units or ("",)
    order = np.argsort(rows.times.order, kind="stable")
    steps = [
        Step(
            unit=units[rows.unit[row]],
            arm=None if rows.arm[row] < 0 else rows.labels[rows.arm[row]],
            reward=None if np.isnan(rows.reward[row]) else float(rows.reward[row]),
            context=contexts[row].tolist(),
        )
        for row in order.tolist()
    ]
    return LogSteps(rows.labels if arms is None else tuple(arms), rows.units, steps)


def _reject_unknown(rows: Rows, arms: Sequence[str]) -> None:
    """Raise InvalidValue for the first action that is not one of the arms."""
    unknown = np.array([label not in arms for label in rows.labels] + [False])  # the last: no action, number −1
    if unknown[rows.arm].any():
        row = int(unknown[rows.arm].argmax())
        rows.table.reject(row, rows.columns["action"] or "", rows.labels[rows.arm[row]], f"one of {', '.join(arms)}")


def _contexts(rows: Rows, names: Sequence[str], owner: str) -> Floats:
    """Return the contexts as (rows, columns)."""
    for name in names:
        if not isinstance(name, str) or list(names).count(name) > 1:
            raise InvalidValue(owner, "context", name, "names of columns, each once")
    columns = [rows.table.numbers("context", name) for name in names]
    return np.column_stack(columns) if columns else np.zeros((len(rows.arm), 0))


def read_steps(
    log: "IntoFrame | str | Path",
    *,
    time: str | None = None,
    action: str | None = None,
    reward: str | None = None,
    unit: str | None = None,
    context: str | Sequence[str] | None = None,
    day_first: bool | None = None,
) -> list[dict[str, Any]]:
    """Read a log as steps for ``Client.import_history``.

    Parameters
    ----------
    log : table, str or Path
        The log with one row per decision, as for ``larl.diagnose``.
    time, action, reward, unit : str, optional
        Names of the columns, as for ``larl.diagnose``.
    context : str or sequence of str, optional
        Columns of the context, numbers, in the order in which the study's policy takes them.
    day_first : bool, optional
        Whether dates such as 03/04/2026 have the day first. Needed only if the column is ambiguous.

    Returns
    -------
    list of dict
        One for each row, in order of time: ``id``, ``unit``, ``arm`` (None without an action), ``reward`` (None if
        it is missing) and, if there are columns of it, ``context``. Row N of a unit, from 0, has the id
        ``log.UNIT.N``.

    Raises
    ------
    InvalidValue
        If a column is missing or a cell cannot be read. The message names row and column.

    Examples
    --------
    >>> import larl, pandas as pd
    >>> log = pd.DataFrame({"user": ["a", "b"], "t": [0, 0], "arm": ["off", "on"], "reward": [0.5, None]})
    >>> larl.logs.read_steps(log)[0]
    {'id': 'log.a.0', 'unit': 'a', 'arm': 'off', 'reward': 0.5}
    """
    columns: dict[str, str | Literal[False] | None] = {"time": time, "action": action, "reward": reward, "unit": unit}
    names = [context] if isinstance(context, str) else list(context or ())
    found = load_steps(log, columns, arms=None, context=names, day_first=day_first, owner="read_steps")
    if not found.units:
        raise InvalidValue(
            "read_steps", "unit", unit, "the name of the column of the unit: units of a study have names"
        )
    counts = dict.fromkeys(found.units, 0)
    result = []
    for step in found.steps:
        values = {"id": f"log.{step.unit}.{counts[step.unit]}", "unit": step.unit, "arm": step.arm}
        result.append(values | {"reward": step.reward} | ({"context": step.context} if names else {}))
        counts[step.unit] += 1
    return result
