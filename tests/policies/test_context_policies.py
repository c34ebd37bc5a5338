"""Contexts in policies that need no setting: units, numbers without an effect, effects, files, finite States."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import larl
from larl import worlds
from larl._core.compile import kernel
from larl._core.states import copy_state
from larl.policies import Policy
from larl.policies._bounds import check_state, state_arrays, state_bounds
from larl.policies._context_scale import FIRST, LARGEST_STANDARD
from larl.policies.adaptive_larl.ensemble import update_members
from larl.policies.shared_larl import model as _shared
from larl.worlds import Simulator
from larl.worlds.variants import Contextual
from tests.policies.test_live_functions import leaves
from tests.stepping import decide, learn_all

BASE = replace(worlds.paper(1), start="stationary")
ETA = [[1.5, 0.0, -1.0], [-1.5, 0.5, 0.0]]
WORLD = Contextual(BASE, eta=ETA, memory=0.6)
AUTO = larl.Auto(orders=(1, 2), particles=16, context=3)
SPECS: list[Policy] = [larl.SharedLARL(4, context=3), larl.AdaptiveLARL(2, context=3), AUTO]
Floats = Any


def learn(state: Any, context: Floats, arm: int, reward: float) -> None:
    """Update a State with a step; nan means that the reward is missing."""
    learn_all(state, [arm], [reward], [context])


def played(spec: Policy, contexts: Floats, seed: int = 0) -> list[int]:
    """Return the arms that a policy plays against the rewards of a world, given these contexts."""
    agent, simulator, arms = larl.Agent(spec, 2, seed=seed), Simulator(BASE, seed, 0), []
    for row in contexts:
        decision = agent.decide(context=row.tolist() if getattr(spec, "context", 0) else None)
        arms.append(int(str(decision.arm)))
        agent.observe(decision, simulator.reward(arms[-1]) + (ETA[arms[-1]] @ row if row.size == 3 else 0.0))
        simulator.advance(arms[-1])
    return arms


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (larl.SharedLARL(), (154.83657671651116, 21.61097486393055)),
        (larl.SharedLARL(3, window=20, modes=2), (177.3831665328687, 22.625850642266307)),
        (larl.AdaptiveLARL(), (205.22966934033906, 31.468402573279292)),
        (larl.AdaptiveLARL(3, alpha=0.3), (196.54435657109656, 20.132237605646502)),
    ],
    ids=str,
)
def test_decisions_without_contexts_are_those_of_versions_without_them(
    spec: Policy, expected: tuple[float, float]
) -> None:
    for world, total in zip((worlds.paper(5), worlds.random(3, 3, 0)), expected, strict=True):
        result = larl.compare({"it": spec}, world, horizon=120, trials=1, seed=7)
        assert float(result.total().values.item()) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_constant_contexts_do_not_change_decisions(seed: int) -> None:
    # Only of AdaptiveLARL, whose regressions are exact: SharedLARL's optimisation takes other steps.
    spec = larl.AdaptiveLARL(2)
    constant = np.tile([7.0, 0.0], (80, 1))
    plain, given = (replace(spec, context=size) for size in (0, 2))  # type: ignore[call-arg]
    assert played(given, constant, seed) == played(plain, constant, seed)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_unit_and_offset_of_contexts_do_not_change_decisions(spec: Policy) -> None:
    agents = [larl.Agent(spec, 2, seed=1) for _ in range(3)]
    simulator = Simulator(WORLD, 1, 0)
    for _ in range(120):
        x = simulator.context
        given = (x, x * [2.0**40, 2.0**-40, 4.0], 3.0 * x + [1.0, -20.0, 5.0])
        decisions = [agent.decide(context=each.tolist()) for agent, each in zip(agents, given, strict=True)]
        expected = [decision.expected for decision in decisions]
        if None not in expected:  # before the first rewards there is no prediction
            assert expected[0] == expected[1]
            assert expected[0] == pytest.approx(expected[2], rel=1e-5, abs=1e-5)
        assert len({decision.arm for decision in decisions}) == 1
        reward = simulator.reward(int(str(decisions[0].arm)))
        for agent, decision in zip(agents, decisions, strict=True):
            agent.observe(decision, reward)
        simulator.advance(int(str(decisions[0].arm)))


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_scale_of_contexts_is_that_of_the_first_ones(spec: Policy) -> None:
    state, draws = spec.init(2), np.random.default_rng(4)
    contexts = draws.normal([5.0, -1.0, 0.0], [2.0, 1e-3, 0.0], size=(60, 3))
    contexts[50:, 2] = 4.0  # it starts to vary late: its distance from the constant becomes its unit
    for t, row in enumerate(contexts):
        learn(state, row, t % 2, draws.normal() if t % 5 else math.nan)
    used = contexts[:FIRST, :2]
    assert state.scale[:2] == pytest.approx(np.array([used.mean(axis=0), used.std(axis=0)]).T, rel=1e-9)
    assert state.scale[2].tolist() == [0.0, 4.0]
    assert state.standard[2] == 1.0
    learn(state, [1e90, -1e90, 0.0], 0, 1.0)
    assert state.standard.tolist() == [LARGEST_STANDARD, -LARGEST_STANDARD, 0.0]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_first_steps_are_learnt_again_on_the_last_scale(spec: Policy) -> None:
    """After FIRST steps the State is that of a policy that had the final scale from the beginning."""
    state, draws = spec.init(2), np.random.default_rng(8)
    inner, rows = copy_state(state.initial), []
    for t in range(FIRST):
        rows.append((draws.normal(size=3), t % 2, draws.normal() if t % 6 else math.nan))
        learn(state, *rows[-1])
    for context, arm, reward in rows:
        learn(inner, (context - state.scale[:, 0]) / state.scale[:, 1], arm, reward)
    for ours, theirs in zip(leaves(state.inner), leaves(inner), strict=True):
        assert np.allclose(ours, theirs, rtol=1e-6, atol=1e-9)


def total_regret(spec: Policy, seed: int) -> float:
    """Return the regret of an agent in the world with contexts. A comparison would compile one more kernel."""
    agent, simulator, total = larl.Agent(spec, 2, seed=seed), Simulator(WORLD, seed, 0), 0.0
    for _ in range(200):
        decision = agent.decide(context=simulator.context.tolist() if getattr(spec, "context", 0) else None)
        arm = int(str(decision.arm))
        total += float(simulator.means.max() - simulator.means[arm])
        agent.observe(decision, simulator.reward(arm))
        simulator.advance(arm)
    return total


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_contexts_with_an_effect_reduce_regret(spec: Policy) -> None:
    blind = replace(spec, context=0)  # type: ignore[call-arg]
    without, informed = (np.array([total_regret(each, seed) for seed in range(30)]) for each in (blind, spec))
    gap = without - informed
    assert gap.mean() > 4.0 * gap.std() / math.sqrt(gap.size)
    assert informed.mean() < 0.7 * without.mean()


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_agent_reproduces_engine_trial_also_from_a_file(spec: Policy, tmp_path: Path) -> None:
    result = larl.compare({"it": spec}, WORLD, horizon=70, trials=1, seed=4)
    agent, simulator, arms = larl.Agent(spec, 2, seed=4), Simulator(WORLD, 4, 0), np.asarray(result.arm).ravel()
    for t in range(70):
        decision = agent.decide(context=simulator.context.tolist())
        assert decision.arm == str(arms[t])
        agent.observe(decision, simulator.reward(int(decision.arm)))
        simulator.advance(int(decision.arm))
        if t in (10, 50):
            agent = larl.Agent.load(agent.save(tmp_path / f"{t}.json"))


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_late_reward_uses_the_context_of_its_own_step(spec: Policy) -> None:
    late, prompt = (larl.Agent(spec, 2, seed=2) for _ in range(2))
    draws, decisions = np.random.default_rng(0), []
    for _ in range(20):
        x, r = draws.normal(size=3).tolist(), float(draws.normal())
        decisions.append((late.decide(context=x), r))
        prompt.observe(prompt.decide(context=x), r, arm=decisions[-1][0].arm)
    for decision, r in reversed(decisions):
        late.observe(decision, r)
    for ours, theirs in zip(leaves(late.state), leaves(prompt.state), strict=True):
        assert np.array_equal(ours, theirs)


CONTEXTS = {
    "constant": lambda t, draws: np.full(3, 2.5),
    "huge": lambda t, draws: 1e100 * draws.normal(size=3),
    "tiny": lambda t, draws: 1e-300 * draws.normal(size=3),
    "from tiny to huge": lambda t, draws: 10.0 ** (2 * t - 100) * draws.normal(size=3),
    "binary": lambda t, draws: (draws.random(3) < [0.5, 0.02, 0.98]).astype(float),
    "equal": lambda t, draws: np.full(3, draws.normal()),
    "one outlier": lambda t, draws: draws.normal(size=3) + 1e6 * (t == 40),
}
REWARDS = {"normal": 1.0, "huge": 1e100, "tiny": 1e-300, "constant": 0.0, "one outlier": 1.0}


# Ordinary rewards with all contexts, ordinary contexts with all rewards, and the largest with each other.
BOTH = [(each, "normal") for each in CONTEXTS] + [("binary", each) for each in REWARDS if each != "normal"]
BOTH += [("huge", "huge"), ("from tiny to huge", "huge"), ("huge", "tiny"), ("tiny", "huge"), ("constant", "constant")]


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize(("contexts", "rewards"), BOTH)
def test_state_stays_finite_and_in_bounds(spec: Policy, contexts: str, rewards: str) -> None:
    initial, draws = spec.init(3), np.random.default_rng(0)
    state = copy_state(initial)
    whole = {name for name, array in state_arrays(state).items() if array.dtype.kind != "f"}
    assert whole <= set(state_bounds(initial, state))
    for t in range(100):
        arm = decide(state, t)
        reward = math.nan if draws.random() < 0.1 else REWARDS[rewards] * draws.normal()
        reward += 1e9 * (rewards == "one outlier" and t == 20)
        learn(state, CONTEXTS[contexts](t, draws), arm, reward)
        check_state(initial, state)


def test_kalman_oracle_knows_the_effects() -> None:
    """Its predictions are those of the filter of the base world on rewards without the effects."""
    known, base = larl.KalmanOracle().init(2, world=WORLD), larl.KalmanOracle().init(2, world=BASE)
    simulator, draws = Simulator(WORLD, 0, 0), np.random.default_rng(2)
    for _ in range(40):
        arm, effects = int(draws.integers(2)), np.array(ETA) @ simulator.context
        reward = simulator.reward(arm)
        learn(known, simulator.context, arm, reward)
        learn(base, [], arm, reward - effects[arm])
        simulator.advance(arm)
        assert known.belief.mean == pytest.approx(base.belief.mean, abs=1e-9)
        assert known.level == pytest.approx(base.belief.mu + effects, abs=1e-12)
    with pytest.raises(larl.InvalidValue, match="world"):
        larl.KalmanOracle("steady").init(2, world=WORLD)


TIED = [[0, 2, 3], [1, 4, 5]]  # indices of an arm's intercept and effects in a tied member


@kernel
def update_only(state, arm, reward):
    update_members(state, arm, reward)


def learn_members(state, context, arm, reward):
    state.context[:] = context
    update_only(state, arm, reward)


@pytest.mark.parametrize("member_kind", ["untied", "tied"])
def test_members_of_order_0_are_regressions_on_the_context(member_kind: str) -> None:
    """With no lags and equal arm scales the rows are known: compare with the normal equations."""
    state, draws = larl.AdaptiveLARL(0, context=2).init(2).inner, np.random.default_rng(3)
    member = 0 if member_kind == "untied" else int(np.flatnonzero(state.sign_pattern == 2)[0])
    sign = state.sign[state.sign_pattern[member]]
    effect = state.penalties[state.penalty_row[member], 2]
    common = np.outer(sign, sign) + np.eye(2) if member_kind == "tied" else 2.0 * np.eye(2)
    prior = np.zeros((6, 6))  # two intercepts, then the effects of each number on both arms
    prior[:2, :2] = np.eye(2) / state.penalties[state.penalty_row[member], 1]
    prior[2:4, 2:4] = prior[4:, 4:] = common / effect
    precision, moment = np.linalg.inv(prior), np.zeros(6)
    for _ in range(30):
        x, arm, reward = draws.normal(size=2), int(draws.integers(2)), float(draws.normal())
        state.arm_scale[:] = 1.0
        row = np.zeros(6)
        row[[arm, 2 + arm, 4 + arm]] = 1.0, *x
        state.centre[member] = 0.0
        learn_members(state, x, arm, reward)
        precision += np.outer(row, row)
        moment += row * sign[arm] * reward
        theta = np.linalg.solve(precision, moment)
        ridge, slot = (state.untied, 2 * member) if member_kind == "untied" else (state.tied, member - 4)
        for each in range(2):
            found = ridge.theta[slot + each, [0, 1, 2]] if member_kind == "untied" else ridge.theta[slot, TIED[each]]
            assert found == pytest.approx(theta[[each, 2 + each, 4 + each]], abs=1e-9)


gradient_and_curvature = kernel(
    lambda state, k: _shared.gradient_and_curvature(state.window, state.prior, state.modes, k, state.work)
)
objective = kernel(
    lambda state, k, theta: _shared.objective(state.window, state.prior, state.modes, k, theta, state.work.inverse)
)


def residuals(state: Any, theta: Floats, s: int) -> Floats:
    """Return the residuals of a SharedLARL after step s, in NumPy."""
    window, p = state.window, state.context.size
    entries = int(window.size[0])
    arm = theta[s + 2 + p :].reshape(-1, 2 + p)[window.slot[:entries]]
    effects = np.sum(arm[:, 2:] * window.context[:entries], axis=1)
    y = state.modes.sign[0][window.slot[:entries]] * (window.value[:entries] - arm[:, 0] - effects) / np.exp(arm[:, 1])
    return np.array([y[t] - theta[:s] @ y[t - s : t][::-1] for t in range(s, entries)])


@kernel
def compiled_residuals(state, theta, s, out):
    _shared.write_readings(state.window, theta, state.modes.sign[0], state.work.inverse, s)
    for i in range(out.size):
        out[i] = _shared.residual(state.window, theta, s + i, s)


def test_gradient_of_shared_larl_is_that_of_its_objective() -> None:
    s, draws, simulator = 3, np.random.default_rng(1), Simulator(WORLD, 5, 0)
    state = larl.SharedLARL(s, context=3).init(2).inner
    for t in range(40):
        learn(state, simulator.context, t % 2, simulator.reward(t % 2))
        simulator.advance(t % 2)
    theta = state.modes.theta[0] + 0.2 * draws.normal(size=state.modes.theta.shape[1])
    state.modes.theta[0] = theta
    assert gradient_and_curvature(state, 0) == pytest.approx(objective(state, 0, theta), rel=1e-12)
    numerical = approx_fprime(theta, lambda each: objective(state, 0, each), 1e-7)
    gradient_and_curvature(state, 0)
    assert np.allclose(state.work.gradient, numerical, rtol=1e-4, atol=2e-3)
    found = np.zeros(37)
    compiled_residuals(state, theta, s, found)
    assert found == pytest.approx(residuals(state, theta, s), abs=1e-12)
