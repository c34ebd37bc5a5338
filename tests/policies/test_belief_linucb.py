"""BeliefLinUCB against batch ridge regression, and its online EM against enumeration of all paths."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import larl
from larl._core.states import copy_state
from larl.statespace import online_em
from larl.statespace.forward_filter import forward_path
from larl.worlds import LatentMarkov, random_markov
from tests.policies.test_live_functions import simulate_choices
from tests.stepping import decide, learn

WORLD = random_markov(states=3, arms=3, seed=4, persistence=0.8)
MODEL: dict[str, Any] = {"transition": WORLD.transition, "means": WORLD.means, "sigma_r": WORLD.sigma_r}


@pytest.mark.parametrize(
    "spec",
    [larl.BeliefLinUCB(alpha=0.7, ridge=2.0, model="given"), larl.BeliefLinUCB(2, 0.7, 2.0, "given", **MODEL)],
    ids=["world", "parameters"],
)
def test_given_model_is_batch_ridge_regression_on_the_exact_belief(spec: larl.BeliefLinUCB) -> None:
    draws = np.random.default_rng(1)
    arms, rewards = draws.integers(3, size=25), draws.normal(size=25)
    beliefs, state = forward_path(WORLD, arms, rewards), copy_state(spec.init(3, world=WORLD))
    for t in range(25):
        bound = np.empty(3)
        for arm in range(3):
            rows = beliefs[:t][arms[:t] == arm]
            gram = 2.0 * np.eye(3) + rows.T @ rows
            mean = beliefs[t] @ np.linalg.solve(gram, rows.T @ rewards[:t][arms[:t] == arm])
            width = 0.7 * math.sqrt(beliefs[t] @ np.linalg.solve(gram, beliefs[t]))
            _, seen, _ = simulate_choices(state, [arm == other for other in range(3)])
            assert seen[arm] == pytest.approx([mean, width], abs=1e-9)
            bound[arm] = mean + width
        assert decide(state, 0) == np.argmax(np.round(bound, 9))
        learn(state, int(arms[t]), float(rewards[t]))


def standardised_rewards(steps: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return a State of two states and two arms after `steps` rewards, the arms, and the rewards that it used."""
    draws = np.random.default_rng(5)
    arms, rewards = draws.integers(2, size=steps), draws.normal(size=steps)
    state = copy_state(larl.BeliefLinUCB(2, persistence=0.8).init(2))
    for arm, reward in zip(arms, rewards, strict=True):
        learn(state, int(arm), float(reward))
    centre, width = state.first.standard
    return state.inner, arms, (rewards - centre) / width


def smoothed_averages(prior: Any, arms: np.ndarray, rewards: np.ndarray) -> dict[str, np.ndarray]:
    """Return weighted averages of transitions, plays and rewards given all rewards: sums over all paths.

    Steps whose reward is nan are hidden: they have no weight and no likelihood.
    """
    steps, is_seen = len(arms), ~np.isnan(rewards)
    gains = np.where(is_seen, np.cumsum(is_seen), np.inf) ** -online_em.STEP_POWER
    weights = [gains[t] * np.prod(1.0 - gains[t + 1 :]) for t in range(steps)]
    sums = {"moves": np.zeros((2, 2)), "plays": np.zeros((2, 2)), "total": np.zeros((2, 2)), "belief": np.zeros(2)}
    evidence = 0.0
    for path in itertools.product(range(2), repeat=steps):
        value = 0.5 * math.prod(prior.transition[i, j] for i, j in itertools.pairwise(path))
        seen = np.flatnonzero(is_seen)
        value *= math.prod(norm.pdf(rewards[t], prior.means[path[t], arms[t]], 1.0) for t in seen)
        evidence += value
        sums["belief"][path[-1]] += value
        for t in seen:
            sums["plays"][path[t], arms[t]] += value * weights[t]
            sums["total"][path[t], arms[t]] += value * weights[t] * rewards[t]
            if t > seen[0]:
                sums["moves"][path[t - 1], path[t]] += value * weights[t]
    return {name: each / evidence for name, each in sums.items()}


