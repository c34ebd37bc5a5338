"""Whatever fails, there is a flagged fallback or a clear refusal, and never a silent wrong answer."""

import json
import resource
import socket
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from larl.service import server
from larl.service.core import agents, alerts
from larl.service.core.agents import AgentHandle
from larl.service.core.batch import CommandBatch
from larl.service.ops.replay import Replay
from larl.service.schemas import requests
from larl.service.storage.database import Database, StorageError
from larl.service.storage.journal import Journal
from tests.service import awkward
from tests.service.host import UCB, decision, hosts, reward
from tests.service.processes import Caller, Server
from tests.waiting import PATIENCE

pytestmark = pytest.mark.timing
AWKWARD = {"raises": awkward.RAISES, "hangs": awkward.HANGS, "is no number": awkward.IS_NO_NUMBER}


@pytest.mark.parametrize("how", AWKWARD)
def test_a_policy_that_goes_wrong_is_replaced_by_flagged_fallbacks(sqlite: str, how: str) -> None:
    with awkward.known(), hosts(sqlite) as [host]:
        host.make(policy={"policy": "Awkward", "wrong": AWKWARD[how]}, fallback={"a": 0.25, "b": 0.75})
        first = host.decide("u", "1")
        assert host.reward(first["id"], "1", 1.0)["status"] == "learnt"
        second = host.decide("u", "2")
        host.batch.runner.seconds = 0.1 if how == "hangs" else 60.0
        taken = host.reward(second["id"], "2", 1.0)["status"]
        assert taken == ("learnt" if how == "is no number" else "stored")
        third = host.decide("u", "3")
        assert (third["source"], third["fallback"], third["t"]) == ("fallback", True, 2)
        assert third["probabilities"] == {"a": 0.25, "b": 0.75}
        [issue] = host.issues()
        assert (issue["severity"], issue["code"], issue["unit"]) == ("red", "policy", "u")
        [alert] = host.alerts
        assert alert["code"] == "policy"
        assert "unit" not in alert
        host.batch.runner.seconds = 60.0
        assert host.decide("other", "4")["source"] == "policy"  # of which it has learnt nothing yet
        host.change("p", 1, UCB)
        assert host.decide("u", "5")["source"] == "policy"


def test_a_policy_that_is_stuck_holds_up_what_is_its_own(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of commands that are done in one turn, those of the unit get along without it, and the others do not notice."""
    observe, free = AgentHandle.observe, threading.Event()

    def waits(mind: AgentHandle, decision: str, *words: Any) -> str:
        assert decision != second or free.wait(PATIENCE)
        return observe(mind, decision, *words)

    with hosts(sqlite) as [host]:
        host.make()
        assert host.reward(host.decide("u", "1")["id"], "1", 1.0)["status"] == "learnt"
        second = host.decide("u", "2")["id"]
        monkeypatch.setattr(AgentHandle, "observe", waits)
        host.batch.runner.seconds = 2.0  # which no other unit needs, however busy the machine

        commands = [decision("v", "v"), reward(second, "2", 1.0), *(decision(each, each) for each in "uwv")]
        replies = host.batch.execute(commands)
        before, taken, stuck, after, again = (json.loads(reply) for reply in replies if isinstance(reply, bytes))
        assert (before["source"], taken["status"], stuck["source"], after["source"]) == (
            "policy",
            "stored",
            "fallback",
            "policy",
        )
        assert (stuck["t"], again) == (2, before)
        assert [issue["unit"] for issue in host.issues()] == ["u"]
        rows = host.journal.select()
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        assert [row.unit for row in rows if row.kind == "unit"] == ["u", "v", "w"]
        host.batch.runner.seconds = 60.0
        free.set()


def test_a_policy_that_is_stuck_once_has_failed_once(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else its command asked of it: the next decision is the policy's again."""
    decide, free = AgentHandle.decide, threading.Event()

    def waits(*words: Any) -> Any:
        assert free.wait(PATIENCE)
        return decide(*words)

    monkeypatch.setattr(AgentHandle, "decide", waits)
    free.set()
    with hosts(sqlite) as [host]:
        host.make(max_delay=2, default_reward=0.5)
        host.decide("u", "1")
        host.decide("u", "2")
        host.batch.runner.seconds = 0.3
        free.clear()
        assert host.decide("u", "3")["source"] == "fallback"  # and the reward of the first is due
        free.set()
        host.batch.runner.seconds = 60.0
        assert host.decide("u", "4")["source"] == "policy"
        [issue] = host.issues()
        assert issue["done"] == "a decision was made with the fallback probabilities"
        kinds = [row.kind for row in host.journal.select()]
        assert kinds == ["study", "unit", "decision", "decision", "issue", "default", "decision", "default", "decision"]
        assert host.check() == 4


def test_a_policy_that_would_end_the_thread_is_one_that_fails(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with hosts(sqlite) as [host]:
        host.make()
        with monkeypatch.context() as patch:
            patch.setattr(AgentHandle, "decide", lambda *_: sys.exit("enough"))
            assert host.decide("u", "1")["source"] == "fallback"
        assert host.decide("u", "2")["source"] == "policy"
        assert "SystemExit: enough" in host.issues()[0]["happened"]


def test_a_full_disk_is_a_refusal_and_the_same_request_succeeds_once_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with Server(f"sqlite:///{path}", tmp_path / "log", "--no-auth", "--timeout", "60") as server:
        assert server.process is not None
        with Caller(server.port, timeout=120.0) as caller:
            caller.post("/v1/studies", study="sleep", arms=["a", "b"], policy=UCB)
            known = caller.post("/v1/studies/sleep/decisions", unit="u", key="1").content
            full = path.with_name("study.db-wal").stat().st_size
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (full, resource.RLIM_INFINITY))
            refused = caller.post("/v1/studies/sleep/decisions", unit="u", key="2")
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
            assert "nothing could be stored" in refused.json()["detail"]
            assert "fallback probabilities" in refused.json()["detail"]
            assert caller.post("/v1/studies/sleep/decisions", unit="u", key="1").content == known
            no_limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, no_limit)
            assert caller.post("/v1/studies/sleep/decisions", unit="u", key="2").json()["t"] == 1
    database = Database(f"sqlite:///{path}")
    Replay(Journal(database)).run()
    database.close()


