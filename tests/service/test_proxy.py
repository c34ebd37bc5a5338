"""The limit of log-ins is by the true address of a client, which no header of its own changes."""

import http.client
import os
import re
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn

from larl.service.app import make_app
from larl.service.http import rate_limit
from larl.service.server import uvicorn_config
from larl.service.settings import Settings
from larl.service.storage.database import Database
from tests.documents import text_of
from tests.optional import NGINX
from tests.service.processes import TIMEOUT, reserve_port
from tests.waiting import eventually

pytestmark = pytest.mark.timing
ALLOWED = 10  # log-ins at once; the clock of the limit stands still, so it admits no more
BODY = '{"token": "larl_unknown"}'


@pytest.fixture(autouse=True)
def _stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr(rate_limit, "REFUSAL_DELAY", 0.0)


@contextmanager
def serving(folder: Path, proxy: str | None) -> Iterator[int]:
    """Serve a storage as `larl serve` does, in a thread; yield the port."""
    database, listening = Database(f"sqlite:///{folder / 'study.db'}", write=True, create=True), reserve_port()
    settings = Settings(proxy=proxy)
    server = uvicorn.Server(uvicorn_config(make_app(database, settings), settings))
    listening.listen()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        eventually(lambda: server.started)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(TIMEOUT)
        database.close()


def log_in(connection: http.client.HTTPConnection, **headers: str) -> int:
    """Log in with an unknown token; return the status: 401, or 429 beyond the limit."""
    sent = {"Content-Type": "application/json", "X-Larl-Page": "1", "Connection": "close"} | headers
    connection.request("POST", "/v1/session", BODY, sent)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def forged(i: int) -> dict[str, str]:
    address = f"10.0.{i}.1"
    return {"X-Forwarded-For": address, "X-Real-IP": address, "Forwarded": f"for={address}"}


@pytest.mark.parametrize("proxy", [None, "10.9.9.9"], ids=["no proxy", "another proxy"])
def test_headers_of_a_client_do_not_change_its_address(tmp_path: Path, proxy: str | None) -> None:
    with serving(tmp_path, proxy) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        statuses = Counter(log_in(connection, **forged(i)) for i in range(60))
    assert statuses == {401: ALLOWED, 429: 60 - ALLOWED}


@pytest.mark.needs("nginx")
def test_documented_proxy_passes_the_true_address_only(tmp_path: Path) -> None:
    with serving(tmp_path, "127.0.0.1") as upstream, documented_nginx(tmp_path, upstream) as port:
        trust = ssl.create_default_context(cafile=str(tmp_path / "trial.pem"))
        connection = http.client.HTTPSConnection("localhost", port, timeout=TIMEOUT, context=trust)
        statuses = Counter(log_in(connection, **forged(i)) for i in range(60))
        assert statuses == {401: ALLOWED, 429: 60 - ALLOWED}
        other = http.client.HTTPSConnection(
            "localhost", port, timeout=TIMEOUT, context=trust, source_address=("127.0.0.2", 0)
        )
        assert log_in(other) == 401  # another client has its own limit


@contextmanager
def documented_nginx(folder: Path, upstream: int) -> Iterator[int]:
    """Run nginx with the configuration of docs/deploy.md, apart from addresses and paths; yield its port."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(folder / "trial.key"), "-out", str(folder / "trial.pem")]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    found = re.search(r"```nginx\n(.*?)```", text_of("docs/deploy.md"), re.S)
    assert found
    reserved = reserve_port()
    port, server = reserved.getsockname()[1], found[1]
    reserved.close()  # nginx does not share a port
    for shown, used in {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/ssl/": f"{folder}/",
        "127.0.0.1:8080": f"127.0.0.1:{upstream}",
    }.items():
        assert shown in server
        server = server.replace(shown, used)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    user = "user root;\n" if os.geteuid() == 0 else ""
    configuration = f"{user}daemon off;\npid {folder}/nginx.pid;\nevents {{}}\nhttp {{\n{temporary}{server}}}\n"
    (folder / "nginx.conf").write_text(configuration)
    log = folder / "nginx.log"
    process = subprocess.Popen([str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(log)])
    try:
        eventually(lambda: process.poll() is not None or (folder / "nginx.pid").exists(), details=log.read_text)
        assert process.poll() is None, log.read_text()
        yield port
    finally:
        process.terminate()
        process.wait(TIMEOUT)
