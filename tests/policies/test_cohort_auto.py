"""CohortAuto averages the predictions of CohortLARL and Auto by their errors, and learns as both do."""

import math
from typing import Any

import numpy as np
import pytest

import larl
from larl._core.states import Memory, copy_state
from larl.policies import Policy
from larl.policies._pooling import pooled_state
from larl.policies.cohort_auto import COHORT_DISCOUNT, DISCOUNT, MAX_CHANGE
from larl.worlds import Simulator
from tests.live.cohorts import BASE, leaves, step_by_hand
from tests.policies.test_finite import KINDS
from tests.stepping import learn, predict, units_of

UNITS = 3


def pooled_units(policy: Policy, pooling: str) -> Memory:
    return units_of(pooled_state(policy, copy_state(policy.init(2)), pooling), UNITS)


class AutoOnly:
    """The units of a CohortAuto whose CohortLARL forgets every reward: their predictions are those of Auto."""

    def __init__(self) -> None:
        self.units = pooled_units(larl.CohortAuto(), "partial")
        self.arrays = leaves(self.units.stacked().inner)
        self.initial = [array.copy() for array in self.arrays]

    def learn(self, unit: int, arm: int, reward: float) -> None:
        learn(self.units.state(unit), arm, reward)
        for array, initial in zip(self.arrays, self.initial, strict=True):
            array[...] = initial


def test_auto_learns_as_it_does_alone() -> None:
    state, alone, draws = larl.CohortAuto().init(2), larl.Auto().init(2), np.random.default_rng(6)
    for t in range(90):
        arm, reward = int(draws.integers(2)), math.nan if t % 7 == 3 else float(draws.normal())
        for each in (state, alone):
            learn(each, arm, reward)
    assert all(np.array_equal(one, other) for one, other in zip(leaves(state.alone), leaves(alone), strict=True))


def test_prediction_is_the_average_weighted_by_errors() -> None:
    """Both parts learn as they do without the other; the weights are computed here, from their predictions."""
    both, together = (pooled_units(policy, "partial") for policy in (larl.CohortAuto(), larl.CohortLARL()))
    alone = AutoOnly()
    draws, changes, squares = np.random.default_rng(4), np.zeros(UNITS), []
    simulators, all_changes, weights = [Simulator(BASE, 3, unit) for unit in range(UNITS)], [], []
    for step in range(40 * UNITS):
        unit = step % UNITS
        views = [stacked.state(unit) for stacked in (both, together, alone.units)]
        ages = COHORT_DISCOUNT ** np.arange(len(squares))[::-1]
        prior = float(ages @ all_changes / ages.sum() / (1.0 - DISCOUNT)) if squares else 0.0
        weight = 1.0 / (1.0 + math.exp(-prior - changes[unit]))
        arm, errors = int(draws.integers(2)), []
        reward = simulators[unit].reward(arm)
        for each in range(2):
            average, (mean, bonus), (auto_mean, auto_bonus) = (predict(view, each) for view in views)
            if not math.isnan(mean) and not math.isnan(auto_mean):
                expected = (1 - weight) * mean + weight * auto_mean, (1 - weight) * bonus + weight * auto_bonus
                assert average == pytest.approx(expected, rel=1e-9)
                weights.append(weight)
                errors = [(reward - mean) ** 2, (reward - auto_mean) ** 2] if each == arm else errors
            elif not math.isnan(auto_mean):
                assert average == (auto_mean, auto_bonus)
            else:
                assert math.isnan(average[0])
        if errors:
            squares.append(errors)
            ages = COHORT_DISCOUNT ** np.arange(len(squares))[::-1]
            variance = float((ages @ np.array(squares)).min() / ages.sum())
            change = min(max((errors[0] - errors[1]) / (2.0 * variance), -MAX_CHANGE), MAX_CHANGE)
            all_changes.append(change)
            changes[unit] = DISCOUNT * changes[unit] + change
        for view in views[:2]:
            learn(view, arm, reward)
        alone.learn(unit, arm, reward)
        simulators[unit].advance(arm)
    assert min(weights) < 0.45
    assert max(weights) > 0.55


