"""Sessions of the page: log in with a token, log out."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from larl.service.http import rate_limit
from larl.service.http.auth import Auth, Principal
from larl.service.storage.database import Database
from tests.service.study_client import create_study, service_client

PAGE = {"X-Larl-Page": "1"}


def test_log_in_and_log_out(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        create_study(client)
        del client.headers["Authorization"]
        assert client.get("/v1/session").json() == {"token": None, "role": None, "study": None}
        assert client.get("/v1/studies/sleep/overview").status_code == 401
        response = client.post("/v1/session", json={"token": client.token}, headers=PAGE)
        assert response.json()["role"] == "admin"
        assert client.token.split("_")[1] == response.json()["token"]
        cookie = response.headers["set-cookie"]
        assert cookie.startswith("larl_session=")
        assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        assert client.get("/v1/session").json() == response.json()
        assert client.get("/v1/studies/sleep/overview").status_code == 200
        secret = client.cookies["larl_session"]
        assert client.delete("/v1/session", headers=PAGE).status_code == 204
        assert "larl_session" not in client.cookies
        client.cookies["larl_session"] = secret
        assert client.get("/v1/studies/sleep/overview").status_code == 401


def test_cookie_is_secure_behind_tls(tmp_path: Path) -> None:
    with service_client(tmp_path, behind_tls=True) as client:
        response = client.post("/v1/session", json={"token": client.token}, headers=PAGE)
        assert "Secure" in response.headers["set-cookie"].split("; ")


def test_new_session_ends_the_old_one(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        del client.headers["Authorization"]
        client.post("/v1/session", json={"token": client.token}, headers=PAGE)
        first = client.cookies["larl_session"]
        client.post("/v1/session", json={"token": client.token}, headers=PAGE)
        assert client.cookies["larl_session"] != first
        client.cookies.clear()
        client.cookies["larl_session"] = first
        assert client.get("/v1/session").json()["role"] is None


def test_refused_logins(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        del client.headers["Authorization"]
        login = {"token": client.token}
        assert client.post("/v1/session", json=login).status_code == 403  # without the header of the page
        wrong = client.post("/v1/session", json={"token": client.token[:-1] + "!"}, headers=PAGE)
        assert wrong.status_code == 401
        assert client.token not in wrong.text
        host = Auth(client.app.state.service.journal.database).create("*", "host")
        refused = client.post("/v1/session", json={"token": host}, headers=PAGE)
        assert refused.status_code == 403
        assert "analyst" in refused.json()["detail"]
        assert "set-cookie" not in refused.headers


def test_session_can_write_only_with_the_header_of_the_page(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        create_study(client)
        del client.headers["Authorization"]
        client.post("/v1/session", json={"token": client.token}, headers=PAGE)
        path, body = "/v1/studies/sleep/close", {"reason": "done"}
        assert client.post(path, json=body).status_code == 403
        assert client.post(path, json=body, headers=PAGE).status_code == 200
        assert client.delete("/v1/session").status_code == 403
        assert client.get("/v1/session").json()["role"] == "admin"


def test_logins_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "time", SimpleNamespace(monotonic=lambda: 1000.0))  # no time passes
    with service_client(tmp_path) as client:
        responses = [client.post("/v1/session", json={"token": f"larl_{i}"}, headers=PAGE) for i in range(40)]
        assert [each.status_code for each in responses] == [401] * 10 + [429] * 30
        assert responses[-1].headers["retry-after"] == "1"


def test_without_authentication_every_session_is_of_an_admin(tmp_path: Path) -> None:
    with service_client(tmp_path, auth=False) as client:
        del client.headers["Authorization"]
        client.headers["Host"] = "localhost"
        assert client.get("/v1/session").json() == {"token": "anybody", "role": "admin", "study": "*"}


def test_session_that_ends_during_its_lookup_is_not_cached(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(sqlite, write=True, create=True)
    auth = Auth(database)
    principal = asyncio.run(auth.token_principal(auth.create("*", "admin")))
    assert principal is not None
    secret, find = auth.log_in(principal), auth._find_session

    def find_and_log_out(secret: str) -> Principal | None:
        found = find(secret)
        auth.log_out(secret)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(auth, "_find_session", find_and_log_out)
        assert asyncio.run(auth.session_principal(secret)) == principal  # the lookup came first
    assert asyncio.run(auth.session_principal(secret)) is None
    database.close()
