"""A study as input of Vowpal Wabbit's contextual bandits."""

import json
from collections import Counter
from collections.abc import Iterator

from larl.service.export.table import Record, Table


def as_vw(table: Table, left_out: Counter[str] | None = None) -> Iterator[str]:
    """Yield lines action:cost:probability | features; count in `left_out` why decisions cannot be used."""
    number = {arm: i for i, arm in enumerate(table.config.arms, 1)}
    context = [name for name in table.columns if name.startswith("context_")]
    for record in table.records():
        reason = _unusable(record)
        if reason:
            (Counter() if left_out is None else left_out).update([reason])
            continue
        label = f"{number[record['arm']]}:{0.0 - record['reward']!r}:{record['p_' + record['arm']]!r}"
        offered = json.loads(record["offered"] or "[]")
        others = " ".join(str(i) for arm, i in number.items() if arm in offered and arm != record["arm"])
        features = "".join(f" {name}:{record[name]!r}" for name in context)
        yield f"{f'{label} {others}'.rstrip()} |{features}\n"


def _unusable(record: Record) -> str:
    """Return why a decision cannot be learnt from by its probability; "" if it can."""
    if record["arm"] is None:
        return "no arm was available"
    if record["reward"] is None:
        return "no reward"
    if record["played"] != record["arm"]:
        return "another arm was played than decided"
    return "" if record["p_" + record["arm"]] else "the probability is not known"
