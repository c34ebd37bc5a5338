"""The database: its tables, how it is opened, and who may write.

SQLite is for one process that writes; it is synced at every commit. PostgreSQL is for several. The journal is
append-only, which the database itself sees to.
"""

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import ArgumentError, DBAPIError

from larl import __version__
from larl._core.validation import InvalidValue

LOG = logging.getLogger("larl.service")
SCHEMA = 1
BUSY = 5  # seconds to wait for a lock
POSTGRES = "postgresql+psycopg"
ACCEPTED = "sqlite:///FILE.db, or postgresql+psycopg://USER@HOST/DATABASE"

metadata = sql.MetaData()
about = sql.Table("about", metadata, sql.Column("schema", sql.Integer, nullable=False))
journal = sql.Table(
    "journal",
    metadata,
    sql.Column("seq", sql.BigInteger().with_variant(sql.Integer, "sqlite"), primary_key=True, autoincrement=False),
    sql.Column("study", sql.Text, nullable=False),
    sql.Column("kind", sql.Text, nullable=False),
    sql.Column("unit", sql.Text),
    sql.Column("ref", sql.Text),  # the decision that it is about
    sql.Column("number", sql.Integer),  # step of a decision, number of a unit or issue, version of a policy
    sql.Column("key", sql.Text),  # the caller's, by which it knows its request again
    sql.Column("at", sql.Text, nullable=False),
    sql.Column("request", sql.Text, nullable=False),
    sql.Column("answer", sql.Text, nullable=False),
)
sql.Index("once", journal.c.study, journal.c.kind, journal.c.key, unique=True)
sql.Index("steps", journal.c.study, journal.c.unit, journal.c.seq)
sql.Index("about_decision", journal.c.ref)
sql.Index("kinds", journal.c.study, journal.c.kind, journal.c.seq)
for kind, columns in {
    "decision": ("study", "unit", "number"),
    "unit": ("study", "number"),
    "study": ("study",),
}.items():
    only = journal.c.kind == kind
    sql.Index(
        f"one_{kind}", *(journal.c[name] for name in columns), unique=True, sqlite_where=only, postgresql_where=only
    )
snapshots = sql.Table(  # a cache: what the journal comes to, to start sooner
    "snapshots",
    metadata,
    sql.Column("study", sql.Text, primary_key=True),
    sql.Column("unit", sql.Text, primary_key=True),  # empty for a cohort
    sql.Column("seq", sql.BigInteger, nullable=False),
    sql.Column("made_by", sql.Text, nullable=False),
    sql.Column("state", sql.LargeBinary, nullable=False),
)
tokens = sql.Table(
    "tokens",
    metadata,
    sql.Column("id", sql.Text, primary_key=True),
    sql.Column("hash", sql.Text, nullable=False),
    sql.Column("study", sql.Text, nullable=False),  # * for all
    sql.Column("role", sql.Text, nullable=False),
    sql.Column("made", sql.Text, nullable=False),
    sql.Column("revoked", sql.Text),
)
sessions = sql.Table(  # of people who look at the page
    "sessions",
    metadata,
    sql.Column("hash", sql.Text, primary_key=True),
    sql.Column("token", sql.Text, nullable=False),
    sql.Column("ends", sql.Text, nullable=False),
)

APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER IF NOT EXISTS no_{what.lower()} BEFORE {what} ON journal "
        "BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END"
        for what in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE OR REPLACE FUNCTION journal_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN RAISE EXCEPTION 'the journal is append-only'; END$$",
        "CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON journal "
        "EXECUTE FUNCTION journal_is_append_only()",
    ],
}


class StorageError(OSError):
    """A storage that cannot be used, and the reason. Clients of the service are told the reason only."""

    def __init__(self, storage: object, reason: str) -> None:
        super().__init__(f"{storage}: {reason}")
        self.reason = reason


STORAGE_FAILED = (StorageError, DBAPIError)  # what is raised within a transaction


