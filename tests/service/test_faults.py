"""A failure leads to a flagged fallback decision or to a refusal that says why, never to a wrong response."""

import json
import resource
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from larl.service import server
from larl.service.core import agents
from larl.service.core.agents import AgentHandle
from larl.service.core.batch import CommandBatch, Resources
from larl.service.ops.replay import Replay
from larl.service.schemas import requests
from larl.service.storage.database import BUSY, Database, StorageError
from larl.service.storage.journal import Journal
from tests.service import failing_policy
from tests.service.host import UCB, decision_command, hosts, reward_command
from tests.service.processes import Connection, Server
from tests.service.study_client import service_client
from tests.waiting import PATIENCE

pytestmark = pytest.mark.timing
FAILURES = {
    "raises": failing_policy.RAISES,
    "hangs": failing_policy.HANGS,
    "has NaN": failing_policy.NAN_STATE,
}


@pytest.mark.parametrize("how", FAILURES)
def test_failing_policy_is_replaced_by_flagged_fallback_decisions(sqlite: str, how: str) -> None:
    with failing_policy.registered(), hosts(sqlite) as [host]:
        host.create_study(policy={"policy": "FailingPolicy", "failure": FAILURES[how]}, fallback={"a": 0.25, "b": 0.75})
        first = host.decide("u", "1")
        assert host.reward(first["id"], "1", 1.0)["status"] == "learnt"
        second = host.decide("u", "2")
        host.batch.runner.seconds = 0.1 if how == "hangs" else 60.0
        status = host.reward(second["id"], "2", 1.0)["status"]
        assert status == ("learnt" if how == "has NaN" else "stored")
        third = host.decide("u", "3")
        assert (third["source"], third["fallback"], third["t"]) == ("fallback", True, 2)
        assert third["probabilities"] == {"a": 0.25, "b": 0.75}
        [issue] = host.issues()
        assert (issue["severity"], issue["code"], issue["unit"]) == ("red", "policy", "u")
        [alert] = host.alerts
        assert alert["code"] == "policy"
        assert "unit" not in alert
        host.batch.runner.seconds = 60.0
        assert host.decide("other", "4")["source"] == "policy"  # its agent has learnt nothing yet
        host.change_policy("p", 1, UCB)
        assert host.decide("u", "5")["source"] == "policy"


