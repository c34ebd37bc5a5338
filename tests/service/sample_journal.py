"""A storage with events of every kind, written by the code that serves."""

from pathlib import Path
from typing import Any

from larl.service.http.auth import Auth
from tests.service.fixed_secrets import fixed_secret
from tests.service.host import LARL, UCB, Host

TIMEOUT = 120.0  # seconds that a policy may take


class SampleHost:
    """A host that numbers its requests, for studies with the arms "stay" and "go"."""

    def __init__(self, url: str) -> None:
        self.url, self.host, self._keys = url, Host(url, timeout=TIMEOUT), 0

    def close(self) -> None:
        self.host.close()

    def _key(self) -> str:
        self._keys += 1
        return f"k{self._keys}"

    def create_study(self, name: str, policy: Any, arms: Any = ("stay", "go"), **more: Any) -> None:
        self.host.create_study(name, **{"policy": policy, "arms": list(arms), "seed": None} | more)

    def change_policy(self, study: str, policy: Any, replaces: int, **more: Any) -> None:
        self.host.change_policy(self._key(), replaces, policy, study, reason="try", **more)

    def decision(self, study: str, unit: str, **more: Any) -> Any:
        """Request a decision; return the response."""
        return self.host.decide(unit, self._key(), study, **more)

    def decide(self, study: str, unit: str, **more: Any) -> str:
        """Request a decision; return its id."""
        return str(self.decision(study, unit, **more)["id"])

    def ingest(self, study: str, unit: str, arm: str, **more: Any) -> str:
        """Report an external decision; return its id."""
        made = "2026-01-05T08:00:00+01:00"
        return str(self.host.ingest(unit, self._key(), study, arm=arm, made=made, **more)["id"])

    def reward(self, decision: str, value: float | None, arm: str | None = None) -> str:
        """Send a reward; return its status."""
        return str(self.host.reward(decision, self._key(), value, arm=arm)["status"])

    def deliver(self, decision: str) -> None:
        self.host.deliver(decision, self._key())

    def make_policies_fail(self, fail: bool) -> None:
        """Set the time limit of policies to 0, or back."""
        self.host.batch.runner.seconds = 0.0 if fail else TIMEOUT


def write_alone(host: SampleHost) -> None:
    """Write a study without pooling, with everything that can happen in a study."""
    host.create_study("alone", LARL, seed=7, min_probability=0.1, max_delay=3, default_reward=0.25)
    for value in (0.5, 0.125, -1.0):
        assert host.reward(host.decide("alone", "u1"), value) == "learnt"
    first = host.decide("alone", "u2", available=["go"], reason="nobody at home")
    host.deliver(first)
    second = host.decide("alone", "u2")
    assert host.reward(first, 2.0) == "repaired"
    assert host.reward(first, 1.5) == "corrected"
    assert host.reward(first, 1.5) == "repeated"
    assert host.reward(second, None) == "missing"
    host.decide("alone", "u1", available=[], reason="asleep")
    host.reward(host.ingest("alone", "u1", "go", probabilities={"stay": 0.5, "go": 0.5}), 0.75)
    host.ingest("alone", "u1", "stay")
    pending = host.decide("alone", "u1")
    decision = host.decision("alone", "u1")
    host.reward(decision["id"], 0.3, arm="stay" if decision["arm"] == "go" else "go")
    _write_failures(host)
    host.change_policy("alone", UCB, 1, min_probability=0.2)
    for value in (0.1, 0.9, 0.7):
        for unit in ("u1", "u2", "u3"):
            host.reward(host.decide("alone", unit), value)
    assert host.reward(pending, 3.0) == "late"
    host.change_policy("alone", LARL, 2)
    for value in (0.4, 0.6):
        for unit in ("u2", "u1", "u3"):
            host.reward(host.decide("alone", unit), value)
    host.host.close_study("alone", "enough")


def _write_failures(host: SampleHost) -> None:
    """Write a decision and a reward while the policy fails, and the resolution of the issue."""
    host.make_policies_fail(True)
    fallback = host.decide("alone", "u2")
    host.make_policies_fail(False)
    host.reward(fallback, 0.2)
    decision = host.decide("alone", "u2")
    host.make_policies_fail(True)
    assert host.reward(decision, 0.6) == "stored"
    host.make_policies_fail(False)
    host.decide("alone", "u2")
    [issue] = host.host.issues("alone")
    host.host.resolve(issue["issue"], "alone", "a larger machine")


def write_together(host: SampleHost) -> None:
    """Write a pooled study with contexts, whose units have different numbers of decisions."""
    policy = LARL | {"context": 2}
    host.create_study("together", policy, seed=3, min_probability=0.1, max_delay=4, pooling="partial")
    decisions = [host.decide("together", unit, context=[0.5, float(i)]) for i, unit in enumerate("abcab")]
    for decision in reversed(decisions):
        host.reward(decision, 0.5 + 0.1 * decisions.index(decision))
    for i in range(6):
        host.reward(host.decide("together", "c", context=[1.0, -0.5 * i]), 0.25 * i)
    host.decide("together", "a", available=[], context=[0.0, 0.0])
    host.change_policy("together", policy | {"alpha": 0.5}, 1)
    for unit in "abcd":
        host.decide("together", unit, context=[0.25, 0.5])
        host.reward(host.decide("together", unit, context=[0.5, 0.25]), 0.5)


def write_trial(host: SampleHost, name: str = "trial", units: int = 4, steps: int = 6) -> None:
    """Write a small trial in which every unit has the same number of decisions."""
    host.create_study(name, UCB, seed=5, min_probability=0.2)
    for step in range(steps):
        for unit in range(units):
            host.reward(host.decide(name, f"p{unit}"), round(0.1 * step - 0.05 * unit, 3))


def write_sample(path: Path) -> str:
    """Write a storage with all three studies and two tokens; return its URL."""
    url = f"sqlite:///{path}"
    host = SampleHost(url)
    Auth(host.host.database).create("*", "admin")
    Auth(host.host.database).create("alone", "analyst")
    with fixed_secret():
        for write in (write_alone, write_together, write_trial):
            write(host)
    host.close()
    return url
