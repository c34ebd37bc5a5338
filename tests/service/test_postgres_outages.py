"""PostgreSQL with a peer that is stopped while it holds a lock, and a server that is silent."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sql

from larl.client import Client
from larl.service.clock import seconds_between
from larl.service.core import agents
from larl.service.http.auth import Auth
from larl.service.ops.replay import Replay
from larl.service.storage import journal
from larl.service.storage.database import Database
from larl.service.storage.journal import Journal
from larl.service.storage.postgres import CONNECT, FIRST_ATTEMPTS, wait_for_server
from tests.service import frozen_peer
from tests.service.frozen_peer import until_stored
from tests.service.host import UCB, hosts
from tests.service.lossy_proxy import LossyProxy
from tests.service.processes import TIMEOUT, Connection, Server
from tests.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.timing, pytest.mark.needs("postgres")]
MAX_IDLE = 1.0  # seconds
OUTAGE = 5.0  # seconds


def test_peer_that_is_stopped_under_the_journal_lock_does_not_stop_others(postgres: str) -> None:
    with hosts(postgres, max_idle=MAX_IDLE) as [host]:
        until_stored(host.create_study)
        command = [sys.executable, "-m", frozen_peer.__name__, postgres, str(MAX_IDLE)]
        peer = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
        try:
            assert os.WIFSTOPPED(os.waitpid(peer.pid, os.WUNTRACED)[1])
            assert until_stored(lambda: host.decide("u", "other"))["t"] == 1
            before, after = [event.at for event in host.journal.select() if event.kind == "decision"]
            assert seconds_between(before, after) < OUTAGE
            peer.send_signal(signal.SIGCONT)
            failure, decision = json.loads(peer.communicate(timeout=TIMEOUT)[0])
        finally:
            peer.kill()
        assert "idle-in-transaction timeout" in failure
        assert decision["t"] == 2
        assert host.decide("u", "frozen") == decision
        assert host.replay() == 3


def test_policy_of_a_peer_is_compiled_before_locks_are_taken(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with hosts(postgres, 2) as [one, other]:
        one.create_study()
        found, acquire = [], journal._acquire
        monkeypatch.setattr(agents, "_compiled", set())
        monkeypatch.setattr(agents, "_try", lambda _: found.append("compile"))
        monkeypatch.setattr(journal, "_acquire", lambda *of: [found.append("lock"), acquire(*of)])
        other.decide("u", "1")
        assert found == ["compile", "lock"]


@pytest.fixture
def proxy(postgres: str) -> Iterator[LossyProxy]:
    url = sql.make_url(postgres)
    found = LossyProxy(f"{url.host}:{url.port}")
    yield found
    found.resume()
    found.close()


def test_requests_are_refused_while_the_database_is_silent_and_then_succeed(
    postgres: str, proxy: LossyProxy, tmp_path: Path
) -> None:
    direct = Database(postgres, create=True)
    token, unused = (Auth(direct).create("*", "admin") for _ in range(2))
    port = int(proxy.address.rpartition(":")[2])
    storage = sql.make_url(postgres).set(port=port).render_as_string(hide_password=False)
    with Server(storage, tmp_path / "log") as server, Client(f"http://127.0.0.1:{server.port}", token) as client:
        client.create_study("sleep", ["a", "b"], UCB, seed=7)
        first = client.decide("sleep", "u", "1")
        proxy.fall_silent()

        def send(method: str, path: str, *body: Any) -> tuple[int, str | None, float]:
            """Return the status, Retry-After, and the seconds until the response."""
            started = time.monotonic()
            with Connection(server.port, unused if "units" in path else token, timeout=PATIENCE) as connection:
                response = connection.post(path, **body[0]) if body else connection.get(path)
            return response.status, response.headers["retry-after"], time.monotonic() - started

        requests: list[Any] = [
            ("GET", "/v1/health"),
            ("GET", "/v1/studies"),
            ("GET", "/v1/studies/sleep/units"),  # with a token that is not in memory
            ("GET", "/v1/studies/sleep/overview"),
            ("GET", "/v1/studies/sleep/export?format=csv"),
            *(("POST", "/v1/studies/sleep/decisions", {"unit": "u", "key": f"{i}"}) for i in range(2, 6)),
        ]
        for _ in range(2):
            with ThreadPoolExecutor(len(requests)) as pool:
                found = list(pool.map(lambda request: send(*request), requests))
            assert [(status, after) for status, after, _ in found] == [(503, "1")] * len(requests)
            assert max(seconds for _, _, seconds in found) < 2.0 * OUTAGE
        with Connection(server.port) as connection:
            health = connection.get("/v1/health")
            assert (health.status, health.json()["status"]) == (503, "failing")
        with ThreadPoolExecutor(1) as pool, Client(f"http://127.0.0.1:{server.port}", token, retries=60) as patient:
            second = pool.submit(patient.decide, "sleep", "u", "2")
            eventually(lambda: "POST /v1/studies/{study}/decisions 503" in server.log.read_text())
            proxy.resume()
            assert second.result(TIMEOUT).t == first.t + 1
        assert client.health().status == "ok"
        assert client.decide("sleep", "u", "1") == first
    assert Replay(Journal(direct)).run().decisions == 2
    direct.close()


@pytest.mark.parametrize(
    ("error", "failures", "attempts"),
    [
        (psycopg.errors.ConnectionTimeout("timeout"), 0, 1),
        (psycopg.errors.ConnectionTimeout("timeout"), 2, 3),
        (psycopg.errors.ConnectionTimeout("timeout"), 99, FIRST_ATTEMPTS - 1),  # the next connection reports it
        (psycopg.errors.CannotConnectNow("the database system is starting up"), 2, 3),
        (psycopg.OperationalError("refused"), 99, 1),
    ],
)
def test_start_waits_for_a_server_that_is_slow(
    error: psycopg.Error, failures: int, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = []

    def connect(*_: Any, connect_timeout: int, **__: Any) -> io.StringIO:
        limits.append(connect_timeout)
        if len(limits) <= failures:
            raise error
        return io.StringIO()  # it can be closed

    monkeypatch.setattr(psycopg, "connect", connect)
    monkeypatch.setattr("larl.service.storage.postgres.time.sleep", lambda seconds: None)
    wait_for_server(sql.create_engine("postgresql+psycopg://nobody@127.0.0.1:1/none"))
    assert limits == [CONNECT] * attempts
