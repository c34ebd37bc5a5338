"""Requests that are too large, too many or invalid, and requests while a policy compiles."""

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from larl.service.core.study_config import StudyConfig
from larl.service.http import rate_limit
from larl.service.settings import Settings
from larl.service.storage.database import Database
from tests.service.token_service import STUDY, TokenService
from tests.waiting import PATIENCE


@pytest.mark.timing
def test_slow_compilation_does_not_delay_other_studies(service: TokenService, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: list[int] = []
    service.request(service.admin, "POST", "/v1/studies", json=STUDY)
    new_agent, compiling, proceed = StudyConfig.new_agent, threading.Event(), threading.Event()

    def slow_new_agent(config: StudyConfig, number: int) -> Any:
        if config.study == "slow" and not proceed.is_set():
            compiling.set()
            assert proceed.wait(PATIENCE)
        return new_agent(config, number)

    monkeypatch.setattr(StudyConfig, "new_agent", slow_new_agent)

    def create() -> None:
        response = service.request(service.admin, "POST", "/v1/studies", json=STUDY | {"study": "slow"})
        statuses.append(response.status_code)

    thread = threading.Thread(target=create)
    thread.start()
    assert compiling.wait(PATIENCE)
    path = "/v1/studies/sleep/decisions"
    decision = service.request(service.admin, "POST", path, json={"unit": "u", "key": "1"})
    assert (decision.status_code, statuses) == (200, [])
    proceed.set()
    thread.join()
    assert statuses == [200]


def test_size_rate_and_method_are_limited_as_documented(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "time", SimpleNamespace(monotonic=lambda: 1000.0))  # no time passes
    database = Database(sqlite, write=True, create=True)
    service = TokenService(database, Settings(rate=2.0))
    with service.client:
        large = service.request(service.admin, "POST", "/v1/studies", content=b" " * 70_000)
        assert (large.status_code, large.headers["content-type"]) == (413, "application/problem+json")
        responses = [service.request(service.admin, "GET", "/v1/studies") for _ in range(8)]
        refused = [response for response in responses if response.status_code == 429]
        assert len(refused) == 8 - 4  # two per second, and at most those of two seconds at once
        assert refused[0].headers["retry-after"] == "1"
        assert refused[0].json()["accepted"] == "2 requests a second"
        health = service.request(None, "GET", "/v1/health")
        assert health.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in health.headers["content-security-policy"]
        wrong = service.request(None, "DELETE", "/v1/health")
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
def test_invalid_body_is_refused(service: TokenService, body: bytes) -> None:
    path = "/v1/decisions/sleep.0-0-0123456789abcdef/reward"
    headers = {"Authorization": f"Bearer {service.admin}", "Content-Type": "application/json"}
    response = service.client.post(path, content=body, headers=headers)
    assert response.status_code in (400, 422)
    assert json.loads(response.content)["status"] == response.status_code


@pytest.mark.parametrize("number", [b"1e999", b"NaN", b"-Infinity"])
def test_spec_with_a_number_that_is_not_finite_is_refused(service: TokenService, number: bytes) -> None:
    headers = {"Authorization": f"Bearer {service.admin}", "Content-Type": "application/json"}
    service.client.post("/v1/studies", json=STUDY, headers=headers)
    cases = {
        "/v1/studies": b'"study": "sleep", "arms": ["a", "b"]',
        "/v1/studies/sleep/policy": b'"key": "k", "replaces": 1, "reason": ""',
    }
    for path, fields in cases.items():
        body = b'{%s, "policy": {"policy": "LARL", "alpha": %s}}' % (fields, number)
        response = service.client.post(path, content=body, headers=headers)
        assert (response.status_code, response.json()["field"]) == (422, "policy")
        assert "finite" in response.json()["detail"]


@pytest.mark.parametrize("role", ["admin", "analyst", None])
def test_content_type_with_a_charset_gets_the_same_response(service: TokenService, role: str | None) -> None:
    path = "/v1/studies/sleep/decisions"
    service.request(service.admin, "POST", "/v1/studies", json=STUDY)
    decision = service.request(service.admin, "POST", path, json={"unit": "u", "key": "0"})
    decisions, reward = path, f"/v1/decisions/{decision.json()['id']}/reward"
    cases = [
        (decisions, b'{"unit": "u", "key": "0"}'),
        (decisions, b'{"unit": "u", "key": "1", "context": null}'),
        (decisions, b'{"unit": "v", "key": "0"}'),
        (decisions, b'{"unit": "v", "key": "2", "available": ["c"]}'),
        (decisions, b'{"unit": "v", "key": "3", "context": [1]}'),
        (decisions, b'{"unit": "v", "key": 3}'),
        (decisions, b'{"unit": "v", "key": "3", "more": 3}'),
        (decisions, b'{"unit": "v"'),
        (decisions, b""),
        (reward, b'{"key": "1", "value": 1}'),
        (reward, b'{"key": "2", "value": 1e999}'),
        (reward, b'{"key": "2", "value": null, "arm": "c"}'),
        (reward, b'{"key": "2", "value": NaN}'),
        ("/v1/studies/none/decisions", b'{"unit": "u", "key": "0"}'),
        ("/v1/studies/No/decisions", b'{"unit": "u"}'),
        ("/v1/decisions/sleep.0-9-0123456789abcdef/reward", b'{"key": "1", "value": 1.0}'),
    ]
    shown = {"Authorization": f"Bearer {service.tokens[role, '*']}"} if role else {}
    for path, body in cases:
        kinds = ("application/json", "application/json; charset=utf-8")
        one, other = (service.client.post(path, content=body, headers=shown | {"Content-Type": kind}) for kind in kinds)
        assert (one.status_code, one.content) == (other.status_code, other.content), body
        headers = [dict(each.headers) for each in (one, other)]
        for each in headers:
            del each["x-request-id"]
        assert headers[0] == headers[1]
        assert one.status_code in ((200, 400, 404, 422) if role == "admin" else (400, 401, 403, 422))


@pytest.mark.parametrize(
    ("path", "status"), [("/v1/studies/a%0Ab/decisions", 422), ("/v1/studies/a%0Ab/units", 422), ("/a%0Ab", 404)]
)
def test_path_with_a_newline_is_refused(service: TokenService, path: str, status: int) -> None:
    response = service.request(service.admin, "GET", path)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"


def test_unknown_study_has_no_lists(service: TokenService) -> None:
    for path in ("", "/units", "/decisions", "/rewards", "/issues", "/export", "/overview", "/roster"):
        assert service.request(service.admin, "GET", f"/v1/studies/nothing{path}").status_code == 404, path


@pytest.mark.parametrize(
    ("settings", "is_plain"),
    [
        ({}, True),
        ({"min_probability": 0.2, "update_every": 5}, True),
        ({"min_probability": {"nothing": 0.2}}, False),
        ({"allocation": "best"}, False),
        ({"warm_up": 3}, False),
    ],
    ids=str,
)
def test_configuration_knows_the_kernel_of_its_agents(settings: dict[str, Any], is_plain: bool) -> None:
    arms = ("nothing", "prompt")
    config = StudyConfig(study="sleep", arms=arms, policy={"policy": "UCB"}, seed=1, **settings)
    assert config.is_plain is is_plain
    assert config.new_agent(0)._deployment.is_plain is is_plain
