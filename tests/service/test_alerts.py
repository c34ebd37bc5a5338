"""Alerts are sent to a URL and to a command, and never delay the service."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from larl.service.core import alerts
from tests.waiting import PATIENCE

pytestmark = pytest.mark.timing
ISSUE = {"severity": "red", "study": "sleep", "code": "policy"}


def test_issue_is_sent_to_the_url_and_to_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "TIMEOUT", PATIENCE)
    bodies: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        sender = alerts.Alerts(f"http://127.0.0.1:{receiver.server_port}", f"cat > {tmp_path}/issue")
        sender.send(ISSUE)
        sender.close()
        receiver.shutdown()
    assert [json.loads(body) for body in bodies] == [ISSUE]
    assert json.loads((tmp_path / "issue").read_text()) == ISSUE


def test_receiver_that_never_answers_does_not_delay_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "TIMEOUT", PATIENCE)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sender = alerts.Alerts(f"http://127.0.0.1:{silent.getsockname()[1]}", None)
        for _ in range(50):
            sender.send(ISSUE)
        connection, _ = silent.accept()  # the first alert is being sent; all calls have returned without its response
        with connection:
            assert connection.recv(4) == b"POST"
            assert sender._queue.qsize() == 49
    sender.close()  # the connections of the others are refused at once
    assert not sender._thread.is_alive()


def test_alerts_go_on_after_a_response_that_is_not_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "TIMEOUT", PATIENCE)
    with socket.create_server(("127.0.0.1", 0)) as receiver:
        receiver.settimeout(PATIENCE)
        sender = alerts.Alerts(f"http://127.0.0.1:{receiver.getsockname()[1]}", None)
        for _ in range(2):
            sender.send(ISSUE)
            connection, _ = receiver.accept()
            with connection:
                connection.sendall(b"nonsense\r\n\r\n")
                while connection.recv(4096):
                    pass
    sender.close()
    assert not sender._thread.is_alive()
