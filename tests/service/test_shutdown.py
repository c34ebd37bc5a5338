"""A service that gets a signal finishes its requests and leaves a storage that is complete in one file."""

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
from tests.service.processes import Connection, Server
from tests.waiting import eventually

LIMIT = 300.0  # seconds, for a busy machine; the service gives open requests 10 seconds
SIGNALS = (signal.SIGTERM, signal.SIGINT)
pytestmark = pytest.mark.timing


def events_of_copy(file: Path, folder: Path) -> int:
    """Replay a copy of the database file alone; return its number of events."""
    folder.mkdir()
    database = Database(f"sqlite:///{shutil.copy(file, folder / 'copy.db')}")
    try:
        Replay(Journal(database)).run()
        return check_complete(database)
    finally:
        database.close()


def new_server(folder: Path) -> Server:
    return Server(f"sqlite:///{folder / 'study.db'}", folder / "log", "--no-auth", "--timeout", "60", "--rate", "1e6")


def other_files(file: Path) -> list[str]:
    """Return the names of SQLite's other files of a database."""
    return sorted(each.name for each in file.parent.glob(f"{file.name}-*"))


def accepts(port: int) -> bool:
    """Return whether a service accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=LIMIT).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.parametrize("signal_number", SIGNALS)
def test_signal_stops_the_service_and_leaves_one_file(tmp_path: Path, signal_number: signal.Signals) -> None:
    file = tmp_path / "study.db"
    with new_server(tmp_path) as server:
        with Connection(server.port, timeout=LIMIT) as connection:
            connection.post("/v1/studies", study="sleep", arms=["a", "b"], policy=LARL)
            decision = connection.post("/v1/studies/sleep/decisions", unit="u", key="1").json()
            assert connection.post(f"/v1/decisions/{decision['id']}/reward", key="1", value=0.5).status == 200
        assert server.end(signal_number) == 0
    assert other_files(file) == []
    assert events_of_copy(file, tmp_path / "copy") == 4
    log = server.log.read_text()
    assert log.splitlines()[-1] == f"stopped; all acknowledged requests are stored in sqlite:///{file}"
    assert "Traceback" not in log


@pytest.mark.parametrize("signal_number", SIGNALS)
def test_signal_during_the_start_stops_the_service(tmp_path: Path, signal_number: signal.Signals) -> None:
    server, lock = new_server(tmp_path), tmp_path / "study.db.lock"
    try:
        server.start()
        eventually(lock.exists, seconds=LIMIT)
        assert server.end(signal_number) == 0
    finally:
        server.__exit__()
    assert other_files(tmp_path / "study.db") == []
    assert "Traceback" not in server.log.read_text()


def test_signal_under_load_loses_no_acknowledged_response(tmp_path: Path) -> None:
    file, acknowledged = tmp_path / "study.db", {}
    with new_server(tmp_path) as server:
        with Connection(server.port, timeout=LIMIT) as connection:
            connection.post("/v1/studies", study="sleep", arms=["a", "b"], policy=LARL)
        enough = threading.Event()

        def load(unit: str) -> None:
            try:
                with Connection(server.port, timeout=LIMIT) as connection:
                    for i in range(100_000):
                        key = f"{unit}-{i}"
                        response = connection.post("/v1/studies/sleep/decisions", unit=unit, key=key)
                        assert response.status == 200
                        acknowledged[key] = response.content
                        if len(acknowledged) > 200:
                            enough.set()
            except (OSError, HTTPException):  # the service has stopped
                return

        threads = [threading.Thread(target=load, args=(f"u{i}",)) for i in range(4)]
        for each in threads:
            each.start()
        assert enough.wait(LIMIT)
        started = time.monotonic()
        assert server.end(signal.SIGTERM) == 0
        assert time.monotonic() - started < LIMIT
        for each in threads:
            each.join(LIMIT)
            assert not each.is_alive()
    assert other_files(file) == []
    assert events_of_copy(file, tmp_path / "copy") >= len(acknowledged) > 200
    database = Database(f"sqlite:///{tmp_path / 'copy' / 'copy.db'}")
    stored = {event.key: event.response_json.encode() for event in Journal(database).all() if event.kind == "decision"}
    database.close()
    assert {key: stored.get(key) for key in acknowledged} == acknowledged


def test_second_ctrl_c_does_not_wait_for_open_requests(tmp_path: Path) -> None:
    with new_server(tmp_path) as server, socket.create_connection(("127.0.0.1", server.port)) as stalled:
        stalled.sendall(
            b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"
        )
        assert stalled.recv(100).startswith(b"HTTP/1.1 100")  # the service waits for the body
        assert server.process is not None
        server.process.send_signal(signal.SIGINT)
        eventually(lambda: not accepts(server.port), seconds=LIMIT)
        assert server.process.poll() is None
        assert server.end(signal.SIGINT) == 0
    assert other_files(tmp_path / "study.db") == []


PLAIN_UVICORN = """
import sys, uvicorn
from larl.service.app import make_app
from larl.service.storage.database import Database
from larl.service.settings import Settings
database = Database(sys.argv[1], write=True, create=True)
uvicorn.run(make_app(database, Settings(auth=False, timeout=60.0)), port=int(sys.argv[2]))
"""


def test_app_in_plain_uvicorn_leaves_a_complete_file(tmp_path: Path) -> None:
    """Uvicorn raises the signal again after the shutdown: everything must be closed by then."""
    file, server = tmp_path / "study.db", new_server(tmp_path)
    with server.log.open("wb") as log:
        command = [sys.executable, "-c", PLAIN_UVICORN, f"sqlite:///{file}", str(server.port)]
        server.process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        server.ready()
        with Connection(server.port, timeout=LIMIT) as connection:
            assert connection.post("/v1/studies", study="sleep", arms=["a", "b"], policy=LARL).status == 200
        assert server.end(signal.SIGTERM) == -signal.SIGTERM
    finally:
        server.__exit__()
    assert events_of_copy(file, tmp_path / "copy") == 1


def test_token_commands_leave_one_file(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    run = typer.testing.CliRunner().invoke
    created = run(app, ["token", "create", "--storage", storage])
    assert created.exit_code == 0
    assert other_files(tmp_path / "study.db") == []
    assert run(app, ["token", "list", "--storage", storage]).exit_code == 0
    assert other_files(tmp_path / "study.db") == []
    assert run(app, ["token", "revoke", created.output.split("_")[1], "--storage", storage]).exit_code == 0
    assert other_files(tmp_path / "study.db") == []
