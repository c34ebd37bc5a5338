"""A study as the "analysis data frame" of the `lifejacket` package, as CSV.

One row per unit and time; a unit that decided less often is out of the study for the rest. The package has two actions
and needs a probability and a reward whenever a unit is in the study: other studies are refused, with what is missing.
"""

import math
from collections.abc import Iterator

from larl._core.validation import InvalidValue
from larl.service.export.table import Record, Table, csv_line

COLUMNS = ("user_id", "calendar_t", "in_study", "action", "action1prob", "reward", "policy_num", "available", "larl_id")
NO_POLICY = -1  # number of the policy of decisions that no policy made


def as_lifejacket(table: Table, fill: float | None = None) -> Iterator[str]:
    """Yield lines of CSV. `fill` replaces missing rewards."""
    if len(table.config.arms) != 2:
        raise InvalidValue("export", "arms", list(table.config.arms), "two arms (action 0 and action 1 of lifejacket)")
    if fill is not None and not math.isfinite(fill):
        raise InvalidValue("export", "fill", fill, "a finite number")
    steps, numbers = _shape(table, fill)
    context = [name for name in table.columns if name.startswith("context_")]
    yield csv_line([*COLUMNS, *context])
    for unit, count in steps.items():
        for record in table.records(unit):
            yield csv_line([*_row(table, record, numbers, fill), *(record[name] for name in context)])
        for t in range(count, max(steps.values())):
            yield csv_line([unit, t, 0, *[None] * (len(COLUMNS) - 3 + len(context))])


def _shape(table: Table, fill: float | None) -> tuple[dict[str, int], dict[int, int]]:
    """Return the decisions of each unit, and numbers of policies without gaps; raise InvalidValue if unusable."""
    steps: dict[str, int] = {}
    versions: set[int] = set()
    for record in table.records():
        _check(record, table.config.arms[1], fill)
        steps[record["unit"]] = record["t"] + 1
        versions |= {record["policy_version"]} if record["source"] in ("policy", "unavailable") else set()
    if not versions:
        raise InvalidValue("export", "study", table.study, "a study with a decision of a policy (for lifejacket)")
    return steps, {version: number for number, version in enumerate(sorted(versions))}


def _check(record: Record, second: str, fill: float | None) -> None:
    """Raise InvalidValue for a decision that the package does not accept."""
    place = f"{record['id']} (unit {record['unit']}, t {record['t']})"
    if record["reward"] is None and fill is None:
        accepted = "a number at every time; --fill replaces missing rewards"
        raise InvalidValue("export", f"reward of {place}", None, accepted)
    if record["arm"] is not None and record["p_" + second] is None:
        raise InvalidValue("export", f"probability of {place}", None, "a number: it was not reported with the decision")
    if record["played"] != record["arm"]:
        accepted = f"{record['arm']}, which was decided: the probability of the arm played instead is not known"
        raise InvalidValue("export", f"arm played of {place}", record["played"], accepted)


def _row(table: Table, record: Record, numbers: dict[int, int], fill: float | None) -> list[object]:
    """Return the row of a decision. If no arm was available, action 0 was certain."""
    second = table.config.arms[1]
    by_policy = record["source"] in ("policy", "unavailable")
    reward = fill if record["reward"] is None else record["reward"]
    return [
        record["unit"],
        record["t"],
        1,
        int(record["arm"] == second),
        record["p_" + second],
        reward,
        numbers[record["policy_version"]] if by_policy else NO_POLICY,
        int(record["available"]),
        record["id"],
    ]
