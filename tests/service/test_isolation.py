"""Studies do not wait for each other, and a failed commit takes back nothing else."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from larl.service.core.agents import AgentHandle
from larl.service.core.batch import CommandBatch
from larl.service.storage import group_commit
from larl.service.storage.database import StorageError
from larl.service.storage.events import Event
from tests.service.host import Host, decision_command, hosts
from tests.service.study_client import create_study, decide, reward, service_client
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.timing


def test_policy_that_hangs_does_not_delay_other_studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, started, proceed = AgentHandle.decide, threading.Event(), threading.Event()

    def hang(handle: AgentHandle, *arguments: Any, **named: Any) -> Any:
        if handle.config.study == "slow":
            started.set()
            assert proceed.wait(PATIENCE)
        return original(handle, *arguments, **named)

    monkeypatch.setattr(AgentHandle, "decide", hang)
    with service_client(tmp_path, timeout=2 * PATIENCE) as client, ThreadPoolExecutor() as threads:
        proceed.set()
        for study in ("slow", "quick"):
            create_study(client, study)  # which decides once, to compile the policy
        proceed.clear()
        started.clear()
        waiting = [threads.submit(decide, client, f"w{i}", f"unit-{i}", "slow") for i in range(3)]
        assert started.wait(PATIENCE)
        for i in range(5):
            decision = decide(client, str(i), "unit", "quick")
            assert (decision["t"], decision["source"]) == (i, "policy")
            assert reward(client, str(i), decision["id"], 1.0)["status"] == "learnt"
        create_study(client, "new")
        assert decide(client, "1", "unit", "new")["t"] == 0
        assert not any(each.done() for each in waiting)
        proceed.set()
        assert [each.result()["source"] for each in waiting] == ["policy"] * 3


class _Commits:
    """Commits of several studies that are waiting together: the first one holds the disk until all others wait."""

    def __init__(self, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
        self.journal, self._batches = host.journal, {}
        self.host, self.sync, self.is_first = host, threading.Event(), True
        self.failure: Any = None
        self._insert = group_commit.insert
        monkeypatch.setattr(group_commit, "insert", self._slow_insert)

    def _slow_insert(self, connection: Any, events: list[Event], last: int) -> list[Event]:
        if self.is_first:
            self.is_first = False
            assert self.sync.wait(PATIENCE)
        if self.failure is not None:
            self.failure([event.study for event in events])
        return self._insert(connection, events, last)

    def execute(self, threads: ThreadPoolExecutor, studies: str) -> dict[str, "Future[Any]"]:
        """Decide once in each study at the same time; those after the first are written together."""
        found = {}
        for study in studies:
            batch = self._batches.setdefault(study, CommandBatch(self.host.resources))
            found[study] = threads.submit(batch.execute, [decision_command("u", f"{study}-{self.is_first}", study)])
            waiting = len(found) - 1
            eventually(lambda wanted=waiting: len(self.journal._commits._waiting) == wanted, True)
            eventually(lambda: not self.is_first, True)
        self.sync.set()
        return found


@pytest.fixture
def four(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    with hosts(sqlite) as [host], ThreadPoolExecutor() as threads:
        for study in "abcd":
            host.create_study(study)
        yield host, _Commits(host, monkeypatch), threads
        host.replay()
        seqs = [event.seq for event in host.journal.select()]
        assert seqs == list(range(1, len(seqs) + 1))


def _steps(host: Host) -> dict[str, int]:
    """Return the number of stored decisions of each study."""
    events = host.journal.select()
    return {study: sum(each.kind == "decision" and each.study == study for each in events) for study in "abcd"}


def test_commits_that_wait_for_the_disk_are_written_together(four: Any) -> None:
    host, commits, threads = four
    transactions: list[list[str]] = []
    commits.failure = transactions.append
    for each in commits.execute(threads, "abcd").values():
        assert len(each.result()) == 1
    assert [set(studies) for studies in transactions] == [{"a"}, {"b", "c", "d"}]
    assert _steps(host) == dict.fromkeys("abcd", 1)


def test_failed_commit_of_a_group_fails_all_in_it_and_nothing_else(four: Any) -> None:
    host, commits, threads = four

    def full(studies: list[str]) -> None:
        if "b" in studies:
            raise OperationalError("INSERT", {}, Exception("database or disk is full"))

    commits.failure = full
    found = commits.execute(threads, "abc")
    assert len(found["a"].result()) == 1
    for study in "bc":
        with pytest.raises(StorageError, match="disk is full"):
            found[study].result()
    assert _steps(host) == {"a": 1, "b": 0, "c": 0, "d": 0}
    commits.failure = None
    for study, batch in commits._batches.items():
        [reply] = batch.execute([decision_command("u", "again", study)])
        assert isinstance(reply, bytes)
    assert _steps(host) == {"a": 2, "b": 1, "c": 1, "d": 0}


def test_events_that_cannot_be_written_do_not_affect_others_in_their_group(four: Any) -> None:
    host, commits, threads = four

    def refuse(studies: list[str]) -> None:
        if "c" in studies:
            raise ValueError("these cannot be written")

    commits.failure = refuse
    found = commits.execute(threads, "abcd")
    with pytest.raises(ValueError, match="cannot be written"):
        found["c"].result()
    assert all(len(found[study].result()) == 1 for study in "abd")
    assert _steps(host) == {"a": 1, "b": 1, "c": 0, "d": 1}


def test_study_goes_on_if_its_snapshots_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: CommandBatch) -> None:
        raise ValueError("no snapshot")

    with service_client(tmp_path) as client:
        create_study(client, "sleep")
        monkeypatch.setattr(CommandBatch, "save_due", fail)
        assert [decide(client, str(i), "unit", "sleep")["t"] for i in range(20)] == list(range(20))
