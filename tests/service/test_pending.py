"""Decisions that a host made itself, in a file until the service has them."""

from pathlib import Path

import pytest

import larl
from larl.client import Client


def test_a_file_that_is_not_a_clients_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "pending.json"
    file.write_text('{"held": [')
    with pytest.raises(larl.InvalidValue, match="a file that a Client wrote"):
        Client("http://127.0.0.1", pending=file)
    assert file.read_text() == '{"held": ['
