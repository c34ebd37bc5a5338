"""A study as a file: csv and parquet with everything; vw, lines for Vowpal Wabbit's contextual bandits; lifejacket.

Of a study that goes on, decisions and what was known of them when the export began.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from larl._core.files import write_atomically
from larl._core.validation import InvalidValue, one_of
from larl.service.journal import PAGE
from larl.service.lifejacket import as_lifejacket
from larl.service.table import Record, Table, line_of

FORMATS = ("csv", "parquet", "vw", "lifejacket")


def as_csv(table: Table) -> Iterator[str]:
    """Lines of CSV; what is not known is empty."""
    yield line_of(list(table.columns))
    for record in table.records():
        yield line_of([_plain(record.get(name)) for name in table.columns])


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def as_vw(table: Table, left: Counter[str] | None = None) -> Iterator[str]:
    """Lines action:cost:probability | features; what is left out is counted in `left`, by the reason why."""
    number = {arm: i for i, arm in enumerate(table.terms.arms, 1)}
    for record in table.records():
        reason = _unusable(record)
        if reason:
            (Counter() if left is None else left).update([reason])
        else:
            label = f"{number[record['arm']]}:{0.0 - record['reward']!r}:{record['p_' + record['arm']]!r}"
            others = json.loads(record["offered"] or "[]")
            able = " ".join(str(i) for arm, i in number.items() if arm in others and arm != record["arm"])
            shown = "".join(f" {name}:{record[name]!r}" for name in table.columns if name.startswith("context_"))
            yield f"{f'{label} {able}'.rstrip()} |{shown}\n"


def _unusable(record: Record) -> str:
    """Why a decision cannot be learnt from by its probability; empty if it can."""
    if record["arm"] is None:
        return "no arm was available"
    if record["reward"] is None:
        return "no reward"
    if record["played"] != record["arm"]:
        return "another arm was played than decided"
    return "" if record["p_" + record["arm"]] else "the probability is not known"


def as_parquet(table: Table, path: Path) -> None:
    """A Parquet file."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        accepted = "csv, vw or lifejacket; parquet needs pyarrow: pip install 'larl[parquet]'"
        raise InvalidValue("export", "format", "parquet", accepted) from error
    types = {int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_(), str: arrow.string()}
    schema = arrow.schema([(name, types[kind]) for name, kind in table.columns.items()])
    records = table.records()
    with parquet.ParquetWriter(path, schema) as writer:
        while batch := list(islice(records, PAGE)):
            writer.write_table(arrow.Table.from_pylist(batch, schema))


def export(table: Table, kind: str, out: Path, fill: float | None = None) -> dict[str, int]:
    """Write a table to a file, whole or not at all. What was left out, and why."""
    one_of(*FORMATS)("export", "format", kind)
    left: Counter[str] = Counter()
    lines = {
        "csv": lambda: as_csv(table),
        "vw": lambda: as_vw(table, left),
        "lifejacket": lambda: as_lifejacket(table, fill),
    }
    if kind == "parquet":
        write_atomically(out, lambda path: as_parquet(table, path), private=True)
    else:
        write_atomically(out, lambda path: _write(path, lines[kind]()), private=True)
    return left


def _write(path: Path, lines: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines)
