"""Rewards in any order, twice, corrected, never, units at any time: the States are those of a cohort told in time."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import larl
from larl.live import shared_history as _together
from larl.policies._pooling import POOLINGS
from tests.live.cohorts import same

REWARDS = st.one_of(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.none())
AVAILABLE = st.one_of(st.none(), st.none(), st.just([]), st.just(["b"]))
ARMS, UNITS = ["a", "b"], ["x", "y", "z", "w"]


class Deliveries(RuleBasedStateMachine):
    """A cohort, and what is known of each of its steps: unit, arm, reward."""

    @initialize(
        pooling=st.sampled_from(POOLINGS),
        max_delay=st.integers(1, 5),
        min_probability=st.sampled_from([0.0, 0.2]),
        gap=st.sampled_from([2, 64]),
    )
    def begin(self, pooling: str, max_delay: int, min_probability: float, gap: int) -> None:
        _together.GAP = gap  # marks that lie close, so that few steps have many of them
        self.make = lambda: larl.Cohort(
            larl.LARL(1), ARMS, seed=4, min_probability=min_probability, max_delay=max_delay, pooling=pooling
        )
        self.cohort, self.max_delay, self.pooling = self.make(), max_delay, pooling
        self.known: list[tuple[str, str | None, float | None]] = []
        self.decisions: list[larl.Decision] = []
        self.closed = 0

    @rule(units=st.lists(st.sampled_from(UNITS), min_size=1, max_size=4), available=AVAILABLE)
    def decide(self, units: list[str], available: list[str] | None) -> None:
        for unit in units:
            self.decide_one(unit, available)

    def decide_one(self, unit: str, available: list[str] | None) -> None:
        self.decisions.append(self.cohort.decide(unit, available))
        self.known.append((unit, self.decisions[-1].arm, None))
        if self.pooling != "none":
            self.closed = max(self.closed, len(self.known) - self.max_delay * len({unit for unit, _, _ in self.known}))

    @precondition(lambda self: self.decisions)
    @rule(back=st.integers(0, 9), reward=REWARDS, arm=st.one_of(st.none(), st.none(), st.sampled_from(ARMS)))
    def observe(self, back: int, reward: float | None, arm: str | None) -> None:
        i = max(len(self.decisions) - 1 - back, 0)
        unit, known, _ = self.known[i]
        told = arm or known
        if told is None and reward is not None:
            return
        how = self.cohort.observe(self.decisions[i], reward, arm=arm)
        later = sum(1 for each, _, _ in self.known[i:] if each == unit)
        assert (how == "late") == (later > self.max_delay or i < self.closed)
        if how != "late":
            self.known[i] = (unit, told, reward)

    @precondition(lambda self: len(self.known) % 5 == 4)
    @rule()
    def reload(self) -> None:
        """Through a file and back."""
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory() as folder:
            self.cohort = larl.Cohort.load(self.cohort.save(Path(folder) / "cohort.json"))

    @invariant()
    def as_if_all_had_come_in_time(self) -> None:
        if not hasattr(self, "cohort"):
            return
        rebuilt: Any = self.make()
        for unit, arm, reward in self.known:
            if arm is None:
                rebuilt.decide(unit, available=[])
            else:
                rebuilt.observe(rebuilt.decide(unit), reward, arm=arm)
        for unit in rebuilt.units:
            assert same(self.cohort.state(unit), rebuilt.state(unit))
        assert (self.cohort.t, self.cohort.units) == (rebuilt.t, rebuilt.units)

    def teardown(self) -> None:
        _together.GAP = 64


Deliveries.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestDeliveries = Deliveries.TestCase


@pytest.mark.parametrize("pooling", ["full", "partial"])
def test_marks_of_every_age_are_right(pooling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks two decisions apart, thinned and made anew; rewards up to 120 decisions late, some corrected, units new."""
    monkeypatch.setattr(_together, "GAP", 2)
    draws = np.random.default_rng(8)
    make = partial(larl.Cohort, larl.LARL(1), ARMS, seed=1, pooling=pooling, max_delay=30)
    cohort, decisions, known, kept = make(), [], [], set()
    for i in range(400):
        decisions.append(cohort.decide(f"{draws.integers(min(1 + i // 20, 6))}"))
        known.append(None)
        for _ in range(2):
            at = max(i - int(draws.integers(1, 4) ** draws.integers(1, 5)), 0)
            reward = float(draws.normal())
            if draws.random() < 0.6 and cohort.observe(decisions[at], reward) != "late":
                known[at] = reward
        past = cohort._past
        assert isinstance(past, _together.Together)
        kept.add(len(past.marks))
        if i % 20 == 19:
            rebuilt: Any = make()
            for decision, reward in zip(decisions, known, strict=True):
                rebuilt.observe(rebuilt.decide(decision.unit), reward, arm=decision.arm)
            assert all(same(cohort.state(unit), rebuilt.state(unit)) for unit in rebuilt.units)
    assert max(kept) > 4
    assert past.marks[0].time > 100
