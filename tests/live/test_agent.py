"""An agent reproduces the engine's trial step by step, and its probabilities are exact."""

import math
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import larl
from larl import worlds
from larl._core.compile import kernel
from larl.policies import REGISTRY, Policy, bind, register
from larl.policies._deployment import Deployment
from larl.policies._probabilities import argmax_normal_probabilities, forced_arm, sample_arm
from tests.conftest import THREE_ARMS, world_of
from tests.policies.test_live_functions import leaves
from tests.stepping import Chooser

STEPS = 60


def live_specs() -> list[Policy]:
    from tests.conftest import SPECS

    return [spec for spec in SPECS if not isinstance(spec, larl.DynamicOracle)]


def trace(spec: Policy, steps: int = STEPS, seed: int = 5) -> tuple[Any, Any]:
    result = larl.compare({"policy": spec}, world_of(spec), horizon=steps, trials=1, seed=seed)
    return np.asarray(result.arm).ravel(), np.asarray(result.reward).ravel()


@pytest.mark.parametrize("spec", live_specs(), ids=str)
def test_agent_reproduces_engine_trial(spec: Policy) -> None:
    arms, rewards = trace(spec)
    agent = larl.Agent(spec, 3, seed=5, horizon=STEPS, world=world_of(spec))
    for t in range(STEPS):
        decision = agent.decide()
        assert decision.t == t
        assert decision.arm == str(arms[t])
        assert decision.probabilities[decision.arm] > 0.0
        assert math.fsum(decision.probabilities.values()) == pytest.approx(1.0, abs=1e-12)
        assert agent.observe(decision, float(rewards[t])) == "learnt"


@kernel
def forced_counts(min_probability: float, available: Any, count: int, grid: int, counts: Any) -> None:
    for i in range(grid):
        counts[forced_arm(i / grid, min_probability, available, count)] += 1


@kernel
def probability_counts(probabilities: Any, grid: int, counts: Any) -> None:
    for i in range(grid):
        counts[sample_arm(i / grid, probabilities)] += 1


def test_arms_are_drawn_with_exact_probabilities_over_a_grid_of_u() -> None:
    counts, available = np.zeros(5, dtype=np.int64), np.array([True, False, True, True])
    forced_counts(1 / 8, available, 3, 64, counts)
    assert counts.tolist() == [8, 0, 8, 8, 40]  # the last count: left to the policy
    counts[:] = 0
    forced_counts(1 / 3, available, 3, 3 * 512, counts)
    assert counts.tolist() == [512, 0, 512, 512, 0]
    counts[:] = 0
    probability_counts(np.array([0.25, 0.0, 0.5, 0.25]), 64, counts)
    assert counts.tolist() == [16, 0, 32, 16, 0]


DRAWS = 100_000
DRAWN_POLICIES = [larl.UCB(), larl.ThompsonSampling(), larl.Exp3(0.2, (-5.0, 5.0))]


@pytest.mark.parametrize("available", [[True, True, True], [True, False, True]])
@pytest.mark.parametrize("spec", DRAWN_POLICIES, ids=str)
def test_probabilities_match_frequencies_of_draws(spec: Policy, available: list[bool]) -> None:
    agent = larl.Agent(spec, 3, seed=1)
    for reward in np.random.default_rng(2).normal(size=12):
        agent.observe(agent.decide(), float(reward))
    rules = Deployment(min_probability=0.05).rules("test", larl.Random(), ["0", "1", "2"])
    chooser = Chooser(agent.state, 3, rules)
    counts, _ = chooser.choose_often(DRAWS, available)
    probabilities = chooser.probabilities
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(probabilities[available] >= 0.05)
    assert np.all(probabilities[~np.array(available)] == 0.0)
    assert np.all(
        np.abs(counts - DRAWS * probabilities) <= 4.0 * np.sqrt(DRAWS * probabilities * (1.0 - probabilities)) + 1e-6
    )


@kernel
def largest_draw_probabilities(mean: Any, sd: Any, available: Any, out: Any) -> None:
    argmax_normal_probabilities(mean, sd, available, out)


def test_thompson_probabilities_match_simulation() -> None:
    """Checks the quadrature with standard deviations that differ by a factor of 10⁴."""
    mean, sd = np.array([0.0, 0.1, 0.3, -1.0, 0.2]), np.array([1.0, 1e-4, 0.02, 3.0, 0.5])
    out = np.zeros(5)
    largest_draw_probabilities(mean, sd, np.ones(5, dtype=bool), out)
    count = 400_000
    best = np.argmax(mean + sd * np.random.default_rng(0).normal(size=(count, 5)), axis=1)
    frequencies = np.bincount(best, minlength=5) / count
    assert np.all(np.abs(frequencies - out) <= 4.0 * np.sqrt(out * (1 - out) / count) + 1e-9)
    largest_draw_probabilities(np.zeros(4), np.full(4, 2.0), np.array([True, True, False, True]), out[:4])
    assert out[:4] == pytest.approx([1 / 3, 1 / 3, 0.0, 1 / 3], abs=1e-13)


