"""Helpers for tests of cohorts: a world whose units differ, and a cohort stepped round by round."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import larl
from larl.policies._contract import SHARED_FIELDS
from larl.worlds import Simulator, variants

BASE = larl.LatentAR(gammas=(0.9,), beta=(-1.0, 1.0), mu=(0.0, 0.0))
WORLD = variants.HeterogeneousUnits(BASE, mu=0.5, beta=0.3)
SPEC = larl.LARL(1)


def step_by_hand(cohort: larl.Cohort, units: int, rounds: int, world: Any = WORLD) -> Iterator[tuple[int, Any, float]]:
    """Step all units round by round; yields the unit, its decision and its reward."""
    simulators = [Simulator(world, cohort.seed, unit) for unit in range(units)]
    for _ in range(rounds):
        for unit, simulator in enumerate(simulators):
            decision = cohort.decide(f"unit {unit}")
            arm = int(str(decision.arm))
            reward = simulator.reward(arm)
            assert cohort.observe(decision, reward) == "learnt"
            simulator.advance(arm)
            yield unit, decision, reward


class RegressionRows:
    """The rows of LARL's regressions, collected independently of the library: unit, arm, context, reward."""

    def __init__(self, s: int, arms: int, units: int) -> None:
        self.s, self.arms, self.size = s, arms, 1 + 2 * s * arms
        self.history: list[list[tuple[int, float]]] = [[] for _ in range(units)]
        self.rows: list[tuple[int, int, Any, float]] = []

    def context(self, unit: int) -> Any:
        """The regressors of a unit: 1, then for each lag and arm its reward and whether it was played."""
        x = np.zeros(self.size)
        x[0] = 1.0
        for lag, (arm, reward) in enumerate(reversed(self.history[unit][len(self.history[unit]) - self.s :])):
            x[1 + 2 * (lag * self.arms + arm) : 3 + 2 * (lag * self.arms + arm)] = reward, 1.0
        return x

    def add(self, unit: int, arm: int, reward: float) -> None:
        if len(self.history[unit]) >= self.s:
            self.rows.append((unit, arm, self.context(unit), reward))
        self.history[unit].append((arm, reward))


def leaves(state: Any) -> list[Any]:
    """Every array of a State except scratch space."""
    arrays = []
    for name, field in zip(state._fields, state, strict=True):
        if isinstance(field, np.ndarray) and name != "column":
            arrays.append(field)
        elif isinstance(field, tuple):
            arrays += leaves(field)
    return arrays


def same(one: Any, other: Any) -> bool:
    assert type(one) in SHARED_FIELDS
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(leaves(one), leaves(other), strict=True))
