"""`larl serve` as a process that can be killed and restarted, new databases of PostgreSQL, and HTTP connections."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sql

from tests.optional import POSTGRES

MAIN = "from larl.cli import main; main()"
LARL = [sys.executable, "-c", MAIN]
TIMEOUT = 300.0  # seconds that a service may take to answer or to end


def reserve_port() -> socket.socket:
    """Return a socket that is bound to a free port and does not listen.

    While it is open, the system assigns the port to no other process. A server that names the port and sets
    SO_REUSEADDR can listen on it, be stopped and started again; without such a server, connections are refused.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


@contextlib.contextmanager
def fresh_postgres() -> Iterator[str]:
    """Create an empty database and yield its URL; drop it afterwards."""
    name = f"larl_{uuid.uuid4().hex}"
    engine = sql.create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        yield sql.make_url(POSTGRES).set(database=name).render_as_string(hide_password=False)
        with engine.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        engine.dispose()


class Server:
    """`larl serve` on one port. It can be killed and started again. `program`: Python that is executed before it."""

    def __init__(self, storage: str, log: Path, *options: str, program: str = "", **environment: str) -> None:
        self.storage, self.log, self._reserved = storage, log, reserve_port()
        self.port = int(self._reserved.getsockname()[1])
        self._program, self._options, self._environment = program, options, os.environ | environment
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0

    def start(self) -> None:
        command = [
            sys.executable,
            "-c",
            self._program + MAIN,
            "serve",
            "--storage",
            self.storage,
            "--port",
            str(self.port),
            *self._options,
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self._environment)
        self.started = time.monotonic()

    def ready(self) -> float:
        """Wait until the service answers; return the seconds since its start."""
        assert self.process is not None
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"the service ended with {self.process.returncode}: {self.log.read_text()[-2000:]}")
            with contextlib.suppress(OSError, http.client.HTTPException), Connection(self.port) as connection:
                if connection.get("/v1/health").status == 200:
                    return time.monotonic() - self.started
            time.sleep(0.02)
        raise TimeoutError(f"the service does not answer: {self.log.read_text()[-2000:]}")

    def end(self, signal_number: int = signal.SIGKILL) -> int:
        """Send a signal and wait for the end of the process; return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal_number)
        return self.process.wait(timeout=TIMEOUT)

    def __enter__(self) -> "Server":
        self.start()
        self.ready()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.end()
        self._reserved.close()


class Response:
    """A response that was read completely."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.content = response.status, response.headers, response.read()

    def json(self) -> Any:
        return json.loads(self.content)


class Connection:
    """A connection to a service. After an error, the next request opens a new one."""

    def __init__(self, port: int, token: str | None = None, timeout: float = 30.0) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str) -> Response:
        return self._send("GET", path, None)

    def post(self, path: str, **body: Any) -> Response:
        return self._send("POST", path, json.dumps(body).encode())

    def _send(self, method: str, path: str, body: bytes | None) -> Response:
        try:
            self._connection.request(method, path, body, self._headers | {"Content-Type": "application/json"})
            return Response(self._connection.getresponse())
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
