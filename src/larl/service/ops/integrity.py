"""Checks of a journal's completeness, and the error for an event that differs from what it should be."""

import json
from contextlib import suppress
from typing import Any

import sqlalchemy as sql

from larl.service.storage.database import Database, StorageError
from larl.service.storage.events import REWARD_EVENTS, Event, EventKind
from larl.service.storage.tables import journal

MAX_LENGTH = 300  # characters of a value that are shown


class Mismatch(Exception):
    """An event that differs from the one that is derived from the events before it."""

    def __init__(self, seq: int, about: str, what: str, stored: Any, derived: Any) -> None:
        self.seq, self.about, self.what, self.stored, self.derived = seq, about, what, stored, derived
        shown = [value if isinstance(value, str) else json.dumps(value) for value in (stored, derived)]
        cut = [value if len(value) <= MAX_LENGTH else value[:MAX_LENGTH] + "…" for value in shown]
        super().__init__(f"row {seq}, {about}: {what} is stored as {cut[0]}; derived: {cut[1]}")


def check_complete(database: Database) -> int:
    """Return the number of events; raise Mismatch if one is missing, StorageError for lost rows or a damaged file."""
    with database.reading() as connection:
        database.check_last(connection)
        if database.is_sqlite:
            result = connection.exec_driver_sql("PRAGMA integrity_check").scalar()
            if result != "ok":
                raise StorageError(database.path, f"the file is damaged: {str(result).splitlines()[0]}")
        rows, first, last = connection.execute(
            sql.select(sql.func.count(), sql.func.min(journal.c.seq), sql.func.max(journal.c.seq))
        ).one()
        if rows and (first, last) != (1, rows):
            raise Mismatch(_first_gap(connection), "any study", "row", "nothing", "a row: numbers have no gap")
    return int(rows)


def _first_gap(connection: sql.Connection) -> int:
    """Return the first missing number."""
    if connection.scalar(sql.select(journal.c.seq).where(journal.c.seq == 1)) is None:
        return 1
    after = journal.alias()
    has_next = sql.exists().where(after.c.seq == journal.c.seq + 1)
    return 1 + (connection.scalar(sql.select(sql.func.min(journal.c.seq)).where(~has_next)) or 0)


def about(event: Event) -> str:
    """Return what an event is about."""
    if event.ref and event.kind in (EventKind.DECISION, *REWARD_EVENTS, EventKind.DELIVERED):
        return f"decision {event.ref}"
    return f"{event.kind} of study {event.study}"


def check_equal(event: Event, name: str, stored: Any, derived: Any) -> None:
    """Raise Mismatch if a column differs; for JSON, say which field does."""
    if stored == derived:
        return
    path, values = name, (stored, derived)
    if name == "response":
        with suppress(ValueError):  # the stored text may be damaged
            path, values = _first_difference("", json.loads(stored), json.loads(derived)) or (name, values)
    raise Mismatch(event.seq, about(event), path, *values)


def _first_difference(path: str, stored: Any, derived: Any) -> tuple[str, tuple[Any, Any]] | None:
    """Return the path and both values of the first field that differs; None if only the text differs."""
    if isinstance(stored, dict) and isinstance(derived, dict) and list(stored) == list(derived):
        for name in stored:
            if stored[name] != derived[name]:
                return _first_difference(f"{path}.{name}".lstrip("."), stored[name], derived[name])
    return (path, (stored, derived)) if path else None
