"""A study as the `lifejacket` package analyses it: its "analysis data frame", as CSV.

One row for each unit and time; a unit that decided less often is out of the study for the rest. That package knows two
actions, and wants a probability and a reward at every time at which a unit is in the study: what it would not take is
refused here, with what is wrong and where.
"""

import math
from collections.abc import Iterator

from larl._core.validation import InvalidValue
from larl.service.table import Record, Table, line_of

COLUMNS = ("user_id", "calendar_t", "in_study", "action", "action1prob", "reward", "policy_num", "available", "larl_id")
FELL_BACK = -1  # the number of the policy where none of the study's decided


def as_lifejacket(table: Table, fill: float | None = None) -> Iterator[str]:
    """Lines of CSV. `fill` counts as the reward where there is none."""
    if len(table.terms.arms) != 2:
        raise InvalidValue("export", "arms", list(table.terms.arms), "two, the first of which is action 0: lifejacket")
    if fill is not None and not math.isfinite(fill):
        raise InvalidValue("export", "fill", fill, "a finite number")
    steps, numbers = _shape(table, fill)
    context = [name for name in table.columns if name.startswith("context_")]
    yield line_of([*COLUMNS, *context])
    for unit, count in steps.items():
        for record in table.records(unit):
            yield line_of([*_row(table, record, numbers, fill), *(record[name] for name in context)])
        for t in range(count, max(steps.values())):
            yield line_of([unit, t, 0, *[None] * (len(COLUMNS) - 3 + len(context))])


def _shape(table: Table, fill: float | None) -> tuple[dict[str, int], dict[int, int]]:
    """Decisions of each unit, and policies that decided, numbered without a gap; refuses what cannot be analysed."""
    steps: dict[str, int] = {}
    versions: set[int] = set()
    for record in table.records():
        _check(record, table.terms.arms[1], fill)
        steps[record["unit"]] = record["t"] + 1
        versions |= {record["policy_version"]} if record["source"] in ("policy", "unavailable") else set()
    if not versions:
        raise InvalidValue("export", "study", table.study, "one with a decision by a policy: lifejacket")
    return steps, {version: number for number, version in enumerate(sorted(versions))}


def _check(record: Record, second: str, fill: float | None) -> None:
    """Refuse a decision that the package would not take."""
    place = f"{record['id']} (unit {record['unit']}, t {record['t']})"
    if record["reward"] is None and fill is None:
        accepted = "a number at every time: give --fill, what counts where there is none"
        raise InvalidValue("export", f"reward of {place}", None, accepted)
    if record["arm"] is not None and record["p_" + second] is None:
        raise InvalidValue(
            "export", f"probability of {place}", None, "a number: the host did not say how likely it was"
        )
    if record["played"] != record["arm"]:
        accepted = f"{record['arm']}, which was decided: the probability of what was played instead is not known"
        raise InvalidValue("export", f"arm played of {place}", record["played"], accepted)


def _row(table: Table, record: Record, numbers: dict[int, int], fill: float | None) -> list[object]:
    """A time at which a unit is in the study. Where no arm was available, action 0 was certain."""
    second = table.terms.arms[1]
    by_policy = record["source"] in ("policy", "unavailable")
    reward = fill if record["reward"] is None else record["reward"]
    return [
        record["unit"],
        record["t"],
        1,
        int(record["arm"] == second),
        record["p_" + second],
        reward,
        numbers[record["policy_version"]] if by_policy else FELL_BACK,
        int(record["available"]),
        record["id"],
    ]
