"""Storages for tests: a file, or a database of its own on the PostgreSQL that LARL_POSTGRES names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from larl.service.queries import inspector, overview
from tests.optional import require
from tests.service.processes import fresh_postgres


@pytest.fixture(autouse=True)
def _busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lift the time limits of the page: a busy machine takes longer."""
    monkeypatch.setattr(overview, "READ_LIMIT", 300.0)
    monkeypatch.setattr(inspector, "TIME_LIMIT", 300.0)


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
