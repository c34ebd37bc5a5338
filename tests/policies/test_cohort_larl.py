"""CohortLARL equals ridge regressions with a penalty for each lag, alone, with full and with partial pooling."""

import math
from typing import Any

import numpy as np
import pytest

import larl
from larl._core.states import copy_state
from larl.policies._partial_pooling import DROPPED
from larl.policies._pooling import pooled_state
from larl.policies._shared_scale import FIRST
from larl.policies.cohort_larl import INDICATOR_PENALTY, PRECISIONS, hierarchical_init
from tests.live.cohorts import BASE, leaves, step_by_hand
from tests.policies.test_finite import KINDS
from tests.stepping import learn, predict, units_of

UNITS, S, ALPHA, PENALTY = 3, 3, 0.7, 2.0
SIZE = 1 + 2 * 2 * S
SPEC = larl.CohortLARL(s=S, alpha=ALPHA, penalty=PENALTY)


def penalties() -> Any:
    """The penalty of each entry of a context: 1, then reward and indicator of each lag and arm."""
    lags = [[PENALTY * (1 + j), PENALTY * (1 + j) * INDICATOR_PENALTY] * 2 for j in range(S)]
    return np.array([1.0, *np.ravel(lags)])


def precisions(candidate: tuple[float, float]) -> Any:
    """The prior precision of each of a unit's coefficients around the common one."""
    lags = [[candidate[0] * (1 + j) ** 2] * 4 for j in range(S)]
    return penalties() * np.array([candidate[1], *np.ravel(lags)])


