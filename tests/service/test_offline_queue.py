"""The file of fallback decisions that were not sent to the service yet."""

import json
from pathlib import Path

import pytest

import larl
from larl.client import Client


def test_invalid_file_is_refused_and_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "pending.json"
    file.write_text('{"held": [')
    with pytest.raises(larl.InvalidValue, match="a file that a Client wrote"):
        Client("http://127.0.0.1", pending=file)
    assert file.read_text() == '{"held": ['


def test_file_of_earlier_version_is_read(tmp_path: Path) -> None:
    """Earlier versions wrote the keys "odds" and "held"."""
    file, probabilities = tmp_path / "pending.json", {"a": 0.25, "b": 0.75}
    decision = {"study": "sleep", "unit": "u", "key": "k", "arm": "b", "probabilities": probabilities, "made": "now"}
    file.write_text(json.dumps({"odds": {"sleep": probabilities}, "held": [decision]}))
    client = Client("http://127.0.0.1:9", pending=file, retries=0)
    assert [each.key for each in client.pending] == ["k"]
    assert client.fallback("sleep", "v", available=["a"]).probabilities == {"a": 1.0, "b": 0.0}
    assert set(json.loads(file.read_text())) == {"probabilities", "decisions"}
    assert len(Client("http://127.0.0.1:9", pending=file).pending) == 2
