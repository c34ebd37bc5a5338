"""A database that stores studies: opening it, its transactions, and who may write.

SQLite serves one writing process and syncs at every commit. PostgreSQL serves several.
"""

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sql
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from larl import __version__
from larl._core.validation import InvalidValue
from larl.service.storage.tables import APPEND_ONLY, SCHEMA, about, metadata

if TYPE_CHECKING:
    from larl.service.storage.postgres import Monitor

LOG = logging.getLogger("larl.service")
BUSY = 5  # seconds to wait for a lock
SERVING_BUSY = 1  # seconds for which a service waits: a request may wait for the lock more than once
POOL = 2.0  # seconds to wait for a connection that other requests use
POSTGRES = "postgresql+psycopg"
ACCEPTED = "sqlite:///FILE.db, or postgresql+psycopg://USER@HOST/DATABASE"


class StorageError(OSError):
    """A storage that cannot be used, and the reason. Clients of the service are told the reason only."""

    def __init__(self, storage: object, reason: str) -> None:
        super().__init__(f"{storage}: {reason}")
        self.reason = reason


STORAGE_ERRORS = (StorageError, DBAPIError)  # raised within a transaction


class Database:
    """An open storage. `write`: this process appends to the journal; SQLite allows one process to do so.

    `max_idle`: this process serves requests, so every access has a time limit; a transaction may be idle for so many
    seconds. Without it, statements may take long, as backup and replay do.
    """

    def __init__(self, url: str, *, write: bool = False, create: bool = False, max_idle: float | None = None) -> None:
        self.url = parse_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.path = Path(self.url.database or "").resolve() if self.is_sqlite else None
        self.max_idle = max_idle
        self.display_url = self.url.render_as_string()  # without the password
        self._lock = _lock_file(self.path) if write and self.path else None
        if self.path and create:
            _create_private(self.path)
        if self.path and not self.path.exists():
            raise StorageError(self.path, "there is no such storage; `larl serve` creates one")
        self._monitor: Monitor | None = None  # of a serving process on PostgreSQL
        arguments = _limits(self.is_sqlite, max_idle)
        self.engine = sql.create_engine(
            self.url,
            connect_args=arguments,
            pool_pre_ping=not self.is_sqlite,
            pool_timeout=POOL,
            hide_parameters=True,
        )
        if self.is_sqlite:
            sql.event.listen(self.engine, "connect", _configure_sqlite)
            sql.event.listen(self.engine, "begin", _begin)
        elif max_idle is not None:
            from larl.service.storage import postgres

            self._monitor = postgres.Monitor(self.engine, arguments)
        try:
            with self.writing() as connection:
                self._check_schema(connection, create)
        except BaseException:
            self.close()
            raise

    @property
    def single_writer(self) -> bool:
        """Whether no other process can append."""
        return self.is_sqlite

    @contextlib.contextmanager
    def reading(self) -> Iterator[sql.Connection]:
        """Open a transaction that only reads."""
        engine = self.engine.execution_options(reads=True)
        self._require_answers()
        with storage_errors(self.display_url), engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sql.Connection]:
        """Open a transaction that can write; what it wrote is on disk when it ends."""
        self._require_answers()
        with storage_errors(self.display_url), self.engine.begin() as connection:
            yield connection

    def _require_answers(self) -> None:
        """Raise StorageError at once if the server is silent."""
        if self._monitor is not None and self._monitor.is_silent:
            raise StorageError(self.display_url, self._monitor.reason)

    def _check_schema(self, connection: sql.Connection, create: bool) -> None:
        if not sql.inspect(connection).has_table("about"):
            if not create:
                raise StorageError(self.display_url, "this is not a storage of larl; `larl serve` creates one")
            if not self.is_sqlite:
                connection.execute(sql.text("SELECT pg_advisory_xact_lock(0)"))
            metadata.create_all(connection)
            for statement in APPEND_ONLY[self.engine.dialect.name]:
                connection.exec_driver_sql(statement)
            if connection.scalar(sql.select(about.c.schema)) is None:
                connection.execute(about.insert().values(schema=SCHEMA))
        found = connection.scalar(sql.select(about.c.schema))
        if found != SCHEMA:
            raise StorageError(self.display_url, f"it has schema {found}; larl {__version__} reads schema {SCHEMA}")

    def checkpoint(self) -> None:
        """Move everything from SQLite's write-ahead log into the database file, so that a copy of it is complete."""
        if not self.is_sqlite:
            return
        try:
            with storage_errors(self.display_url), contextlib.closing(self.engine.raw_connection()) as connection:
                busy, _, _ = connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except StorageError as error:  # nothing is lost: the log keeps its content
            LOG.warning("the write-ahead log was not emptied: %s", error)
            return
        if busy:
            LOG.warning("another process reads %s: copy its -wal file with it, or use `larl backup`", self.path)

    def close(self) -> None:
        """Close all connections and release the lock."""
        if hasattr(self, "engine"):
            self.engine.dispose()
        if self._monitor is not None:
            self._monitor.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextlib.contextmanager
def storage_errors(storage: str) -> Iterator[None]:
    """Raise an error of the database as a StorageError of one line that names the storage."""
    try:
        yield
    except DBAPIError as error:
        raise StorageError(storage, str(error.orig).strip().splitlines()[0]) from error
    except PoolTimeout as error:
        raise StorageError(storage, "all connections to it are in use") from error


def _limits(is_sqlite: bool, max_idle: float | None) -> dict[str, Any]:
    """Return the time limits of connections."""
    if is_sqlite:
        return {"timeout": BUSY if max_idle is None else SERVING_BUSY}
    if max_idle is None:
        return {"connect_timeout": BUSY, "options": f"-c lock_timeout={BUSY}s"}
    from larl.service.storage import postgres  # psycopg takes long to import

    return postgres.limits(max_idle)


def parse_url(url: str) -> sql.URL:
    """Return the parsed URL of a storage; raise InvalidValue, without a password, if it is not one."""
    try:
        parsed = sql.make_url(url)
    except (ArgumentError, ValueError) as error:  # ValueError: a port that is not a number
        shown = url if "@" not in url else f"…@{url.rpartition('@')[2]}"
        raise InvalidValue("storage", "url", shown, ACCEPTED) from error
    if parsed.drivername not in ("sqlite", POSTGRES) or not parsed.database or parsed.database == ":memory:":
        raise InvalidValue("storage", "url", parsed.render_as_string(), ACCEPTED)
    return parsed


def _create_private(path: Path) -> None:
    """Create an empty file that only its owner can read; SQLite gives its -wal and -shm files the same mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _configure_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # _begin starts transactions
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sql.Connection) -> None:
    """Take the write lock at once: a reader cannot become a writer after another process has written."""
    reads = connection.get_execution_options().get("reads")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _lock_file(path: Path) -> int:
    """Lock an SQLite storage for the lifetime of this process; return the descriptor of the lock file."""
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(handle, 32, 0).decode() or "another"
        os.close(handle)
        reason = f"process {holder} serves this storage, and SQLite allows one; stop it, or use PostgreSQL"
        raise StorageError(path, reason) from error
    os.ftruncate(handle, 0)
    os.pwrite(handle, str(os.getpid()).encode(), 0)
    return handle
