"""A study to look at: a service in this process, and what happens in it."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from larl.service.app import make_app
from larl.service.http.auth import Auth
from larl.service.settings import Settings
from larl.service.storage.database import Database

ARMS = ["rest", "walk", "call"]


@contextmanager
def client(path: Path, role: str = "admin", **settings: Any) -> Iterator[TestClient]:
    """Somebody with a token of a service that has just begun; `client.token` is it."""
    database = Database(f"sqlite:///{path / 'study.db'}", write=True, create=True)
    token = Auth(database).create("*", role)
    try:
        with TestClient(make_app(database, Settings(**{"rate": 1e6, "timeout": 60.0} | settings))) as found:
            found.token = token  # type: ignore[attr-defined]
            found.headers["Authorization"] = f"Bearer {token}"
            yield found
    finally:
        database.close()


def done(answer: Any) -> Any:
    """What was answered, which must not be a refusal."""
    assert answer.status_code == 200, answer.text
    return answer.json()


def make_study(someone: Any, study: str = "sleep", arms: Any = ARMS, **more: Any) -> Any:
    words = {
        "study": study,
        "arms": arms,
        "policy": {"policy": "UCB"},
        "min_probability": 0.1,
        "max_delay": 3,
        "seed": 1,
    }
    return done(someone.post("/v1/studies", json=words | more))


def decide(someone: Any, key: str, unit: str, study: str = "sleep", **more: Any) -> Any:
    return done(someone.post(f"/v1/studies/{study}/decisions", json={"unit": unit, "key": key, **more}))


def reward(someone: Any, key: str, decision: str, value: float | None, **more: Any) -> Any:
    return done(someone.post(f"/v1/decisions/{decision}/reward", json={"key": key, "value": value, **more}))


def live(someone: Any, steps: int, seed: int = 0, units: int = 4, study: str = "sleep") -> None:
    """Some life: rewards in time, too late, corrected, repeated or never; steps without an arm, or by the host."""
    luck, open_ones, first = random.Random(seed), [], someone.get(f"/v1/studies/{study}/overview").json()["seq"]
    for i in range(steps):
        key, unit = f"{first}-{i}", f"unit-{luck.randrange(units)}"
        kind = luck.choices(("policy", "host", "none"), (8, 1, 1))[0]
        if kind == "host":
            words = {"unit": unit, "key": key, "arm": luck.choice(ARMS), "made": "2026-01-01T00:00:00Z"}
            found = done(someone.post(f"/v1/studies/{study}/ingest", json=words))
        else:
            found = decide(
                someone, key, unit, study, **({"available": [], "reason": "asleep"} if kind == "none" else {})
            )
        if found["arm"] is not None:
            open_ones.append(found["id"])
        for again in range(luck.randrange(3)):
            if open_ones:
                name = luck.choice(open_ones[-25:])
                reward(someone, f"{key}-{again}", name, luck.choice((None, 1.0, 2.0, luck.gauss(0.0, 1.0))))
