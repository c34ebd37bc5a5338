"""Studies with an allocation, minimum probabilities by arm, scheduled learning and a warm-up."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import larl
from larl.client.models import StudyInfo, json_settings, parse
from larl.service.core import batch
from larl.service.core.problems import Problem
from tests.service.host import LARL, UCB, Host, hosts
from tests.service.study_client import content, service_client

SMOOTH = {"kind": "smooth", "low": 0.2, "high": 0.8, "slope": 5.0, "c": 1.0, "k": 1.0}
SCHEDULED: dict[str, Any] = {
    "allocation": "smooth",
    "min_probability": {"a": 0.1},
    "update_every": 4,
    "warm_up": 3,
    "warm_up_probabilities": {"a": 0.3, "b": 0.7},
}
STEPS = 12


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with hosts(f"sqlite:///{tmp_path}/study.db") as [found]:
        yield found


def play(host: Host, unit: str, first: int, count: int) -> list[Any]:
    """Decide and send rewards, some late, some corrected; return what was decided."""
    generator, found, sent = random.Random(f"{unit}-{first}"), [], []
    for i in range(first, first + count):
        decision = host.decide(unit, f"{unit}-{i}", **({"available": []} if i % 7 == 5 else {}))
        found.append((decision["arm"], decision["probabilities"], decision["expected"], decision["source"]))
        sent += [decision["id"]] if decision["arm"] else []
        for number in range(generator.randrange(3) if sent else 0):
            name = generator.choice(sent[-4:])
            host.reward(name, f"{name}-{i}-{number}", generator.gauss(0.0, 1.0))
    return found


@pytest.mark.parametrize("pooling", ["none", "full", "partial"])
@pytest.mark.parametrize("uses_snapshots", [True, False])
def test_restarted_service_decides_as_before_and_replays_exactly(
    tmp_path: Path, pooling: str, uses_snapshots: bool
) -> None:
    settings = SCHEDULED | {"policy": LARL, "pooling": pooling, "max_delay": 6}
    with hosts(f"sqlite:///{tmp_path}/whole.db") as [host]:
        host.create_study(**settings)
        expected = [play(host, unit, part * STEPS, STEPS) for part in range(2) for unit in "uv"]
        assert host.replay() == 4 * STEPS
    storage = f"sqlite:///{tmp_path}/study.db"
    with hosts(storage) as [host]:
        host.create_study(**settings)
        assert [play(host, unit, 0, STEPS) for unit in "uv"] == expected[:2]
    with hosts(storage) as [host]:
        if not uses_snapshots:
            with host.database.writing() as connection:
                connection.exec_driver_sql("DELETE FROM snapshots")
        assert [play(host, unit, STEPS, STEPS) for unit in "uv"] == expected[2:]
        assert host.replay() == 4 * STEPS
    probabilities = [each[1] for each in expected[0] if each[0]]
    assert probabilities[:3] == [{"a": 0.3, "b": 0.7}] * 3
    assert all(each["a"] >= 0.1 + 0.9 * 0.2 - 1e-12 for each in probabilities[3:])


def test_probabilities_are_fixed_between_updates(host: Host) -> None:
    host.create_study(policy=UCB, allocation="smooth", update_every=3)
    found = []
    for i in range(9):
        decision = host.decide("u", f"{i}")
        host.reward(decision["id"], f"{i}", 1.0 if decision["arm"] == "b" else -1.0)
        found.append(decision["probabilities"]["b"])
    assert [t for t in range(1, 9) if found[t] != found[t - 1]] == [3, 6]


@pytest.mark.parametrize("pooling", ["none", "full"])
def test_night_is_that_of_the_time_zone(host: Host, monkeypatch: pytest.MonkeyPatch, pooling: str) -> None:
    times = itertools.chain.from_iterable(
        [f"2026-05-04T{hour:02}:00:00.000000Z"] * 2
        for hour in (8, 12, 21, 22, 23)  # 22:00 is midnight in Berlin
    )
    clock = {"now": ""}
    monkeypatch.setattr(batch, "now", lambda: clock["now"])
    study = {"update_every": "night", "time_zone": "Europe/Berlin", "allocation": "smooth", "pooling": pooling}
    clock["now"] = "2026-05-04T06:00:00.000000Z"
    host.create_study(policy=UCB, **study)
    found = []
    for i, time in enumerate(times):
        clock["now"] = time
        decision = host.decide("u", f"{i}")
        host.reward(decision["id"], f"{i}", 1.0 if decision["arm"] == "b" else -1.0)
        found.append(decision["probabilities"]["b"])
    assert [t for t in range(1, 10) if found[t] != found[t - 1]] == [6]
    assert host.replay() == 10


def test_new_policy_learns_all_and_can_have_another_allocation(host: Host) -> None:
    host.create_study(policy=UCB, **SCHEDULED)
    play(host, "u", 0, 10)
    with pytest.raises(Problem, match="allocation"):
        host.change_policy("p1", 1, {"policy": "KLUCB"})
    changed = host.change_policy("p2", 1, {"policy": "KLUCB"}, allocation="ucb", min_probability={"b": 0.4})
    assert "allocation" not in changed["config"]
    assert changed["config"]["min_probability"] == {"b": 0.4}
    assert changed["config"]["update_every"] == 4
    play(host, "u", 10, 10)
    host.change_policy("p3", 2, LARL, allocation="best")
    play(host, "u", 20, 10)
    assert host.replay() == 30


def test_responses_have_the_settings(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        body = {"study": "s", "arms": ["a", "b"], "policy": LARL, "seed": 1} | SCHEDULED
        created = content(client.post("/v1/studies", json=body))
        expected = SCHEDULED | {"allocation": SMOOTH}
        assert created["config"] | expected == created["config"]
        assert content(client.post("/v1/studies", json=body)) == created
        info = parse(StudyInfo, content(client.get("/v1/studies/s")))
        assert (info.allocation, info.update_every, info.warm_up) == (SMOOTH, 4, 3)
        assert (info.min_probability, info.time_zone) == ({"a": 0.1}, "UTC")
        plain = content(client.post("/v1/studies", json={"study": "t", "arms": ["a", "b"], "policy": UCB, "seed": 1}))
        assert not {"allocation", "update_every", "warm_up", "time_zone"} & (set(plain) | set(plain["config"]))
        assert parse(StudyInfo, plain).allocation == "ucb"


@pytest.mark.parametrize(
    ("values", "field", "accepted"),
    [
        ({"allocation": "greedy"}, "allocation", "'ucb', 'best' or 'smooth'"),
        ({"allocation": {"kind": "smooth", "low": 2.0}}, "allocation.low", "≤ 1"),
        ({"allocation": {"kind": ["smooth"]}}, "allocation", "an object with text and numbers"),
        ({"allocation": "best", "policy": {"policy": "KLUCB"}}, "allocation", "a policy with a posterior"),
        ({"min_probability": {"a": 2.0}}, "min_probability.a", "a number ≤ 1"),
        ({"min_probability": {"z": 0.1}}, "min_probability", "only the arms a, b"),
        ({"min_probability": {"a": 0.6, "b": 0.5}}, "min_probability", "a sum of at most 1"),
        ({"min_probability": "0.1"}, "min_probability", "a number"),
        ({"update_every": 0}, "update_every", "a number ≥ 1"),
        ({"update_every": "week"}, "update_every", "'night'"),
        ({"update_every": 1.5}, "update_every", "a whole number"),
        ({"warm_up": -1}, "warm_up", "a number ≥ 0"),
        ({"warm_up": 2, "warm_up_probabilities": {"a": 0.1}}, "warm_up_probabilities", "the sum 1"),
        ({"policy": {"policy": "UCB", "allocation": "best"}}, "policy", "settings beside the policy"),
        ({"policy": {"policy": "LARL", "s": 10**7, "warm_up": 1}}, "policy", "settings beside the policy"),
        ({"time_zone": "Mars/Base"}, "time_zone", "Europe/Berlin"),
        ({"time_zone": "../etc"}, "time_zone", "Europe/Berlin"),
    ],
)
def test_unusable_settings_are_refused(tmp_path: Path, values: dict[str, Any], field: str, accepted: str) -> None:
    with service_client(tmp_path) as client:
        response = client.post("/v1/studies", json={"study": "s", "arms": ["a", "b"], "policy": UCB} | values)
    assert response.status_code == 422, response.text
    assert response.json()["field"] == field
    assert accepted in response.json()["accepted"]


def test_client_sends_an_allocation() -> None:
    settings = json_settings({"allocation": larl.Allocation("smooth"), "warm_up": 2})
    assert settings == {"allocation": SMOOTH, "warm_up": 2}