def test_a_storage_that_breaks_while_a_mind_is_loaded_is_not_a_policy_that_fails(sqlite: str) -> None:
    with hosts(sqlite) as [host]:
        host.make()
        host.decide("u", "1")
    other = sqlite3.connect(sqlite.removeprefix("sqlite:///"))
    other.execute("ALTER TABLE snapshots RENAME TO hidden")
    database = Database(sqlite, write=True)
    batch = CommandBatch(Journal(database), timeout=60.0)
    with pytest.raises(StorageError, match="no such table: snapshots"):
        batch.execute([decision("u", "2")])
    other.execute("ALTER TABLE hidden RENAME TO snapshots")
    other.close()
    [reply] = batch.execute([decision("u", "2")])
    assert json.loads(reply)["source"] == "policy"  # type: ignore[arg-type]
    assert [row.kind for row in batch.journal.select()] == ["study", "unit", "decision", "decision"]
    batch.close()
    database.close()


def test_a_storage_that_somebody_else_locks_is_a_refusal(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("larl.service.storage.database.BUSY", 0.2)
    with hosts(sqlite) as [host]:
        host.make()
        other = sqlite3.connect(sqlite.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="locked"):
            host.decide("u", "1")
        assert host.queries.state("sleep").info().policy_version == 1  # reading goes on
        other.execute("ROLLBACK")
        other.close()
        assert host.decide("u", "1")["t"] == 0
        assert host.check() == 1


def test_times_around_a_change_of_clocks_are_stored_in_utc(sqlite: str) -> None:
    with hosts(sqlite) as [host]:
        host.make()
        for i, made in enumerate(["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00Z"]):
            host.ingest("u", str(i), made=made)
        rows = [row for row in host.journal.all() if row.kind == "decision"]
        hours = ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T01:30"]
        assert [row.request["made"][:16] for row in rows] == hours
        assert all(row.at.endswith("Z") and row.request["made"].endswith("Z") for row in rows)


@pytest.mark.parametrize(
    "made", ["2026-10-25T02:30:00", "2026-10-25", "yesterday", 1793000000, "0001-01-01T00:00:00+14:00", None]
)
def test_a_time_of_which_the_distance_from_utc_is_not_known_is_refused(made: object) -> None:
    with pytest.raises(ValidationError):
        requests.ExternalDecisionRequest(unit="u", key="k", arm="a", made=made)  # type: ignore[arg-type]


def test_a_policy_that_cannot_be_prepared_keeps_no_other_study_from_being_served(
    sqlite: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with hosts(sqlite) as [host]:
        with awkward.known():
            host.make("awkward", policy={"policy": "Awkward"})
        host.make("fine")
        monkeypatch.setattr(agents, "_compiled", set())  # as in a new process, which does not know such a policy
        server.compile_policies(host.queries)
        assert "the policy of awkward cannot be compiled" in capsys.readouterr().err
        assert host.decide("u", "1", "fine")["source"] == "policy"


def test_a_receiver_of_alerts_that_never_answers_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "TIMEOUT", PATIENCE)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sender = alerts.Alerts(f"http://127.0.0.1:{silent.getsockname()[1]}", None)
        for _ in range(50):
            sender.send({"severity": "red", "study": "sleep", "code": "policy"})
        near, _ = silent.accept()  # the first is being sent; all calls have returned without its answer
        with near:
            assert near.recv(4) == b"POST"
            assert sender._queue.qsize() == 49
    sender.close()  # the others are refused at once
    assert not sender._thread.is_alive()