def test_late_rewards_and_files_give_the_same_decisions() -> None:
    """A cohort whose rewards come a round late, and is saved and loaded, ends in the State of one that waited."""
    cohorts = [larl.Cohort(larl.CohortAuto(), 2, 5, pooling="partial") for _ in range(2)]
    pending: list[Any] = []
    for step, (unit, decision, reward) in enumerate(step_by_hand(cohorts[0], UNITS, 20)):
        again = cohorts[1].record(f"unit {unit}", decision.arm)
        pending.append((again, reward))
        if len(pending) > UNITS:
            cohorts[1].observe(*pending.pop(0))
        if step == 20:
            cohorts[1] = larl.Cohort.unpack(cohorts[1].pack())
    for each in pending:
        cohorts[1].observe(*each)
    for unit in range(UNITS):
        one, other = (cohort.state(f"unit {unit}") for cohort in cohorts)
        assert all(np.array_equal(a, b) for a, b in zip(leaves(one), leaves(other), strict=True))


def test_decisions_do_not_depend_on_offset_and_unit() -> None:
    decisions = []
    for offset, unit in ((0.0, 1.0), (1024.0, 8.0)):
        cohort, draws = larl.Cohort(larl.CohortAuto(), 2, 1, pooling="partial"), np.random.default_rng(0)
        decisions.append([])
        for i in range(90):
            decision = cohort.decide(f"{i % 3}")
            reward = float(np.round(4096 * (draws.normal() + (i % 3) * int(str(decision.arm)))) / 4096)
            cohort.observe(decision, offset + unit * reward)
            decisions[-1].append(decision.arm)
    assert decisions[0] == decisions[1]


@pytest.mark.parametrize("kind", KINDS)
def test_state_of_partial_pooling_stays_finite(kind: str) -> None:
    draws, units = np.random.default_rng(0), pooled_units(larl.CohortAuto(), "partial")
    for t in range(90):
        unit, arm = units.state(t % UNITS), int(draws.integers(2))
        learn(unit, arm, math.nan if draws.random() < 0.1 else KINDS[kind](arm, t, draws))
        assert all(np.isfinite(array).all() for array in leaves(unit)), t
        assert not any(math.isinf(each) for arm in range(2) for each in predict(unit, arm)), t


@pytest.mark.parametrize("pooling", ["none", "partial"])
def test_treatment_is_tried_if_all_rewards_of_the_control_are_equal(pooling: str) -> None:
    """The control always pays 10, the treatment N(12, 2): no unit stays with the control, in 20 cohorts of 3 units."""
    for seed in range(20):
        cohort, draws = larl.Cohort(larl.CohortAuto(), 2, seed, pooling=pooling), np.random.default_rng(seed)
        plays = np.zeros(UNITS)
        for i in range(60 * UNITS):
            decision = cohort.decide(f"{i % UNITS}")
            plays[i % UNITS] += decision.arm == "1"
            cohort.observe(decision, 10.0 if decision.arm == "0" else float(draws.normal(12.0, 2.0)))
        assert plays.min() >= 3


def test_one_outlier_does_not_decide_the_weights() -> None:
    units, draws = pooled_units(larl.CohortAuto(), "partial"), np.random.default_rng(1)
    for t in range(60):
        learn(units.state(t % UNITS), t % 2, float(draws.normal()))
    changes = units.stacked().changes
    before = changes[0, 0]
    learn(units.state(0), 0, 1e9)
    assert abs(changes[0, 0] - before) <= (1.0 - DISCOUNT) * abs(before) + MAX_CHANGE


def test_units_that_differ_much_gain_over_pooling_and_lose_little_to_learning_alone() -> None:
    """4 cohorts of 20 units that share no parameter: clearly better than CohortLARL, within 15% of Auto alone."""
    world = larl.worlds.random_population(larl.worlds.paper(5), 120, 1.0, 11)
    options: dict[str, Any] = {"horizon": 80, "trials": 4, "seed": 3, "units": 20, "progress": False}
    pooled = larl.compare(
        {"LARL": larl.CohortLARL(), "Auto": larl.CohortAuto()}, world, pooling="partial", **options
    ).total()
    alone = larl.compare({"it": larl.Auto()}, world, pooling="none", **options).total().values.ravel()
    larl_regret, auto_regret = (pooled.sel(policy=name).values.ravel() for name in ("LARL", "Auto"))
    gain = larl_regret - auto_regret
    assert gain.mean() > 3.0 * gain.std(ddof=1) / math.sqrt(gain.size)
    loss = auto_regret - 1.15 * alone
    assert loss.mean() < 3.0 * loss.std(ddof=1) / math.sqrt(loss.size)
