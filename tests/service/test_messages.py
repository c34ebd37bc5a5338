"""What a caller reads who made a mistake: the field, the value, what is accepted; in one sentence of plain English."""

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
from tests.service.studying import client as a_client

STUDY = {"study": "sleep", "arms": ["a", "b"], "policy": {"policy": "UCB"}, "seed": 1}
STUDIES, DECISIONS, INGEST = "/v1/studies", "/v1/studies/sleep/decisions", "/v1/studies/sleep/ingest"
MADE = {"unit": "u", "key": "i", "arm": "a", "made": "2026-11-16T08:30:00+01:00"}
NAME = "1 to 64 characters of a–z, 0–9, - and _, the first a letter or digit"
WORD = "1 to 128 characters of A–Z, a–z, 0–9, _ . : and -"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with a_client(tmp_path_factory.mktemp("messages")) as found:
        assert found.post(STUDIES, json=STUDY).status_code == 200
        found.decision = found.post(DECISIONS, json={"unit": "u", "key": "1"}).json()["id"]  # type: ignore[attr-defined]
        yield found


BODIES: list[tuple[str, Any, int, str, str]] = [
    (STUDIES, STUDY | {"study": "Sleep Well"}, 422, "study", f'study = "Sleep Well" is not accepted; accepted: {NAME}'),
    (DECISIONS, {"unit": "u u", "key": "2"}, 422, "unit", f'unit = "u u" is not accepted; accepted: {WORD}'),
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
    (INGEST, MADE | {"arm": "z"}, 422, "arm", 'arm = "z" is not accepted; accepted: one of a, b'),
    (INGEST, MADE | {"arm": ""}, 422, "arm", 'arm = "" is not accepted; accepted: text of 1 or more characters'),
    (
        INGEST,
        MADE | {"made": "yesterday"},
        422,
        "made",
        'made = "yesterday" is not accepted; accepted: a time with its offset from UTC, such as '
        "2026-11-16T08:30:00+01:00",
    ),
    (
        INGEST,
        MADE | {"probabilities": {"a": 0.5}},
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


@pytest.mark.parametrize(("path", "body", "status", "field", "detail"), BODIES, ids=[each[4] for each in BODIES])
def test_a_body(client: TestClient, path: str, body: Any, status: int, field: str, detail: str) -> None:
    answer = client.post(path, json=body)
    said = answer.json()
    assert (answer.status_code, said["field"], said["detail"]) == (status, field, detail)


def test_a_body_that_is_not_json(client: TestClient) -> None:
    sent = b'{"unit": "u", "key": "2"}'
    for headers, detail in [
        ({}, "the header content-type is missing; accepted: application/json"),
        ({"content-type": "text/plain"}, 'content-type = "text/plain" is not accepted; accepted: application/json'),
    ]:
        answer = client.post(DECISIONS, content=sent, headers=headers)
        assert (answer.status_code, answer.json()["detail"]) == (415, detail)
        assert answer.json()["field"] == "content-type"
    answer = client.post(DECISIONS)
    assert (answer.status_code, answer.json()["detail"]) == (422, "the body is missing; accepted: a JSON object")
    answer = client.post(DECISIONS, content=sent[:-1], headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["detail"] == "the body is not JSON: EOF while parsing an object at line 1 column 24"


def test_queries_and_addresses(client: TestClient) -> None:
    a_field = "a field of this request; accepted: only the fields"
    for path, status, detail in [
        ("/v1/studies/sleep/units?limit=0", 422, 'limit = "0" is not accepted; accepted: a number ≥ 1'),
        ("/v1/studies/sleep/units?limit=x", 422, 'limit = "x" is not accepted; accepted: a whole number'),
        (
            "/v1/studies/sleep/units?x=1",
            422,
            f"x is not {a_field} after, limit",
        ),
        ("/v1/studies/sleep/export?format=xls", 422, "format = \"xls\" is not accepted; accepted: 'csv' or 'vw'"),
        ("/v1/nothing", 404, "there is no such address: /v1/nothing; /openapi.json describes the interface"),
    ]:
        answer = client.get(path)
        assert (answer.status_code, answer.json()["detail"]) == (status, detail)
    answer = client.delete(STUDIES)
    detail = "method DELETE is not accepted at /v1/studies; /openapi.json describes the interface"
    assert (answer.status_code, answer.json()["detail"]) == (405, detail)


def test_a_study_that_exists_with_other_terms(client: TestClient) -> None:
    answer = client.post(STUDIES, json=STUDY | {"min_probability": 0.2, "arms": ["a", "b", "c"]})
    assert answer.status_code == 409
    assert answer.json()["field"] == "study"
    assert answer.json()["detail"] == (
        'there is a study sleep with other settings: arms = ["a", "b"], not ["a", "b", "c"]; '
        "min_probability = 0.0, not 0.2; accepted: another name, or the settings that it was created with"
    )


def test_a_study_that_exists_with_the_same_terms_written_differently(client: TestClient) -> None:
    """A spec may leave out what has a default: it is the same policy."""
    first = client.post(STUDIES, json=STUDY)
    again = client.post(STUDIES, json=STUDY | {"policy": {"policy": "UCB", "alpha": 1.0}, "min_probability": 0.0})
    assert (again.status_code, again.content) == (200, first.content)
    other = client.post(STUDIES, json=STUDY | {"policy": {"policy": "UCB", "alpha": 2.0}})
    assert 'policy = {"policy": "UCB"}, not {"policy": "UCB", "alpha": 2.0}' in other.json()["detail"]


def test_a_study_that_is_closed_and_an_issue_that_is_resolved(client: TestClient) -> None:
    client.post(STUDIES, json=STUDY | {"study": "done"})
    closed = client.post("/v1/studies/done/close", json={"reason": "over"}).json()["closed"]
    answer = client.post("/v1/studies/done/close", json={"reason": "again"})
    detail = f'the study was closed at {closed} with another reason: "over"'
    assert (answer.status_code, answer.json()["detail"]) == (409, detail)
    answer = client.post("/v1/studies/done/decisions", json={"unit": "u", "key": "1"})
    assert (answer.status_code, answer.json()["detail"]) == (409, f"the study was closed at {closed}")


def test_tokens(client: TestClient) -> None:
    answer = client.get(STUDIES, headers={"authorization": "Bearer nobody"})
    detail = "this token is unknown or revoked; accepted: the header Authorization: Bearer larl_…"
    assert (answer.status_code, answer.json()["detail"]) == (401, detail)
    answer = client.post("/v1/session", json={"token": "s" * 300}, headers={"x-larl-page": "1"})
    assert answer.json()["detail"] == "token is not accepted; accepted: text of 200 or fewer characters"
    assert "sss" not in answer.text


def test_what_a_token_cannot_do(tmp_path: Any) -> None:
    database = Database(f"sqlite:///{tmp_path / 'study.db'}", write=True, create=True)
    host, other = Auth(database).create("*", "host"), Auth(database).create("other", "admin")
    with TestClient(make_app(database, Settings())) as client:
        answer = client.get(STUDIES)
        assert answer.json()["detail"] == "a token is required; accepted: the header Authorization: Bearer larl_…"
        answer = client.post(STUDIES, json=STUDY, headers={"authorization": f"Bearer {host}"})
        assert (answer.status_code, answer.json()["detail"]) == (
            403,
            "this token cannot create or change study sleep: it has role host for all studies; "
            "accepted: a token with role admin for study sleep",
        )
        answer = client.post(DECISIONS, json={"unit": "u", "key": "1"}, headers={"authorization": f"Bearer {other}"})
        assert answer.json()["detail"] == (
            "this token cannot write to study sleep: it has role admin for study other; "
            "accepted: a token with role host or admin for study sleep"
        )
    database.close()


def test_a_value_that_is_long_is_cut_in_both_places(client: TestClient) -> None:
    said = client.post(DECISIONS, json={"unit": "u" * 5000, "key": "2"}).json()
    assert len(json.dumps(said)) < 1000
    assert said["detail"].endswith(f"… is not accepted; accepted: {WORD}")


def test_a_reward_that_no_agent_takes_is_refused_and_no_failure_of_the_policy(client: TestClient) -> None:
    """It would be in the journal for good, and fail whenever the unit's agent is made anew."""
    path = f"/v1/decisions/{client.decision}/reward"  # type: ignore[attr-defined]
    answer = client.post(path, json={"key": "large", "value": 1e120})
    assert (answer.status_code, answer.json()["field"]) == (422, "value")
    assert client.post(path, json={"key": "limit", "value": LARGEST}).json()["status"] == "learnt"
    assert client.get("/v1/studies/sleep/issues").json()["items"] == []
