"""`larl serve`: its address, its log, and when it requires tokens."""

import socket
import subprocess
from pathlib import Path

import pytest

from larl.service.http.auth import Auth
from larl.service.storage.database import Database
from tests.service.processes import LARL, Connection, Server
from tests.service.service_process import serving_folder
from tests.service.token_service import STUDY


@pytest.mark.timing
def test_printed_address_accepts_connections_at_once(tmp_path: Path) -> None:
    with serving_folder(tmp_path, "--no-auth") as address:
        host, port = address.removeprefix("http://").split(":")
        socket.create_connection((host, int(port)), timeout=10.0).close()


def test_log_has_routes_but_no_tokens_units_or_bodies(sqlite: str, tmp_path: Path) -> None:
    database = Database(sqlite, create=True)
    token = Auth(database).create("*", "admin")
    database.close()
    with (
        Server(sqlite, tmp_path / "log", "--timeout", "60") as server,
        Connection(server.port, token, 120.0) as connection,
    ):
        assert connection.post("/v1/studies", **STUDY).status == 200
        decision = connection.post("/v1/studies/sleep/decisions", unit="secret-unit", key="secret-key").json()
        connection.post(f"/v1/decisions/{decision['id']}/reward", key="secret-key", value=0.12345)
        connection.get("/v1/studies/sleep/units/secret-unit")
        connection.post("/v1/studies/sleep/decisions", unit="secret-unit", key="secret-2", available=["secret-arm"])
        connection.get("/v1/secret-path?unit=secret-unit")
        server.end(2)
    log = server.log.read_text()
    assert "/v1/studies/{study}/decisions 200" in log
    assert "/v1/studies/{study}/units/{unit} 200" in log
    assert not [text for text in ("secret", "0.12345", token, token.split("_", 2)[2], decision["id"]) if text in log]


@pytest.mark.parametrize("options", [["--host", "0.0.0.0"], ["--host", "0.0.0.0", "--no-auth"]])
def test_public_address_requires_a_token(sqlite: str, options: list[str]) -> None:
    command = [*LARL, "serve", "--storage", sqlite, "--port", "0", *options]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
    assert "host = '0.0.0.0' is not usable" in refused.stderr