def test_agent_learns_from_played_arm_not_chosen_arm() -> None:
    one, other = larl.Agent(larl.UCB(), ["a", "b"], seed=3), larl.Agent(larl.UCB(), ["a", "b"], seed=3)
    decision = one.decide()
    assert decision.arm == "a"
    one.observe(decision, 2.0, arm="b")
    other.decide(available=["b"])
    other.observe("0-" + decision.id.partition("-")[2], 2.0)
    assert same(one.state, other.state)
    assert one.decide().arm == "b"


def same(one: Any, other: Any) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(leaves(one), leaves(other), strict=True))


def test_time_advances_without_arms_and_rewards() -> None:
    agent = larl.Agent(larl.RoundRobin(), ["a", "b"])
    none = agent.decide(available=[])
    assert (none.arm, none.probabilities) == (None, {"a": 0.0, "b": 0.0})
    with pytest.raises(larl.InvalidValue, match="none was available at step 0"):
        agent.observe(none, 1.0)
    assert agent.decide().arm == "b"
    assert agent.t == 2
    assert agent.observe(none, 1.0, arm="a") == "corrected"  # a report that arm "a" was played anyway


@pytest.mark.parametrize("max_delay", [1, 2, 5])
def test_reward_after_max_delay_is_late(max_delay: int) -> None:
    agent = larl.Agent(larl.UCB(), 2, max_delay=max_delay)
    decisions = [agent.decide() for _ in range(12)]
    for i, decision in enumerate(decisions):
        status = agent.observe(decision, 1.0)
        assert status == ("late" if 12 - i > max_delay else "learnt" if i == 11 else "repaired")
    assert agent.counts["late"] == 12 - max_delay
    assert agent.observe(decisions[-1], 1.0) == "repeated"
    assert agent.observe(decisions[-1], 2.0) == "corrected"
    assert agent.observe(decisions[-1], None) == "corrected"


INVALID_ARGUMENTS = [
    (lambda: larl.Agent("LARL", 2), "policy"),
    (lambda: larl.Agent(larl.UCB(), 1), "arms"),
    (lambda: larl.Agent(larl.UCB(), ["a", "a"]), "arms"),
    (lambda: larl.Agent(larl.UCB(), 3, min_probability=0.4), "min_probability"),
    (lambda: larl.Agent(larl.UCB(), 3, seed=-1), "seed"),
    (lambda: larl.Agent(larl.UCB(), 3, max_delay=0), "max_delay"),
    (lambda: larl.Agent(larl.DynamicOracle(), 2), "policy"),
    (lambda: larl.Agent(larl.KalmanOracle(), 2), "world"),
]


@pytest.mark.parametrize(("make", "field"), INVALID_ARGUMENTS, ids=[field for _, field in INVALID_ARGUMENTS])
def test_invalid_argument_names_field(make: Any, field: str) -> None:
    with pytest.raises(larl.InvalidValue, match=field):
        make()


def test_refused_call_changes_nothing() -> None:
    agent = larl.Agent(larl.DiscountedUCB(0.9), ["a", "b"], seed=2)
    decision = agent.decide()
    agent.observe(decision, 1.0)
    before, t = [np.copy(leaf) for leaf in leaves(agent.state)], agent.t
    for call in (
        lambda: agent.decide(available=["c"]),
        lambda: agent.decide(available="a"),
        lambda: agent.decide(context=[1.0]),
        lambda: agent.observe(decision, math.nan),
        lambda: agent.observe(decision, math.inf),
        lambda: agent.observe(decision, "1"),  # type: ignore[arg-type]
        lambda: agent.observe(decision, 1.0, arm="c"),
        lambda: agent.observe("7-0", 1.0),
        lambda: agent.observe("0-0", 1.0),
        lambda: agent.observe(decision._replace(id="0x"), 1.0),
    ):
        with pytest.raises(larl.InvalidValue):
            call()
    assert agent.t == t
    assert all(np.array_equal(a, b) for a, b in zip(before, leaves(agent.state), strict=True))


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, 1e101, -1e200])
def test_refused_reward_of_the_last_decision_changes_nothing(reward: float) -> None:
    agent, twin = (larl.Agent(larl.DiscountedUCB(0.9), 2, seed=2) for _ in range(2))
    decision = agent.decide()
    with pytest.raises(larl.InvalidValue, match=re.escape(f"reward = {reward}")):
        agent.observe(decision, reward)
    assert agent.observe(decision, 1.0) == twin.observe(twin.decide(), 1.0) == "learnt"
    assert agent.decide() == twin.decide()


