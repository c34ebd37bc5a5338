"""Arbitrary sequences of requests and restarts: the service responds as a model that consists of dictionaries.

The model has no journal and no agents. Of decisions of policies it checks only that they are possible.
"""

import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from larl.service.core.problems import Problem
from tests.service.host import LARL, UCB, Host
from tests.service.measurements import save, scaled

ARMS = ("a", "b")
MIN_PROBABILITY = 0.1
UNITS = st.sampled_from(["u1", "u2", "u3"])
VALUES = st.sampled_from([None, 0.0, 0.5, -1.0])
AVAILABLE = st.sampled_from([None, ["a"], ["a", "b"], []])
INDEX = st.integers(0, 10**6)


@dataclass
class Step:
    """A decision in the model."""

    id: str
    arm: str | None
    played: str | None
    value: float | None = None
    pending: bool = True
    state: str = "pending"
    delivered: bool | None = None


@dataclass
class Model:
    """A study in the model."""

    is_explicit: bool
    max_delay: int
    default: float | None
    version: int = 1
    closed: bool = False
    units: dict[str, list[Step]] = field(default_factory=dict)

    def begin_decision(self, unit: str) -> int | None:
        """Fill in overdue rewards; return the HTTP status if a decision for the unit is refused, else None."""
        if self.closed:
            return 409
        if self.is_explicit and unit not in self.units:
            return 404
        steps = self.units.setdefault(unit, [])
        for step in steps[: max(len(steps) - self.max_delay + 1, 0)]:
            if step.pending:
                step.pending, step.value = False, self.default
                step.state = "missing" if self.default is None else "defaulted"
        return None

    def add_reward(self, unit: str, t: int, value: float | None, arm: str | None) -> str:
        """Apply a reward; return its status."""
        steps = self.units[unit]
        step, played = steps[t], arm or steps[t].played
        if len(steps) - t > self.max_delay:
            step.pending = False
            step.state = step.state if step.state in ("observed", "corrected") else "late"
            return "late"
        same, pending = (played, value) == (step.played, step.value), step.pending
        step.played, step.value, step.pending = played, value, False
        if not pending:
            step.state = step.state if same else "corrected"
            return "repeated" if same else "corrected"
        step.state = "missing" if value is None else "observed"
        return "missing" if value is None else "learnt" if t == len(steps) - 1 else "repaired"


