"""A study as a file, complete or not at all: csv, parquet, vw (Vowpal Wabbit) or lifejacket."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from larl._core.files import write_atomically
from larl._core.validation import InvalidValue, one_of
from larl.service.export.csv import as_csv
from larl.service.export.lifejacket import as_lifejacket
from larl.service.export.table import Table
from larl.service.export.vw import as_vw
from larl.service.storage.journal import PAGE

FORMATS = ("csv", "parquet", "vw", "lifejacket")


def export(table: Table, kind: str, out: Path, fill: float | None = None) -> dict[str, int]:
    """Write a table to a file; return how many decisions were left out, by reason."""
    one_of(*FORMATS)("export", "format", kind)
    left_out: Counter[str] = Counter()
    lines = {
        "csv": lambda: as_csv(table),
        "vw": lambda: as_vw(table, left_out),
        "lifejacket": lambda: as_lifejacket(table, fill),
    }

    def write(path: Path) -> None:
        if kind == "parquet":
            _write_parquet(table, path)
        else:
            _write_lines(lines[kind](), path)

    write_atomically(out, write, private=True)
    return left_out


def _write_lines(lines: Iterator[str], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines)


def _write_parquet(table: Table, path: Path) -> None:
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
