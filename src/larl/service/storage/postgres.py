"""Connections of a serving process to PostgreSQL: their time limits, and whether the server answers.

A peer that holds a lock and stops is ended by the server; a server that is silent is given up by this process. The
kernel of a machine acknowledges data for a process that is stopped, so limits of TCP alone notice neither.
"""

import logging
import threading
import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sql

Result = TypeVar("Result")
LOG = logging.getLogger("larl.service")
CONNECT = 2  # seconds to open a connection; libpq has no shorter limit
FIRST_ATTEMPTS = 5  # to open the first connection: a server that has just started can be slow
LOCK = 2.0  # seconds to wait for a lock
STATEMENT = 60.0  # seconds for a statement with all its rows, on the server
SILENCE = 2.5  # seconds without any byte from the server after which a statement is given up: more than LOCK
UNACKNOWLEDGED = 3.0  # seconds for which sent data may be unacknowledged, or wait for the receiver
TICK = 0.1  # seconds between two checks of a waiting statement, as psycopg has it
PERIOD = 0.5  # seconds between two checks that the server answers
CHECK = 1.5  # seconds for the answer to such a check
NO_ANSWER = "the database does not answer"


def limits(max_idle: float) -> dict[str, Any]:
    """Return the parameters of connections. The server ends transactions that are idle for `max_idle` seconds."""
    milliseconds = {
        "idle_in_transaction_session_timeout": max_idle,
        "statement_timeout": STATEMENT,
        "lock_timeout": LOCK,
        "tcp_user_timeout": UNACKNOWLEDGED,
    }
    server = {name: round(1e3 * seconds) for name, seconds in milliseconds.items()}
    server |= {"tcp_keepalives_idle": 5, "tcp_keepalives_interval": 2, "tcp_keepalives_count": 3}
    return {
        "connect_timeout": CONNECT,
        "tcp_user_timeout": round(1e3 * UNACKNOWLEDGED),
        "keepalives": 1,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "options": " ".join(f"-c {name}={value}" for name, value in server.items()),
    }


def wait_for_server(engine: sql.Engine) -> None:
    """Return once the server accepts or refuses a connection, or has not answered, or was starting, several times.

    The next connection reports whatever is wrong.
    """
    arguments, named = engine.dialect.create_connect_args(engine.url)
    for _ in range(FIRST_ATTEMPTS - 1):
        try:
            psycopg.connect(*arguments, **{**named, "connect_timeout": CONNECT}).close()
            return
        except psycopg.errors.ConnectionTimeout:
            LOG.warning("the database has not answered for %d seconds; trying again", CONNECT)
        except psycopg.errors.CannotConnectNow:
            LOG.warning("the database is starting; trying again in %d seconds", CONNECT)
            time.sleep(CONNECT)
        except psycopg.Error:
            return


class LimitedConnection(psycopg.Connection[Any]):
    """A connection that is closed if the server sends nothing for too long while a statement waits for it."""

    silence = SILENCE
    monitor: "Monitor | None" = None  # knows before that time that the server is silent

    def wait(self, gen: Generator[Any, Any, Result], *options: Any, **named: Any) -> Result:
        """Wait for the server; raise OperationalError if it is silent."""
        return super().wait(self._limited(gen), *options, **named)

    def _limited(self, gen: Generator[Any, Any, Result]) -> Generator[Any, Any, Result]:
        """Pass on what psycopg waits for. It sends 0 after each TICK in which nothing came.

        Ticks are counted instead of the time, so that this process can be stopped and continued.
        """
        waited = 0
        try:
            state = next(gen)
            while True:
                ready = yield state
                waited = 0 if ready else waited + 1
                if waited * TICK >= self.silence or (waited and self.monitor is not None and self.monitor.is_silent):
                    self.close()
                    raise psycopg.OperationalError(NO_ANSWER)
                state = gen.send(ready)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]


class Monitor:
    """Checks on a connection of its own that the server answers; if not, all other connections give up at once.

    Without it, a request would wait for requests before it and then once more for itself. A slow statement alone says
    nothing about the server.
    """

    reason = NO_ANSWER

    def __init__(self, engine: sql.Engine, parameters: dict[str, Any]) -> None:
        arguments, named = engine.dialect.create_connect_args(engine.url)
        self._arguments, self._named = arguments, {**named, **parameters}
        self.is_silent = False
        self._stop = threading.Event()
        self.watch(engine)
        threading.Thread(target=self._work, daemon=True, name="database monitor").start()

    def watch(self, engine: sql.Engine) -> None:
        """Let the connections of an engine give up when the server is silent."""
        sql.event.listen(engine, "do_connect", self._connect)

    def _connect(self, _: Any, __: Any, arguments: Any, named: Any) -> LimitedConnection:
        if self.is_silent:
            raise psycopg.OperationalError(NO_ANSWER)
        connection = LimitedConnection.connect(*arguments, **named)
        connection.monitor = self
        return connection

    def close(self) -> None:
        """Stop."""
        self._stop.set()

    def _work(self) -> None:
        connection: LimitedConnection | None = None
        while not self._stop.wait(PERIOD):
            try:
                if connection is None:
                    connection = LimitedConnection.connect(*self._arguments, **self._named, autocommit=True)
                    connection.silence = CHECK
                connection.execute("SELECT 1")
                self._set_silent(False)
            except psycopg.Error as error:
                is_late = isinstance(error, psycopg.errors.ConnectionTimeout) or str(error) == NO_ANSWER
                self._set_silent(is_late)  # other errors are said by the statements that they concern
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _set_silent(self, is_silent: bool) -> None:
        if is_silent != self.is_silent:
            LOG.warning("the database answers again" if not is_silent else NO_ANSWER)
        self.is_silent = is_silent
