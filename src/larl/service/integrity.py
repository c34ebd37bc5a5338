"""Whether a journal is whole, and what is said of a row that is not what it should be."""

import json
from typing import Any

import sqlalchemy as sql

from larl.service.database import Database, StorageError, journal
from larl.service.journal import Row

LONGEST = 300  # characters of a value that are shown


class Mismatch(Exception):
    """A row that is not what comes out."""

    def __init__(self, seq: int, about: str, what: str, stored: Any, derived: Any) -> None:
        self.seq, self.about, self.what, self.stored, self.derived = seq, about, what, stored, derived
        shown = [value if isinstance(value, str) else json.dumps(value) for value in (stored, derived)]
        cut = [value if len(value) <= LONGEST else value[:LONGEST] + "…" for value in shown]
        super().__init__(f"row {seq}, {about}: {what} is stored as {cut[0]}; what comes out is {cut[1]}")


def whole(database: Database) -> int:
    """How many rows a journal has, none of which is missing. Raises Mismatch; StorageError, if the file is damaged."""
    with database.reading() as connection:
        if database.lite:
            found = connection.exec_driver_sql("PRAGMA integrity_check").scalar()
            if found != "ok":
                raise StorageError(database.path, f"the file is damaged: {str(found).splitlines()[0]}")
        rows, first, last = connection.execute(
            sql.select(sql.func.count(), sql.func.min(journal.c.seq), sql.func.max(journal.c.seq))
        ).one()
        if rows and (first, last) != (1, rows):
            raise _gap(connection)
    return int(rows)


def _gap(connection: sql.Connection) -> Mismatch:
    """The first number that there is not."""
    after = journal.alias()
    followed = sql.exists().where(after.c.seq == journal.c.seq + 1)
    last = connection.scalar(sql.select(sql.func.min(journal.c.seq)).where(~followed))
    begins = connection.scalar(sql.select(journal.c.seq).where(journal.c.seq == 1))
    return Mismatch((last or 0) + 1 if begins else 1, "any study", "row", "nothing", "a row: numbers have no gap")


def about(row: Row) -> str:
    """What a row is about."""
    return f"decision {row.ref}" if row.ref and row.kind != "issue" else f"{row.kind} of study {row.study}"


def same(row: Row, name: str, stored: Any, derived: Any) -> None:
    """Refuse a column that differs; of an answer, say which field does."""
    if stored == derived:
        return
    if name == "answer":
        try:
            said, comes = json.loads(stored), json.loads(derived)
        except ValueError:
            said, comes = stored, derived
        raise Mismatch(row.seq, about(row), *_first("", said, comes, stored, derived))
    raise Mismatch(row.seq, about(row), name, stored, derived)


def _first(path: str, said: Any, comes: Any, stored: str, derived: str) -> tuple[str, Any, Any]:
    """The first field that differs, by its path; all of it, if it is only written differently."""
    if isinstance(said, dict) and isinstance(comes, dict) and list(said) == list(comes):
        for name in said:
            if said[name] != comes[name]:
                return _first(f"{path}.{name}".lstrip("."), said[name], comes[name], stored, derived)
    if not path:
        return "answer", stored, derived
    return path, said, comes
