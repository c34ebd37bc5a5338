"""The service as a real process on a port of this machine, storages that nobody else uses, and a caller that waits."""

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

LARL = [sys.executable, "-c", "from larl.cli import main; main()"]
PATIENCE = 300.0  # seconds until a service that does not answer is given up


def reserve_port() -> socket.socket:
    """Return a socket that is bound to a free port and does not listen.

    While it is open the system gives the port to nobody else. A server that names the port and sets SO_REUSEADDR can
    listen on it, be stopped and started again; without such a server, connections are refused.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


@contextlib.contextmanager
def fresh_postgres() -> Iterator[str]:
    """The address of a new, empty database, which is gone afterwards."""
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
    """`larl serve`, which can be killed and started again on the same port."""

    def __init__(self, storage: str, log: Path, *options: str, **environment: str) -> None:
        self.storage, self.log, self._reserved = storage, log, reserve_port()
        self.port = int(self._reserved.getsockname()[1])
        self._options, self._environment = options, os.environ | environment
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0

    def start(self) -> None:
        command = [*LARL, "serve", "--storage", self.storage, "--port", str(self.port), *self._options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self._environment)
        self.started = time.monotonic()

    def ready(self) -> float:
        """Wait until it answers; seconds since its start."""
        assert self.process is not None
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"the service ended with {self.process.returncode}: {self.log.read_text()[-2000:]}")
            with contextlib.suppress(OSError, http.client.HTTPException), Caller(self.port) as caller:
                if caller.get("/v1/health").status == 200:
                    return time.monotonic() - self.started
            time.sleep(0.02)
        raise TimeoutError(f"the service does not answer: {self.log.read_text()[-2000:]}")

    def end(self, how: int = signal.SIGKILL) -> int:
        """End it, and wait until it is gone."""
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(timeout=PATIENCE)

    def __enter__(self) -> "Server":
        self.start()
        self.ready()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.end()
        self._reserved.close()


class Answer:
    """What came back."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.content = response.status, response.headers, response.read()

    def json(self) -> Any:
        return json.loads(self.content)


class Caller:
    """One connection to a service. A request that fails raises, and the next one connects anew."""

    def __init__(self, port: int, token: str | None = None, timeout: float = 30.0) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str) -> Answer:
        return self._ask("GET", path, None)

    def post(self, path: str, **body: Any) -> Answer:
        return self._ask("POST", path, json.dumps(body).encode())

    def _ask(self, method: str, path: str, body: bytes | None) -> Answer:
        try:
            self._connection.request(method, path, body, self._headers | {"Content-Type": "application/json"})
            return Answer(self._connection.getresponse())
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
