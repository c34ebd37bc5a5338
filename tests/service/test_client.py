"""The client against a service in a process of its own: nothing is lost, nothing doubled."""

import json
import math
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

import larl
from larl.client import Client, RequestRefused, ServiceUnreachable, transport
from larl.client.offline_queue import draw_arm
from tests.service.processes import reserve_port
from tests.service.running import Leaky, running
from tests.waiting import PATIENCE

pytestmark = pytest.mark.timing
UCB = {"policy": "UCB"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("served"), "--no-auth") as found:
        yield found


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    with Client(address, timeout=PATIENCE, retries=1) as found:
        yield found


@pytest.fixture
def study(client: Client) -> str:
    """A study of its own for each test."""
    return client.create_study(f"s{uuid4().hex[:12]}", ["a", "b"], UCB, seed=1, min_probability=0.1, max_delay=3).study


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MIN_PAUSE", 0.001)


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address at which nobody listens, and nobody will."""
    with reserve_port() as reserved:
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}"


def test_every_method_and_what_it_returns(client: Client, study: str) -> None:
    assert larl.Client is Client
    assert client.health().status == "ok"
    assert client.study(study).fallback == {"a": 0.5, "b": 0.5}
    assert study in [each.study for each in client.studies()]
    assert client.register(study, "u0").number == 0
    decision = client.decide(study, "u0", available=["b"], reason="a is out")
    assert (decision.arm, decision.t, decision.source, decision.probabilities) == ("b", 0, "policy", {"a": 0, "b": 1})
    assert client.observe(decision, np.float32(0.5)).status == "learnt"
    assert client.observe(decision.id, 0.75).status == "corrected"
    assert client.delivered(decision).delivered
    made = client.ingest(study, "u1", "a", datetime(2026, 1, 1, tzinfo=UTC), probabilities={"a": 0.5, "b": 0.5})
    assert (made.source, made.unit) == ("host", "u1")
    assert client.decide(study, "u1", available=[], reason="asleep").arm is None
    found = list(client.decisions(study))
    assert [(each.unit, each.state, each.reward) for each in found] == [
        ("u0", "corrected", 0.75),
        ("u1", "pending", None),
        ("u1", "unavailable", None),
    ]
    assert found[0].delivered
    assert [each.id for each in client.decisions(study, "u1")] == [each.id for each in found[1:]]
    assert [each.value for each in client.rewards(study)] == [0.5, 0.75]
    assert [each.unit for each in client.units(study)] == ["u0", "u1"]
    assert list(client.issues(study)) == []
    assert client.change_policy(study, {"policy": "UCB"}, replaces=1, reason="as before").policy_version == 2
    assert client.close_study(study).study == study
    with pytest.raises(RequestRefused) as refused:
        client.decide(study, "u0")
    assert refused.value.status == 409


def test_lists_come_whole_whatever_the_page(client: Client, study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("larl.client.reader.PAGE_SIZE", 2)
    for i in range(5):
        client.register(study, f"u{i}")
    assert [each.number for each in client.units(study)] == [0, 1, 2, 3, 4]


def test_a_refusal_says_which_value_and_what_would_do(client: Client, study: str) -> None:
    with pytest.raises(
        RequestRefused, match=r'^422: available = "c" is not accepted; accepted: some of a, b$'
    ) as refused:
        client.decide(study, "u", available=["c"])
    error = refused.value
    assert (error.status, error.field, error.value, error.accepted) == (422, "available", "c", "some of a, b")
    with pytest.raises(RequestRefused, match="404: there is no such issue"):
        client.resolve(study, 10**6, "gone")
    with pytest.raises(larl.InvalidValue, match="finite numbers"):
        client.observe(f"{study}.0-0-{'0' * 16}", math.nan)


def test_a_lost_answer_neither_loses_nor_doubles_a_decision(
    address: str, client: Client, study: str, quick: None
) -> None:
    proxy = Leaky(address, lose={0, 1, 3, 4})
    try:
        with Client(proxy.address, timeout=PATIENCE, retries=3) as behind:
            first = behind.decide(study, "u", key="once")
            assert proxy.accepted == 3, "two answers were lost"
            behind.close()
            reward = behind.observe(first, 1.0, key="once")
            assert proxy.accepted == 6, "and two more"
    finally:
        proxy.close()
    assert client.decide(study, "u", key="once") == first, "what came through is what was stored"
    assert reward.status == "learnt"
    assert [(each.id, each.reward) for each in client.decisions(study)] == [(first.id, 1.0)]
    assert len(list(client.rewards(study))) == 1


def test_a_connection_is_kept_and_one_that_went_stale_is_replaced(address: str, study: str) -> None:
    proxy = Leaky(address, lose=set())
    try:
        with Client(proxy.address, timeout=PATIENCE, retries=0) as behind:
            behind.decide(study, "u")
            behind.decide(study, "u")
            assert proxy.accepted == 1
            for near in proxy._open:
                near.shutdown(socket.SHUT_RDWR)
            behind.decide(study, "u")
            assert proxy.accepted == 2
    finally:
        proxy.close()


def test_threads_share_a_client(client: Client, study: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: client.decide(study, f"u{i % 8}", key=f"k{i}"), range(80)))
    assert len({each.id for each in found}) == 80
    assert len(list(client.decisions(study))) == 80


@contextmanager
def answering(*answers: tuple[int, dict[str, str], bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives these answers, and the bodies that it was sent."""
    left, bodies = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers, body = left.pop(0)
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


