"""Who may do what, what is refused at the door, and what does not appear in a log."""

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from larl.service.app import make_app
from larl.service.core import alerts
from larl.service.core.study_config import StudyConfig
from larl.service.http import auth, rate_limit
from larl.service.http.auth import Auth
from larl.service.settings import Settings
from larl.service.storage.database import Database
from tests.service.host import UCB
from tests.service.processes import LARL, Caller, Server
from tests.waiting import PATIENCE

STUDY = {"study": "sleep", "arms": ["a", "b"], "policy": UCB, "seed": 1}
ROLES = ("host", "analyst", "admin")
ROUTES: dict[tuple[str, str], tuple[str, Any]] = {  # what must be allowed, and a body
    ("POST", "/v1/studies"): ("manage", STUDY),
    ("POST", "/v1/studies/{study}/policy"): ("manage", {"key": "p", "policy": UCB, "replaces": 1, "reason": ""}),
    ("POST", "/v1/studies/{study}/close"): ("manage", {}),
    ("POST", "/v1/studies/{study}/units"): ("write", {"unit": "u"}),
    ("POST", "/v1/studies/{study}/decisions"): ("write", {"unit": "u", "key": "1"}),
    ("POST", "/v1/studies/{study}/ingest"): (
        "write",
        {"unit": "u", "key": "2", "arm": "a", "made": "2026-01-01T00:00:00Z"},
    ),
    ("POST", "/v1/decisions/{decision}/reward"): ("write", {"key": "1", "value": 1.0}),
    ("POST", "/v1/decisions/{decision}/delivered"): ("write", {"key": "1"}),
    ("POST", "/v1/studies/{study}/issues/{issue}/resolved"): ("resolve", {"note": ""}),
    ("GET", "/v1/studies/{study}"): ("see", None),
    ("GET", "/v1/studies/{study}/export"): ("read", None),
    ("GET", "/v1/studies/{study}/overview"): ("read", None),
    ("GET", "/v1/studies/{study}/roster"): ("read", None),
    ("GET", "/v1/studies/{study}/units/{unit}/overview"): ("read", None),
    ("GET", "/v1/studies/{study}/units"): ("read", None),
    ("GET", "/v1/studies/{study}/units/{unit}"): ("read", None),
    ("GET", "/v1/studies/{study}/decisions"): ("read", None),
    ("GET", "/v1/decisions/{decision}"): ("read", None),
    ("GET", "/v1/studies/{study}/rewards"): ("read", None),
    ("GET", "/v1/studies/{study}/issues"): ("read", None),
}
ALLOWED = {
    "host": {"see", "write"},
    "analyst": {"see", "read", "resolve"},
    "admin": {"see", "write", "read", "resolve", "manage"},
}


