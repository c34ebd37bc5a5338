"""With rewards in any order, repeated, corrected or missing, the State is as if all had come in time."""

import math
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import larl
from larl.policies import Policy
from tests.live.test_agent import same

POLICIES: list[Policy] = [
    larl.DiscountedUCB(0.9),
    larl.LARL(2),
    larl.SlidingWindowUCB(5),
    larl.ThompsonSampling(),
    larl.AdaptiveLARL(2),
]
REWARDS = st.one_of(st.none(), st.floats(-3.0, 3.0))
ARMS = ["a", "b", "c"]


class DelayedRewards(RuleBasedStateMachine):
    """An agent, and the last reported (arm, reward) of each step."""

    @initialize(
        policy=st.sampled_from(POLICIES), max_delay=st.integers(1, 7), min_probability=st.sampled_from([0.0, 0.2])
    )
    def begin(self, policy: Policy, max_delay: int, min_probability: float) -> None:
        self.make = lambda: larl.Agent(policy, ARMS, seed=4, min_probability=min_probability, max_delay=max_delay)
        self.agent, self.max_delay = self.make(), max_delay
        self.reported: list[tuple[str | None, float | None]] = []
        self.decisions: list[larl.Decision] = []

    @rule(available=st.one_of(st.none(), st.lists(st.sampled_from(ARMS), unique=True)))
    def decide(self, available: list[str] | None) -> None:
        self.decisions.append(self.agent.decide(available))
        self.reported.append((self.decisions[-1].arm, None))

    @precondition(lambda self: self.decisions)
    @rule(back=st.integers(0, 10), reward=REWARDS, arm=st.one_of(st.none(), st.none(), st.sampled_from(ARMS)))
    def observe(self, back: int, reward: float | None, arm: str | None) -> None:
        t = max(len(self.decisions) - 1 - back, 0)
        played = arm or self.reported[t][0]
        if played is None and reward is not None:
            return
        status = self.agent.observe(self.decisions[t], reward, arm=arm)
        assert (status == "late") == (len(self.decisions) - t > self.max_delay)
        if status != "late":
            self.reported[t] = (played, reward)

    @rule()
    def reload(self) -> None:
        """Save the agent and load it."""
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory() as folder:
            self.agent = larl.Agent.load(self.agent.save(Path(folder) / "agent.json"))

    @invariant()
    def state_is_as_if_rewards_came_in_time(self) -> None:
        if not hasattr(self, "agent"):
            return
        rebuilt: Any = self.make()
        for arm, reward in self.reported:
            decision = rebuilt.decide()
            rebuilt.observe(decision, reward, arm=arm) if arm else self.without_arm(rebuilt, decision)
        assert same(self.agent.state, rebuilt.state)
        assert self.agent.t == rebuilt.t

    def without_arm(self, rebuilt: Any, decision: Any) -> None:
        """Rewrite the decision as one without an available arm."""
        rebuilt._history.set(decision.t, -1, math.nan)


DelayedRewards.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestDelayedRewards = DelayedRewards.TestCase


def test_delayed_rewards_give_same_state_as_prompt_rewards() -> None:
    draws = np.random.default_rng(0)
    late, prompt = (larl.Agent(larl.DiscountedUCB(0.95), ARMS, seed=1, max_delay=20) for _ in range(2))
    pending: list[Any] = []
    for _ in range(500):
        decision = late.decide()
        pending.append((late.t + int(draws.integers(0, 12)), decision, float(draws.normal())))
        prompt.observe(prompt.decide(), pending[-1][2], arm=decision.arm)
        for item in [item for item in pending if item[0] <= late.t]:
            late.observe(item[1], item[2])
            pending.remove(item)
    for _, decision, reward in pending:
        late.observe(decision, reward)
    assert same(late.state, prompt.state)
    assert late.counts["late"] == 0
    assert late.counts["repaired"] > 300
