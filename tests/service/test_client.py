"""The client with a service that runs as a process: retries, lost responses, fallback decisions."""

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
from tests.service.lossy_proxy import LossyProxy
from tests.service.processes import reserve_port
from tests.service.service_process import serving_folder
from tests.waiting import PATIENCE

pytestmark = pytest.mark.timing
UCB = {"policy": "UCB"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving_folder(tmp_path_factory.mktemp("served"), "--no-auth") as found:
        yield found


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    with Client(address, timeout=PATIENCE, retries=1) as found:
        yield found


@pytest.fixture
def study(client: Client) -> str:
    """The name of a new study."""
    return client.create_study(f"s{uuid4().hex[:12]}", ["a", "b"], UCB, seed=1, min_probability=0.1, max_delay=3).study


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MIN_PAUSE", 0.001)


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address at which no service listens."""
    with reserve_port() as reserved:
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}"


def test_methods_and_their_results(client: Client, study: str) -> None:
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
    external = client.ingest(study, "u1", "a", datetime(2026, 1, 1, tzinfo=UTC), probabilities={"a": 0.5, "b": 0.5})
    assert (external.source, external.unit) == ("host", "u1")
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


def test_lists_are_complete_with_any_page_size(client: Client, study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("larl.client.reader.PAGE_SIZE", 2)
    for i in range(5):
        client.register(study, f"u{i}")
    assert [each.number for each in client.units(study)] == [0, 1, 2, 3, 4]


def test_refusal_names_the_value_and_the_accepted_values(client: Client, study: str) -> None:
    with pytest.raises(
        RequestRefused, match=r'^422: available = "c" is not accepted; accepted: some of a, b$'
    ) as refused:
        client.decide(study, "u", available=["c"])
    error = refused.value
    assert (error.status, error.field, error.value, error.accepted) == (422, "available", "c", "some of a, b")
    with pytest.raises(RequestRefused, match="404: there is no such issue"):
        client.resolve(study, 10**6, "done")
    with pytest.raises(larl.InvalidValue, match="finite numbers"):
        client.observe(f"{study}.0-0-{'0' * 16}", math.nan)


def test_lost_response_neither_loses_nor_duplicates_a_decision(
    address: str, client: Client, study: str, short_pauses: None
) -> None:
    proxy = LossyProxy(address, lose={0, 1, 3, 4})
    try:
        with Client(proxy.address, timeout=PATIENCE, retries=3) as proxied:
            first = proxied.decide(study, "u", key="once")
            assert proxy.accepted == 3, "two responses were lost"
            proxied.close()
            reward = proxied.observe(first, 1.0, key="once")
            assert proxy.accepted == 6, "two more responses were lost"
    finally:
        proxy.close()
    assert client.decide(study, "u", key="once") == first, "the response is the stored one"
    assert reward.status == "learnt"
    assert [(each.id, each.reward) for each in client.decisions(study)] == [(first.id, 1.0)]
    assert len(list(client.rewards(study))) == 1


def test_connection_is_reused_and_replaced_when_it_is_closed(address: str, study: str) -> None:
    proxy = LossyProxy(address, lose=set())
    try:
        with Client(proxy.address, timeout=PATIENCE, retries=0) as proxied:
            proxied.decide(study, "u")
            proxied.decide(study, "u")
            assert proxy.accepted == 1
            proxy.disconnect()
            proxied.decide(study, "u")
            assert proxy.accepted == 2
    finally:
        proxy.close()


def test_threads_can_share_a_client(client: Client, study: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: client.decide(study, f"u{i % 8}", key=f"k{i}"), range(80)))
    assert len({each.id for each in found}) == 80
    assert len(list(client.decisions(study))) == 80


@contextmanager
def scripted_server(*responses: tuple[int, dict[str, str], bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """Run a server that sends these responses; yield its address and the bodies of requests."""
    left, bodies = list(responses), []

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


def test_client_waits_as_told_and_repeats_the_same_request(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(transport, "time", SimpleNamespace(sleep=pauses.append, time=time.time))
    responses = [
        (429, {"Retry-After": "7"}, b"{}"),
        (503, {}, b""),
        (502, {}, b"<html>"),
        (504, {}, b""),
        (200, {}, UNIT),
    ]
    with scripted_server(*responses) as (url, bodies), Client(url) as client:
        assert client.register("s", "u").number == 0
    assert len(set(bodies)) == 1
    assert pauses[0] == 7.0
    assert 0.1 <= pauses[1] <= 0.2 < 0.8 * 0.5 <= pauses[3] <= 0.8


def test_client_does_not_wait_for_an_hour() -> None:
    response = (429, {"Retry-After": "3600"}, b'{"detail": "slow down"}')
    with (
        scripted_server(response) as (url, _),
        Client(url) as client,
        pytest.raises(ServiceUnreachable, match=r"in 1 tries; the last: 429: slow down"),
    ):
        client.register("s", "u")


def test_response_that_is_not_json_is_repeated(short_pauses: None) -> None:
    with (
        scripted_server((200, {}, b"<html>"), (500, {}, b"error")) as (url, _),
        Client(url, retries=1) as client,
        pytest.raises(RequestRefused, match="500: Internal Server Error"),
    ):
        client.register("s", "u")


def test_unreachable_service_raises_an_error_with_the_key(nowhere: str, short_pauses: None) -> None:
    with (
        Client(nowhere, retries=2) as client,
        pytest.raises(ServiceUnreachable, match="in 3 tries; the last: ConnectionRefusedError") as failed,
    ):
        client.decide("s", "u", key="mine")
    assert failed.value.key == "mine"


def test_client_waits_for_a_silent_service_until_the_timeout(short_pauses: None) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        Client(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.05, retries=1) as client,
        pytest.raises(ServiceUnreachable, match="TimeoutError"),
    ):
        client.health()


def test_fallback_decision_is_stored_and_sent_later(
    address: str, nowhere: str, client: Client, study: str, tmp_path: Path
) -> None:
    file = tmp_path / "pending.json"
    with Client(address, pending=file) as before:
        before.study(study)
    with Client(nowhere, retries=0, pending=file) as offline:
        with pytest.raises(ServiceUnreachable) as failed:
            offline.decide(study, "u")
        fallback = offline.fallback(study, "u", failed.value.key)
        assert fallback.probabilities == {"a": 0.5, "b": 0.5}
    with Client(address, pending=file) as online:  # after a crash of the host
        assert online.pending == [fallback]
        later = online.decide(study, "u")
        assert online.pending == []
        assert online.observe(fallback, 0.25).status == "repaired"
    external, decided = client.decisions(study)
    assert (external.t, external.source, external.arm, external.reward) == (0, "host", fallback.arm, 0.25)
    assert (decided.t, decided.id) == (1, later.id)
    with Client(address, pending=file) as again:
        assert again.pending == []


def test_fallback_decision_with_the_key_of_a_stored_decision_is_recorded_once(client: Client, study: str) -> None:
    decided = client.decide(study, "u", key="response-lost", available=["a"])
    fallback = client.fallback(study, "u", "response-lost", available=["a"])._replace(arm="b")
    assert client.observe(fallback, 1.0).decision == decided.id
    (only,) = client.decisions(study)
    assert (only.arm, only.played, only.reward) == ("a", "b", 1.0)
    assert client.pending == []


def test_refused_fallback_decision_stays_pending_and_others_are_sent(client: Client, study: str) -> None:
    invalid = client.fallback(study, "u", context=[1.0])
    valid = client.fallback(study, "u")
    assert [each.arm for each in client.ingest_pending()] == [valid.arm]
    (left,) = client.pending
    assert (left.key, str(left.refused)[:4]) == (invalid.key, "422:")
    assert client.decide(study, "u").t == 1


def test_fallback_arm_is_drawn_from_the_available_arms() -> None:
    probabilities = {"a": 0.2, "b": 0.3, "c": 0.5, "d": 0.0}
    assert draw_arm(probabilities, ["b"]) == ("b", {"a": 0.0, "b": 1.0, "c": 0.0, "d": 0.0})
    assert draw_arm(probabilities, ["d"])[0] == "d"
    counts = dict.fromkeys(probabilities, 0)
    for _ in range(4000):
        counts[draw_arm(probabilities, ["a", "b"])[0]] += 1
    assert counts["c"] == counts["d"] == 0
    assert abs(counts["a"] / 4000 - 0.4) < 5 * math.sqrt(0.24 / 4000)
    for available in ([], ["e"]):
        with pytest.raises(larl.InvalidValue, match="available"):
            draw_arm(probabilities, available)


def test_fallback_decision_can_have_other_probabilities(client: Client, study: str) -> None:
    fallback = client.fallback(study, "u", probabilities={"a": 0.0, "b": 1.0})
    assert (fallback.arm, fallback.probabilities) == ("b", {"a": 0.0, "b": 1.0})
    (external,) = client.ingest_pending()
    assert (external.arm, external.probabilities) == ("b", {"a": 0.0, "b": 1.0})
