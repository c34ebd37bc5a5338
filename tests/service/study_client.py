"""A client of a service in this process, and a study with simulated traffic."""

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
def service_client(folder: Path, role: str = "admin", **settings: Any) -> Iterator[TestClient]:
    """Serve the storage study.db of a folder; yield a client with a token, which is also `client.token`."""
    database = Database(f"sqlite:///{folder / 'study.db'}", write=True, create=True)
    token = Auth(database).create("*", role)
    try:
        with TestClient(
            make_app(database, Settings(**{"rate": 1e6, "read_rate": 1e9, "timeout": 60.0} | settings))
        ) as client:
            client.token = token  # type: ignore[attr-defined]
            client.headers["Authorization"] = f"Bearer {token}"
            yield client
    finally:
        database.close()


def content(response: Any) -> Any:
    """Return the JSON of a response, whose status must be 200."""
    assert response.status_code == 200, response.text
    return response.json()


def create_study(client: Any, study: str = "sleep", arms: Any = ARMS, **more: Any) -> Any:
    settings = {"policy": {"policy": "UCB"}, "min_probability": 0.1, "max_delay": 3, "seed": 1} | more
    return content(client.post("/v1/studies", json={"study": study, "arms": arms} | settings))


def decide(client: Any, key: str, unit: str, study: str = "sleep", **more: Any) -> Any:
    return content(client.post(f"/v1/studies/{study}/decisions", json={"unit": unit, "key": key, **more}))


def reward(client: Any, key: str, decision: str, value: float | None, **more: Any) -> Any:
    return content(client.post(f"/v1/decisions/{decision}/reward", json={"key": key, "value": value, **more}))


def simulate(client: Any, steps: int, seed: int = 0, units: int = 4, study: str = "sleep") -> None:
    """Simulate steps with and without an arm, external decisions, and rewards in time, late, corrected and repeated."""
    generator, decisions = random.Random(seed), []
    first = client.get(f"/v1/studies/{study}/overview").json()["seq"]
    for i in range(steps):
        key, unit = f"{first}-{i}", f"unit-{generator.randrange(units)}"
        kind = generator.choices(("policy", "host", "none"), (8, 1, 1))[0]
        if kind == "host":
            body = {"unit": unit, "key": key, "arm": generator.choice(ARMS), "made": "2026-01-01T00:00:00Z"}
            decision = content(client.post(f"/v1/studies/{study}/ingest", json=body))
        else:
            options = {"available": [], "reason": "asleep"} if kind == "none" else {}
            decision = decide(client, key, unit, study, **options)
        if decision["arm"] is not None:
            decisions.append(decision["id"])
        for number in range(generator.randrange(3)):
            if decisions:
                name = generator.choice(decisions[-25:])
                value = generator.choice((None, 1.0, 2.0, generator.gauss(0.0, 1.0)))
                reward(client, f"{key}-{number}", name, value)
