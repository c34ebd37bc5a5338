"""People log in to the page with a token, and out."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from larl.service.http import rate_limit
from larl.service.http.auth import Auth, Principal
from larl.service.storage.database import Database
from tests.service.studying import client, make_study

PAGE = {"X-Larl-Page": "1"}


def test_a_token_becomes_a_session_that_can_be_ended(tmp_path: Path) -> None:
    with client(tmp_path) as someone:
        make_study(someone)
        del someone.headers["Authorization"]
        assert someone.get("/v1/session").json() == {"token": None, "role": None, "study": None}
        assert someone.get("/v1/studies/sleep/overview").status_code == 401
        entered = someone.post("/v1/session", json={"token": someone.token}, headers=PAGE)
        assert entered.json()["role"] == "admin"
        assert someone.token.split("_")[1] == entered.json()["token"]
        cookie = entered.headers["set-cookie"]
        assert cookie.startswith("larl_session=")
        assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        assert someone.get("/v1/session").json() == entered.json()
        assert someone.get("/v1/studies/sleep/overview").status_code == 200
        secret = someone.cookies["larl_session"]
        assert someone.delete("/v1/session", headers=PAGE).status_code == 204
        assert "larl_session" not in someone.cookies
        someone.cookies["larl_session"] = secret
        assert someone.get("/v1/studies/sleep/overview").status_code == 401


def test_behind_tls_the_cookie_goes_nowhere_else(tmp_path: Path) -> None:
    with client(tmp_path, behind_tls=True) as someone:
        entered = someone.post("/v1/session", json={"token": someone.token}, headers=PAGE)
        assert "Secure" in entered.headers["set-cookie"].split("; ")


def test_a_new_session_ends_the_old_one(tmp_path: Path) -> None:
    with client(tmp_path) as someone:
        del someone.headers["Authorization"]
        someone.post("/v1/session", json={"token": someone.token}, headers=PAGE)
        first = someone.cookies["larl_session"]
        someone.post("/v1/session", json={"token": someone.token}, headers=PAGE)
        assert someone.cookies["larl_session"] != first
        someone.cookies.clear()
        someone.cookies["larl_session"] = first
        assert someone.get("/v1/session").json()["role"] is None


def test_who_may_not_enter(tmp_path: Path) -> None:
    with client(tmp_path) as someone:
        del someone.headers["Authorization"]
        enter = {"token": someone.token}
        assert someone.post("/v1/session", json=enter).status_code == 403  # not from the page
        wrong = someone.post("/v1/session", json={"token": someone.token[:-1] + "!"}, headers=PAGE)
        assert wrong.status_code == 401
        assert someone.token not in wrong.text
        host = Auth(someone.app.state.service.queries.journal.database).create("*", "host")
        refused = someone.post("/v1/session", json={"token": host}, headers=PAGE)
        assert refused.status_code == 403
        assert "analyst" in refused.json()["detail"]
        assert "set-cookie" not in refused.headers


def test_a_session_changes_something_only_from_the_page(tmp_path: Path) -> None:
    with client(tmp_path) as someone:
        make_study(someone)
        del someone.headers["Authorization"]
        someone.post("/v1/session", json={"token": someone.token}, headers=PAGE)
        path, words = "/v1/studies/sleep/close", {"reason": "done"}
        assert someone.post(path, json=words).status_code == 403
        assert someone.post(path, json=words, headers=PAGE).status_code == 200
        assert someone.delete("/v1/session").status_code == 403
        assert someone.get("/v1/session").json()["role"] == "admin"


def test_nobody_tries_tokens_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "time", SimpleNamespace(monotonic=lambda: 1000.0))  # all in one moment
    with client(tmp_path) as someone:
        tries = [someone.post("/v1/session", json={"token": f"larl_{i}"}, headers=PAGE) for i in range(40)]
        assert [each.status_code for each in tries] == [401] * 10 + [429] * 30
        assert tries[-1].headers["retry-after"] == "1"


def test_without_tokens_everybody_is_an_admin(tmp_path: Path) -> None:
    with client(tmp_path, auth=False) as someone:
        del someone.headers["Authorization"]
        assert someone.get("/v1/session").json() == {"token": "anybody", "role": "admin", "study": "*"}


def test_a_session_that_ends_while_it_is_looked_up_is_not_remembered(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(sqlite, write=True, create=True)
    access = Auth(database)
    holder = asyncio.run(access.token_principal(access.create("*", "admin")))
    assert holder is not None
    secret, find = access.log_in(holder), access._find_session

    def slow(secret: str) -> Principal | None:
        found = find(secret)
        access.log_out(secret)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(access, "_find_session", slow)
        assert asyncio.run(access.session_principal(secret)) == holder  # the request came first
    assert asyncio.run(access.session_principal(secret)) is None
    database.close()
