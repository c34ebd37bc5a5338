"""Reads: their threads, their waiting line, their cost, and their slices between commands."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from larl.service.http import rate_limit, readers
from larl.service.queries.journal_queries import JournalQueries
from larl.service.settings import Settings
from larl.service.storage.database import Database
from tests.service.study_client import content, create_study, decide, service_client
from tests.service.token_service import STUDY, TokenService
from tests.waiting import PATIENCE, eventually

PAGES = "/v1/studies/sleep/decisions"
READS = 60  # more than the threads that Starlette has


@contextmanager
def blocked_reads(service: TokenService, count: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Future[Any]]]:
    """Request pages that do not end within the block; yield their responses to come."""
    proceed, started = threading.Event(), threading.Semaphore(0)
    read = JournalQueries.decisions

    def wait(*arguments: Any) -> Any:
        started.release()
        assert proceed.wait(PATIENCE)
        return read(*arguments)

    monkeypatch.setattr(JournalQueries, "decisions", wait)
    with ThreadPoolExecutor(count) as pool:
        try:
            token = service.tokens["analyst", "*"]
            found = [pool.submit(service.request, token, "GET", PAGES) for _ in range(count)]
            for _ in range(readers.THREADS):
                assert started.acquire(timeout=PATIENCE)
            yield found
        finally:
            proceed.set()


@pytest.mark.timing
def test_decisions_health_and_authentication_do_not_wait_for_reads(
    service: TokenService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.request(service.admin, "POST", "/v1/studies", json=STUDY)
    with blocked_reads(service, READS, monkeypatch) as reads, ThreadPoolExecutor(3) as others:
        limiter = service.client.app.state.service.readers._limiter
        eventually(lambda: limiter.statistics().tasks_waiting, READS - readers.THREADS)
        unknown = service.auth.create("sleep", "host")  # it is not cached
        requests = (
            (None, "GET", "/v1/health", None),
            (service.admin, "POST", PAGES, {"unit": "u", "key": "1"}),
            (unknown, "POST", PAGES, {"unit": "u", "key": "2"}),
        )
        responses = [others.submit(service.request, *each, json=body) for *each, body in requests]
        assert [each.result(PATIENCE).status_code for each in responses] == [200, 200, 200]
        assert not any(each.done() for each in reads)
    assert [each.result().status_code for each in reads] == [200] * READS


@pytest.mark.timing
def test_reads_beyond_the_waiting_line_are_refused(service: TokenService, monkeypatch: pytest.MonkeyPatch) -> None:
    service.request(service.admin, "POST", "/v1/studies", json=STUDY)
    monkeypatch.setattr(readers, "MAX_WAITING", 3)
    with blocked_reads(service, readers.THREADS + 3, monkeypatch):
        limiter = service.client.app.state.service.readers._limiter
        eventually(lambda: limiter.statistics().tasks_waiting, 3)
        refused = service.request(service.tokens["analyst", "*"], "GET", PAGES)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert "too many reads are waiting" in refused.json()["detail"]


def test_read_costs_the_rows_that_it_may_return(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "time", SimpleNamespace(monotonic=lambda: 1000.0))  # no time passes
    database = Database(sqlite, write=True, create=True)
    service = TokenService(database, Settings(rate=1e6, read_rate=1000.0))
    with service.client:
        service.request(service.admin, "POST", "/v1/studies", json=STUDY)
        pages = [service.request(service.admin, "GET", f"{PAGES}?limit=1000") for _ in range(2)]
        assert [each.status_code for each in pages] == [200, 429]  # 1020 rows each; 2000 at once
        assert pages[1].headers["retry-after"] == "1"
        assert pages[1].json()["accepted"] == "1000 rows a second"
        assert service.request(service.admin, "GET", f"{PAGES}?limit=100").status_code == 200
        others = service.request(service.tokens["analyst", "*"], "GET", f"{PAGES}?limit=1000")
        decision = service.request(service.admin, "POST", PAGES, json={"unit": "u", "key": "1"})
        assert (others.status_code, decision.status_code) == (200, 200)
    database.close()


@pytest.mark.parametrize("limit", [1, 3, 4, 6, 7, 8])
def test_page_from_slices_is_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(readers, "SLICE", 3)
    with service_client(tmp_path) as client:
        create_study(client)
        for key in range(7):
            decide(client, str(key), f"u{key % 2}", available=[])
        queries = client.app.state.service.readers.queries
        for name in ("decisions", "units", "rewards", "issues"):
            unit = {"unit": "u0"} if name in ("decisions", "rewards") else {}
            for more in ({}, unit, {"after": 5}):
                response = content(client.get(f"/v1/studies/sleep/{name}", params={"limit": limit, **more}))
                assert response == getattr(queries, name)("sleep", limit=limit, **more)


def test_reads_wait_while_a_command_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Any] = []
    with service_client(tmp_path) as client:
        create_study(client)
        service = client.app.state.service
        journal, execute = service.readers.journal, service.commands.batch("sleep").execute
        idle = journal._is_idle

        def read_during_command(commands: Any) -> Any:
            with monkeypatch.context() as patch:
                patch.setattr(
                    journal._is_idle, "wait", lambda seconds: waited.append((journal._is_idle.is_set(), seconds))
                )
                journal.select(limit=1)
            return execute(commands)

        monkeypatch.setattr(service.commands.batch("sleep"), "execute", read_during_command)
        decide(client, "1", "u")
        assert waited == [(False, readers.MAX_PAUSE)]
        assert idle.is_set()
