"""Storages for tests: a file, or a database of its own on the PostgreSQL that LARL_POSTGRES names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.processes import POSTGRES, fresh_postgres


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def postgres() -> Iterator[str]:
    if not POSTGRES:
        pytest.skip("LARL_POSTGRES names no PostgreSQL: `.ci/postgres make test` starts one")
    with fresh_postgres() as storage:
        yield storage


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found
