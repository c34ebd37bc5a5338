"""Messages about invalid requests name the field, the value and what is accepted, in one sentence."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from larl._core.validation import LARGEST
from larl.service.app import make_app
from larl.service.http.auth import Auth
from larl.service.settings import Settings
from larl.service.storage.database import Database
from tests.service.study_client import service_client

STUDY = {"study": "sleep", "arms": ["a", "b"], "policy": {"policy": "UCB"}, "seed": 1}
STUDIES, DECISIONS, INGEST = "/v1/studies", "/v1/studies/sleep/decisions", "/v1/studies/sleep/ingest"
EXTERNAL = {"unit": "u", "key": "i", "arm": "a", "made": "2026-11-16T08:30:00+01:00"}
NAME_TEXT = "1 to 64 characters of a–z, 0–9, - and _, the first a letter or digit"
KEY_TEXT = "1 to 128 characters of A–Z, a–z, 0–9, _ . : and -"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with service_client(tmp_path_factory.mktemp("messages")) as found:
        assert found.post(STUDIES, json=STUDY).status_code == 200
        found.decision = found.post(DECISIONS, json={"unit": "u", "key": "1"}).json()["id"]  # type: ignore[attr-defined]
        yield found


CASES: list[tuple[str, Any, int, str, str]] = [
    (
        STUDIES,
        STUDY | {"study": "Sleep Well"},
        422,
        "study",
        f'study = "Sleep Well" is not accepted; accepted: {NAME_TEXT}',
    ),
    (DECISIONS, {"unit": "u u", "key": "2"}, 422, "unit", f'unit = "u u" is not accepted; accepted: {KEY_TEXT}'),
    (DECISIONS, {"unit": 5, "key": "2"}, 422, "unit", "unit = 5 is not accepted; accepted: text"),
    (DECISIONS, {"key": "2"}, 422, "unit", "unit is missing: it is required"),
    (
        DECISIONS,
        {"unit": "u", "key": "2", "arm": "a"},
        422,
        "arm",
        "arm is not a field of this request; accepted: only the fields unit, key, available, reason, context",
    ),
    (
        DECISIONS,
        {"unit": "u", "key": "2", "available": ["c"]},
        422,
        "available",
        'available = "c" is not accepted; accepted: some of a, b',
    ),
    (
        DECISIONS,
        {"unit": "u", "key": "2", "available": [1]},
        422,
        "available[0]",
        "available[0] = 1 is not accepted; accepted: text",
    ),
    (
        DECISIONS,
        {"unit": "u", "key": "2", "available": "a"},
        422,
        "available",
        'available = "a" is not accepted; accepted: a list',
    ),
    (
        DECISIONS,
        {"unit": "u", "key": "2", "context": [1.0]},
        422,
        "context",
        "context = [1.0] is not accepted; accepted: no context: the policy of this study uses none",
    ),
    (
        DECISIONS,
        {"unit": "u", "key": "2", "reason": "\x01"},
        422,
        "reason",
        r'reason = "\u0001" is not accepted; accepted: text without control characters other than tabs and line breaks',
    ),
    (
        DECISIONS,
        {"unit": "v", "key": "1"},
        422,
        "key",
        'key = "1" is not accepted; accepted: a new key: this one was used for a request with another payload',
    ),
    (DECISIONS, [1], 422, "body", "body = [1] is not accepted; accepted: a JSON object"),
    (
        STUDIES,
        STUDY | {"arms": ["a"]},
        422,
        "arms",
        'arms = ["a"] is not accepted; accepted: a list of 2 or more items',
    ),
    (
        STUDIES,
        STUDY | {"min_probability": 2},
        422,
        "min_probability",
        "min_probability = 2 is not accepted; accepted: a number ≤ 1",
    ),
    (STUDIES, STUDY | {"seed": -1}, 422, "seed", "seed = -1 is not accepted; accepted: a number ≥ 0"),
    (STUDIES, STUDY | {"seed": 1.5}, 422, "seed", "seed = 1.5 is not accepted; accepted: a whole number"),
    (
        STUDIES,
        STUDY | {"default_reward": 1e120},
        422,
        "default_reward",
        "default_reward = 1e+120 is not accepted; accepted: a number ≤ 1e+100",
    ),
    (
        STUDIES,
        STUDY | {"pooling": "all"},
        422,
        "pooling",
        "pooling = \"all\" is not accepted; accepted: 'none', 'full' or 'partial'",
    ),
    (STUDIES, STUDY | {"policy": "UCB"}, 422, "policy", 'policy = "UCB" is not accepted; accepted: a JSON object'),
    (
        STUDIES,
        STUDY | {"study": "x", "policy": {"policy": "KalmanOracle"}},
        422,
        "policy",
        'policy = "KalmanOracle" is not accepted; accepted: a policy that learns from rewards alone; this one must '
        "know the world, as in a simulation",
    ),
    (
        STUDIES,
        STUDY | {"study": "x", "fallback": {"a": 1.0}},
        422,
        "fallback",
        'fallback = {"a": 1.0} is not accepted; accepted: a probability for every arm, with sum 1',
    ),
    (INGEST, EXTERNAL | {"arm": "z"}, 422, "arm", 'arm = "z" is not accepted; accepted: one of a, b'),
    (INGEST, EXTERNAL | {"arm": ""}, 422, "arm", 'arm = "" is not accepted; accepted: text of 1 or more characters'),
    (
        INGEST,
        EXTERNAL | {"made": "yesterday"},
        422,
        "made",
        'made = "yesterday" is not accepted; accepted: a time with its offset from UTC, such as '
        "2026-11-16T08:30:00+01:00",
    ),
    (
        INGEST,
        EXTERNAL | {"probabilities": {"a": 0.5}},
        422,
        "probabilities",
        'probabilities = {"a": 0.5} is not accepted; accepted: one for every arm, with sum 1; or null, if they '
        "are not known",
    ),
    ("/v1/studies/none/decisions", {"unit": "u", "key": "2"}, 404, "study", "there is no such study: none"),
    ("/v1/studies/sleep/issues/99/resolved", {"note": ""}, 404, "issue", "there is no such issue: 99"),
    (
        "/v1/decisions/xx/reward",
        {"key": "2", "value": 1.0},
        422,
        "decision",
        'decision = "xx" is not accepted; accepted: the id of a decision, as the service returned it',
    ),
]


@pytest.mark.parametrize(("path", "body", "status", "field", "detail"), CASES, ids=[each[4] for each in CASES])
def test_invalid_value(client: TestClient, path: str, body: Any, status: int, field: str, detail: str) -> None:
    response = client.post(path, json=body)
    problem = response.json()
    assert (response.status_code, problem["field"], problem["detail"]) == (status, field, detail)


def test_body_that_is_not_json(client: TestClient) -> None:
    body = b'{"unit": "u", "key": "2"}'
    for headers, detail in [
        ({}, "the header content-type is missing; accepted: application/json"),
        ({"content-type": "text/plain"}, 'content-type = "text/plain" is not accepted; accepted: application/json'),
    ]:
        response = client.post(DECISIONS, content=body, headers=headers)
        assert (response.status_code, response.json()["detail"]) == (415, detail)
        assert response.json()["field"] == "content-type"
    response = client.post(DECISIONS)
    assert (response.status_code, response.json()["detail"]) == (422, "the body is missing; accepted: a JSON object")
    response = client.post(DECISIONS, content=body[:-1], headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["detail"] == "the body is not JSON: EOF while parsing an object at line 1 column 24"


def test_invalid_queries_and_addresses(client: TestClient) -> None:
    for path, status, detail in [
        ("/v1/studies/sleep/units?limit=0", 422, 'limit = "0" is not accepted; accepted: a number ≥ 1'),
        ("/v1/studies/sleep/units?limit=x", 422, 'limit = "x" is not accepted; accepted: a whole number'),
        (
            "/v1/studies/sleep/units?x=1",
            422,
            "x is not a field of this request; accepted: only the fields after, limit, unit",
        ),
        ("/v1/studies/sleep/export?format=xls", 422, "format = \"xls\" is not accepted; accepted: 'csv' or 'vw'"),
        ("/v1/nothing", 404, "there is no such address: /v1/nothing; /openapi.json describes the interface"),
    ]:
        response = client.get(path)
        assert (response.status_code, response.json()["detail"]) == (status, detail)
    response = client.delete(STUDIES)
    detail = "method DELETE is not accepted at /v1/studies; /openapi.json describes the interface"
    assert (response.status_code, response.json()["detail"]) == (405, detail)


def test_study_that_exists_with_other_settings(client: TestClient) -> None:
    response = client.post(STUDIES, json=STUDY | {"min_probability": 0.2, "arms": ["a", "b", "c"]})
    assert response.status_code == 409
    assert response.json()["field"] == "study"
    assert response.json()["detail"] == (
        'there is a study sleep with other settings: arms = ["a", "b"], not ["a", "b", "c"]; '
        "min_probability = 0.0, not 0.2; accepted: another name, or the settings that it was created with"
    )


def test_study_that_exists_with_default_values_written_out(client: TestClient) -> None:
    """A spec with default values and one without them are the same policy."""
    first = client.post(STUDIES, json=STUDY)
    repeated = client.post(STUDIES, json=STUDY | {"policy": {"policy": "UCB", "alpha": 1.0}, "min_probability": 0.0})
    assert (repeated.status_code, repeated.content) == (200, first.content)
    other = client.post(STUDIES, json=STUDY | {"policy": {"policy": "UCB", "alpha": 2.0}})
    assert 'policy = {"policy": "UCB"}, not {"policy": "UCB", "alpha": 2.0}' in other.json()["detail"]


def test_closed_study(client: TestClient) -> None:
    client.post(STUDIES, json=STUDY | {"study": "done"})
    closed = client.post("/v1/studies/done/close", json={"reason": "over"}).json()["closed"]
    response = client.post("/v1/studies/done/close", json={"reason": "again"})
    detail = f'the study was closed at {closed} with another reason: "over"'
    assert (response.status_code, response.json()["detail"]) == (409, detail)
    response = client.post("/v1/studies/done/decisions", json={"unit": "u", "key": "1"})
    assert (response.status_code, response.json()["detail"]) == (409, f"the study was closed at {closed}")


def test_invalid_tokens(client: TestClient) -> None:
    response = client.get(STUDIES, headers={"authorization": "Bearer nobody"})
    detail = "this token is unknown or revoked; accepted: the header Authorization: Bearer larl_…"
    assert (response.status_code, response.json()["detail"]) == (401, detail)
    response = client.post("/v1/session", json={"token": "s" * 300}, headers={"x-larl-page": "1"})
    assert response.json()["detail"] == "token is not accepted; accepted: text of 200 or fewer characters"
    assert "sss" not in response.text


def test_missing_permissions(tmp_path: Any) -> None:
    database = Database(f"sqlite:///{tmp_path / 'study.db'}", write=True, create=True)
    host, other = Auth(database).create("*", "host"), Auth(database).create("other", "admin")
    with TestClient(make_app(database, Settings())) as client:
        response = client.get(STUDIES)
        assert response.json()["detail"] == "a token is required; accepted: the header Authorization: Bearer larl_…"
        response = client.post(STUDIES, json=STUDY, headers={"authorization": f"Bearer {host}"})
        assert (response.status_code, response.json()["detail"]) == (
            403,
            "this token cannot create or change study sleep: it has role host for all studies; "
            "accepted: a token with role admin for study sleep",
        )
        response = client.post(DECISIONS, json={"unit": "u", "key": "1"}, headers={"authorization": f"Bearer {other}"})
        assert response.json()["detail"] == (
            "this token cannot write to study sleep: it has role admin for study other; "
            "accepted: a token with role host or admin for study sleep"
        )
    database.close()


def test_long_value_is_cut(client: TestClient) -> None:
    problem = client.post(DECISIONS, json={"unit": "u" * 5000, "key": "2"}).json()
    assert len(json.dumps(problem)) < 1000
    assert problem["detail"].endswith(f"… is not accepted; accepted: {KEY_TEXT}")


def test_reward_that_is_too_large_is_refused_and_not_stored(client: TestClient) -> None:
    """A stored one would make the policy fail whenever the agent is rebuilt."""
    path = f"/v1/decisions/{client.decision}/reward"  # type: ignore[attr-defined]
    response = client.post(path, json={"key": "large", "value": 1e120})
    assert (response.status_code, response.json()["field"]) == (422, "value")
    assert client.post(path, json={"key": "limit", "value": LARGEST}).json()["status"] == "learnt"
    assert client.get("/v1/studies/sleep/issues").json()["items"] == []
