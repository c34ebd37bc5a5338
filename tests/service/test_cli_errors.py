"""Errors of commands: one line that names the mistake, an exit code, and no new files."""

import os
import re
from pathlib import Path

import pytest
import typer.testing

from larl.cli import app
from tests.service.host import Host

DATABASE = "sqlite:///FILE.db, or postgresql+psycopg://USER@HOST/DATABASE"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a storage that has a study, and files that are not storages."""
    monkeypatch.chdir(tmp_path)
    host = Host("sqlite:///study.db")
    host.create_study()
    host.close()
    os.remove("study.db.lock")
    Path("text.db").write_text("This is not a database, but it is long enough to be read as one.")
    Path("empty.db").touch()
    Path("folder").mkdir()
    return tmp_path


ERRORS = {
    "replay sqlite:///text.db": (1, "sqlite:///text.db: file is not a database"),
    "token list --storage sqlite:///text.db": (1, "sqlite:///text.db: file is not a database"),
    "backup sqlite:///text.db --out b.gz": (1, "sqlite:///text.db: file is not a database"),
    "replay sqlite:///folder": (1, "sqlite:///folder: unable to open database file"),
    "replay sqlite:///empty.db": (1, "sqlite:///empty.db: this is not a storage of larl; `larl serve` creates one"),
    "replay sqlite:///none.db": (1, r".*/none\.db: there is no such storage; `larl serve` creates one"),
    "replay nonsense": (2, f"storage: url = 'nonsense' is not usable; accepted: {DATABASE}"),
    "replay postgres://me:secret@h/d": (
        2,
        f"storage: url = 'postgres://me:***@h/d' is not usable; accepted: {DATABASE}",
    ),
    "replay postgres://me:secret@h:x/d": (2, f"storage: url = '…@h:x/d' is not usable; accepted: {DATABASE}"),
    "replay sqlite:///study.db --study x": (2, "replay: study = 'x' is not usable; accepted: one of sleep"),
    "export sqlite:///study.db --study x --out x.csv": (2, "export: study = 'x' is not usable; accepted: one of sleep"),
    "export sqlite:///study.db --study sleep --format xls --out x": (
        2,
        "export: format = 'xls' is not usable; accepted: 'csv' or 'parquet' or 'vw' or 'lifejacket'",
    ),
    "restore text.db --storage sqlite:///new.db": (
        2,
        r"restore: file = 'text.db' is not usable; accepted: a complete backup, as `larl backup` wrote it \(.*\)",
    ),
    "restore none.gz --storage sqlite:///new.db": (1, r".*No such file or directory: 'none\.gz'"),
    "token create --role boss --storage sqlite:///new.db": (
        2,
        "token: role = 'boss' is not usable; accepted: 'host' or 'analyst' or 'admin'",
    ),
    "token create --study Sleep! --storage sqlite:///new.db": (
        2,
        r"token: study = 'Sleep!' is not usable; accepted: 1 to 64 characters of .*; or \* for all studies",
    ),
    "token revoke x --storage sqlite:///study.db": (
        2,
        "token: id = 'x' is not usable; accepted: the id of a valid token; `larl token list` shows them",
    ),
    "serve --storage sqlite:///new.db --host 0.0.0.0": (
        2,
        "serve: host = '0.0.0.0' is not usable; accepted: a loopback address until there is a token: "
        "`larl token create` creates one",
    ),
    "serve --storage sqlite:///new.db --alert-url pager": (
        2,
        "serve: alert-url = 'pager' is not usable; accepted: an address that begins with http:// or https://",
    ),
}


@pytest.mark.parametrize("command", ERRORS)
def test_error_is_one_line_and_an_exit_code(here: Path, command: str) -> None:
    code, message = ERRORS[command]
    pattern = message if ".*" in message else re.escape(message)
    before = sorted(path.name for path in here.iterdir())
    done = typer.testing.CliRunner().invoke(app, command.split())
    assert done.exit_code == code, done.output
    assert re.fullmatch(f"error: {pattern}\n", done.output), done.output
    assert "secret" not in done.output
    assert sorted(path.name for path in here.iterdir()) == before
