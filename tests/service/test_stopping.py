"""A service that is asked to stop finishes its work, and leaves a storage that is complete in one file."""

import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPException
from pathlib import Path

import pytest
import typer.testing

from larl.cli import app
from larl.service.ops.integrity import check_complete
from larl.service.ops.replay import Replay
from larl.service.storage.database import Database
from larl.service.storage.journal import Journal
from tests.service.host import LARL
from tests.service.processes import Caller, Server
from tests.waiting import eventually

BOUND = 300.0  # seconds on a busy machine; the service itself gives open requests 10
SIGNALS = (signal.SIGTERM, signal.SIGINT)
pytestmark = pytest.mark.timing


def rows_of_a_copy(file: Path, folder: Path) -> int:
    """How many rows a copy of the database file alone has; all of them replay."""
    folder.mkdir()
    database = Database(f"sqlite:///{shutil.copy(file, folder / 'copy.db')}")
    try:
        Replay(Journal(database)).run()
        return check_complete(database)
    finally:
        database.close()


def served(folder: Path) -> Server:
    return Server(f"sqlite:///{folder / 'study.db'}", folder / "log", "--no-auth", "--timeout", "60", "--rate", "1e6")


def left_beside(file: Path) -> list[str]:
    """Files of SQLite beside the database."""
    return sorted(each.name for each in file.parent.glob(f"{file.name}-*"))


def accepts(port: int) -> bool:
    """Whether a service takes new connections."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=BOUND).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.parametrize("how", SIGNALS)
def test_a_signal_ends_the_service_with_everything_in_one_file(tmp_path: Path, how: signal.Signals) -> None:
    file = tmp_path / "study.db"
    with served(tmp_path) as server:
        with Caller(server.port, timeout=BOUND) as caller:
            caller.post("/v1/studies", study="sleep", arms=["a", "b"], policy=LARL)
            made = caller.post("/v1/studies/sleep/decisions", unit="u", key="1").json()
            assert caller.post(f"/v1/decisions/{made['id']}/reward", key="1", value=0.5).status == 200
        assert server.end(how) == 0
    assert left_beside(file) == []
    assert rows_of_a_copy(file, tmp_path / "copy") == 4
    log = server.log.read_text()
    assert log.splitlines()[-1] == f"stopped; all acknowledged requests are stored in sqlite:///{file}"
    assert "Traceback" not in log


@pytest.mark.parametrize("how", SIGNALS)
def test_a_signal_during_the_start_ends_it_too(tmp_path: Path, how: signal.Signals) -> None:
    server, lock = served(tmp_path), tmp_path / "study.db.lock"
    try:
        server.start()
        eventually(lock.exists, seconds=BOUND)
        assert server.end(how) == 0
    finally:
        server.__exit__()
    assert left_beside(tmp_path / "study.db") == []
    assert "Traceback" not in server.log.read_text()


def test_a_signal_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    file, acknowledged = tmp_path / "study.db", {}
    with served(tmp_path) as server:
        with Caller(server.port, timeout=BOUND) as caller:
            caller.post("/v1/studies", study="sleep", arms=["a", "b"], policy=LARL)
        many = threading.Event()

        def load(unit: str) -> None:
            try:
                with Caller(server.port, timeout=BOUND) as caller:
                    for i in range(100_000):
                        key = f"{unit}-{i}"
                        made = caller.post("/v1/studies/sleep/decisions", unit=unit, key=key)
                        assert made.status == 200
                        acknowledged[key] = made.content
                        if len(acknowledged) > 200:
                            many.set()
            except (OSError, HTTPException):  # the service is gone
                return

        callers = [threading.Thread(target=load, args=(f"u{i}",)) for i in range(4)]
        for each in callers:
            each.start()
        assert many.wait(BOUND)
        began = time.monotonic()
        assert server.end(signal.SIGTERM) == 0
        assert time.monotonic() - began < BOUND
        for each in callers:
            each.join(BOUND)
            assert not each.is_alive()
    assert left_beside(file) == []
    assert rows_of_a_copy(file, tmp_path / "copy") >= len(acknowledged) > 200
    database = Database(f"sqlite:///{tmp_path / 'copy' / 'copy.db'}")
    stored = {row.key: row.response_json.encode() for row in Journal(database).all() if row.kind == "decision"}
    database.close()
    assert {key: stored.get(key) for key in acknowledged} == acknowledged


def test_a_second_ctrl_c_does_not_wait_for_open_requests(tmp_path: Path) -> None:
    with served(tmp_path) as server, socket.create_connection(("127.0.0.1", server.port)) as stalled:
        stalled.sendall(b"POST /v1/studies HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
        assert stalled.recv(100).startswith(b"HTTP/1.1 100")  # the service waits for the body
        assert server.process is not None
        server.process.send_signal(signal.SIGINT)
        eventually(lambda: not accepts(server.port), seconds=BOUND)
        assert server.process.poll() is None
        assert server.end(signal.SIGINT) == 0
    assert left_beside(tmp_path / "study.db") == []


PLAIN = """
import sys, uvicorn
from larl.service.app import make_app
from larl.service.storage.database import Database
from larl.service.settings import Settings
database = Database(sys.argv[1], write=True, create=True)
uvicorn.run(make_app(database, Settings(auth=False, timeout=60.0)), port=int(sys.argv[2]))
"""


def test_the_app_under_a_plain_uvicorn_leaves_a_complete_file(tmp_path: Path) -> None:
    """Uvicorn raises the signal again after the shutdown: whatever is not closed by then is not closed at all."""
    file, server = tmp_path / "study.db", served(tmp_path)
    with server.log.open("wb") as log:
        command = [sys.executable, "-c", PLAIN, f"sqlite:///{file}", str(server.port)]
        server.process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        server.ready()
        with Caller(server.port, timeout=BOUND) as caller:
            assert caller.post("/v1/studies", study="sleep", arms=["a", "b"], policy=LARL).status == 200
        assert server.end(signal.SIGTERM) == -signal.SIGTERM
    finally:
        server.__exit__()
    assert rows_of_a_copy(file, tmp_path / "copy") == 1


def test_commands_leave_everything_in_one_file(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    run = typer.testing.CliRunner().invoke
    made = run(app, ["token", "create", "--storage", storage])
    assert made.exit_code == 0
    assert left_beside(tmp_path / "study.db") == []
    assert run(app, ["token", "list", "--storage", storage]).exit_code == 0
    assert left_beside(tmp_path / "study.db") == []
    assert run(app, ["token", "revoke", made.output.split("_")[1], "--storage", storage]).exit_code == 0
    assert left_beside(tmp_path / "study.db") == []