def test_policy_that_hangs_affects_only_its_unit(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one batch, commands of the unit are executed without the policy; other units are not affected."""
    observe, proceed = AgentHandle.observe, threading.Event()

    def hang(agent: AgentHandle, decision: str, *arguments: Any) -> str:
        assert decision != second or proceed.wait(PATIENCE)
        return observe(agent, decision, *arguments)

    with hosts(sqlite) as [host]:
        host.create_study()
        assert host.reward(host.decide("u", "1")["id"], "1", 1.0)["status"] == "learnt"
        second = host.decide("u", "2")["id"]
        monkeypatch.setattr(AgentHandle, "observe", hang)
        host.batch.runner.seconds = 2.0  # enough for the other units on a busy machine

        commands = [
            decision_command("v", "v"),
            reward_command(second, "2", 1.0),
            *(decision_command(unit, unit) for unit in "uwv"),
        ]
        replies = host.batch.execute(commands)
        first, receipt, fallback, other, repeated = (json.loads(reply) for reply in replies if isinstance(reply, bytes))
        assert (first["source"], receipt["status"], fallback["source"], other["source"]) == (
            "policy",
            "stored",
            "fallback",
            "policy",
        )
        assert (fallback["t"], repeated) == (2, first)
        assert [issue["unit"] for issue in host.issues()] == ["u"]
        events = host.journal.select()
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert [event.unit for event in events if event.kind == "unit"] == ["u", "v", "w"]
        host.batch.runner.seconds = 60.0
        proceed.set()


def test_policy_that_hangs_once_counts_as_one_failure(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy is called for a default reward and a decision of one command; then it decides again."""
    decide, proceed = AgentHandle.decide, threading.Event()

    def hang(*arguments: Any, **named: Any) -> Any:
        assert proceed.wait(PATIENCE)
        return decide(*arguments, **named)

    monkeypatch.setattr(AgentHandle, "decide", hang)
    proceed.set()
    with hosts(sqlite) as [host]:
        host.create_study(max_delay=2, default_reward=0.5)
        host.decide("u", "1")
        host.decide("u", "2")
        host.batch.runner.seconds = 0.3
        proceed.clear()
        assert host.decide("u", "3")["source"] == "fallback"  # the reward of the first decision is overdue
        proceed.set()
        host.batch.runner.seconds = 60.0
        assert host.decide("u", "4")["source"] == "policy"
        [issue] = host.issues()
        assert issue["done"] == "a decision was made with the fallback probabilities"
        kinds = [event.kind for event in host.journal.select()]
        assert kinds == ["study", "unit", "decision", "decision", "issue", "default", "decision", "default", "decision"]
        assert host.replay() == 4


def test_policy_that_exits_is_a_failure(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with hosts(sqlite) as [host]:
        host.create_study()
        with monkeypatch.context() as patch:
            patch.setattr(AgentHandle, "decide", lambda *_, **__: sys.exit("done"))
            assert host.decide("u", "1")["source"] == "fallback"
        assert host.decide("u", "2")["source"] == "policy"
        assert "SystemExit: done" in host.issues()[0]["happened"]


def test_request_is_refused_while_the_disk_is_full_and_then_succeeds(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with Server(f"sqlite:///{path}", tmp_path / "log", "--no-auth", "--timeout", "60") as server:
        assert server.process is not None
        with Connection(server.port, timeout=120.0) as connection:
            connection.post("/v1/studies", study="sleep", arms=["a", "b"], policy=UCB)
            stored = connection.post("/v1/studies/sleep/decisions", unit="u", key="1").content
            full = path.with_name("study.db-wal").stat().st_size
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (full, resource.RLIM_INFINITY))
            refused = connection.post("/v1/studies/sleep/decisions", unit="u", key="2")
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
            assert "did not confirm the request" in refused.json()["detail"]
            assert "fallback probabilities" in refused.json()["detail"]
            health = connection.get("/v1/health")
            assert (health.status, health.json()["status"]) == (503, "failing")
            assert connection.post("/v1/studies/sleep/decisions", unit="u", key="1").content == stored
            no_limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, no_limit)
            assert connection.get("/v1/health").status == 200  # before the next request
            assert connection.post("/v1/studies/sleep/decisions", unit="u", key="2").json()["t"] == 1
    database = Database(f"sqlite:///{path}")
    Replay(Journal(database)).run()
    database.close()


def test_health_fails_while_the_disk_has_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has tried to write."""
    with service_client(tmp_path) as client:
        assert client.get("/v1/health").status_code == 200
        full = SimpleNamespace(f_bavail=3, f_frsize=4096)
        monkeypatch.setattr("larl.service.storage.database.os.statvfs", lambda _: full)
        response = client.get("/v1/health")
        assert (response.status_code, response.json()["status"]) == (503, "failing")
        assert response.json()["detail"].endswith("the disk is full: 12288 bytes are free")


def test_storage_error_while_an_agent_is_loaded_is_not_a_failure_of_the_policy(sqlite: str) -> None:
    with hosts(sqlite) as [host]:
        host.create_study()
        host.decide("u", "1")
    other = sqlite3.connect(sqlite.removeprefix("sqlite:///"))
    other.execute("ALTER TABLE snapshots RENAME TO hidden")
    database = Database(sqlite, write=True)
    resources = Resources(Journal(database), timeout=60.0)
    batch = CommandBatch(resources)
    with pytest.raises(StorageError, match="no such table: snapshots"):
        batch.execute([decision_command("u", "2")])
    other.execute("ALTER TABLE hidden RENAME TO snapshots")
    other.close()
    [reply] = batch.execute([decision_command("u", "2")])
    assert json.loads(reply)["source"] == "policy"  # type: ignore[arg-type]
    assert [event.kind for event in batch.journal.select()] == ["study", "unit", "decision", "decision"]
    batch.close()
    resources.close()
    database.close()


def test_request_is_refused_while_the_storage_is_locked(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("larl.service.storage.database.BUSY", 0.2)
    with hosts(sqlite) as [host]:
        host.create_study()
        other = sqlite3.connect(sqlite.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="locked"):
            host.decide("u", "1")
        assert host.queries.state("sleep").info().policy_version == 1  # reading is possible
        other.execute("ROLLBACK")
        other.close()
        assert host.decide("u", "1")["t"] == 0
        assert host.replay() == 1


def test_requests_are_refused_before_long_while_the_storage_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with Server(f"sqlite:///{path}", tmp_path / "log", "--no-auth") as server:
        with Connection(server.port) as connection:
            connection.post("/v1/studies", study="sleep", arms=["a", "b"], policy=UCB)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        def decide(key: int) -> tuple[int, float]:
            started = time.monotonic()
            with Connection(server.port, timeout=PATIENCE) as connection:
                status = connection.post("/v1/studies/sleep/decisions", unit="u", key=f"{key}").status
            return status, time.monotonic() - started

        with ThreadPoolExecutor(4) as pool:  # some wait for the batch of others, and then for the lock
            found = list(pool.map(decide, range(4)))
        other.close()
        assert [status for status, _ in found] == [503] * 4
        assert max(seconds for _, seconds in found) < BUSY
        assert decide(0)[0] == 200


def test_times_around_the_end_of_summer_time_are_stored_in_utc(sqlite: str) -> None:
    with hosts(sqlite) as [host]:
        host.create_study()
        for i, made in enumerate(["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00Z"]):
            host.ingest("u", str(i), made=made)
        events = [event for event in host.journal.all() if event.kind == "decision"]
        hours = ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T01:30"]
        assert [event.request["made"][:16] for event in events] == hours
        assert all(event.at.endswith("Z") and event.request["made"].endswith("Z") for event in events)


@pytest.mark.parametrize(
    "made", ["2026-10-25T02:30:00", "2026-10-25", "yesterday", 1793000000, "0001-01-01T00:00:00+14:00", None]
)
def test_time_without_an_offset_from_utc_is_refused(made: object) -> None:
    with pytest.raises(ValidationError):
        requests.ExternalDecisionRequest(unit="u", key="k", arm="a", made=made)  # type: ignore[arg-type]


def test_policy_that_cannot_be_compiled_does_not_affect_other_studies(
    sqlite: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with hosts(sqlite) as [host]:
        with failing_policy.registered():
            host.create_study("failing", policy={"policy": "FailingPolicy"})
        host.create_study("fine")
        monkeypatch.setattr(agents, "_compiled", set())  # as in a new process, in which this policy is not registered
        server.compile_policies(host.queries)
        assert "the policy of failing cannot be compiled" in capsys.readouterr().err
        assert host.decide("u", "1", "fine")["source"] == "policy"