class Place:
    """A service that asks for tokens, with one for each role and study."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.access = Auth(database)
        self.tokens = {(role, of): self.access.create(of, role) for role in ROLES for of in ("sleep", "other", "*")}
        self.app = make_app(database, settings)
        self.client = TestClient(self.app, raise_server_exceptions=False)

    def ask(self, token: str | None, method: str, path: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.client.request(method, path, headers=headers, **more)


@pytest.fixture
def place(sqlite: str) -> Iterator[Place]:
    database = Database(sqlite, write=True, create=True)
    found = Place(database, Settings(rate=1e6, timeout=60.0))
    with found.client:
        yield found
    database.close()


def test_the_routes_here_are_all_that_there_are(place: Place) -> None:
    paths = place.client.get("/openapi.json").json()["paths"]
    described = {(method.upper(), path) for path, of in paths.items() for method in of}
    free = {("GET", "/v1/health"), ("GET", "/v1/studies")}
    free |= {(method, "/v1/session") for method in ("GET", "POST", "DELETE")}  # which make sure of it themselves
    assert {route for route in described if route[1].startswith("/v1/")} == set(ROUTES) | free


def test_every_route_asks_who_it_is_and_whether_they_may(place: Place) -> None:
    place.ask(place.tokens["admin", "*"], "POST", "/v1/studies", json=STUDY)
    path = "/v1/studies/sleep/decisions"
    decision = place.ask(place.tokens["host", "sleep"], "POST", path, json={"unit": "u", "key": "1"}).json()["id"]
    for (method, route), (what, body) in ROUTES.items():
        if route.endswith("/close"):
            continue  # last
        address = route.format(study="sleep", unit="u", issue=1, decision=decision)
        for wrong in (None, "larl_" + "0" * 16 + "_" + "x" * 43, place.tokens["admin", "*"][:-43] + "x" * 43):
            assert place.ask(wrong, method, address, json=body).status_code == 401
        for (role, of), token in place.tokens.items():
            may = what in ALLOWED[role] and of in ("sleep", "*")
            status = place.ask(token, method, address, json=body).status_code
            assert (status not in (401, 403)) == may, (role, of, method, route, status)


def test_a_list_of_studies_has_those_that_the_token_may_see(place: Place) -> None:
    place.ask(place.tokens["admin", "*"], "POST", "/v1/studies", json=STUDY)
    seen = {key: place.ask(token, "GET", "/v1/studies").json() for key, token in place.tokens.items()}
    assert {key: len(found) for key, found in seen.items()} == {(role, of): int(of != "other") for role, of in seen}
    told = {role: seen[role, "*"][0]["seed"] for role in ROLES}
    assert told == {"host": None, "analyst": 1, "admin": 1}  # who knows the seed knows what will be decided


@pytest.mark.timing
def test_a_policy_that_takes_long_to_prepare_holds_up_no_other_study(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, order = place.tokens["admin", "*"], []
    place.ask(token, "POST", "/v1/studies", json=STUDY)
    new_agent, preparing, go_on = StudyConfig.new_agent, threading.Event(), threading.Event()

    def compiled_at_last(config: StudyConfig, number: int) -> Any:
        if config.study == "slow" and not go_on.is_set():
            preparing.set()
            assert go_on.wait(PATIENCE)
        return new_agent(config, number)

    monkeypatch.setattr(StudyConfig, "new_agent", compiled_at_last)

    def make() -> None:
        order.append(place.ask(token, "POST", "/v1/studies", json=STUDY | {"study": "slow"}).status_code)

    slow = threading.Thread(target=make)
    slow.start()
    assert preparing.wait(PATIENCE)
    said = place.ask(token, "POST", "/v1/studies/sleep/decisions", json={"unit": "u", "key": "1"})
    assert (said.status_code, order) == (200, [])
    go_on.set()
    slow.join()
    assert order == [200]


def test_a_revoked_token_ends_within_two_seconds(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    times = SimpleNamespace(monotonic=lambda: seconds)
    monkeypatch.setattr(auth, "time", times)
    seconds, token = 1000.0, place.tokens["analyst", "*"]
    assert place.ask(token, "GET", "/v1/studies").status_code == 200
    place.access.revoke(token.split("_")[1])
    assert place.ask(token, "GET", "/v1/studies").status_code == 200  # it is remembered
    seconds += 2.01
    assert place.ask(token, "GET", "/v1/studies").status_code == 401


def test_secrets_are_compared_in_constant_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    compare = auth.hmac.compare_digest
    monkeypatch.setattr(auth.hmac, "compare_digest", lambda *both: compared.append(both) or compare(*both))
    for token in (place.tokens["host", "*"][:-43] + "x" * 43, "larl_" + "0" * 16 + "_" + "x" * 43):
        assert place.ask(token, "GET", "/v1/studies").status_code == 401
    assert len(compared) == 2  # also where there is no such token


def test_what_is_too_large_too_much_or_not_json_is_refused_as_documented(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limit, "time", SimpleNamespace(monotonic=lambda: 1000.0))  # all in one moment
    database = Database(sqlite, write=True, create=True)
    place = Place(database, Settings(rate=2.0))
    token = place.tokens["admin", "*"]
    with place.client:
        large = place.ask(token, "POST", "/v1/studies", content=b" " * 70_000)
        assert (large.status_code, large.headers["content-type"]) == (413, "application/problem+json")
        answers = [place.ask(token, "GET", "/v1/studies") for _ in range(8)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert len(refused) == 8 - 4  # two a second, and at most those of two seconds at once
        assert refused[0].headers["retry-after"] == "1"
        assert refused[0].json()["accepted"] == "2 requests a second"
        health = place.ask(None, "GET", "/v1/health")
        assert health.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in health.headers["content-security-policy"]
        wrong = place.ask(None, "DELETE", "/v1/health")
        assert (wrong.status_code, wrong.headers["content-type"]) == (405, "application/problem+json")
        assert wrong.headers["allow"] == "GET"
    database.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'"\xff"',
        b"[" * 60_000,
        b'{"value": ' + b"9" * 5_000 + b', "key": "k"}',
        b'{"value": NaN, "key": "k"}',
        b'{"value": 1e999, "key": "k"}',
        b'{"value": 1, "key": "\\ud800"}',
        b'{"value": 1, "key": null}',
        b'{"value": true, "key": "k"}',
        b'{"value": "1", "key": "k"}',
        b'{"value": 1, "key": "k\\u0000"}',
        b'{"value": 1, "key": "k\\n"}',
    ],
)
def test_strange_json_is_refused_and_never_an_error_of_ours(place: Place, body: bytes) -> None:
    path = "/v1/decisions/sleep.0-0-0123456789abcdef/reward"
    headers = {"Authorization": f"Bearer {place.tokens['admin', '*']}", "Content-Type": "application/json"}
    answer = place.client.post(path, content=body, headers=headers)
    assert answer.status_code in (400, 422)
    assert json.loads(answer.content)["status"] == answer.status_code


@pytest.mark.parametrize("number", [b"1e999", b"NaN", b"-Infinity"])
def test_a_spec_whose_numbers_are_none_is_refused(place: Place, number: bytes) -> None:
    headers = {"Authorization": f"Bearer {place.tokens['admin', '*']}", "Content-Type": "application/json"}
    place.client.post("/v1/studies", json=STUDY, headers=headers)
    cases = {
        "/v1/studies": b'"study": "sleep", "arms": ["a", "b"]',
        "/v1/studies/sleep/policy": b'"key": "k", "replaces": 1, "reason": ""',
    }
    for path, words in cases.items():
        body = b'{%s, "policy": {"policy": "LARL", "alpha": %s}}' % (words, number)
        answer = place.client.post(path, content=body, headers=headers)
        assert (answer.status_code, answer.json()["field"]) == (422, "policy")
        assert "finite" in answer.json()["detail"]


@pytest.mark.parametrize("token", ["admin", "analyst", None])
def test_the_direct_way_and_the_usual_one_say_the_same(place: Place, token: str | None) -> None:
    """With a character set, which JSON has no need of, a request goes the usual way."""
    place.ask(place.tokens["admin", "*"], "POST", "/v1/studies", json=STUDY)
    made = place.ask(place.tokens["admin", "*"], "POST", "/v1/studies/sleep/decisions", json={"unit": "u", "key": "0"})
    decided, rewarded = "/v1/studies/sleep/decisions", f"/v1/decisions/{made.json()['id']}/reward"
    cases = [
        (decided, b'{"unit": "u", "key": "0"}'),
        (decided, b'{"unit": "u", "key": "1", "context": null}'),
        (decided, b'{"unit": "v", "key": "0"}'),
        (decided, b'{"unit": "v", "key": "2", "available": ["c"]}'),
        (decided, b'{"unit": "v", "key": "3", "context": [1]}'),
        (decided, b'{"unit": "v", "key": 3}'),
        (decided, b'{"unit": "v", "key": "3", "more": 3}'),
        (decided, b'{"unit": "v"'),
        (decided, b""),
        (rewarded, b'{"key": "1", "value": 1}'),
        (rewarded, b'{"key": "2", "value": 1e999}'),
        (rewarded, b'{"key": "2", "value": null, "arm": "c"}'),
        (rewarded, b'{"key": "2", "value": NaN}'),
        ("/v1/studies/none/decisions", b'{"unit": "u", "key": "0"}'),
        ("/v1/studies/No/decisions", b'{"unit": "u"}'),
        ("/v1/decisions/sleep.0-9-0123456789abcdef/reward", b'{"key": "1", "value": 1.0}'),
    ]
    shown = {"Authorization": f"Bearer {place.tokens[token, '*']}"} if token else {}
    for path, body in cases:
        ways = ("application/json", "application/json; charset=utf-8")
        one, other = (place.client.post(path, content=body, headers=shown | {"Content-Type": kind}) for kind in ways)
        assert (one.status_code, one.content) == (other.status_code, other.content), body
        headers = [dict(each.headers) for each in (one, other)]
        for each in headers:
            del each["x-request-id"]
        assert headers[0] == headers[1]
        assert one.status_code in ((200, 400, 404, 422) if token == "admin" else (400, 401, 403, 422))


def test_no_token_unit_or_body_is_in_the_log(sqlite: str, tmp_path: Path) -> None:
    database = Database(sqlite, create=True)
    token = Auth(database).create("*", "admin")
    database.close()
    with Server(sqlite, tmp_path / "log", "--timeout", "60") as server, Caller(server.port, token, 120.0) as caller:
        assert caller.post("/v1/studies", **STUDY).status == 200
        said = caller.post("/v1/studies/sleep/decisions", unit="secret-unit", key="secret-key").json()
        caller.post(f"/v1/decisions/{said['id']}/reward", key="secret-key", value=0.12345)
        caller.get("/v1/studies/sleep/units/secret-unit")
        caller.post("/v1/studies/sleep/decisions", unit="secret-unit", key="secret-2", available=["secret-arm"])
        caller.get("/v1/secret-path?unit=secret-unit")
        server.end(2)
    log = server.log.read_text()
    assert "/v1/studies/{study}/decisions 200" in log
    assert not [word for word in ("secret", "0.12345", token, token.split("_", 2)[2], said["id"]) if word in log]


@pytest.mark.parametrize("options", [["--host", "0.0.0.0"], ["--host", "0.0.0.0", "--no-auth"]])
def test_a_service_that_anybody_could_reach_needs_a_token(sqlite: str, options: list[str]) -> None:
    command = [*LARL, "serve", "--storage", sqlite, "--port", "0", *options]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
    assert "host = '0.0.0.0' is not usable" in refused.stderr


@pytest.mark.timing
def test_people_are_told_by_a_request_and_by_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "TIMEOUT", PATIENCE)
    got: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    issue = {"severity": "red", "study": "sleep", "code": "policy"}
    with HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        sender = alerts.Alerts(f"http://127.0.0.1:{receiver.server_port}", f"cat > {tmp_path}/issue")
        sender.send(issue)
        sender.close()
        receiver.shutdown()
    assert [json.loads(body) for body in got] == [issue]
    assert json.loads((tmp_path / "issue").read_text()) == issue


def test_a_study_that_there_is_not_has_no_lists(place: Place) -> None:
    for what in ("", "/units", "/decisions", "/rewards", "/issues", "/export", "/overview", "/roster"):
        assert place.ask(place.tokens["admin", "*"], "GET", f"/v1/studies/nothing{what}").status_code == 404, what
