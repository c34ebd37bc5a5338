"""A database that stores studies: opening it, its transactions, and who may write.

SQLite serves one writing process and syncs at every commit. PostgreSQL serves several.
"""

import contextlib
import logging
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sql
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from larl import __version__
from larl._core.validation import InvalidValue
from larl.service.storage import sqlite_connection
from larl.service.storage.sqlite_file import (
    LastNumber,
    ServerLock,
    create_private,
    refuse_served,
    require_own,
    stored_last,
)
from larl.service.storage.sqlite_file import StorageError as StorageError  # users of a database import it from here
from larl.service.storage.tables import APPEND_ONLY, SCHEMA, about, journal, metadata, sessions

if TYPE_CHECKING:
    from larl.service.storage.postgres import Monitor

LOG = logging.getLogger("larl.service")
BUSY = 5  # seconds to wait for a lock
SERVING_BUSY = 1  # seconds for which a service waits: a request may wait for the lock more than once
POOL = 2.0  # seconds to wait for a connection that other requests use
MIN_FREE = 2**20  # bytes on the disk: less is full
POSTGRES = "postgresql+psycopg"
ACCEPTED = "sqlite:///FILE.db, or postgresql+psycopg://USER@HOST/DATABASE"


STORAGE_ERRORS = (StorageError, DBAPIError)  # raised within a transaction


class Database:
    """An open storage. `write`: this process appends to the journal; SQLite allows one process to do so.

    `max_idle`: this process serves requests, so every access has a time limit; a transaction may be idle for so many
    seconds. Without it, statements may take long, as backup and replay do. `accept_loss`: serve an SQLite file that
    has lost its last events.
    """

    def __init__(
        self,
        url: str,
        *,
        write: bool = False,
        create: bool = False,
        max_idle: float | None = None,
        accept_loss: bool = False,
    ) -> None:
        self.url = parse_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.path = Path(self.url.database or "").resolve() if self.is_sqlite else None
        self.max_idle = max_idle
        self.display_url = self.url.render_as_string()  # without the password
        self._readers: list[sql.Connection] = []  # of `reading_latest`, not in use
        self._lock: ServerLock | None = None
        self._last: LastNumber | None = None
        if self.path:
            self._open_file(self.path, write, create)
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
            sqlite_connection.prepare(self.engine)
        elif max_idle is not None:
            from larl.service.storage import postgres

            postgres.wait_for_server(self.engine)
            self._monitor = postgres.Monitor(self.engine, arguments)
        try:
            with self.writing() as connection:
                self._check_schema(connection, create)
                if self.path and write:
                    self._keep_last(self.path, connection, accept_loss)
        except BaseException:
            self.close()
            raise

    def _open_file(self, path: Path, write: bool, create: bool) -> None:
        if create:
            create_private(path)
        if not path.exists():
            raise StorageError(path, "there is no such storage; `larl serve` creates one")
        if write:
            refuse_served(path)
        require_own(path, self.display_url, BUSY)
        self._lock = ServerLock(path) if write else None

    def _keep_last(self, path: Path, connection: sql.Connection, accept_loss: bool) -> None:
        """Open the file with the last number; raise StorageError if later events are lost, unless that is accepted."""
        try:
            self.check_last(connection)
        except StorageError as error:
            if not accept_loss:
                raise
            LOG.warning("accepted: %s", error)
        self._last = LastNumber(path)

    def check_last(self, connection: sql.Connection) -> None:
        """Raise StorageError if an SQLite file has lost its last events. The transaction must not have read before."""
        if self.path is None:
            return
        last = stored_last(self.path)  # before the journal is read: another process may append
        found = _last_seq(connection)
        if found < last:
            reason = (
                f"rows {found + 1} to {last} of the journal are lost: {self.path.name}.last says that {last} were "
                "stored. Was the -wal file removed, or an older file put in place? Put the right file in place, "
                "restore a backup, or continue without these rows: `larl serve --accept-loss`"
            )
            raise StorageError(self.path, reason)

    def note_last(self, seq: int) -> None:
        """Note the number of the last event that is on disk."""
        if self._last is not None:
            self._last.write(seq)

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
    def reading_latest(self) -> Iterator[sql.Connection]:
        """Lend a connection to SQLite without a transaction: each query sees what is stored by then."""
        with storage_errors(self.display_url):
            try:
                connection = self._readers.pop()
            except IndexError:
                connection = self.engine.execution_options(reads="latest").connect()
            try:
                yield connection
            except BaseException:
                connection.invalidate()
                connection.close()
                raise
            self._readers.append(connection)

    @contextlib.contextmanager
    def writing_with(self, connection: sql.Connection) -> Iterator[None]:
        """Write with a connection of `reading_latest`: it need not read the new pages again. On disk at the end."""
        with storage_errors(self.display_url):
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                yield
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                with contextlib.suppress(DBAPIError):  # SQLite may have ended the transaction
                    connection.exec_driver_sql("ROLLBACK")
                raise

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

    def check_space(self) -> None:
        """Raise StorageError if the disk of an SQLite file is full."""
        if self.path is None:
            return
        status = os.statvfs(self.path.parent)
        free = status.f_bavail * status.f_frsize
        if free < MIN_FREE:
            raise StorageError(self.path, f"the disk is full: {free} bytes are free")

    def check_writable(self) -> None:
        """Write a row and remove it in one transaction; raise StorageError if that fails."""
        probe = secrets.token_hex(16)  # an update to the same value would not write in SQLite
        with self.writing() as connection:
            connection.execute(sessions.insert().values(hash=probe, token="", ends=""))
            connection.execute(sessions.delete().where(sessions.c.hash == probe))

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
        while self._readers:
            self._readers.pop().close()
        self.engine.dispose()
        if self._monitor is not None:
            self._monitor.close()
        if self._last is not None:
            self._last.close()
            self._last = None
        if self._lock is not None:
            self._lock.release()
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
    if parsed.drivername == "sqlite" and (parsed.query or parsed.database.startswith("file:")):
        accepted = f"{ACCEPTED}; SQLite without options"  # `uri=true` would give one file several names
        raise InvalidValue("storage", "url", parsed.render_as_string(), accepted)
    return parsed


def _last_seq(connection: sql.Connection) -> int:
    return connection.scalar(sql.select(sql.func.max(journal.c.seq))) or 0
