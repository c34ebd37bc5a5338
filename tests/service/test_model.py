"""Whatever is asked in whatever order: the service answers as a model says that keeps everything in dictionaries.

The model knows nothing of journals, turns or minds; what a policy decides it only checks for being possible.
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
from tests.service.figures import amount, keep
from tests.service.host import LARL, UCB, Host

ARMS = ("a", "b")
FLOOR = 0.1
UNITS = st.sampled_from(["u1", "u2", "u3"])
VALUES = st.sampled_from([None, 0.0, 0.5, -1.0])
OPEN = st.sampled_from([None, ["a"], ["a", "b"], []])
PICK = st.integers(0, 10**6)


@dataclass
class Step:
    """A decision as the model knows it."""

    id: str
    arm: str | None
    played: str | None
    value: float | None = None
    pending: bool = True
    state: str = "pending"
    delivered: bool | None = None


@dataclass
class Model:
    """A study as the model knows it."""

    explicit: bool
    max_delay: int
    default: float | None
    version: int = 1
    closed: bool = False
    units: dict[str, list[Step]] = field(default_factory=dict)

    def enter(self, unit: str) -> int | None:
        """The status with which a decision for a unit is refused, if it is."""
        if self.closed:
            return 409
        if self.explicit and unit not in self.units:
            return 404
        steps = self.units.setdefault(unit, [])
        for step in steps[: max(len(steps) - self.max_delay + 1, 0)]:
            if step.pending:
                step.pending, step.value = False, self.default
                step.state = "missing" if self.default is None else "defaulted"
        return None

    def status(self, unit: str, t: int, value: float | None, arm: str | None) -> str:
        """How a reward is taken."""
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
    """The service and the model, side by side."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.storage = f"sqlite:///{Path(self.folder.name)}/study.db"
        self.host = Host(self.storage)
        self.count = 0
        self.said: list[tuple[str, dict[str, Any], Any]] = []  # method, arguments, answer

    @initialize(
        explicit=st.booleans(),
        max_delay=st.integers(1, 4),
        default=st.sampled_from([None, 0.25]),
        policy=st.sampled_from([UCB, LARL]),
        pooling=st.sampled_from(["none", "none", "partial"]),
    )
    def begin(self, explicit: bool, max_delay: int, default: float | None, policy: Any, pooling: str) -> None:
        self.model, self.pooled = Model(explicit, max_delay, default), pooling != "none"
        self.host.make(
            policy=LARL if self.pooled else policy,
            pooling=pooling,
            max_delay=max_delay,
            default_reward=default,
            min_probability=FLOOR,
            registration="explicit" if explicit else "first_decision",
        )

    def ask(self, expected: int | None, method: str, **words: Any) -> Any:
        """Ask under a new key; refused with the expected status, or answered."""
        Machine.steps += 1
        self.count += 1
        words = {"key": f"k{self.count}"} | words
        status, answer = None, None
        try:
            answer = getattr(self.host, method)(**words)
        except Problem as problem:
            status = problem.status
        assert status == expected
        if answer is None:
            return None
        self.said.append((method, words, answer))
        return answer

    @rule(unit=UNITS)
    def register(self, unit: str) -> None:
        known = unit in self.model.units  # the same again, and the same answer, also in a closed study
        Machine.steps += 1
        if self.model.closed and not known:
            with pytest.raises(Problem, match="closed"):
                self.host.register(unit)
        else:
            assert self.host.register(unit)["number"] == list(self.model.units | {unit: []}).index(unit)
            self.model.units.setdefault(unit, [])

    @rule(unit=UNITS, available=OPEN)
    def decide(self, unit: str, available: list[str] | None) -> None:
        answer = self.ask(self.model.enter(unit), "decide", unit=unit, available=available)
        if answer is None:
            return
        can = ARMS if available is None else available
        assert answer["source"] == ("policy" if can else "unavailable")
        assert answer["arm"] in can if can else answer["arm"] is None
        odds = answer["probabilities"]
        assert all(odds[arm] >= FLOOR if arm in can else odds[arm] == 0.0 for arm in ARMS)
        assert math.isclose(sum(odds.values()), 1.0 if can else 0.0)
        self._add(unit, answer)

    @rule(unit=UNITS, arm=st.sampled_from(ARMS))
    def ingest(self, unit: str, arm: str) -> None:
        answer = self.ask(self.model.enter(unit), "ingest", unit=unit, arm=arm)
        if answer is not None:
            assert (answer["source"], answer["arm"]) == ("host", arm)
            self._add(unit, answer)

    def _add(self, unit: str, answer: Any) -> None:
        steps = self.model.units[unit]
        assert (answer["t"], answer["policy_version"]) == (len(steps), self.model.version)
        has_arm = answer["arm"] is not None
        state = "pending" if has_arm else "unavailable"
        steps.append(Step(answer["id"], answer["arm"], answer["arm"], pending=has_arm, state=state))

    @precondition(lambda self: any(self.model.units.values()))
    @rule(pick=PICK, value=VALUES, arm=st.sampled_from([None, None, *ARMS]))
    def reward(self, pick: int, value: float | None, arm: str | None) -> None:
        unit, t, step = self._step(pick)
        nothing = step.arm is None and arm is None and value is not None
        expected = 409 if self.model.closed else 422 if nothing else None
        answer = self.ask(expected, "reward", name=step.id, value=value, arm=arm)
        if answer is not None and not self.pooled:  # what a cohort can still learn depends on all of its units
            assert answer["status"] == self.model.status(unit, t, value, arm)

    @precondition(lambda self: any(self.model.units.values()))
    @rule(pick=PICK, delivered=st.booleans())
    def delivered(self, pick: int, delivered: bool) -> None:
        step = self._step(pick)[2]
        if self.ask(409 if self.model.closed else None, "delivered", name=step.id, delivered=delivered):
            step.delivered = delivered

    def _step(self, pick: int) -> tuple[str, int, Step]:
        """One of the decisions, late ones less often."""
        places = [(unit, t) for unit, steps in self.model.units.items() for t in range(len(steps))][-12:]
        unit, t = places[pick % len(places)]
        return unit, t, self.model.units[unit][t]

    @precondition(lambda self: self.said)
    @rule(pick=PICK)
    def repeat(self, pick: int) -> None:
        method, words, answer = self.said[pick % len(self.said)]
        assert getattr(self.host, method)(**words) == answer

    @precondition(lambda self: any(method == "decide" for method, _, _ in self.said))
    @rule(pick=PICK)
    def same_key_other_payload(self, pick: int) -> None:
        decided = [words for method, words, _ in self.said if method == "decide"]
        words = decided[pick % len(decided)] | {"reason": "another"}
        with pytest.raises(Problem, match="another payload"):
            self.host.decide(**words)

    @rule(right=st.booleans(), policy=st.sampled_from([UCB, LARL]))
    def change(self, right: bool, policy: Any) -> None:
        replaces = self.model.version + (not right)
        expected = 409 if self.model.closed else None if right else 422
        policy = LARL if self.pooled else policy
        if self.ask(expected, "change", replaces=replaces, policy=policy) is not None:
            self.model.version += 1

    @precondition(lambda self: self.count > 15)
    @rule()
    def close(self) -> None:
        closed = self.host.close_study()["closed"]
        assert self.host.close_study()["closed"] == closed
        self.model.closed = True

    @rule(politely=st.booleans())
    def restart(self, politely: bool) -> None:
        if politely:
            self.host.close()
        else:
            self.host.batch.runner.close()
            self.host.database.close()
        self.host = Host(self.storage)

    def teardown(self) -> None:
        if hasattr(self, "model"):
            if not self.pooled:
                self._compare()
            self.host.check()
            assert self.host.issues() == []
        self.host.close()
        self.folder.cleanup()

    def _compare(self) -> None:
        """What can be read is what the model knows."""
        names = ("id", "arm", "played", "reward", "state", "delivered")
        for unit, steps in self.model.units.items():
            found = self.host.queries.decisions("sleep", unit)["items"]
            known = [(step.id, step.arm, step.played, step.value, step.state, step.delivered) for step in steps]
            assert [tuple(each[name] for name in names) for each in found] == known


def test_the_service_is_what_the_model_is() -> None:
    examples, steps = amount(25, 200), amount(30, 50)
    shape = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        phases=[Phase.generate],
    )
    run_state_machine_as_test(Machine, settings=shape)
    keep("model", runs=examples, steps_a_run=steps, asked=Machine.steps)