def test_online_em_equals_smoothing_while_parameters_are_fixed_and_then_maximises() -> None:
    prior, steps = online_em.online_em_init(2, 2, 0.8), online_em.FIRST_ESTIMATE
    state, arms, rewards = standardised_rewards(steps - 1)
    exact = smoothed_averages(prior, arms, rewards)
    assert state.previous == pytest.approx(exact["belief"], abs=1e-12)
    for name in ("moves", "plays", "total"):
        assert getattr(state.em, name) @ state.previous == pytest.approx(exact[name], abs=1e-12)
    assert np.array_equal(state.em.means, prior.means)

    state, arms, rewards = standardised_rewards(steps)
    exact, size = smoothed_averages(prior, arms, rewards), steps**online_em.STEP_POWER
    counts = online_em.PRIOR_MOVES * prior.transition + size * exact["moves"]
    means = (prior.means + size * exact["total"]) / (1.0 + size * exact["plays"])
    assert state.em.transition == pytest.approx(counts / counts.sum(axis=1, keepdims=True), abs=1e-12)
    assert state.em.means == pytest.approx(means, abs=1e-12)
    assert state.em.belief == pytest.approx(exact["belief"] @ state.em.transition, abs=1e-12)
    gains = np.arange(1.0, steps + 1.0) ** -online_em.STEP_POWER
    square = sum(gains[t] * np.prod(1.0 - gains[t + 1 :]) * rewards[t] ** 2 for t in range(steps))
    residual = square - np.sum(2.0 * means * exact["total"] - means**2 * exact["plays"])
    noise = (online_em.PRIOR_NOISE + size * residual) / (online_em.PRIOR_NOISE + size)
    assert state.em.variance[0] == pytest.approx(noise)


def test_online_em_equals_smoothing_with_missing_rewards() -> None:
    prior, draws = online_em.online_em_init(2, 2, 0.2), np.random.default_rng(6)
    arms, rewards = draws.integers(2, size=8), draws.normal(size=8)
    rewards[[0, 3, 4]] = np.nan
    state = copy_state(larl.BeliefLinUCB(2, persistence=0.2).init(2)).inner
    for arm, reward in zip(arms, rewards, strict=True):
        learn(state, int(arm), float(reward))
    exact = smoothed_averages(prior, arms, rewards)
    assert state.previous == pytest.approx(exact["belief"], abs=1e-12)
    for name in ("moves", "plays", "total"):
        assert getattr(state.em, name) @ state.previous == pytest.approx(exact[name], abs=1e-12)


def test_online_em_finds_the_parameters() -> None:
    # 6,000 random arms: the weight of the latest reward is 0.005, so a mean is an average of about 100 rewards.
    world = LatentMarkov(((0.95, 0.05), (0.1, 0.9)), ((0.0, 3.0), (2.0, -1.0)), sigma_r=0.5)
    state, draws = copy_state(larl.BeliefLinUCB(2).init(2)), np.random.default_rng(0)
    for x in world.path(6_000, seed=1):
        arm = int(draws.integers(2))
        learn(state, arm, world.means[x][arm] + 0.5 * float(draws.normal()))
    (centre, width), em = state.first.standard, state.inner.em
    order = np.argsort(em.means[:, 0])
    assert centre + width * em.means[order] == pytest.approx(np.array(world.means), abs=0.4)
    assert em.transition[np.ix_(order, order)] == pytest.approx(np.array(world.transition), abs=0.08)
    assert width * math.sqrt(em.variance[0]) == pytest.approx(0.5, abs=0.25)


def test_regret_is_between_the_oracle_and_ucb() -> None:
    # 200 trials of 400 steps, paired differences, 4 standard errors.
    world = LatentMarkov(((0.97, 0.03), (0.03, 0.97)), ((0.0, 2.0), (2.0, 0.0)), sigma_r=0.7)
    policies: dict[str, Any] = {"oracle": larl.MarkovOracle(), "given": larl.BeliefLinUCB(model="given")}
    policies |= {"learnt": larl.BeliefLinUCB(2), "UCB": larl.UCB()}
    result = larl.compare(policies, world, horizon=400, trials=200)
    total = {name: result.data["regret"].sel(policy=name).to_numpy().sum(axis=-1).ravel() for name in policies}
    for better, worse in itertools.pairwise(policies):
        gap = total[worse] - total[better]
        assert gap.mean() > 4.0 * gap.std() / math.sqrt(200), (better, worse)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: larl.BeliefLinUCB(**MODEL), "BeliefLinUCB: model = 'learnt' .*'given', because"),
        (lambda: larl.BeliefLinUCB(model="given", means=WORLD.means), "BeliefLinUCB: transition = None"),
        (lambda: larl.BeliefLinUCB(model="given").init(2, world=larl.worlds.paper(1)), "BeliefLinUCB: world = "),
        (lambda: larl.BeliefLinUCB(model="given", **MODEL).init(2), "BeliefLinUCB: arms = 2 .*: 3"),
    ],
)
def test_unusable_models_are_refused(make: Any, message: str) -> None:
    with pytest.raises(larl.InvalidValue, match=message):
        make()
