"""Connections: clients that are slow, idle, too many or send too much; and the host that a request names."""

import re
import resource
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from larl.service.http.hosts import LOOPBACK
from larl.service.http.protocol import MAX_HEAD, PART
from larl.service.server import MAX_CONNECTIONS
from tests.service.processes import Connection
from tests.service.study_client import service_client
from tests.service.token_service import STUDY
from tests.waiting import PATIENCE, eventually

SERVE = """
import resource, sys
from larl.service.server import serve
from larl.service.settings import Settings
files = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, 256), files))
serve(sys.argv[1], "127.0.0.1", 0, Settings(auth=False, timeout=60.0, request_timeout=float(sys.argv[2])))
"""
SECOND = 1.0  # for a request, where tests wait for the end of that time
HOUR = 3600.0  # where they do not


@contextmanager
def limited_service(folder: Path, request_timeout: float, files: int = 1024) -> Iterator[tuple[int, int]]:
    """Serve with limits on the time of a request and on open files; yield the port and the id of the process."""
    command = [sys.executable, "-c", SERVE, f"sqlite:///{folder / 'study.db'}", str(request_timeout), str(files)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        port = int(re.findall(r":(\d+) ", process.stdout.readline())[0])
        with Connection(port, timeout=PATIENCE) as connection:
            assert connection.post("/v1/studies", **STUDY).status == 200
        yield port, process.pid
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a service whose clients have a second for a request."""
    with limited_service(tmp_path_factory.mktemp("limits"), SECOND) as (port, _):
        yield port


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def decide(port: int, key: str) -> int:
    """Request a decision on a new connection; return the status."""
    with Connection(port, timeout=PATIENCE) as connection:
        return connection.post("/v1/studies/sleep/decisions", unit="u", key=key).status


def received(client: socket.socket) -> bytes:
    """Return all that a service sends until it closes the connection."""
    parts = []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except ConnectionResetError:  # it had more to read
        pass
    return b"".join(parts)


@pytest.mark.timing
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b""),
        (b"\r\n", b""),
        (b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n", b"HTTP/1.1 408 "),
        (b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", b"HTTP/1.1 408 "),
    ],
)
def test_unfinished_request_is_ended(impatient: int, sent: bytes, status: bytes) -> None:
    with connect(impatient) as client:
        client.sendall(sent)
        response = received(client)
        assert response.startswith(status)
        assert bool(response) == bool(status)
    assert decide(impatient, "1") == 200


@pytest.mark.timing
@pytest.mark.parametrize("head", [b"GET / HTTP/1.1\r\n", b"POST /v1/studies HTTP/1.1\r\nContent-Length: 60000\r\n\r\n"])
def test_request_that_comes_byte_by_byte_is_ended(impatient: int, head: bytes) -> None:
    with connect(impatient) as client:
        client.sendall(head)

        def is_ended() -> bool:
            client.sendall(b"x")
            return bool(select.select([client], [], [], 0.0)[0])

        eventually(is_ended)
        assert received(client).startswith(b"HTTP/1.1 4")


@pytest.mark.timing
def test_connection_that_is_idle_after_a_response_is_closed(impatient: int) -> None:
    with connect(impatient) as client:
        client.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert received(client).startswith(b"HTTP/1.1 200 ")


@pytest.mark.timing
def test_connection_whose_client_reads_nothing_is_closed(impatient: int) -> None:
    with connect(impatient) as client:
        client.setblocking(False)

        def is_closed() -> bool:
            try:
                client.send(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
            except BlockingIOError:
                return False
            except ConnectionError:
                return True
            return False

        eventually(is_closed)


@pytest.mark.timing
@pytest.mark.parametrize("begin", [b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n" + b"X:\r\n" * 1000])
def test_large_headers_are_refused_before_they_are_complete(impatient: int, begin: bytes) -> None:
    with connect(impatient) as client:
        client.sendall(begin + b"a" * (MAX_HEAD + PART))
        response = received(client)
        assert response.startswith(b"HTTP/1.1 431 ")
        assert b"24576 bytes or fewer" in response


@pytest.mark.timing
def test_headers_of_the_largest_size_are_accepted(impatient: int) -> None:
    with connect(impatient) as client:
        client.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: ")
        client.sendall(b"a" * (MAX_HEAD - 100) + b"\r\n\r\n")
        assert received(client).startswith(b"HTTP/1.1 200 ")


@pytest.mark.timing
def test_trailers_do_not_count_as_headers(impatient: int) -> None:
    with connect(impatient) as client:
        client.sendall(b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.sendall(b"2\r\n{}\r\n0\r\nContent-Type: application/json\r\n\r\n")
        assert received(client).startswith(b"HTTP/1.1 415 ")


@pytest.mark.timing
def test_endless_requests_take_no_memory(tmp_path: Path) -> None:
    chunked = b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = [(b"GET / HTTP/1.1\r\nX: ", b"a"), (b"GET / HTTP/1.1\r\n", b"X:\r\n"), (chunked + b"0\r\nX: ", b"a")]
    parts += [(chunked + b"0\r\n", b"X:\r\n"), (chunked + b"1;", b"a"), (chunked, b"1\r\nx\r\n")]
    with limited_service(tmp_path, HOUR) as (port, process):
        before = memory(process)
        for begin, part in parts:
            with connect(port) as client:
                assert not sends(client, begin, part, 20_000_000)
        assert memory(process) - before < 15e6
        assert decide(port, "1") == 200


def sends(client: socket.socket, begin: bytes, part: bytes, size: int) -> bool:
    """Return whether a service reads so many bytes."""
    try:
        client.sendall(begin)
        for _ in range(size // 2**16):
            client.sendall(part * (2**16 // len(part)))
    except ConnectionError:
        return False
    return True


def memory(process: int) -> int:
    """Return the largest resident memory of a process until now, in bytes."""
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(re.findall(r"VmHWM:\s+(\d+)", status)[0])


@contextmanager
def many_files(count: int) -> Iterator[int]:
    """Let this process open so many files; yield the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count:
        pytest.skip(f"the limit of open files is {hard}; {count} are needed (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.timing
def test_half_open_connections_leave_file_descriptors_to_others(tmp_path: Path) -> None:
    count, files = 1005, 1024
    with (
        many_files(2 * count),
        limited_service(tmp_path, HOUR, files) as (port, process),
        ExitStack() as stack,
    ):
        clients = [stack.enter_context(connect(port)) for _ in range(count)]
        for number, client in enumerate(clients):
            try:
                client.sendall(b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            except ConnectionError:
                assert number < count - files // 2 + 1  # it is one of the oldest
        assert [decide(port, str(key)) for key in range(3)] == [200] * 3
        eventually(lambda: open_files(process) < files // 2 + 100)
        received(clients[0])  # the oldest was closed
        assert is_open(clients[-1])


@pytest.mark.timing
def test_ten_thousand_idle_connections(tmp_path: Path) -> None:
    count = MAX_CONNECTIONS + 100
    with (
        many_files(2 * MAX_CONNECTIONS) as files,
        limited_service(tmp_path, HOUR, files) as (port, process),
        ExitStack() as stack,
    ):
        clients = [stack.enter_context(connect(port)) for _ in range(count)]
        assert [decide(port, str(key)) for key in range(3)] == [200] * 3
        eventually(lambda: open_files(process) < MAX_CONNECTIONS + 100)
        assert received(clients[0]) == b""  # the oldest was closed
        assert is_open(clients[-1])


def open_files(process: int) -> int:
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


def is_open(client: socket.socket) -> bool:
    """Return whether a connection on which a service sent nothing is open."""
    client.setblocking(False)
    try:
        return bool(client.recv(1))
    except BlockingIOError:
        return True


HOSTS = {
    **dict.fromkeys(["localhost", "localhost:8080", "LOCALHOST", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:80"], 200),
    **dict.fromkeys(["trial.example", "localhost.trial.example", "127.0.0.1.example:80", "10.0.0.1", "", "[::1"], 421),
}


@pytest.mark.parametrize(("host", "status"), HOSTS.items())
def test_without_authentication_only_this_machine_is_accepted_as_host(tmp_path: Path, host: str, status: int) -> None:
    with service_client(tmp_path, auth=False) as client:
        responses: list[Any] = [
            client.get("/v1/studies", headers={"Host": host}),
            client.post("/v1/studies", headers={"Host": host}, json=STUDY),
            client.get("/", headers={"Host": host}),
        ]
        assert [response.status_code for response in responses] == [status] * 3
        if status == 421:
            assert responses[0].json()["accepted"] == LOOPBACK


def test_with_authentication_any_host_is_accepted(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        assert client.get("/v1/studies", headers={"Host": "trial.example"}).status_code == 200
