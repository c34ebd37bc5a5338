"""A host without HTTP: requests are validated as over HTTP and executed by a batch in this process."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from larl.service.core.batch import CommandBatch, Resources
from larl.service.core.commands import Command
from larl.service.core.problems import Problem
from larl.service.ops.replay import Replay
from larl.service.queries.journal_queries import JournalQueries
from larl.service.schemas import requests
from larl.service.storage.database import Database
from larl.service.storage.journal import Journal

UCB = {"policy": "UCB"}
LARL = {"policy": "LARL", "s": 1}


class Host:
    """Sends commands to a batch; returns responses and raises refusals."""

    def __init__(self, storage: str, max_idle: float | None = None, **options: Any) -> None:
        self.database = Database(storage, write=True, create=True, max_idle=max_idle)
        self.journal, self.alerts = Journal(self.database), []
        self.resources = Resources(self.journal, alert=self.alerts.append, **{"timeout": 60.0} | options)
        self.batch = CommandBatch(self.resources)
        self.queries = JournalQueries(self.journal)

    def close(self) -> None:
        self.batch.close()
        self.resources.close()
        self.database.close()

    def create_study(self, study: str = "sleep", **settings: Any) -> Any:
        body = requests.NewStudy(**{"study": study, "arms": ["a", "b"], "policy": UCB, "seed": 7} | settings)
        return self.send(Command(study, study, body))

    def change_policy(self, key: str, replaces: int, policy: Any, study: str = "sleep", **more: Any) -> Any:
        body = requests.NewPolicy(**{"key": key, "replaces": replaces, "policy": policy, "reason": ""} | more)
        return self.send(Command(study, key, body))

    def close_study(self, study: str = "sleep", reason: str = "") -> Any:
        return self.send(Command(study, "closed", requests.CloseStudyRequest(reason=reason)))

    def register(self, unit: str, study: str = "sleep") -> Any:
        return self.send(Command(study, unit, requests.NewUnit(unit=unit), unit))

    def decide(self, unit: str, key: str, study: str = "sleep", **more: Any) -> Any:
        return self.send(decision_command(unit, key, study, **more))

    def ingest(self, unit: str, key: str, study: str = "sleep", **more: Any) -> Any:
        values = {"unit": unit, "key": key, "arm": "a", "made": "2026-01-01T00:00:00Z"} | more
        return self.send(Command(study, key, requests.ExternalDecisionRequest(**values), unit))

    def import_history(self, key: str, steps: list[dict[str, Any]], study: str = "sleep") -> Any:
        return self.send(history_command(key, steps, study))

    def reward(self, decision: str, key: str, value: float | None, **more: Any) -> Any:
        return self.send(reward_command(decision, key, value, **more))

    def deliver(self, decision: str, key: str, delivered: bool = True) -> Any:
        body = requests.DeliveryRequest(key=key, delivered=delivered)
        return self.send(Command(study_of(decision), key, body, decision=decision))

    def resolve(self, issue: int, study: str = "sleep", note: str = "seen") -> Any:
        return self.send(Command(study, str(issue), requests.Resolution(note=note), issue=issue))

    def issues(self, study: str = "sleep") -> list[Any]:
        found: list[Any] = self.queries.issues(study)["items"]
        return found

    def send(self, command: Command[Any]) -> Any:
        [reply] = self.batch.execute([command])
        if isinstance(reply, Problem):
            raise reply
        return json.loads(reply)

    def replay(self) -> int:
        """Replay everything; return the number of decisions."""
        return Replay(self.journal).run().decisions


def study_of(decision: str) -> str:
    """Return the study of a decision."""
    return decision.partition(".")[0]


def decision_command(unit: str, key: str, study: str = "sleep", **more: Any) -> Command[Any]:
    """Return a request for a decision."""
    return Command(study, key, requests.DecisionRequest(unit=unit, key=key, **more), unit)


def history_command(key: str, steps: list[dict[str, Any]], study: str = "sleep") -> Command[Any]:
    """Return an import of steps."""
    return Command(study, key, requests.HistoryRequest.model_validate({"key": key, "steps": steps}))


def reward_command(decision: str, key: str, value: float | None, **more: Any) -> Command[Any]:
    """Return the reward of a decision."""
    body = requests.RewardRequest(key=key, value=value, **more)
    return Command(study_of(decision), key, body, decision=decision)


@contextmanager
def hosts(storage: str, count: int = 1, **options: Any) -> Iterator[list[Host]]:
    """Open one storage several times, as if each host were another process."""
    opened: list[Host] = []
    try:
        for _ in range(count):
            opened.append(Host(storage, **options))
        yield opened
    finally:
        for host in opened:
            host.close()