UNIT = json.dumps({"study": "s", "unit": "u", "number": 0, "at": "now", "more": "of a later version"}).encode()


def test_told_to_wait_it_waits_and_sends_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(transport, "time", SimpleNamespace(sleep=pauses.append, time=time.time))
    answers = [
        (429, {"Retry-After": "7"}, b"{}"),
        (503, {}, b""),
        (502, {}, b"<html>"),
        (504, {}, b""),
        (200, {}, UNIT),
    ]
    with answering(*answers) as (url, bodies), Client(url) as client:
        assert client.register("s", "u").number == 0
    assert len(set(bodies)) == 1
    assert pauses[0] == 7.0
    assert 0.1 <= pauses[1] <= 0.2 < 0.8 * 0.5 <= pauses[3] <= 0.8


def test_asked_to_wait_too_long_it_gives_up() -> None:
    answer = (429, {"Retry-After": "3600"}, b'{"detail": "slow down"}')
    with (
        answering(answer) as (url, _),
        Client(url) as client,
        pytest.raises(ServiceUnreachable, match=r"in 1 tries; the last: 429: slow down"),
    ):
        client.register("s", "u")


def test_an_answer_that_is_no_service_is_none(quick: None) -> None:
    with (
        answering((200, {}, b"<html>"), (500, {}, b"oh")) as (url, _),
        Client(url, retries=1) as client,
        pytest.raises(RequestRefused, match="500: Internal Server Error"),
    ):
        client.register("s", "u")


def test_unreachable_says_so_and_knows_its_key(nowhere: str, quick: None) -> None:
    with (
        Client(nowhere, retries=2) as client,
        pytest.raises(ServiceUnreachable, match="in 3 tries; the last: ConnectionRefusedError") as failed,
    ):
        client.decide("s", "u", key="mine")
    assert failed.value.key == "mine"


def test_a_silent_service_is_not_waited_for_longer_than_asked(quick: None) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        Client(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.05, retries=1) as client,
        pytest.raises(ServiceUnreachable, match="TimeoutError"),
    ):
        client.health()


def test_a_host_decides_itself_and_tells_later(
    address: str, nowhere: str, client: Client, study: str, tmp_path: Path
) -> None:
    file = tmp_path / "pending.json"
    with Client(address, pending=file) as before:
        before.study(study)
    with Client(nowhere, retries=0, pending=file) as away:
        with pytest.raises(ServiceUnreachable) as failed:
            away.decide(study, "u")
        made = away.fallback(study, "u", failed.value.key)
        assert made.probabilities == {"a": 0.5, "b": 0.5}
    with Client(address, pending=file) as back:  # the host crashed in between
        assert back.pending == [made]
        later = back.decide(study, "u")
        assert back.pending == []
        assert back.observe(made, 0.25).status == "repaired"
    told, decided = client.decisions(study)
    assert (told.t, told.source, told.arm, told.reward) == (0, "host", made.arm, 0.25)
    assert (decided.t, decided.id) == (1, later.id)
    with Client(address, pending=file) as again:
        assert again.pending == []


def test_a_host_that_decided_although_the_service_had_counts_once(client: Client, study: str) -> None:
    decided = client.decide(study, "u", key="answer-lost", available=["a"])
    made = client.fallback(study, "u", "answer-lost", available=["a"])._replace(arm="b")
    assert client.observe(made, 1.0).decision == decided.id
    (only,) = client.decisions(study)
    assert (only.arm, only.played, only.reward) == ("a", "b", 1.0)
    assert client.pending == []


def test_what_the_service_refuses_stays_and_does_not_hold_up_others(client: Client, study: str) -> None:
    bad = client.fallback(study, "u", context=[1.0])
    good = client.fallback(study, "u")
    assert [each.arm for each in client.ingest_pending()] == [good.arm]
    (left,) = client.pending
    assert (left.key, str(left.refused)[:4]) == (bad.key, "422:")
    assert client.decide(study, "u").t == 1


def test_the_draw_heeds_what_is_available() -> None:
    odds = {"a": 0.2, "b": 0.3, "c": 0.5, "d": 0.0}
    assert draw_arm(odds, ["b"]) == ("b", {"a": 0.0, "b": 1.0, "c": 0.0, "d": 0.0})
    assert draw_arm(odds, ["d"])[0] == "d"
    counts = dict.fromkeys(odds, 0)
    for _ in range(4000):
        counts[draw_arm(odds, ["a", "b"])[0]] += 1
    assert counts["c"] == counts["d"] == 0
    assert abs(counts["a"] / 4000 - 0.4) < 5 * math.sqrt(0.24 / 4000)
    for none in ([], ["e"]):
        with pytest.raises(larl.InvalidValue, match="available"):
            draw_arm(odds, none)


def test_a_host_may_bring_its_own_probabilities(client: Client, study: str) -> None:
    made = client.fallback(study, "u", probabilities={"a": 0.0, "b": 1.0})
    assert (made.arm, made.probabilities) == ("b", {"a": 0.0, "b": 1.0})
    (told,) = client.ingest_pending()
    assert (told.arm, told.probabilities) == ("b", {"a": 0.0, "b": 1.0})
