"""A study as CSV."""

from collections.abc import Iterator
from typing import Any

from larl.service.export.table import Table, csv_line


def as_csv(table: Table) -> Iterator[str]:
    """Yield lines of CSV; unknown values are empty."""
    yield csv_line(list(table.columns))
    for record in table.records():
        yield csv_line([_csv_value(record.get(name)) for name in table.columns])


def _csv_value(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
