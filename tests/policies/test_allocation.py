"""Allocations: probabilities against numerical integrals, their limits, and the draws that they describe."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import larl
from larl._core.compile import kernel
from larl._core.states import copy_state
from larl.policies import Policy
from larl.policies._allocation import ALPHA_POLICIES, THOMPSON_POLICIES, Allocation, allocation_rule, mean_logistic
from larl.policies._deployment import Deployment
from tests.stepping import Chooser, learn_all

ARMS = ("nothing", "prompt")
DRAWS = 4_000


@kernel
def _mean_logistic(mean: float, sd: float, slope: float, log_c: float, k: float) -> float:
    return mean_logistic(mean, sd, slope, log_c, k)


def state_after(policy: Policy, arms: int, rewards: list[tuple[int, float]]) -> Any:
    """Return the State after these arms and rewards."""
    state = copy_state(policy.init(arms))
    learn_all(state, [arm for arm, _ in rewards], [reward for _, reward in rewards])
    return state


def probabilities(
    policy: Policy,
    rewards: list[tuple[int, float]],
    allocation: Allocation,
    arms: int = 2,
    available: list[bool] | None = None,
) -> Any:
    """Return the action probabilities after these arms and rewards."""
    rules = Deployment(allocation=allocation).rules("test", policy, [str(arm) for arm in range(arms)])
    chooser = Chooser(state_after(policy, arms, rewards), arms, rules)
    chooser.choose(0, available or True)
    return chooser.probabilities


def draws(arms: int, steps: int, seed: int = 0) -> list[tuple[int, float]]:
    """Return random arms and rewards; arm a has the mean a / 2."""
    source = np.random.default_rng(seed)
    return [(int(arm), float(source.normal(arm / 2))) for arm in source.integers(arms, size=steps)]


def ucb_posterior(rewards: list[tuple[int, float]], arms: int) -> tuple[Any, Any]:
    """Return mean and sd of each arm: the prior N(0, 1) and rewards with noise of sd 1."""
    own = [[reward for played, reward in rewards if played == arm] for arm in range(arms)]
    weight = np.array([1.0 + len(each) for each in own])
    return np.array([sum(each) for each in own]) / weight, 1.0 / np.sqrt(weight)


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_best_is_the_posterior_probability_that_the_arm_is_best(arms: int) -> None:
    rewards = draws(arms, 12)
    mean, sd = ucb_posterior(rewards, arms)

    def density(x: float, arm: int) -> float:
        others = [stats.norm.cdf(x, mean[b], sd[b]) for b in range(arms) if b != arm]
        return float(stats.norm.pdf(x, mean[arm], sd[arm]) * np.prod(others))

    expected = [integrate.quad(density, -10, 10, args=(arm,), limit=200)[0] for arm in range(arms)]
    for alpha in (1.0, 3.0):  # the posterior does not depend on the width of the interval
        found = probabilities(larl.UCB(alpha=alpha), rewards, Allocation("best"), arms)
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("mean", [-3.0, -0.2, 0.0, 0.4, 5.0])
@pytest.mark.parametrize("sd", [1e-9, 0.03, 1.0, 40.0])
@pytest.mark.parametrize(("slope", "c", "k"), [(5.0, 1.0, 1.0), (0.3, 5.0, 1.0), (50.0, 0.2, 0.5), (2.0, 1.0, 3.0)])
def test_mean_logistic_is_the_integral_over_the_posterior(
    mean: float, sd: float, slope: float, c: float, k: float
) -> None:
    def integrand(z: float) -> float:
        return float(stats.norm.pdf(z) * math.exp(-k * np.logaddexp(0.0, math.log(c) - slope * (mean + sd * z))))

    bends = [(step / slope - mean) / sd for step in (-40.0, -9.0, -3.0, 0.0, 3.0, 9.0, 40.0)]
    edges = sorted({-9.0, 0.0, 9.0, *(z for z in bends if abs(z) < 9.0)})
    parts = [integrate.quad(integrand, *each, epsabs=1e-13, limit=200)[0] for each in pairwise(edges)]
    assert _mean_logistic(mean, sd, slope, math.log(c), k) == pytest.approx(sum(parts), abs=1e-9)


def test_smooth_of_two_arms_is_the_logistic_of_the_advantage() -> None:
    rewards, allocation = draws(2, 9), Allocation("smooth", low=0.1, high=0.7, slope=2.0, c=3.0, k=2.0)
    mean, sd = ucb_posterior(rewards, 2)
    expected = 0.1 + 0.6 * _mean_logistic(mean[1] - mean[0], math.hypot(*sd), 2.0, math.log(3.0), 2.0)
    assert probabilities(larl.UCB(), rewards, allocation) == pytest.approx([1.0 - expected, expected], abs=1e-12)


@pytest.mark.parametrize("arms", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_smooth_keeps_its_limits(arms: int, seed: int) -> None:
    allocation = Allocation("smooth", low=0.15, high=0.6, slope=30.0)
    for scale in (1e-30, 1.0, 1e30):
        rewards = [(arm, scale * reward) for arm, reward in draws(arms, 40, seed)]
        found = probabilities(larl.UCB(), rewards, allocation, arms)
        assert found.sum() == pytest.approx(1.0, abs=1e-12)
        assert found[1:].min() >= 0.15 - 1e-12
        assert found[0] >= 0.4 - 1e-12


def test_smooth_rises_with_the_advantage() -> None:
    shares = [probabilities(larl.UCB(), [(0, 0.0), (1, x)], Allocation("smooth"))[1] for x in np.linspace(-4, 4, 17)]
    assert np.all(np.diff(shares) > 0.0)
    assert shares[8] == pytest.approx(0.5, abs=1e-12)


def test_smooth_treats_equal_arms_alike_and_tends_to_two_arms() -> None:
    allocation = Allocation("smooth", low=0.0, high=1.0)
    rewards = draws(3, 30, 1)
    found = probabilities(larl.UCB(), rewards, allocation, 3)
    swapped = probabilities(larl.UCB(), [((2, 1, 0)[arm], reward) for arm, reward in rewards], allocation, 3)
    assert found == pytest.approx(swapped[::-1], abs=1e-12)
    rewards = [*draws(2, 30, 1), (2, -1e6)]  # the normal and the logistic distribution differ by less than 0.023
    found = probabilities(larl.UCB(), rewards, allocation, 3)
    assert found[:2] == pytest.approx(probabilities(larl.UCB(), rewards[:-1], allocation), abs=0.023)


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        (larl.UCB(standardise=True), "best"),
        (larl.UCB(standardise=True), "smooth"),
        (larl.LARL(1, standardise=True), "smooth"),
        (larl.SharedLARL(), "best"),
    ],
)
def test_standardised_policies_do_not_depend_on_the_unit_of_rewards(policy: Policy, kind: str) -> None:
    rewards = draws(2, 40)
    other = [(arm, 1000.0 * reward + 7.0) for arm, reward in rewards]
    one, two = (probabilities(policy, each, Allocation(kind)) for each in (rewards, other))
    assert one == pytest.approx(two, abs=1e-6)
    assert 0.0 < one.min() < 0.5


def test_best_of_a_thompson_policy_is_its_own_choice() -> None:
    rewards = draws(3, 10)
    own = probabilities(larl.ThompsonSampling(), rewards, Allocation("ucb"), 3)
    assert np.array_equal(probabilities(larl.ThompsonSampling(), rewards, Allocation("best"), 3), own)
    assert probabilities(larl.UCB(), rewards, Allocation("best"), 3) == pytest.approx(own, abs=1e-9)


def test_arms_without_a_prediction_come_first() -> None:
    assert probabilities(larl.LARL(2), draws(3, 1), Allocation("best"), 3) == pytest.approx([1 / 3] * 3)
    rewards = [(0, 1.0), (0, 2.0)]
    assert probabilities(larl.SharedLARL(), rewards, Allocation("best"), 3).tolist() == [0.0, 0.5, 0.5]
    explores = larl.LARLBIC(5, s_max=1, explore_with="alternate")
    assert probabilities(explores, rewards[:1], Allocation("best"), 3).tolist() == [0.0, 1.0, 0.0]
    limited = probabilities(explores, rewards[:1], Allocation("smooth"), 3)
    assert limited == pytest.approx([0.2, 0.6, 0.2])


@pytest.mark.parametrize("kind", ["best", "smooth"])
@pytest.mark.parametrize("available", [[True, False, True], [False, True, True], [False, True, False]])
def test_unavailable_arms_have_no_probability(kind: str, available: list[bool]) -> None:
    found = probabilities(larl.UCB(), draws(3, 20), Allocation(kind), 3, available)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    assert not found[~np.array(available)].any()
    assert (found[np.array(available)] > 0.0).all()


@pytest.mark.parametrize("reward", [0.0, 1e100, -1e100, 1e-300])
@pytest.mark.parametrize("kind", ["best", "smooth"])
@pytest.mark.parametrize("policy", [larl.UCB(), larl.UCB(standardise=True), larl.LARL(1)])
def test_extreme_and_constant_rewards_give_probabilities(reward: float, kind: str, policy: Policy) -> None:
    for arms in (2, 3):
        found = probabilities(policy, [(t % arms, reward) for t in range(12)], Allocation(kind), arms)
        assert found.sum() == pytest.approx(1.0, abs=1e-12)
        assert found.min() >= 0.0


@pytest.mark.parametrize("allocation", ["best", {"kind": "smooth", "slope": 2.0}])
def test_arms_are_drawn_with_the_reported_probabilities(allocation: Any) -> None:
    counts, expected = np.zeros(3), np.zeros(3)
    for trial in range(DRAWS):
        least = {"b": 0.2}
        agent = larl.Agent(larl.UCB(), ["a", "b", "c"], trial=trial, allocation=allocation, min_probability=least)
        for arm, reward in (("a", 1.0), ("b", 0.4), ("c", 0.1)):
            agent.observe(agent.record(arm), reward)
        decision = agent.decide()
        counts["abc".index(str(decision.arm))] += 1
        expected = np.array(list(decision.probabilities.values()))
    assert expected.sum() == pytest.approx(1.0, abs=1e-12)
    assert expected.min() > 0.05
    assert np.all(np.abs(counts - DRAWS * expected) <= 4.0 * np.sqrt(DRAWS * expected * (1.0 - expected)))


REFUSED = [larl.Exp3(0.2, (0.0, 1.0)), larl.KLUCB(), larl.Random(), larl.LARL(1, radius="theory"), larl.MUCB(4)]


@pytest.mark.parametrize("policy", REFUSED, ids=lambda each: type(each).__name__)
def test_policies_without_a_posterior_are_refused(policy: Policy) -> None:
    with pytest.raises(larl.InvalidValue, match=r"allocation = .*best of .*accepted: 'ucb', or a policy .*LARL, .*UCB"):
        allocation_rule("test", policy, 2, Allocation("best"))


def test_every_accepted_policy_is_registered_and_has_what_the_rule_needs() -> None:
    assert set(ALPHA_POLICIES) | set(THOMPSON_POLICIES) <= set(larl.policies.REGISTRY)
    assert all("alpha" in larl.policies.REGISTRY[name].__dataclass_fields__ for name in ALPHA_POLICIES)


@pytest.mark.parametrize("policy", [larl.LARL(1), larl.UCB(), larl.CohortLARL(s=2), larl.CohortAuto()], ids=str)
def test_probabilities_of_the_best_arm_do_not_depend_on_alpha(policy: Any) -> None:
    """The posterior's standard deviation is the bonus divided by alpha."""
    agents = [larl.Agent(replace(policy, alpha=alpha), 2, allocation="best") for alpha in (0.5, 1.0)]
    draws = np.random.default_rng(2)
    for t in range(40):
        reward = float(draws.normal())
        for agent in agents:
            agent.observe(agent.record(str(t % 2)), reward)
    one, other = (agent.decide().probabilities for agent in agents)
    assert one == pytest.approx(other, abs=1e-12)
    assert 0.01 < one["0"] < 0.99


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"allocation": "greedy"}, r"Agent: allocation = 'greedy' .*'ucb' or 'best' or 'smooth'"),
        ({"allocation": {"kind": "smooth", "slope": -1.0}}, r"Agent: allocation.slope = -1.0"),
        ({"allocation": {"kind": "smooth", "low": 0.9}}, r"Agent: allocation.low = 0.9 .*at most high = 0.8"),
        ({"allocation": {"steep": 1.0}}, r"Agent: allocation.steep = 1.0 .*only the fields kind, low"),
        ({"allocation": "best", "policy": larl.UCB(alpha=0.0)}, r"Agent: allocation = 'best' .*alpha > 0"),
        ({"allocation": {"kind": "smooth", "k": 2.0}, "arms": 3}, r"Agent: allocation.k = 2.0 .*1 with 3 arms"),
        ({"allocation": "smooth", "arms": 6}, r"Agent: allocation.low = 0.2 .*at most high / 5 = 0.16"),
        ({"min_probability": {"nothing": 0.5, "prompt": 0.6}}, r"Agent: min_probability = .*a sum of at most 1"),
        ({"min_probability": {"nothing": -0.1}}, r"Agent: min_probability\['nothing'\] = -0.1"),
        ({"min_probability": {"none": 0.1}}, r"Agent: min_probability = 'none' .*only the arms nothing, prompt"),
        ({"min_probability": {}}, r"Agent: min_probability = .*a mapping from names of arms"),
        ({"min_probability": 0.6}, r"Agent: min_probability = 0.6 .*≤ 0.5"),
    ],
)
def test_unusable_settings_are_refused(values: dict[str, Any], message: str) -> None:
    settings = {"policy": larl.UCB(), "arms": ARMS} | values
    with pytest.raises(larl.InvalidValue, match=message):
        larl.Agent(**settings)


