"""A service without HTTP: what is asked is checked as over HTTP, and done at a desk of its own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from larl.service import asked
from larl.service.clerk import Command
from larl.service.database import Database
from larl.service.desk import Desk
from larl.service.journal import Journal
from larl.service.problems import Problem
from larl.service.replay import Replay
from larl.service.views import Views

UCB = {"policy": "UCB"}
LARL = {"policy": "LARL", "s": 1}


class Host:
    """Asks a desk. Refusals are raised."""

    def __init__(self, storage: str, **options: Any) -> None:
        self.database = Database(storage, write=True, create=True)
        self.book, self.alerts = Journal(self.database), []
        self.desk = Desk(self.book, alert=self.alerts.append, **{"seconds": 60.0} | options)
        self.views = Views(self.book)

    def close(self) -> None:
        self.desk.close()
        self.database.close()

    def make(self, study: str = "sleep", **terms: Any) -> Any:
        body = asked.NewStudy(**{"study": study, "arms": ["a", "b"], "policy": UCB, "seed": 7} | terms)
        words = body.words()
        del words["study"]
        return self._ask("study", study, study, words)

    def change(self, key: str, replaces: int, policy: Any, study: str = "sleep", **words: Any) -> Any:
        body = asked.NewPolicy(key=key, replaces=replaces, policy=policy, reason="", **words)
        return self._ask("policy", study, key, body.words())

    def close_study(self, study: str = "sleep", reason: str = "") -> Any:
        return self._ask("closed", study, "closed", asked.Closing(reason=reason).words())

    def register(self, unit: str, study: str = "sleep") -> Any:
        return self._ask("unit", study, unit, asked.NewUnit(unit=unit).words(), unit)

    def decide(self, unit: str, key: str, study: str = "sleep", **words: Any) -> Any:
        return self._ask("decision", study, key, asked.Moment(unit=unit, key=key, **words).words(), unit)

    def ingest(self, unit: str, key: str, study: str = "sleep", **words: Any) -> Any:
        body = asked.Made(**{"unit": unit, "key": key, "arm": "a", "made": "2026-01-01T00:00:00Z"} | words)
        return self._ask("ingest", study, key, body.words(), unit)

    def reward(self, decision: str, key: str, value: float | None, **words: Any) -> Any:
        said = {"decision": decision} | asked.Outcome(key=key, value=value, **words).words()
        return self._ask("reward", decision.partition(".")[0], key, said)

    def delivered(self, decision: str, key: str, delivered: bool = True) -> Any:
        said = {"decision": decision} | asked.Delivery(key=key, delivered=delivered).words()
        return self._ask("delivered", decision.partition(".")[0], key, said)

    def resolve(self, issue: int, study: str = "sleep") -> Any:
        return self._ask("resolved", study, str(issue), asked.Resolution(note="seen").words(issue=issue))

    def issues(self, study: str = "sleep") -> list[Any]:
        found: list[Any] = self.views.issues(study)["items"]
        return found

    def _ask(self, kind: str, study: str, key: str, words: dict[str, Any], unit: str = "") -> Any:
        [reply] = self.desk.do([Command(kind, study, key, words, unit)])
        if isinstance(reply, Problem):
            raise reply
        return json.loads(reply)

    def check(self) -> int:
        """Every decision made anew comes out the same; how many there are."""
        return Replay(self.book).run().decisions


@contextmanager
def hosts(storage: str, count: int = 1, **options: Any) -> Iterator[list[Host]]:
    """So many services of one storage, as if each were a process of its own."""
    opened: list[Host] = []
    try:
        for _ in range(count):
            opened.append(Host(storage, **options))
        yield opened
    finally:
        for host in opened:
            host.close()
