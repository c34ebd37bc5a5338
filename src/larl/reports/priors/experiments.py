"""New units after pilots of several sizes, and the coverage of a prior's intervals."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from larl._core.progress import Progress
from larl.policies import LARLBIC, Auto, KalmanOracle, Random
from larl.policies.auto.prior import Prior
from larl.policies.auto.prior_table import QUANTILE_95
from larl.priors import learn_prior
from larl.reports.cached_pilots import Values, run_pilots
from larl.reports.cohorts.experiments import (
    COLD,
    FOREIGN,
    FOREIGN_UNITS,
    NEW_STEPS,
    PILOTS,
    STEPS,
    Floats,
    Setting,
    foreign_setting,
    regret_from,
    regret_of,
    settings,
    stationary,
)
from larl.simulation.compare import compare
from larl.worlds.similar_worlds import partial_autocorrelations
from larl.worlds.variants import Population

SEED = 11_000_003  # added to the seed; not that of other reports
COVERED = {"k = 1": 1, "k = 5": 5, "k = 5, units 30% apart": 5}  # populations of the coverage, and their order
COVERED_PILOTS = (5, 20, 70)


@dataclass(frozen=True)
class Scope:
    """The number of pilots of each population, of new units after each pilot, and the seed."""

    pilots: int = 10
    new_units: int = 30
    seed: int = 0


def pilot_log(world: Population, units: int, seed: int) -> pd.DataFrame:
    """Return the log of a pilot in which every decision was random."""
    result = compare({"random": Random()}, world, horizon=STEPS, trials=units, seed=seed, progress=False)
    return result.data[["arm", "reward"]].squeeze("policy").to_dataframe().reset_index()


def prior_of_first(log: pd.DataFrame, units: int, arms: int, orders: tuple[int, ...] | None = None) -> Prior:
    """Return the prior that the first units of a pilot imply."""
    options: dict[str, Any] = {} if orders is None else {"orders": orders}
    names = [str(arm) for arm in range(arms)]
    return learn_prior(log[log["trial"] < units], unit="trial", time="time", arms=names, **options)


def run_pilot(name: str, setting: Setting, pilot: int, scope: Scope) -> Values:
    """Return the regret of new units by kind of prior, of the filter and of the baseline; and which intervals cover."""
    seed, first = scope.seed + SEED + pilot, max(PILOTS)
    world = Population(setting.draw(first + scope.new_units, seed))
    log = pilot_log(world, first, seed)
    found: Values = {}
    for n in (0, *PILOTS):
        prior = prior_of_first(log, n, world.arms) if n else None
        found[COLD if n == 0 else f"n = {n}"] = new_regret(world, prior, seed, first, scope)
    if world.arms == 2:
        other = Population(foreign_setting(name).draw(first, seed))
        prior = prior_of_first(pilot_log(other, FOREIGN_UNITS, seed), FOREIGN_UNITS, 2)
        found[FOREIGN] = new_regret(world, prior, seed, first, scope)
    members = [world.members[(first + i) % len(world.members)] for i in range(scope.new_units)]
    places = range(first, first + scope.new_units)
    for policy, label in ((KalmanOracle(), "filter"), (LARLBIC(NEW_STEPS // 5), "baseline")):
        each = zip(members, places, strict=True)
        found[label] = [regret_of(own, policy, seed, place, NEW_STEPS) for own, place in each]
    if name in COVERED:
        found["covered"] = {str(n): covered(log, n, COVERED[name]) for n in COVERED_PILOTS}
    return found


def new_regret(world: Population, prior: Prior | None, seed: int, first: int, scope: Scope) -> list[float]:
    """Return the regret of each new unit with Auto."""
    state = Auto(prior=prior).init(world.arms)
    found: list[float] = regret_from(world, state, seed, first, scope.new_units, NEW_STEPS).tolist()
    return found


def covered(log: pd.DataFrame, units: int, order: int) -> list[bool]:
    """Return whether the 90% interval of each partial autocorrelation of the population covers the truth."""
    (part,) = prior_of_first(log, units, 2, (order,)).components
    truth = np.arctanh(partial_autocorrelations(np.array(stationary(order).gammas)))
    error = np.sqrt(np.diag(part.mean_covariance))[:order]
    inside: list[bool] = (np.abs(np.array(part.mean[:order]) - truth) <= QUANTILE_95 * error).tolist()
    return inside


def steps_of_pilot(scope: Scope) -> int:
    """Return the number of steps of new units after one pilot, those after a foreign one not counted."""
    return (1 + len(PILOTS)) * scope.new_units * NEW_STEPS


def run_all(folder: Path, scope: Scope, bar: Progress, threads: int | None) -> dict[str, list[Values]]:
    """Return the results of all pilots by population; finished ones are read from `folder`."""
    chosen = populations()
    return run_pilots(
        chosen,
        scope.pilots,
        lambda name, pilot: run_pilot(name, chosen[name], pilot, scope),
        folder,
        f"{scope.new_units} new units, seed {scope.seed}",
        bar,
        steps_of_pilot(scope),
        threads,
    )


def populations() -> dict[str, Setting]:
    """Return the populations of the tables."""
    return {name: setting for name, setting in settings().items() if not name.endswith("another")}


def regrets(pilots: list[Values], label: str) -> Floats:
    """Return the regret of all new units, (pilots, new units)."""
    return np.array([each[label] for each in pilots])
