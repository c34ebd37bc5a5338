"""Populations of units, cohorts of them that learn together, and new units after a pilot."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl import worlds
from larl._core.progress import Progress
from larl._core.states import copy_state
from larl.policies import LARL, LARLBIC, Auto, CohortAuto, CohortLARL, KalmanOracle, Policy
from larl.policies._pooling import pooled_state
from larl.reports.cached_pilots import Values, run_pilots
from larl.simulation.engine import Simulation, empty_trace
from larl.simulation.study import Study
from larl.worlds.base import LinearGaussianWorld, World
from larl.worlds.latent_ar import LatentAR
from larl.worlds.variants import Population

Floats = NDArray[np.float64]
UNITS, STEPS = 70, 140  # of a cohort, and of a pilot
NEW_STEPS = 200  # of a new unit
PILOTS = (1, 5, 20, 70)  # units in a pilot
# Populations of order 5 whose units differ more and more, by the spread of their parameters.
SPREADS = {
    "0%": "k = 5",
    "15%": "k = 5, units 15% apart",
    "30%": "k = 5, units 30% apart",
    "60%": "k = 5, units 60% apart",
    "100%": "k = 5, units 100% apart",
}
POPULATION_SEED = 7_000_003  # added to the seed

ALONE, SHARED, GIVEN_K, POOLED = "Auto, alone", "CohortLARL, full", "LARL, s = k, partial", "CohortLARL, partial"
AVERAGED = "CohortAuto, partial"
COLD = "Auto, no pilot"
FOREIGN_UNITS = 20
FOREIGN = f"another world, n = {FOREIGN_UNITS}"


@dataclass(frozen=True)
class Scope:
    """The number of cohorts of each population, the new units after each of as many pilots, and the seed."""

    cohorts: int = 10
    new_units: int = 30
    seed: int = 0


class Setting(NamedTuple):
    """A population: `draw(members, seed)` returns the worlds of its units."""

    draw: Callable[[int, int], list[LinearGaussianWorld]]
    k: int


def stationary(k: int) -> LatentAR:
    """Return the paper's world of order k from a stationary start."""
    return replace(worlds.paper(k), start="stationary")


def identical(world: LatentAR) -> Setting:
    """Return the population of units that do not differ."""
    return Setting(lambda _members, _seed: [world], world.k)


def spread_out(world: LatentAR, spread: float) -> Setting:
    """Return the population of `larl.worlds.random_population`."""
    return Setting(lambda members, seed: list(worlds.random_population(world, members, spread, seed).members), world.k)


def two_groups() -> Setting:
    """Return the population in which z is persistent for every second unit, and alternates for the others."""
    pair: list[LinearGaussianWorld] = [LatentAR(gammas=(g,), beta=(-1, 1), mu=(0, 0)) for g in (0.9, -0.5)]
    return Setting(lambda _members, _seed: pair, 1)


def settings() -> dict[str, Setting]:
    """Return the populations of the tables of cohorts and of new units."""
    return {
        "k = 1": identical(stationary(1)),
        "k = 5": identical(stationary(5)),
        "k = 10": identical(stationary(10)),
        "k = 5, units 30% apart": spread_out(stationary(5), 0.3),
        "k = 5, units 60% apart": spread_out(stationary(5), 0.6),
        "two hidden groups": two_groups(),
        "3 arms, k = 2": identical(worlds.random(k=2, arms=3, seed=21)),
        "3 arms, k = 2, another": identical(worlds.random(k=2, arms=3, seed=22)),
    }


def spread_settings() -> dict[str, Setting]:
    """Return the populations of SPREADS that `settings` lacks."""
    return {SPREADS[f"{100 * spread:.0f}%"]: spread_out(stationary(5), spread) for spread in (0.15, 1.0)}


def cohort_world(setting: Setting, scope: Scope) -> Population:
    """Return the world of all cohorts of a population."""
    return Population(setting.draw(UNITS * scope.cohorts, scope.seed + POPULATION_SEED))


def cohort_studies(name: str, setting: Setting, scope: Scope) -> dict[str, Study]:
    """Return a study for each kind of pooling."""
    world: dict[str, World] = {name: cohort_world(setting, scope)}
    policies: dict[str, dict[str, Policy]] = {
        "none": {ALONE: Auto()},
        "full": {SHARED: CohortLARL()},
        "partial": {GIVEN_K: LARL(setting.k, standardise=True), POOLED: CohortLARL(), AVERAGED: CohortAuto()},
    }
    return {
        pooling: Study(world, each, STEPS, scope.cohorts, scope.seed, keep="summary", units=UNITS, pooling=pooling)
        for pooling, each in policies.items()
    }


