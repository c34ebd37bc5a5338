import socket
from pathlib import Path

import pytest

from tests.service.running import running


@pytest.mark.timing
def test_who_reads_the_address_can_connect_at_once(tmp_path: Path) -> None:
    with running(tmp_path, "--no-auth") as address:
        host, port = address.removeprefix("http://").split(":")
        socket.create_connection((host, int(port)), timeout=10.0).close()
