"""Tokens, roles and permissions."""

from types import SimpleNamespace
from typing import Any

import pytest

from larl.service.http import auth
from tests.service.host import UCB
from tests.service.token_service import ROLES, STUDY, TokenService

ROUTES: dict[tuple[str, str], tuple[str, Any]] = {  # the required permission, and a body
    ("POST", "/v1/studies"): ("manage", STUDY),
    ("POST", "/v1/studies/{study}/policy"): ("manage", {"key": "p", "policy": UCB, "replaces": 1, "reason": ""}),
    ("POST", "/v1/studies/{study}/close"): ("manage", {}),
    ("POST", "/v1/studies/{study}/units"): ("write", {"unit": "u"}),
    ("POST", "/v1/studies/{study}/decisions"): ("write", {"unit": "u", "key": "1"}),
    ("POST", "/v1/studies/{study}/ingest"): (
        "write",
        {"unit": "u", "key": "2", "arm": "a", "made": "2026-01-01T00:00:00Z"},
    ),
    ("POST", "/v1/studies/{study}/history"): (
        "manage",
        {"key": "h", "steps": [{"id": "h0", "unit": "pilot", "arm": "a", "reward": 1.0}]},
    ),
    ("POST", "/v1/decisions/{decision}/reward"): ("write", {"key": "1", "value": 1.0}),
    ("POST", "/v1/decisions/{decision}/delivered"): ("write", {"key": "1"}),
    ("POST", "/v1/studies/{study}/issues/{issue}/resolved"): ("resolve", {"note": ""}),
    ("GET", "/v1/studies/{study}"): ("see", None),
    ("GET", "/v1/studies/{study}/export"): ("read", None),
    ("GET", "/v1/studies/{study}/overview"): ("read", None),
    ("GET", "/v1/studies/{study}/roster"): ("read", None),
    ("GET", "/v1/studies/{study}/unit-overview"): ("read", None),
    ("GET", "/v1/studies/{study}/units"): ("read", None),
    ("GET", "/v1/studies/{study}/units/{unit}"): ("read", None),
    ("GET", "/v1/studies/{study}/decisions"): ("read", None),
    ("GET", "/v1/decisions/{decision}"): ("read", None),
    ("GET", "/v1/studies/{study}/rewards"): ("read", None),
    ("GET", "/v1/studies/{study}/issues"): ("read", None),
}
PERMISSIONS = {
    "host": {"see", "write"},
    "analyst": {"see", "read", "resolve"},
    "admin": {"see", "write", "read", "resolve", "manage"},
}


def test_table_of_routes_is_complete(service: TokenService) -> None:
    paths = service.client.get("/openapi.json").json()["paths"]
    described = {(method.upper(), path) for path, of in paths.items() for method in of}
    others = {("GET", "/v1/health"), ("GET", "/v1/studies")}
    others |= {(method, "/v1/session") for method in ("GET", "POST", "DELETE")}  # test_session.py tests these
    assert {route for route in described if route[1].startswith("/v1/")} == set(ROUTES) | others


def test_every_route_requires_a_token_with_the_permission(service: TokenService) -> None:
    service.request(service.admin, "POST", "/v1/studies", json=STUDY)
    path = "/v1/studies/sleep/decisions"
    response = service.request(service.tokens["host", "sleep"], "POST", path, json={"unit": "u", "key": "1"})
    decision = response.json()["id"]
    for (method, route), (permission, body) in ROUTES.items():
        if route.endswith("/close"):
            continue  # the other routes need an open study
        address = route.format(study="sleep", unit="u", issue=1, decision=decision)
        address += "?unit=u" if route.endswith("/unit-overview") else ""
        for wrong in (None, "larl_" + "0" * 16 + "_" + "x" * 43, service.admin[:-43] + "x" * 43):
            assert service.request(wrong, method, address, json=body).status_code == 401
        for (role, of), token in service.tokens.items():
            may = permission in PERMISSIONS[role] and of in ("sleep", "*")
            status = service.request(token, method, address, json=body).status_code
            assert (status not in (401, 403)) == may, (role, of, method, route, status)


def test_list_of_studies_has_those_that_the_token_may_see(service: TokenService) -> None:
    service.request(service.admin, "POST", "/v1/studies", json=STUDY)
    studies = {key: service.request(token, "GET", "/v1/studies").json() for key, token in service.tokens.items()}
    assert {key: len(found) for key, found in studies.items()} == {(role, of): of != "other" for role, of in studies}
    seeds = {role: studies[role, "*"][0]["seed"] for role in ROLES}
    assert seeds == {"host": None, "analyst": None, "admin": 1}


def test_revoked_token_is_refused_after_two_seconds(service: TokenService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "time", SimpleNamespace(monotonic=lambda: seconds))
    seconds, token = 1000.0, service.tokens["analyst", "*"]
    assert service.request(token, "GET", "/v1/studies").status_code == 200
    service.auth.revoke(token.split("_")[1])
    assert service.request(token, "GET", "/v1/studies").status_code == 200  # cached
    seconds += 2.01
    assert service.request(token, "GET", "/v1/studies").status_code == 401


def test_secrets_are_compared_in_constant_time(service: TokenService, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    compare = auth.hmac.compare_digest
    monkeypatch.setattr(auth.hmac, "compare_digest", lambda *both: compared.append(both) or compare(*both))
    for token in (service.tokens["host", "*"][:-43] + "x" * 43, "larl_" + "0" * 16 + "_" + "x" * 43):
        assert service.request(token, "GET", "/v1/studies").status_code == 401
    assert len(compared) == 2  # also for an unknown id


def test_trailing_slash_is_not_redirected(service: TokenService) -> None:
    """A redirect would lead to the host that the client named."""
    for method, path in (("GET", "/v1/studies/"), ("POST", "/v1/studies/"), ("GET", "/v1/health/")):
        headers = {"Authorization": f"Bearer {service.admin}", "Host": "attacker.example"}
        response = service.client.request(method, path, headers=headers, follow_redirects=False)
        assert (response.status_code, "location" in response.headers) == (404, False)


def test_units_named_with_dots_are_found_by_a_parameter(service: TokenService) -> None:
    service.request(service.admin, "POST", "/v1/studies", json=STUDY)
    for unit in (".", ".."):
        service.request(service.admin, "POST", "/v1/studies/sleep/units", json={"unit": unit})
        [found] = service.request(service.admin, "GET", f"/v1/studies/sleep/units?unit={unit}").json()["items"]
        overview = service.request(service.admin, "GET", f"/v1/studies/sleep/unit-overview?unit={unit}").json()
        assert found["unit"] == overview["unit"] == unit
