"""`Client.import_history`: requests within the limits, repetitions, refusals, and a service that is killed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import larl
from larl.client import Client, HistoryReceipt, RequestRefused, ServiceUnreachable
from larl.client.history import MAX_BYTES, MAX_STEPS
from larl.client.transport import encode
from larl.service.schemas import requests
from larl.service.settings import Settings
from tests.service.host import UCB, hosts
from tests.service.processes import Server
from tests.waiting import PATIENCE

PATH = "/v1/studies/sleep/history"
KILL = """
import os, signal
from larl.service.core.batch import CommandBatch
from larl.service.storage import group_commit, journal
insert, execute = group_commit.insert, CommandBatch.execute
def insert_half(connection, events, last):
    if any(event.kind == "history" for event in events):
        insert(connection, events[:20], last)
        os.kill(os.getpid(), signal.SIGKILL)
    return insert(connection, events, last)
def execute_and_die(batch, commands):
    replies = execute(batch, commands)
    if any(command.kind == "history" for command in commands):
        os.kill(os.getpid(), signal.SIGKILL)
    return replies
"""
DURING = KILL + "group_commit.insert = journal.insert = insert_half\n"
AFTER = KILL + "CommandBatch.execute = execute_and_die\n"


def steps(count: int, units: int = 3) -> list[dict[str, Any]]:
    draw = np.random.default_rng(2)
    frame = pd.DataFrame({"t": np.arange(count), "unit": [f"p{i % units}" for i in range(count)]})
    return larl.logs.read_steps(frame.assign(arm=draw.choice(["a", "b"], count), reward=draw.normal(size=count)))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Client, list[dict[str, Any]]]]:
    """A client, and the bodies that it has sent. The first step whose arm is "c" is refused."""
    bodies: list[dict[str, Any]] = []

    def respond(_: Any, method: str, path: str, body: dict[str, Any]) -> Any:
        assert (method, path) == ("POST", PATH)
        bodies.append(json.loads(encode(body)))
        for i, step in enumerate(body["steps"]):
            if step["arm"] == "c":
                raise RequestRefused(
                    422, f'steps[{i}].arm = "c" is not accepted', f"steps[{i}].arm", "c", "one of a, b"
                )
        return {"study": "sleep", "steps": len(body["steps"]), "units": 1, "at": f"time {len(bodies)}"}

    monkeypatch.setattr("larl.client.transport.Transport.request", respond)
    with Client("http://127.0.0.1:9") as client:
        yield client, bodies


def test_limits_of_the_client_are_within_those_of_the_service() -> None:
    assert requests.MAX_STEPS >= MAX_STEPS
    assert Settings().max_body > MAX_BYTES + 1000


@pytest.mark.parametrize("size", [10, 300])
def test_many_steps_are_sent_in_several_valid_requests(sent: Any, size: int) -> None:
    client, bodies = sent
    given = [step | {"unit": f"{step['unit']}-{'x' * (size - 10)}"[:128]} for step in steps(2500)]
    receipt = client.import_history("sleep", iter(given))
    assert receipt == HistoryReceipt("sleep", 2500, 3, f"time {len(bodies)}")
    assert [step for body in bodies for step in body["steps"]] == given
    assert len({body["key"] for body in bodies}) == len(bodies) > 2
    for body in bodies:
        requests.HistoryRequest.model_validate_json(json.dumps(body))
        assert len(json.dumps(body)) <= Settings().max_body
    first = bodies.copy()
    client.import_history("sleep", given)
    assert bodies[len(first) :] == first


def test_refused_step_is_named_by_its_place_among_all(sent: Any) -> None:
    client, bodies = sent
    given = steps(2500)
    given[2100] |= {"arm": "c"}
    with pytest.raises(RequestRefused) as refused:
        client.import_history("sleep", given)
    assert (refused.value.field, refused.value.value, refused.value.status) == ("steps[2100].arm", "c", 422)
    assert "steps[2100].arm" in str(refused.value)
    assert sum(len(body["steps"]) for body in bodies[:-1]) == 2000
    for wrong in ([], ["row"]):
        with pytest.raises(larl.InvalidValue, match="import_history: steps"):
            client.import_history("sleep", wrong)


@pytest.mark.timing
@pytest.mark.parametrize(("program", "is_stored"), [(DURING, False), (AFTER, True)], ids=["during", "after"])
def test_killed_service_has_all_steps_or_none(storage: str, tmp_path: Path, program: str, is_stored: bool) -> None:
    given = steps(30)
    with hosts(storage) as [host]:
        host.create_study(policy=UCB)
    with Server(storage, tmp_path / "log", "--no-auth", program=program) as server:
        client = Client(f"http://127.0.0.1:{server.port}", timeout=PATIENCE, retries=0)
        with client, pytest.raises(ServiceUnreachable) as unanswered:
            client.import_history("sleep", given)
        assert server.process is not None
        assert server.process.wait(PATIENCE) < 0
    with hosts(storage) as [host]:
        kinds = [event.kind for event in host.journal.select()]
        assert kinds.count("history") == is_stored
        assert kinds.count("decision") == kinds.count("reward") == is_stored * len(given)
        assert unanswered.value.key is not None
        host.import_history(unanswered.value.key, given)
        assert host.replay() == len(given)
        assert sum(event.kind == "history" for event in host.journal.select()) == 1
