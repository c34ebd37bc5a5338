"""Fixtures: storages (an SQLite file, or a new database of the server in LARL_POSTGRES), services, and a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from larl.service.http import rate_limit
from larl.service.queries import inspector, overview
from larl.service.settings import Settings
from larl.service.storage.database import Database
from tests.optional import require
from tests.service.browser import Browser, Tab, running_browser
from tests.service.fixed_secrets import fixed_secret
from tests.service.page_site import Site, serving_site
from tests.service.processes import fresh_postgres
from tests.service.token_service import TokenService


@pytest.fixture(autouse=True)
def _no_time_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lift the time limits of the page, because a busy machine takes longer; refuse requests without a delay."""
    monkeypatch.setattr(rate_limit, "REFUSAL_DELAY", 0.0)
    monkeypatch.setattr(overview, "READ_LIMIT", 300.0)
    monkeypatch.setattr(inspector, "TIME_LIMIT", 300.0)


@pytest.fixture(autouse=True, scope="session")
def _same_random_bits() -> Iterator[None]:
    """Give all studies of this process the same secret: tests get the same decisions each time."""
    with fixed_secret():
        yield


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


@pytest.fixture
def service(sqlite: str) -> Iterator[TokenService]:
    """A service in this process that requires tokens."""
    database = Database(sqlite, write=True, create=True)
    found = TokenService(database, Settings(rate=1e6, read_rate=1e9, timeout=60.0))
    with found.client:
        yield found
    database.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service as a process, with a study and an issue."""
    with serving_site(f"sqlite:///{tmp_path_factory.mktemp('page') / 'study.db'}") as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Tab]:
    with chromium.tab() as found:
        found.resize(1280, 900)
        yield found
