"""Full pooling equals one ridge regression on all rows; partial pooling equals an exact posterior."""

import math
from typing import Any

import numpy as np
import pytest

import larl
from larl.policies._partial_pooling import KAPPAS, partial_init
from tests.live.cohorts import RegressionRows, step_by_hand
from tests.stepping import learn, predict, units_of

UNITS, ALPHA, RIDGE = 4, 0.7, 2.0
NO_CONTEXT = np.zeros((1, 0))


def test_full_pooling_is_one_ridge_regression_on_all_rows() -> None:
    cohort, rows = larl.Cohort(larl.LARL(2, ALPHA, RIDGE), 2, 5, pooling="full"), RegressionRows(2, 2, UNITS)
    for unit, decision, reward in step_by_hand(cohort, UNITS, 25):
        arm = int(decision.arm)
        if decision.t >= 2:
            own_rows, x = [(x, r) for _, a, x, r in rows.rows if a == arm], rows.context(unit)
            v = RIDGE * np.eye(x.size) + sum((np.outer(x, x) for x, _ in own_rows), np.zeros((x.size, x.size)))
            theta = np.linalg.solve(v, sum((r * x for x, r in own_rows), np.zeros(x.size)))
            assert decision.expected == pytest.approx(x @ theta, abs=1e-9)
            assert decision.width == pytest.approx(ALPHA * math.sqrt(x @ np.linalg.solve(v, x)), abs=1e-9)
        rows.add(unit, arm, reward)


def test_pooled_ucb_uses_means_over_all_units() -> None:
    cohort = larl.Cohort(larl.UCB(), 2, pooling="full")
    total, plays = np.zeros(2), np.zeros(2)
    for _, decision, reward in step_by_hand(cohort, UNITS, 10):
        arm = int(decision.arm)
        assert decision.expected == pytest.approx(total[arm] / (1.0 + plays[arm]), abs=1e-12)
        total[arm] += reward
        plays[arm] += 1


class Joint:
    """The joint normal posterior of (θ, δ_0 … δ_n−1) of one arm, where θ_u = θ + δ_u."""

    def __init__(self, rows: RegressionRows, arm: int, kappa: float) -> None:
        self.size = d = rows.size
        n = d * (1 + UNITS)
        precision = np.diag(np.repeat([RIDGE, kappa], [d, d * UNITS]))
        shift, self.density = np.zeros(n), (0.0, 0.0)
        own_rows = [(unit, x, r) for unit, a, x, r in rows.rows if a == arm]
        design = np.array([self.row(unit, x) for unit, x, _ in own_rows]).reshape(-1, n)
        rewards = np.array([r for _, _, r in own_rows])
        if own_rows:  # log determinant and squared norm of the joint normal of all rewards, σ = 1
            cov = np.eye(len(own_rows)) + design @ np.linalg.solve(precision, design.T)
            self.density = np.linalg.slogdet(cov)[1], float(rewards @ np.linalg.solve(cov, rewards))
            precision, shift = precision + design.T @ design, design.T @ rewards
        self.cov = np.linalg.inv(precision)
        self.mean = self.cov @ shift

    def row(self, unit: int, x: Any) -> Any:
        z = np.zeros(self.size * (1 + UNITS))
        z[: self.size] = z[self.size * (1 + unit) : self.size * (2 + unit)] = x
        return z

    def predict_unit(self, unit: int, x: Any) -> tuple[float, float]:
        z = self.row(unit, x)
        return float(z @ self.mean), math.sqrt(z @ self.cov @ z)


@pytest.mark.parametrize("s", [0, 2])
def test_partial_pooling_is_posterior_at_most_likely_kappa(s: int) -> None:
    cohort, rows = larl.Cohort(larl.LARL(s, ALPHA, RIDGE), 2, 6, pooling="partial"), RegressionRows(s, 2, UNITS)
    for step, (unit, decision, reward) in enumerate(step_by_hand(cohort, UNITS, 25)):
        if decision.t >= s and step % 7 == 0:
            joint = [[Joint(rows, arm, RIDGE * kappa) for arm in (0, 1)] for kappa in KAPPAS]
            best = int(np.argmax([evidence(arms, len(rows.rows)) for arms in joint]))
            mean, sd = joint[best][int(decision.arm)].predict_unit(unit, rows.context(unit))
            assert decision.expected == pytest.approx(mean, abs=1e-9)
            assert decision.width == pytest.approx(ALPHA * sd, abs=1e-9)
        rows.add(unit, int(decision.arm), reward)
    joint = [[Joint(rows, arm, RIDGE * kappa) for arm in (0, 1)] for kappa in KAPPAS]
    state: Any = cohort.state("unit 0")
    assert np.allclose(state.evidence, [np.sum([arm.density for arm in arms], axis=0) for arms in joint], rtol=1e-9)
    assert int(state.rows[0]) == len(rows.rows)


def evidence(arms: list[Joint], count: int) -> float:
    """Log density of n rewards with σ integrated out, up to a constant: |cov|^{−1/2} (rᵀcov⁻¹r)^{−n/2}."""
    log, square = np.sum([arm.density for arm in arms], axis=0)
    return -0.5 * (log + count * math.log(square)) if count else 0.0


@pytest.mark.parametrize("kappa", [1e-9, 1e9])
def test_limits_of_partial_pooling_are_full_and_no_pooling(kappa: float) -> None:
    """κ → ∞: one regression for all units. κ → 0: each unit's own regression, almost without a prior."""
    draws, start = np.random.default_rng(3), larl.LARL(1, ridge=RIDGE).init(2)
    units, rows = (
        units_of(partial_init(start.ridge, start.lags, 1, 1.0, (kappa / RIDGE,)), UNITS),
        RegressionRows(1, 2, UNITS),
    )
    for _ in range(300):
        unit, arm, reward = int(draws.integers(UNITS)), int(draws.integers(2)), float(draws.normal())
        learn(units.state(unit), arm, reward)
        rows.add(unit, arm, reward)
    x, own_rows = rows.context(2), [(x, r) for u, a, x, r in rows.rows if a == 1 and (u == 2 or kappa > 1.0)]
    prior = (RIDGE if kappa > 1.0 else kappa) * np.eye(x.size)
    v = prior + sum((np.outer(x, x) for x, _ in own_rows), np.zeros((x.size, x.size)))
    mean, width = predict(units.state(2), 1)
    assert mean == pytest.approx(x @ np.linalg.solve(v, sum((r * x for x, r in own_rows), np.zeros(x.size))), abs=1e-5)
    assert width == pytest.approx(math.sqrt(x @ np.linalg.solve(v, x)), abs=1e-5)


def test_standardised_pooled_decisions_do_not_depend_on_scale_of_rewards() -> None:
    decisions = []
    for offset, unit in ((0.0, 1.0), (1024.0, 8.0)):
        cohort, draws = larl.Cohort(larl.LARL(1, standardise=True), 2, 1, pooling="partial"), np.random.default_rng(0)
        decisions.append([])
        for i in range(150):
            decision = cohort.decide(f"{i % 3}")
            reward = float(np.round(draws.normal() + (i % 3) * int(str(decision.arm)), 3))
            cohort.observe(decision, offset + unit * reward)
            decisions[-1].append(decision.arm)
    assert decisions[0] == decisions[1]