def regret_of(world: World, policy: Policy, seed: int, trial: int, horizon: int) -> float:
    """Return the total regret of one trial."""
    return float(regret_from(world, policy.init(world.arms, horizon=horizon, world=world), seed, trial, 1, horizon)[0])


def regret_from(world: World, state: object, seed: int, first: int, trials: int, horizon: int) -> Floats:
    """Return the total regret of trials that all start from the same State of a policy."""
    sums, times = np.zeros((trials, 1)), np.array([horizon - 1])
    Simulation(world.latent(), state).run_trials(seed, first, times, sums, empty_trace(1, horizon))
    return sums[:, 0]


def filter_regret(world: Population, scope: Scope) -> Floats:
    """Return the mean regret of each cohort's units with the Kalman filter that knows the parameters of its unit."""
    count = UNITS * scope.cohorts
    each = [
        regret_of(world.members[unit % len(world.members)], KalmanOracle(), scope.seed, unit, STEPS)
        for unit in range(count)
    ]
    return np.asarray(np.reshape(each, (scope.cohorts, UNITS)).mean(axis=1))


class NewUnits(NamedTuple):
    """Regret of new units, each array (pilots, new units)."""

    after: dict[int, Floats]  # by the number of units of the pilot
    cold: Floats  # Auto without a pilot
    best: Floats  # Kalman filter with the unit's own parameters
    baseline: Floats  # LARL with s by BIC


def state_after_pilot(policy: Policy, world: World, units: int, seed: int) -> object:
    """Return the State of a new unit after a pilot of `units` units, which learnt together with partial pooling."""
    new_unit = pooled_state(policy, policy.init(world.arms, horizon=STEPS, world=world), "partial")
    if units == 0:
        return copy_state(new_unit)
    cohort = Simulation(world.latent(), new_unit, units=units)
    cohort.run_cohort(seed, 0, STEPS)
    return copy_state(cohort.new_unit())


def foreign_setting(name: str) -> Setting:
    """Return the population of a pilot that does not fit: one of another order."""
    return identical(stationary(5 if name == "k = 1" else 1))


def run_pilot(name: str, setting: Setting, pilot: int, scope: Scope) -> Values:
    """Return the regret of new units by policy and size of the pilot, of Auto, of the filter and of the baseline."""
    first = max(PILOTS)  # trials 0 … first − 1 are the units of the pilot
    seed = scope.seed + POPULATION_SEED + 1 + pilot
    world = Population(setting.draw(first + scope.new_units, seed))

    def regret_after(state: object) -> list[float]:
        found: list[float] = regret_from(world, state, seed, first, scope.new_units, NEW_STEPS).tolist()
        return found

    found: Values = {COLD: regret_after(Auto().init(world.arms))}
    for label, policy in {POOLED: CohortLARL(), AVERAGED: CohortAuto()}.items():
        for n in (0, *PILOTS):
            found[f"{label}, n = {n}"] = regret_after(state_after_pilot(policy, world, n, seed))
        if world.arms == 2:
            other = Population(foreign_setting(name).draw(first, seed))
            found[f"{label}, {FOREIGN}"] = regret_after(state_after_pilot(policy, other, FOREIGN_UNITS, seed))
    members = [world.members[(first + i) % len(world.members)] for i in range(scope.new_units)]
    for kind, policy in {"filter": KalmanOracle(), "baseline": LARLBIC(NEW_STEPS // 5)}.items():
        found[kind] = [regret_of(own, policy, seed, first + i, NEW_STEPS) for i, own in enumerate(members)]
    return found


def steps_of_pilots(scope: Scope) -> int:
    """Return the number of steps of the new units and the pilots' units in one call of `run_pilot`."""
    sizes = (0, *PILOTS)
    return (1 + 2 * len(sizes)) * scope.new_units * NEW_STEPS + 2 * sum(sizes) * STEPS


def run_all_pilots(
    chosen: dict[str, Setting], folder: Path, scope: Scope, bar: Progress, threads: int | None
) -> dict[str, list[Values]]:
    """Return the results of all pilots by population; finished ones are read from `folder`."""
    return run_pilots(
        chosen,
        scope.cohorts,
        lambda name, pilot: run_pilot(name, chosen[name], pilot, scope),
        folder,
        f"{scope.new_units} new units, seed {scope.seed}",
        bar,
        steps_of_pilots(scope),
        threads,
    )


def new_units(pilots: list[Values], label: str) -> NewUnits:
    """Return the regrets of a population's new units with one policy, given by its label."""

    def regrets(key: str) -> Floats:
        return np.array([each[key] for each in pilots])

    after = {n: regrets(f"{label}, n = {n}") for n in (0, *PILOTS)}
    return NewUnits(after, regrets(COLD), regrets("filter"), regrets("baseline"))
