"""Any finite rewards leave a finite State and valid probabilities, in every policy."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import larl
from larl._core.states import Memory
from larl._core.states import leaves as parts
from larl.policies import Policy, register
from larl.policies.auto.layout import CONTINUOUS, ModelKind, field_offsets
from larl.policies.auto.soa import LANES
from tests.conftest import world_of
from tests.policies.test_live_functions import leaves
from tests.stepping import Chooser, decide, learn

STEPS = 110
Reward = Callable[[int, int, np.random.Generator], float]
KINDS: dict[str, Reward] = {
    "constant": lambda arm, t, draws: 3.7,
    "zero": lambda arm, t, draws: 0.0,
    "an arm's number": lambda arm, t, draws: float(arm),
    "two values": lambda arm, t, draws: float(t // 3 % 2),
    "Bernoulli 0.02": lambda arm, t, draws: float(draws.random() < 0.02),
    "Bernoulli 0.5": lambda arm, t, draws: float(draws.random() < 0.5),
    "Bernoulli 0.98": lambda arm, t, draws: float(draws.random() < 0.98),
    "Likert": lambda arm, t, draws: float(draws.integers(1, 6)),
    "integers": lambda arm, t, draws: float(draws.integers(-1000, 1000)),
    "12 digits in common": lambda arm, t, draws: 1e6 + 1e-6 * draws.normal(),
    "one outlier": lambda arm, t, draws: draws.normal() + 1e6 * (t == 40),
    "an outlier early": lambda arm, t, draws: draws.normal() + 1e6 * (t == 1),
    "one outlier of 1e9": lambda arm, t, draws: draws.normal() + 1e9 * (t == 20),
    "one outlier of -1e100": lambda arm, t, draws: draws.normal() - 1e100 * (t == 20),
    "1e-160": lambda arm, t, draws: 1e-160 * draws.normal(),
    "growing draws": lambda arm, t, draws: 10.0 ** (t - 20) * draws.normal(),
    "±1e30": lambda arm, t, draws: 1e30 * (-1.0) ** t,
    "±1e100": lambda arm, t, draws: 1e100 * (-1.0) ** t,
    "zeros, then 1e100": lambda arm, t, draws: 1e100 * (t > 50),
    "1e-300": lambda arm, t, draws: 1e-300 * draws.normal(),
    "first 20 missing": lambda arm, t, draws: math.nan if t < 20 else draws.normal(),
    "growing": lambda arm, t, draws: 10.0 ** (t - 55),
    "shrinking": lambda arm, t, draws: 10.0 ** (55 - t),
}


def finite(state: Any) -> bool:
    return all(np.isfinite(leaf).all() for leaf in leaves(state))


def numbers_of(memory: Memory) -> Callable[[], Any]:
    """Return a function that returns all numbers of the arrays that change, at once."""
    block = memory.own[0].view(np.float64)
    arrays = [each.array for each in parts(memory.state()) if each.array.dtype == np.float64 and not each.is_constant]
    words = [(array.ctypes.data - block.ctypes.data) // 8 + np.arange(array.size) for array in arrays]
    places = np.concatenate(words) if words else np.zeros(0, np.int64)
    return lambda: block[places]


@pytest.mark.parametrize("kind", KINDS)
def test_state_stays_finite(spec: Policy, kind: str) -> None:
    draws, memory = np.random.default_rng(0), Memory(spec.init(3, horizon=STEPS, world=world_of(spec)))
    state, numbers = memory.state(), numbers_of(memory)
    chooser = Chooser(state, 3)
    for t in range(STEPS):
        arm = chooser.choose(t)
        assert chooser.probabilities.min() >= 0.0
        assert chooser.probabilities.sum() == pytest.approx(1.0, abs=1e-9)
        assert not np.isinf(chooser.prediction[0])
        learn(state, arm, math.nan if draws.random() < 0.1 else KINDS[kind](arm, t, draws))
        assert np.isfinite(numbers()).all(), t
    assert finite(state)


SCALE_INVARIANT = [
    larl.Auto(),
    larl.AdaptiveLARL(),
    larl.SharedLARL(),
    larl.CohortLARL(),
    larl.CohortAuto(),
    larl.LARL(1, standardise=True),
    larl.LARL(3, standardise=True),
    larl.UCB(standardise=True),
    larl.DiscountedUCB(0.95, standardise=True),
]


@pytest.mark.parametrize("pay", [(1.0, 2.0), (2.0, 1.0), (1.0, 2.0, 3.0), (1e6, 1e6 + 1.0), (0.0, 1e-9, 0.0)], ids=str)
@pytest.mark.parametrize("spec", SCALE_INVARIANT, ids=str)
def test_best_of_constant_arms_is_found(spec: Policy, pay: tuple[float, ...]) -> None:
    seeds, steps, best = 8, 150, int(np.argmax(pay))
    for seed in range(seeds):
        agent, hits = larl.Agent(spec, len(pay), seed=seed), 0
        for t in range(steps):
            decision = agent.decide()
            agent.observe(decision, pay[int(str(decision.arm))])
            hits += t >= steps - 40 and decision.arm == str(best)
        assert hits >= 32, seed


def test_inverse_stays_positive_definite_after_huge_rewards() -> None:
    # 20,000 rewards of up to 10⁸, then ordinary ones.
    from larl.policies._linalg.packed_ridge import dense_inverse

    state, draws = larl.LARL(2).init(2), np.random.default_rng(3)
    for t in range(20_000):
        learn(state, t % 2, float(10.0 ** draws.uniform(4, 8) * draws.normal()))
    for t in range(200):
        learn(state, t % 2, float(draws.normal()))
    for arm in range(2):
        assert np.linalg.eigvalsh(dense_inverse(state.ridge, arm)).min() > -1e-12


@pytest.mark.parametrize("lost", ["a particle", "a block", "a population", "all", "all and their coordinates"])
@pytest.mark.parametrize("memory", [15, 500])
def test_auto_recovers_from_nonfinite_particles(lost: str, memory: int) -> None:
    state, draws = larl.Auto(orders=(1, 3), particles=32, memory=memory).init(2), np.random.default_rng(5)
    smc, pops = state.smc, state.smc.populations
    for t in range(40):
        learn(state, t % 2, float(draws.normal() + 2.0 * (t % 2)))
    living = np.flatnonzero(pops.alive)
    for population in living if lost.startswith("all") else living[:1]:
        kind = ModelKind(2, int(pops.order[population]), int(pops.form[population]), CONTINUOUS)
        fields, top = field_offsets(kind), int(pops.top[population])
        height = fields.end * int(pops.blocks[population])
        particles = smc.data[top : top + height].reshape(-1, fields.end, LANES)
        rows = slice(0 if lost.endswith("coordinates") else fields.mean, fields.log_weight)
        where: Any = {"a particle": (0, rows, 3), "a block": (0, rows)}.get(lost, (slice(None), rows))
        particles[where] = math.nan
    for t in range(60):
        learn(state, t % 2, float(draws.normal() + 2.0 * (t % 2)))
        assert finite(state)
    assert decide(state, 0) == 1
    assert state.mean[1] - state.mean[0] == pytest.approx(2.0, abs=1.0)


class BrokenState(NamedTuple):
    value: Any
    probability: Any


def broken_act(state: BrokenState, bits: Any) -> int:
    return 0


def broken_update(state: BrokenState, arm: int, reward: float) -> None:
    if reward == 13.0:
        state.value[0] = math.nan
    state.probability[0] = reward


def broken_action_probabilities(state: BrokenState, available: Any, out: Any) -> None:
    out[0], out[1] = state.probability[0], 1.0 - state.probability[0]
    if state.probability[0] == 7.0:
        out[0], out[1] = math.nan, math.nan
    if state.probability[0] == 5.0:
        out[1] = 0.0


def broken_predict(state: BrokenState, arm: int) -> tuple[float, float]:
    return math.inf if state.probability[0] == 0.25 else 0.0, 1.0


@register(
    BrokenState, broken_act, broken_update, predict=broken_predict, action_probabilities=broken_action_probabilities
)
@dataclass(frozen=True)
class Broken(Policy):
    """A policy that fails in the way that the last reward selects."""

    def init(self, arms: int, **_: Any) -> BrokenState:
        return BrokenState(np.zeros(1), np.ones(1))


larl.policies.REGISTRY.pop("Broken")  # the tests of all registered policies must not run on it


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (13.0, "nan"),
        (7.0, "probabilities"),
        (2.0, "probabilities"),
        (5.0, "probabilities"),
        (0.25, "prediction"),
    ],
)
def test_agent_refuses_nonfinite_probabilities_and_states(reward: float, message: str, tmp_path: Any) -> None:
    for live, unit in ((larl.Agent(Broken(), 2), ()), (larl.Cohort(Broken(), 2), ("unit",))):
        decision = live.decide(*unit)
        live.save(tmp_path / f"{len(unit)}.json")
        live.observe(decision, reward)
        with pytest.raises(larl.PolicyError, match=f"Broken.*{message}"):
            live.decide(*unit)
        assert live.t == 1
        if reward == 13.0:
            with pytest.raises(larl.PolicyError, match="cannot be saved"):
                live.save(tmp_path / f"{len(unit)}.json")
        live.observe(decision, 1.0)  # corrected
        assert live.decide(*unit).probabilities == {"0": 1.0, "1": 0.0}


def test_booleans_are_accepted_as_rewards() -> None:
    agents = [larl.Agent(larl.UCB(), 2) for _ in range(2)]
    for reward in (True, False, np.True_):
        for agent, value in zip(agents, (reward, float(reward)), strict=True):
            agent.observe(agent.decide(), value)
    assert agents[0].pack() == agents[1].pack()


def test_too_large_reward_is_refused_with_the_limit() -> None:
    agent = larl.Agent(larl.UCB(), 2)
    decision = agent.decide()
    with pytest.raises(larl.InvalidValue, match=r"reward = 1e\+200 .*≤ 1e\+100"):
        agent.observe(decision, 1e200)
    assert agent.counts["learnt"] == 0
    assert agent.observe(decision, 1e100) == "learnt"


def test_agents_and_cohorts_have_a_short_repr() -> None:
    agent, cohort = larl.Agent(larl.UCB(), ["a", "b"], seed=3), larl.Cohort(larl.UCB(), ["a", "b"])
    agent.decide()
    cohort.decide("unit")
    assert repr(agent) == f"Agent({larl.UCB()}, arms=['a', 'b'], seed=3, t=1)"
    assert repr(cohort) == f"<Cohort of 1 unit: {larl.UCB()}, arms=['a', 'b'], pooling='none', t=1>"
