"""A storage with every kind of event, written by the code that serves."""

import json
from pathlib import Path
from typing import Any

from larl.service.core.batch import CommandBatch
from larl.service.core.commands import Command
from larl.service.http.auth import Auth
from larl.service.schemas import requests
from larl.service.storage.database import Database
from larl.service.storage.journal import Journal

UCB, LARL = {"policy": "UCB"}, {"policy": "LARL", "s": 1}


class Host:
    """Sends what a host would, one command after another."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.database = Database(url, write=True, create=True)
        self.batch = CommandBatch(Journal(self.database), timeout=120.0, alert=lambda issue: None)
        self._keys = 0

    def close(self) -> None:
        self.batch.close()
        self.database.close()

    def send(self, study: str, body: requests.Request, key: str = "", **more: Any) -> Any:
        self._keys += 1
        (reply,) = self.batch.execute([Command(study, key or f"k{self._keys}", body, **more)])
        if isinstance(reply, Exception):
            raise reply
        return json.loads(reply)

    def study(self, name: str, policy: Any, arms: Any = ("stay", "go"), **more: Any) -> None:
        self.send(name, requests.NewStudy(study=name, arms=list(arms), policy=policy, **more), name)

    def policy(self, name: str, policy: Any, replaces: int, **more: Any) -> None:
        self.send(name, requests.NewPolicy(key="k", policy=policy, replaces=replaces, reason="try", **more))

    def decision(self, study: str, unit: str, **more: Any) -> Any:
        return self.send(study, requests.DecisionRequest(unit=unit, key="k", **more), unit=unit)

    def decide(self, study: str, unit: str, **more: Any) -> str:
        return str(self.decision(study, unit, **more)["id"])

    def ingest(self, study: str, unit: str, arm: str, **more: Any) -> str:
        made = "2026-01-05T08:00:00+01:00"
        body = requests.ExternalDecisionRequest(unit=unit, key="k", arm=arm, made=made, **more)
        return str(self.send(study, body, unit=unit)["id"])

    def reward(self, name: str, value: float | None, arm: str | None = None) -> str:
        body = requests.RewardRequest(key="k", value=value, arm=arm)
        return str(self.send(name.partition(".")[0], body, decision=name)["status"])

    def delivered(self, name: str) -> None:
        self.send(name.partition(".")[0], requests.DeliveryRequest(key="k"), decision=name)

    def too_slow(self, slow: bool) -> None:
        """From now on no policy is quick enough, or any is."""
        self.batch.runner.seconds = 0.0 if slow else 120.0


def alone(host: Host) -> None:
    """A study of units of their own, with everything that can happen to one."""
    host.study("alone", LARL, seed=7, min_probability=0.1, max_delay=3, default_reward=0.25)
    for value in (0.5, 0.125, -1.0):
        assert host.reward(host.decide("alone", "u1"), value) == "learnt"
    first = host.decide("alone", "u2", available=["go"], reason="nobody at home")
    host.delivered(first)
    second = host.decide("alone", "u2")
    assert host.reward(first, 2.0) == "repaired"
    assert host.reward(first, 1.5) == "corrected"
    assert host.reward(first, 1.5) == "repeated"
    assert host.reward(second, None) == "missing"
    host.decide("alone", "u1", available=[], reason="asleep")
    host.reward(host.ingest("alone", "u1", "go", probabilities={"stay": 0.5, "go": 0.5}), 0.75)
    host.ingest("alone", "u1", "stay")
    waiting = host.decide("alone", "u1")
    kept = host.decision("alone", "u1")
    host.reward(kept["id"], 0.3, arm="stay" if kept["arm"] == "go" else "go")
    _fail(host)
    host.policy("alone", UCB, 1, min_probability=0.2)
    for value in (0.1, 0.9, 0.7):
        for unit in ("u1", "u2", "u3"):
            host.reward(host.decide("alone", unit), value)
    assert host.reward(waiting, 3.0) == "late"
    host.policy("alone", LARL, 2)
    for value in (0.4, 0.6):
        for unit in ("u2", "u1", "u3"):
            host.reward(host.decide("alone", unit), value)
    host.send("alone", requests.CloseStudyRequest(reason="enough"), "closed")


def _fail(host: Host) -> None:
    """A decision and a reward while the policy is too slow, and a person who says that it is mended."""
    host.too_slow(True)
    fallen = host.decide("alone", "u2")
    host.too_slow(False)
    host.reward(fallen, 0.2)
    lost = host.decide("alone", "u2")
    host.too_slow(True)
    assert host.reward(lost, 0.6) == "stored"
    host.too_slow(False)
    host.decide("alone", "u2")
    (issue,) = [row.seq for row in host.batch.journal.select() if row.kind == "issue"]
    host.send("alone", requests.Resolution(note="a larger machine"), str(issue), issue=issue)


def together(host: Host) -> None:
    """A study whose units learn together, with contexts, and units of unequal speed."""
    host.study("together", LARL | {"context": 2}, seed=3, min_probability=0.1, max_delay=4, pooling="partial")
    names = [host.decide("together", unit, context=[0.5, float(i)]) for i, unit in enumerate("abcab")]
    for name in reversed(names):
        host.reward(name, 0.5 + 0.1 * names.index(name))
    for i in range(6):
        host.reward(host.decide("together", "c", context=[1.0, -0.5 * i]), 0.25 * i)
    host.decide("together", "a", available=[], context=[0.0, 0.0])
    host.policy("together", LARL | {"context": 2, "alpha": 0.5}, 1)
    for unit in "abcd":
        host.decide("together", unit, context=[0.25, 0.5])
        host.reward(host.decide("together", unit, context=[0.5, 0.25]), 0.5)


def trial(host: Host, name: str = "trial", units: int = 4, steps: int = 6) -> None:
    """A little trial in which every unit decides equally often."""
    host.study(name, UCB, seed=5, min_probability=0.2)
    for step in range(steps):
        for unit in range(units):
            host.reward(host.decide(name, f"p{unit}"), round(0.1 * step - 0.05 * unit, 3))


def everything(path: Path) -> str:
    """A storage with all that there can be; its URL."""
    url = f"sqlite:///{path}"
    host = Host(url)
    Auth(host.database).create("*", "admin")
    Auth(host.database).create("alone", "analyst")
    for write in (alone, together, trial):
        write(host)
    host.close()
    return url
