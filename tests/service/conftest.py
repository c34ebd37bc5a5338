"""Storages for tests: a file, or a database of its own on the PostgreSQL that LARL_POSTGRES names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from larl.service import onlooker, overview
from tests.optional import require
from tests.service.processes import fresh_postgres


@pytest.fixture(autouse=True)
def _busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page may take to read and to follow is no matter of a test: a busy machine takes longer."""
    monkeypatch.setattr(overview, "SECONDS", 300.0)
    monkeypatch.setattr(onlooker, "SECONDS", 300.0)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def postgres() -> Iterator[str]:
    require("postgres")
    with fresh_postgres() as storage:
        yield storage


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found
