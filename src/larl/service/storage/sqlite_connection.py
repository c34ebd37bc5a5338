"""Connections to SQLite: how they sync, and how they begin transactions."""

from typing import Any

import sqlalchemy as sql


def prepare(engine: sql.Engine) -> None:
    """Configure the connections of an engine."""
    sql.event.listen(engine, "connect", _configure)
    sql.event.listen(engine, "begin", _begin)


def _configure(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # _begin starts transactions
    connection.text_factory = _decode
    # Every commit is synced, also one that need not be durable: a later sync that fails may drop what was written to
    # the log before, and all that is committed after such a gap would be lost by a power cut.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _decode(text: bytes) -> str:
    """Return stored text; a damaged one must not prevent reading other rows and columns."""
    return text.decode(errors="surrogateescape")


def _begin(connection: sql.Connection) -> None:
    """Take the write lock at once: a reader cannot become a writer after another process has written."""
    reads = connection.get_execution_options().get("reads")
    if reads != "latest":
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