def test_minimum_by_arm_is_mixed_with_the_policy() -> None:
    agent = larl.Agent(larl.UCB(), ["a", "b", "c"], min_probability={"a": 0.3, "c": 0.1})
    for arm, reward in (("a", 0.0), ("b", 5.0), ("c", 0.0)):
        agent.observe(agent.record(arm), reward)
    assert agent.decide().probabilities == pytest.approx({"a": 0.3, "b": 0.6, "c": 0.1})
    assert agent.decide(available=["a", "b"]).probabilities == pytest.approx({"a": 0.3, "b": 0.7, "c": 0.0})
    assert agent.decide(available=["b", "c"]).probabilities == pytest.approx({"a": 0.0, "b": 0.9, "c": 0.1})


def test_minimum_by_arm_with_equal_values_is_the_number() -> None:
    agents = [larl.Agent(larl.LARL(1), ARMS, min_probability=each) for each in (0.25, dict.fromkeys(ARMS, 0.25))]
    for t in range(60):
        decisions = [agent.decide() for agent in agents]
        assert decisions[0] == decisions[1]
        for agent, decision in zip(agents, decisions, strict=True):
            agent.observe(decision, math.sin(t) + (decision.arm == "prompt"))


def test_notebook_shows_the_fields_of_an_allocation() -> None:
    shown = Allocation("smooth", low=0.125)._repr_html_()
    assert all(f"<td>{text}</td>" in shown for text in ("kind", "smooth", "low", "0.125", "slope", "5.0"))