class Machine(RuleBasedStateMachine):
    """The service and the model."""

    requests = 0

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.storage = f"sqlite:///{Path(self.folder.name)}/study.db"
        self.host = Host(self.storage)
        self.count = 0
        self.sent: list[tuple[str, dict[str, Any], Any]] = []  # method, arguments, response

    @initialize(
        explicit=st.booleans(),
        max_delay=st.integers(1, 4),
        default=st.sampled_from([None, 0.25]),
        policy=st.sampled_from([UCB, LARL]),
        pooling=st.sampled_from(["none", "none", "partial"]),
    )
    def create_study(self, explicit: bool, max_delay: int, default: float | None, policy: Any, pooling: str) -> None:
        self.model, self.pooled = Model(explicit, max_delay, default), pooling != "none"
        self.host.create_study(
            policy=LARL if self.pooled else policy,
            pooling=pooling,
            max_delay=max_delay,
            default_reward=default,
            min_probability=MIN_PROBABILITY,
            registration="explicit" if explicit else "first_decision",
        )

    def send(self, expected: int | None, method: str, **arguments: Any) -> Any:
        """Send a request with a new key; return the response, None if it is refused with the expected status."""
        Machine.requests += 1
        self.count += 1
        arguments = {"key": f"k{self.count}"} | arguments
        status, response = None, None
        try:
            response = getattr(self.host, method)(**arguments)
        except Problem as problem:
            status = problem.status
        assert status == expected
        if response is not None:
            self.sent.append((method, arguments, response))
        return response

    @rule(unit=UNITS)
    def register(self, unit: str) -> None:
        known = unit in self.model.units  # a repeated registration gets the same response, also in a closed study
        Machine.requests += 1
        if self.model.closed and not known:
            with pytest.raises(Problem, match="closed"):
                self.host.register(unit)
        else:
            assert self.host.register(unit)["number"] == list(self.model.units | {unit: []}).index(unit)
            self.model.units.setdefault(unit, [])

    @rule(unit=UNITS, available=AVAILABLE)
    def decide(self, unit: str, available: list[str] | None) -> None:
        response = self.send(self.model.begin_decision(unit), "decide", unit=unit, available=available)
        if response is None:
            return
        possible = ARMS if available is None else available
        assert response["source"] == ("policy" if possible else "unavailable")
        assert response["arm"] in possible if possible else response["arm"] is None
        probabilities = response["probabilities"]
        assert all(
            probabilities[arm] >= MIN_PROBABILITY if arm in possible else probabilities[arm] == 0.0 for arm in ARMS
        )
        assert math.isclose(sum(probabilities.values()), 1.0 if possible else 0.0)
        self._add(unit, response)

    @rule(unit=UNITS, arm=st.sampled_from(ARMS))
    def ingest(self, unit: str, arm: str) -> None:
        response = self.send(self.model.begin_decision(unit), "ingest", unit=unit, arm=arm)
        if response is not None:
            assert (response["source"], response["arm"]) == ("host", arm)
            self._add(unit, response)

    def _add(self, unit: str, response: Any) -> None:
        steps = self.model.units[unit]
        assert (response["t"], response["policy_version"]) == (len(steps), self.model.version)
        has_arm = response["arm"] is not None
        state = "pending" if has_arm else "unavailable"
        steps.append(Step(response["id"], response["arm"], response["arm"], pending=has_arm, state=state))

    @precondition(lambda self: any(self.model.units.values()))
    @rule(index=INDEX, value=VALUES, arm=st.sampled_from([None, None, *ARMS]))
    def reward(self, index: int, value: float | None, arm: str | None) -> None:
        unit, t, step = self._step(index)
        has_no_arm = step.arm is None and arm is None and value is not None
        expected = 409 if self.model.closed else 422 if has_no_arm else None
        response = self.send(expected, "reward", decision=step.id, value=value, arm=arm)
        if response is not None and not self.pooled:  # in a cohort, whether a reward is late depends on all units
            assert response["status"] == self.model.add_reward(unit, t, value, arm)

    @precondition(lambda self: any(self.model.units.values()))
    @rule(index=INDEX, delivered=st.booleans())
    def deliver(self, index: int, delivered: bool) -> None:
        step = self._step(index)[2]
        if self.send(409 if self.model.closed else None, "deliver", decision=step.id, delivered=delivered):
            step.delivered = delivered

    def _step(self, index: int) -> tuple[str, int, Step]:
        """Return one of the last decisions: unit, step number, step."""
        places = [(unit, t) for unit, steps in self.model.units.items() for t in range(len(steps))][-12:]
        unit, t = places[index % len(places)]
        return unit, t, self.model.units[unit][t]

    @precondition(lambda self: self.sent)
    @rule(index=INDEX)
    def repeat(self, index: int) -> None:
        method, arguments, response = self.sent[index % len(self.sent)]
        assert getattr(self.host, method)(**arguments) == response

    @precondition(lambda self: any(method == "decide" for method, _, _ in self.sent))
    @rule(index=INDEX)
    def same_key_other_payload(self, index: int) -> None:
        decided = [arguments for method, arguments, _ in self.sent if method == "decide"]
        arguments = decided[index % len(decided)] | {"reason": "another"}
        with pytest.raises(Problem, match="another payload"):
            self.host.decide(**arguments)

    @rule(is_current=st.booleans(), policy=st.sampled_from([UCB, LARL]))
    def change_policy(self, is_current: bool, policy: Any) -> None:
        replaces = self.model.version + (not is_current)
        expected = 409 if self.model.closed else None if is_current else 422
        policy = LARL if self.pooled else policy
        if self.send(expected, "change_policy", replaces=replaces, policy=policy) is not None:
            self.model.version += 1

    @precondition(lambda self: self.count > 15)
    @rule()
    def close(self) -> None:
        closed = self.host.close_study()["closed"]
        assert self.host.close_study()["closed"] == closed
        self.model.closed = True

    @rule(with_shutdown=st.booleans())
    def restart(self, with_shutdown: bool) -> None:
        if with_shutdown:
            self.host.close()
        else:
            self.host.batch.runner.close()
            self.host.database.close()
        self.host = Host(self.storage)

    def teardown(self) -> None:
        if hasattr(self, "model"):
            if not self.pooled:
                self._compare()
            self.host.replay()
            assert self.host.issues() == []
        self.host.close()
        self.folder.cleanup()

    def _compare(self) -> None:
        """Compare the decisions that the service returns with those of the model."""
        names = ("id", "arm", "played", "reward", "state", "delivered")
        for unit, steps in self.model.units.items():
            found = self.host.queries.decisions("sleep", unit)["items"]
            expected = [(step.id, step.arm, step.played, step.value, step.state, step.delivered) for step in steps]
            assert [tuple(each[name] for name in names) for each in found] == expected


def test_service_responds_as_the_model() -> None:
    examples, steps = scaled(25, 200), scaled(30, 50)
    options = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        phases=[Phase.generate],
    )
    run_state_machine_as_test(Machine, settings=options)
    save("model", runs=examples, steps_per_run=steps, requests=Machine.requests)
