"""Files with data of people or with tokens are readable by their owner only."""

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.testing

from larl.cli import app
from larl.client import Client
from larl.client.offline_queue import OfflineQueue
from larl.service.storage.database import Database
from tests.service.host import Host
from tests.service.processes import LARL


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """The default of most machines: new files are readable by all users."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """Return the modes of the files in a folder."""
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in sorted(folder.iterdir()) if path.is_file()}


def run(*arguments: str | Path) -> str:
    done = typer.testing.CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_storage_and_its_lock_and_log_files_are_private(tmp_path: Path) -> None:
    host = Host(f"sqlite:///{tmp_path / 'study.db'}")
    host.create_study()
    names = {"study.db", "study.db-shm", "study.db-wal", "study.db.lock", "study.db.last"}
    assert modes(tmp_path) == dict.fromkeys(names, "0o600")
    host.close()


def test_storage_created_with_the_first_token_is_private(tmp_path: Path) -> None:
    run("token", "create", "--storage", f"sqlite:///{tmp_path / 'new' / 'study.db'}")
    assert modes(tmp_path / "new") == {"study.db": "0o600"}


def test_backups_exports_and_restored_storages_are_private(tmp_path: Path) -> None:
    host = Host(f"sqlite:///{tmp_path / 'study.db'}")
    host.create_study()
    host.reward(host.decide("u", "1")["id"], "1", 0.5)
    host.close()
    out = tmp_path / "out"
    run("backup", f"sqlite:///{tmp_path / 'study.db'}", "--out", out / "study.gz")
    run("restore", out / "study.gz", "--storage", f"sqlite:///{out / 'restored.db'}")
    for kind in ("csv", "parquet", "vw", "lifejacket"):
        options = ("--study", "sleep", "--format", kind, "--out", out / kind)
        run("export", f"sqlite:///{tmp_path / 'study.db'}", *options)
    (out / "restored.db.lock").unlink()
    names = {"study.gz", "restored.db", "restored.db.last", "csv", "parquet", "vw", "lifejacket"}
    assert modes(out) == dict.fromkeys(names, "0o600")


def test_pending_decisions_of_a_client_are_private(tmp_path: Path) -> None:
    file = tmp_path / "pending.json"
    OfflineQueue(file).set_probabilities("sleep", {"a": 0.5, "b": 0.5})
    assert modes(tmp_path) == {"pending.json": "0o600"}
    file.chmod(0o644)  # as an earlier version wrote it
    Client("http://127.0.0.1:9", pending=file, retries=0).fallback("sleep", "u")
    assert modes(tmp_path) == {"pending.json": "0o600"}
    assert len(json.loads(file.read_text())["decisions"]) == 1


def test_warning_about_a_storage_that_all_users_can_read(tmp_path: Path) -> None:
    """The mode is not changed: it may be intended."""
    file = tmp_path / "study.db"
    Database(f"sqlite:///{file}", create=True).close()
    file.chmod(0o644)
    command = [*LARL, "serve", "--storage", f"sqlite:///{file}", "--port", "0", "--host", "127.0.0.1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.terminate()
    _, log = process.communicate(timeout=60.0)
    assert f"warning: all users of this machine can read {file}: chmod 600 {file}" in log.splitlines()
    assert modes(tmp_path)["study.db"] == "0o644"
