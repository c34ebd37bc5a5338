"""The service as a process."""

import socket

from larl.service.server import _bound


def test_who_is_told_an_address_may_connect_at_once() -> None:
    with _bound("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname(), timeout=5):
        pass