class InfiniteState(NamedTuple):
    plays: Any


@register(
    InfiniteState,
    lambda state, bits: 0,
    lambda state, arm, reward: None,
    predict=lambda state, arm: (math.inf, 1.0),
)
@dataclass(frozen=True)
class Infinite(Policy):
    def init(self, arms: int, **_: Any) -> Any:
        return InfiniteState(np.zeros(arms))


REGISTRY.pop("Infinite")  # other tests take all policies from there


class StrictState(NamedTuple):
    total: Any


def strict_update(state: StrictState, arm: int, reward: float) -> None:
    if reward < 0.0:
        raise ValueError("negative")
    state.total[arm] += reward


bind(StrictState, lambda state, bits: 0, strict_update, predict=lambda state, arm: (state.total[arm], 1.0))


@dataclass(frozen=True)
class Strict(Policy):
    def init(self, arms: int, **_: Any) -> Any:
        return StrictState(np.zeros(arms))


@pytest.mark.parametrize("late", [False, True])
def test_reward_that_an_own_update_refuses_changes_nothing(late: bool) -> None:
    agent = larl.Agent(Strict(), 2)
    decisions = [agent.decide() for _ in range(6 if late else 1)]
    with pytest.raises(ValueError, match="negative") as caught:
        agent.observe(decisions[0], -1.0)
    assert "update" in caught.value.__notes__[0]
    agent.observe(decisions[0], 2.0)
    after = agent.decide()
    assert (after.t, after.arm, after.expected) == (len(decisions), "0", 2.0)


def test_infinite_prediction_is_refused() -> None:
    with pytest.raises(larl.PolicyError, match=r"Infinite\(\) cannot decide: its prediction is infinite"):
        larl.Agent(Infinite(), 2).decide()


@pytest.mark.parametrize("name", ["", None, 0, np.array([1, 2])], ids=str)
def test_observe_before_first_decision_is_refused(name: Any) -> None:
    agent = larl.Agent(larl.UCB(), 2)
    with pytest.raises(larl.InvalidValue, match="a Decision of this agent, or its id"):
        agent.observe(name, 1.0)
    assert agent.counts == dict.fromkeys(agent.counts, 0)


def test_kalman_prediction_decays_over_missing_rewards() -> None:
    """After n missing rewards the predicted z is γⁿ times the first prediction."""
    world = worlds.paper(1)
    agent = larl.Agent(larl.KalmanOracle(), 2, world=world)
    for _ in range(5):
        agent.observe(agent.decide(), 3.0)
    first = agent.decide()
    later = [agent.decide() for _ in range(4)][-1]
    assert first.expected is not None
    assert later.expected == pytest.approx(first.expected * 0.9**4, rel=1e-12)


def test_agent_with_trial_number_reproduces_that_trial() -> None:
    result = larl.compare({"policy": larl.LARL(2)}, THREE_ARMS, horizon=STEPS, trials=4, seed=5)
    agent = larl.Agent(larl.LARL(2), 3, seed=5, trial=3)
    for arm, reward in zip(
        *(np.asarray(values)[..., 3, :].ravel() for values in (result.arm, result.reward)), strict=True
    ):
        decision = agent.decide()
        assert decision.arm == str(arm)
        agent.observe(decision, float(reward))


@pytest.mark.parametrize("policy", [larl.LARL(2, context=1), larl.ThompsonSampling()], ids=str)
def test_recorded_arms_give_same_state_as_decisions(policy: Policy) -> None:
    """One agent decides, another records the same arms: State, ids and next decision are equal."""
    first, second = (larl.Agent(policy, ["a", "b"], seed=3, min_probability=0.1, max_delay=4) for _ in range(2))
    shown: Any = {"context": [0.5]} if getattr(policy, "context", 0) else {}
    for t in range(23):
        available = None if t % 5 else []
        decision = first.decide(available, **shown)
        assert second.record(decision.arm, **shown) == decision.id
        if t % 3:
            for agent in (first, second):
                agent.observe(decision.id, 0.1 * t if decision.arm else None)
    assert all(np.array_equal(a, b) for a, b in zip(leaves(first.state), leaves(second.state), strict=True))
    assert first.decide(**shown) == second.decide(**shown)


def test_recording_unknown_arm_is_refused() -> None:
    agent = larl.Agent(larl.UCB(), ["a", "b"])
    with pytest.raises(larl.InvalidValue, match="one of a, b"):
        agent.record("c")
    assert agent.t == 0