class Database:
    """An open storage. `write`: this process means to append; SQLite lets one do so."""

    def __init__(self, url: str, *, write: bool = False, create: bool = False) -> None:
        self.url = checked_url(url)
        self.lite = self.url.get_backend_name() == "sqlite"
        self.path = Path(self.url.database or "").resolve() if self.lite else None
        self.shown = self.url.render_as_string()  # without the password
        self._lock = _hold(self.path) if write and self.path else None
        if self.path and create:
            _create_private(self.path)
        if self.path and not self.path.exists():
            raise StorageError(self.path, "there is no such storage; `larl serve` creates one")
        waits = {"timeout": BUSY} if self.lite else {"connect_timeout": BUSY, "options": f"-c lock_timeout={BUSY}s"}
        self.engine = sql.create_engine(self.url, connect_args=waits, pool_pre_ping=not self.lite, hide_parameters=True)
        if self.lite:
            sql.event.listen(self.engine, "connect", _prepare)
            sql.event.listen(self.engine, "begin", _begin)
        try:
            with self.writing() as connection:
                self._found(connection, create)
        except BaseException:
            self.close()
            raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[sql.Connection]:
        """A transaction that only reads."""
        opened = self.engine.connect
        with explained(self.shown), opened().execution_options(reads=True) as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sql.Connection]:
        """A transaction that may write; what it wrote is on the disk when it ends."""
        with explained(self.shown), self.engine.begin() as connection:
            yield connection

    @property
    def alone(self) -> bool:
        """Whether nobody else can append."""
        return self.lite

    def _found(self, connection: sql.Connection, create: bool) -> None:
        if not sql.inspect(connection).has_table("about"):
            if not create:
                raise StorageError(self.shown, "this is not a storage of larl; `larl serve` creates one")
            if not self.lite:
                connection.execute(sql.text("SELECT pg_advisory_xact_lock(0)"))
            metadata.create_all(connection)
            for statement in APPEND_ONLY[self.engine.dialect.name]:
                connection.exec_driver_sql(statement)
            if connection.scalar(sql.select(about.c.schema)) is None:
                connection.execute(about.insert().values(schema=SCHEMA))
        found = connection.scalar(sql.select(about.c.schema))
        if found != SCHEMA:
            raise StorageError(self.shown, f"it has schema {found}; larl {__version__} reads schema {SCHEMA}")

    def checkpoint(self) -> None:
        """Move everything from SQLite's write-ahead log into the database file, so that a copy of it is complete."""
        if not self.lite:
            return
        try:
            with explained(self.shown), contextlib.closing(self.engine.raw_connection()) as connection:
                busy, _, _ = connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except StorageError as error:  # nothing is lost: what is in the log stays there
            LOG.warning("the write-ahead log was not emptied: %s", error)
            return
        if busy:
            LOG.warning("another process reads %s: copy its -wal file with it, or use `larl backup`", self.path)

    def close(self) -> None:
        """Let go of the storage."""
        if hasattr(self, "engine"):
            self.engine.dispose()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextlib.contextmanager
def explained(storage: str) -> Iterator[None]:
    """Raise an error of the database as a StorageError of one line, which names the storage."""
    try:
        yield
    except DBAPIError as error:
        raise StorageError(storage, str(error.orig).strip().splitlines()[0]) from error


def _create_private(path: Path) -> None:
    """Create an empty file that only its owner can read; SQLite gives its -wal and -shm files the same mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def checked_url(url: str) -> sql.URL:
    """The address of a storage; raises InvalidValue, without a password, if it is not one."""
    try:
        found = sql.make_url(url)
    except (ArgumentError, ValueError) as error:  # ValueError: a port that is not a number
        shown = url if "@" not in url else f"…@{url.rpartition('@')[2]}"
        raise InvalidValue("storage", "url", shown, ACCEPTED) from error
    if found.drivername not in ("sqlite", POSTGRES) or not found.database or found.database == ":memory:":
        raise InvalidValue("storage", "url", found.render_as_string(), ACCEPTED)
    return found


def _prepare(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # _begin says when a transaction begins
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sql.Connection) -> None:
    """Who means to write asks for that at once: a reader cannot become a writer once another has written."""
    reads = connection.get_execution_options().get("reads")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _hold(path: Path) -> int:
    """Hold the lock of an SQLite storage for as long as this process lives."""
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(handle, 32, 0).decode() or "another"
        os.close(handle)
        reason = f"process {holder} serves this storage, and SQLite lets one; stop that one, or use PostgreSQL"
        raise StorageError(path, reason) from error
    os.ftruncate(handle, 0)
    os.pwrite(handle, str(os.getpid()).encode(), 0)
    return handle
