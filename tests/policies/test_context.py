"""Context numbers: the world that generates them, and LARL with a context in agents and in the engine."""

import math
from dataclasses import replace

import numpy as np
import pytest

import larl
from larl import worlds
from larl.worlds import Simulator, variants

BASE = replace(worlds.paper(1), start="stationary")
WORLD = variants.Contextual(BASE, eta=[[1.5, 0.0, -1.0], [-1.5, 0.5, 0.0]], memory=0.6)


def test_means_are_base_means_plus_context_effect() -> None:
    simulator, plain = Simulator(WORLD, 3, 1), Simulator(BASE, 3, 1)
    for _ in range(50):
        assert simulator.means == pytest.approx(plain.means + np.array(WORLD.eta) @ simulator.context, abs=1e-12)
        simulator.advance()
        plain.advance()


def test_context_is_standard_normal_ar1() -> None:
    simulator, seen = Simulator(WORLD, 0, 0), []
    for _ in range(20_000):
        seen.append(simulator.context)
        simulator.advance()
    x = np.array(seen)
    inflated = math.sqrt((1 + 0.6**2) / (1 - 0.6**2) / len(x))  # of a variance; of a mean it is (1 + 0.6)/(1 − 0.6)
    assert np.all(np.abs(x.mean(axis=0)) < 4.0 * math.sqrt(1.6 / 0.4 / len(x)))
    assert np.all(np.abs((x**2).mean(axis=0) - 1.0) < 4.0 * math.sqrt(2.0) * inflated)
    assert np.all(np.abs((x[1:] * x[:-1]).mean(axis=0) - 0.6) < 4.0 * math.sqrt(2.0) * inflated)


def test_larl_with_context_is_ridge_regression_on_lags_and_context() -> None:
    """Compare with the normal equations, for three numbers (odd: the last pair is padded with a zero)."""
    s, arms, draws = 2, 2, np.random.default_rng(5)
    agent, rows = larl.Agent(larl.LARL(s, context=3, alpha=0.7), arms, seed=1), []
    past: list[tuple[int, float]] = []
    for t in range(60):
        x = draws.normal(size=3)
        decision = agent.decide(context=x.tolist())
        row = np.zeros(1 + 2 * s * arms + 3)
        row[0], row[-3:] = 1.0, x
        for j, (arm, reward) in enumerate(reversed(past[-s:])):
            row[1 + 2 * (j * arms + arm) : 3 + 2 * (j * arms + arm)] = reward, 1.0
        arm, reward = int(str(decision.arm)), float(draws.normal())
        if t >= s:
            own = [(x_, r) for a, x_, r in rows if a == arm]
            v = np.eye(row.size) + sum((np.outer(x_, x_) for x_, _ in own), np.zeros((row.size, row.size)))
            theta = np.linalg.solve(v, sum((r * x_ for x_, r in own), np.zeros(row.size)))
            assert decision.expected == pytest.approx(row @ theta, abs=1e-10)
            assert decision.width == pytest.approx(0.7 * math.sqrt(row @ np.linalg.solve(v, row)), abs=1e-10)
            rows.append((arm, row, reward))
        agent.observe(decision, reward)
        past.append((arm, reward))


def test_agent_with_context_reproduces_engine_trial() -> None:
    spec = larl.LARL(2, context=3)
    result = larl.compare({"it": spec}, WORLD, horizon=80, trials=1, seed=4)
    agent, simulator, arms = larl.Agent(spec, 2, seed=4), Simulator(WORLD, 4, 0), np.asarray(result.arm).ravel()
    for t in range(80):
        decision = agent.decide(context=simulator.context.tolist())
        assert decision.arm == str(arms[t])
        arm = int(decision.arm)
        agent.observe(decision, simulator.reward(arm))
        simulator.advance(arm)


def test_late_reward_uses_the_context_of_its_own_step() -> None:
    late, prompt = (larl.Agent(larl.LARL(1, context=2), 2, seed=2) for _ in range(2))
    draws, decisions = np.random.default_rng(0), []
    for _ in range(10):
        x, r = draws.normal(size=2).tolist(), float(draws.normal())
        decisions.append((late.decide(context=x), r))
        prompt.observe(prompt.decide(context=x), r, arm=decisions[-1][0].arm)
    for decision, r in reversed(decisions):
        late.observe(decision, r)
    assert np.array_equal(late.state.ridge.inverse, prompt.state.ridge.inverse)
    assert np.array_equal(late.state.ridge.theta, prompt.state.ridge.theta)


def test_context_reduces_regret() -> None:
    policies = {"without": larl.LARL(1), "with": larl.LARL(1, context=3)}
    total = larl.compare(policies, WORLD, horizon=200, trials=200, seed=0).total()
    gap = total.sel(policy="without") - total.sel(policy="with")
    assert float(gap.mean()) > 4.0 * float(gap.std() / math.sqrt(gap.size))


def test_error_messages_name_the_field() -> None:
    with pytest.raises(larl.InvalidValue, match="context"):
        larl.compare({"it": larl.LARL(1, context=2)}, WORLD, horizon=5, trials=1)
    with pytest.raises(larl.InvalidValue, match="eta"):
        variants.Contextual(BASE, eta=[[1.0]])
    with pytest.raises(larl.InvalidValue, match="radius"):
        larl.LARL(1, context=2, radius="theory")
    agent = larl.Agent(larl.LARL(1, context=2), 2)
    for context in (None, [1.0], [1.0, math.nan], [1.0, 2.0, 3.0]):
        with pytest.raises(larl.InvalidValue, match="context"):
            agent.decide(context=context)
    assert agent.t == 0
    assert variants.from_dict(WORLD.to_dict()) == WORLD
