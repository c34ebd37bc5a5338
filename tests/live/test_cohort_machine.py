"""With rewards in any order, repeated, corrected or missing, States are as if all had come in time."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import larl
from larl.live import shared_history
from larl.policies._pooling import POOLINGS
from tests.live.cohorts import same

REWARDS = st.one_of(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.none())
AVAILABLE = st.one_of(st.none(), st.none(), st.just([]), st.just(["b"]))
ARMS, UNITS = ["a", "b"], ["x", "y", "z", "w"]


class DelayedRewards(RuleBasedStateMachine):
    """A cohort, and unit, arm and last reported reward of each of its steps."""

    @initialize(
        pooling=st.sampled_from(POOLINGS),
        max_delay=st.integers(1, 5),
        min_probability=st.sampled_from([0.0, 0.2]),
        interval=st.sampled_from([2, 64]),
    )
    def begin(self, pooling: str, max_delay: int, min_probability: float, interval: int) -> None:
        shared_history.CHECKPOINT_INTERVAL = interval  # a small one, so that few steps have many checkpoints
        self.make = lambda: larl.Cohort(
            larl.LARL(1), ARMS, seed=4, min_probability=min_probability, max_delay=max_delay, pooling=pooling
        )
        self.cohort, self.max_delay, self.pooling = self.make(), max_delay, pooling
        self.known: list[tuple[str, str | None, float | None]] = []
        self.decisions: list[larl.Decision] = []
        self.final = 0

    @rule(units=st.lists(st.sampled_from(UNITS), min_size=1, max_size=4), available=AVAILABLE)
    def decide(self, units: list[str], available: list[str] | None) -> None:
        for unit in units:
            self.decide_one(unit, available)

    def decide_one(self, unit: str, available: list[str] | None) -> None:
        self.decisions.append(self.cohort.decide(unit, available))
        self.known.append((unit, self.decisions[-1].arm, None))
        if self.pooling != "none":
            self.final = max(self.final, len(self.known) - self.max_delay * len({unit for unit, _, _ in self.known}))

    @precondition(lambda self: self.decisions)
    @rule(back=st.integers(0, 9), reward=REWARDS, arm=st.one_of(st.none(), st.none(), st.sampled_from(ARMS)))
    def observe(self, back: int, reward: float | None, arm: str | None) -> None:
        i = max(len(self.decisions) - 1 - back, 0)
        unit, known, _ = self.known[i]
        played = arm or known
        if played is None and reward is not None:
            return
        status = self.cohort.observe(self.decisions[i], reward, arm=arm)
        later = sum(1 for each, _, _ in self.known[i:] if each == unit)
        assert (status == "late") == (later > self.max_delay or i < self.final)
        if status != "late":
            self.known[i] = (unit, played, reward)

    @precondition(lambda self: len(self.known) % 5 == 4)
    @rule()
    def reload(self) -> None:
        """Save the cohort and load it."""
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory() as folder:
            self.cohort = larl.Cohort.load(self.cohort.save(Path(folder) / "cohort.json"))

    @invariant()
    def states_are_as_if_rewards_came_in_time(self) -> None:
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
        shared_history.CHECKPOINT_INTERVAL = 64


DelayedRewards.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestDelayedRewards = DelayedRewards.TestCase


@pytest.mark.parametrize("pooling", ["full", "partial"])
def test_replay_from_checkpoints_of_any_age_is_exact(pooling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint every two decisions; rewards up to 120 decisions late, some corrected; new units."""
    monkeypatch.setattr(shared_history, "CHECKPOINT_INTERVAL", 2)
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
        history = cohort._history
        assert isinstance(history, shared_history.SharedHistory)
        kept.add(len(history.checkpoints))
        if i % 20 == 19:
            rebuilt: Any = make()
            for decision, reward in zip(decisions, known, strict=True):
                rebuilt.observe(rebuilt.decide(decision.unit), reward, arm=decision.arm)
            assert all(same(cohort.state(unit), rebuilt.state(unit)) for unit in rebuilt.units)
    assert max(kept) > 4
    assert history.checkpoints[0].time > 100