class Rows:
    """Standardised rows of the regressions, collected independently of the library; None while the scale is unknown."""

    def __init__(self) -> None:
        self.lags: list[list[tuple[int, float] | None]] = [[] for _ in range(UNITS)]
        self.first: list[float] = []
        self.rows: list[tuple[int, int, Any, float]] = []

    def standardised(self, reward: float) -> float | None:
        if len(self.first) < FIRST:
            return None
        centre = float(np.median(self.first))
        spread = 1.4826022185056018 * float(np.sort(np.abs(np.array(self.first) - centre))[FIRST // 2])
        return (reward - centre) / spread

    def context(self, unit: int) -> Any:
        x = np.zeros(SIZE)
        x[0] = 1.0
        for j, step in enumerate(reversed(self.lags[unit][-S:])):
            if step is not None:
                x[1 + 2 * (2 * j + step[0]) : 3 + 2 * (2 * j + step[0])] = step[1], 1.0
        return x

    def add(self, unit: int, arm: int, reward: float) -> None:
        value = self.standardised(reward)
        if value is None:
            self.first.append(reward)
            self.lags[unit].append(None)
        else:
            self.rows.append((unit, arm, self.context(unit), value))
            self.lags[unit].append((arm, value))


def posterior(rows: Rows, arm: int, candidate: tuple[float, float] | None) -> tuple[Any, Any, float, float]:
    """Mean and covariance of (θ, δ_0, δ_1, …) of an arm with θ_u = θ + δ_u, and both terms of the evidence.

    Without a candidate all units have the same coefficients.
    """
    own = [] if candidate is None else [precisions(candidate)] * UNITS
    prior = np.diag(np.concatenate([penalties(), *own]))
    mine = [row for row in rows.rows if row[1] == arm]
    design = np.array([weights(u, x, candidate) for u, _, x, _ in mine]).reshape(-1, len(prior))
    rewards = np.array([r for *_, r in mine])
    cov = np.linalg.inv(prior + design.T @ design)
    marginal = np.eye(len(mine)) + design @ np.linalg.solve(prior, design.T)
    square = float(rewards @ np.linalg.solve(marginal, rewards)) if mine else 0.0
    return cov @ design.T @ rewards, cov, np.linalg.slogdet(marginal)[1] if mine else 0.0, square


def weights(unit: int, x: Any, candidate: tuple[float, float] | None) -> Any:
    row = np.zeros(SIZE * (1 if candidate is None else 1 + UNITS))
    row[:SIZE] = x
    if candidate is not None:
        row[SIZE * (1 + unit) : SIZE * (2 + unit)] = x
    return row


def predicted(rows: Rows, unit: int, arm: int, candidate: tuple[float, float] | None) -> tuple[float, float]:
    mean, cov, _, _ = posterior(rows, arm, candidate)
    z = weights(unit, rows.context(unit), candidate)
    return float(z @ mean), ALPHA * math.sqrt(z @ cov @ z)


@pytest.mark.parametrize("pooling", ["full", "partial"])
def test_pooled_prediction_is_the_posterior_of_the_regression_with_lag_penalties(pooling: str) -> None:
    cohort, rows, compared = larl.Cohort(SPEC, 2, 6, pooling=pooling), Rows(), 0
    for step, (unit, decision, reward) in enumerate(step_by_hand(cohort, UNITS, 22)):
        arm = int(str(decision.arm))
        if len(rows.first) < FIRST:
            assert decision.expected is None
            assert dict(decision.probabilities) == {"0": 0.5, "1": 0.5}
        elif step % 7 == 0:
            terms = {c: [posterior(rows, a, c)[2:] for a in (0, 1)] for c in PRECISIONS}
            count = len(rows.rows)
            densities = {
                c: -0.5 * (sum(t[0] for t in each) + count * math.log(sum(t[1] for t in each)))
                for c, each in terms.items()
                if count
            }
            best = max(densities, key=densities.__getitem__, default=PRECISIONS[0])
            mean, width = predicted(rows, unit, arm, best if pooling == "partial" else None)
            centre = float(np.median(rows.first))
            spread = (reward - centre) / (rows.standardised(reward) or 1.0)
            assert decision.expected == pytest.approx(centre + spread * mean, abs=1e-8)
            assert decision.width == pytest.approx(spread * width, abs=1e-8)
            compared += 1
        rows.add(unit, arm, reward)
    assert compared > 3


def test_unlikely_precisions_are_not_updated_and_predictions_stay_the_same() -> None:
    """The State equals that of a cohort which had only the remaining candidates from the beginning."""
    units, draws = 12, np.random.default_rng(5)
    base, played = larl.CohortLARL(s=2).init(2).inner, []
    for step in range(1500):
        unit, arm = step % units, int(draws.integers(2))
        played.append((unit, arm, draws.normal() + (0.5, -0.5)[arm]))  # the units are equal

    def learnt(candidates: Any) -> Any:
        stacked = units_of(hierarchical_init(copy_state(base), candidates), units)
        for unit, arm, reward in played:
            learn(stacked.state(unit), arm, reward)
        return stacked

    memory = learnt(PRECISIONS)
    stacked = memory.stacked()
    kept = np.flatnonzero(stacked.evidence[:, 0] < DROPPED)
    assert 1 <= kept.size < len(PRECISIONS)
    few_memory = learnt([PRECISIONS[i] for i in kept])
    few = few_memory.stacked()
    assert few.evidence.tolist() == stacked.evidence[kept].tolist()
    rows = np.ravel([[2 * i, 2 * i + 1] for i in kept])
    assert few.pooled.theta.tolist() == stacked.pooled.theta[rows].tolist()
    for unit in range(units):
        for arm in range(2):
            assert predict(few_memory.state(unit), arm) == predict(memory.state(unit), arm)


def test_missing_rewards_leave_empty_lags() -> None:
    agent = larl.Agent(larl.CohortLARL(s=2), arms=2)
    for i in range(FIRST):
        agent.observe(agent.decide(), float(i % 3))
    for reward in (2.0, None, 1.7):
        agent.observe(agent.decide(), reward)
    lags = agent.state.inner.lags
    value = lags.value.reshape(-1, 4)[1:, 0]  # rewards of the last two lags, scaled
    assert value[0] != 0.0
    assert value[1] == 0.0


@pytest.mark.parametrize("pooling", ["none", "full", "partial"])
def test_decisions_do_not_depend_on_offset_and_unit(pooling: str) -> None:
    decisions = []
    for offset, unit in ((0.0, 1.0), (1024.0, 8.0)):
        cohort, draws = larl.Cohort(SPEC, 2, 1, pooling=pooling), np.random.default_rng(0)
        decisions.append([])
        for i in range(150):
            decision = cohort.decide(f"{i % 3}")
            reward = float(np.round(draws.normal() + (i % 3) * int(str(decision.arm)), 3))
            cohort.observe(decision, offset + unit * reward)
            decisions[-1].append(decision.arm)
    assert decisions[0] == decisions[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", [1e-6, 3.0, 1e6])
def test_state_of_partial_pooling_stays_finite(kind: str, penalty: float) -> None:
    policy, draws = larl.CohortLARL(s=2, penalty=penalty), np.random.default_rng(0)
    units: Any = units_of(pooled_state(policy, policy.init(2), "partial"), 2)
    for t in range(110):
        unit, arm = units.state(t % 2), int(draws.integers(2))
        learn(unit, arm, math.nan if draws.random() < 0.1 else KINDS[kind](arm, t, draws))
        assert all(np.isfinite(array).all() for array in leaves(unit)), t


def test_loading_a_file_does_not_change_other_agents() -> None:
    """The factors of lags are constants of the spec: they are not in files."""
    one, other = (larl.Agent(larl.CohortLARL(s=2), 2) for _ in range(2))
    packed = one.pack()
    assert not any("factor" in name for name in packed["base"]["state"])
    larl.Agent.unpack(packed)
    assert np.array_equal(other.state.inner.lags.factor, larl.CohortLARL(s=2).init(2).inner.lags.factor)


def test_partial_pooling_beats_units_alone_and_nears_the_kalman_filter() -> None:
    """8 cohorts of 40 units: regret within 20% of the filter with true parameters, far below units alone."""
    options: dict[str, Any] = {"horizon": 100, "trials": 8, "seed": 3, "units": 40, "progress": False}
    kalman = larl.compare({"it": larl.KalmanOracle()}, BASE, pooling="none", **options).total().values.ravel()
    alone = larl.compare({"it": larl.CohortLARL()}, BASE, pooling="none", **options).total().values.ravel()
    pooled = larl.compare({"it": larl.CohortLARL()}, BASE, pooling="partial", **options).total().values.ravel()
    difference, error = 1.2 * kalman - pooled, np.std(1.2 * kalman - pooled, ddof=1) / math.sqrt(kalman.size)
    assert difference.mean() > 3.0 * error
    gain = alone - pooled
    assert gain.mean() > 5.0 * np.std(gain, ddof=1) / math.sqrt(gain.size)
