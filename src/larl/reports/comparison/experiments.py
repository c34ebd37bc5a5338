"""The worlds of the comparison and its studies: tuning on some seeds, comparison on others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from larl import worlds
from larl.policies import Policy
from larl.reports.comparison.tuning_grids import grids, oracle_grids, oracles, untuned
from larl.reports.grids import Grid, TunedSetting, choose_setting, point_name
from larl.reports.paper.experiments import robustness_worlds
from larl.simulation.result import Result
from larl.simulation.study import Study
from larl.worlds.base import World

HORIZON = 200
MIN_TRIALS = 20  # of long trials
TUNING_SEED = 1_000_003  # added to the seed
PAPER, MARKOV, OTHERS = "The paper's worlds", "Hidden Markov states", "Other worlds"


@dataclass(frozen=True)
class Scope:
    """The number of trials of 200 steps, of which tuning runs half for each setting, and the seed."""

    trials: int = 200
    seed: int = 0

    def trials_for(self, horizon: int, fraction: float = 1.0) -> int:
        """Return the number of trials at a horizon, for a fraction of the steps."""
        return max(int(fraction * self.trials * HORIZON / horizon), min(MIN_TRIALS, self.trials))


class Setting(NamedTuple):
    """A world and a horizon in steps."""

    world: World
    horizon: int = HORIZON


def paper_worlds() -> dict[str, Setting]:
    """Return the paper's worlds."""
    return {f"k = {k}": Setting(worlds.paper(k)) for k in (1, 5, 10)}


def markov_worlds() -> dict[str, Setting]:
    """Return worlds with a discrete hidden state: the first two by hand, the others at random."""
    switch = worlds.LatentMarkov(transition=((0.95, 0.05), (0.05, 0.95)), means=((1.0, -1.0), (-1.0, 1.0)))
    cycle = worlds.LatentMarkov(
        transition=((0.8, 0.2, 0.0), (0.0, 0.8, 0.2), (0.2, 0.0, 0.8)),
        means=((1.0, 0.0, -1.0), (-1.0, 1.0, 0.0), (0.0, -1.0, 1.0)),
        sigma_r=0.5,
    )
    sizes = ((2, 2, 0.9), (3, 2, 0.98), (3, 4, 0.95), (5, 3, 0.97), (5, 5, 0.9))
    drawn = {
        f"{states} states, {arms} arms, persistence {stay:g}": worlds.random_markov(states, arms, seed, stay)
        for seed, (states, arms, stay) in enumerate(sizes)
    }
    return {name: Setting(world) for name, world in ({"two states": switch, "three in a cycle": cycle} | drawn).items()}


def all_settings() -> dict[str, dict[str, Setting]]:
    """Return the worlds of the comparison, by group."""
    others = {name: Setting(world, horizon) for name, (world, horizon) in robustness_worlds().items()}
    others["k = 1, stationary start"] = others.pop("as defined")
    return {PAPER: paper_worlds(), MARKOV: markov_worlds(), OTHERS: others}


def all_grids(setting: Setting) -> dict[str, Grid]:
    """Return the tuning grid of each tuned policy in a world."""
    return grids(setting.world.arms, setting.horizon) | oracle_grids(setting.world)


def tuning(name: str, setting: Setting, scope: Scope) -> Study:
    """Return the study of every point of every grid in a world, on seeds that no comparison uses."""
    policies = {
        point_name(policy, point): grid.build(*point)
        for policy, grid in all_grids(setting).items()
        for point in grid.points
    }
    trials = scope.trials_for(setting.horizon, 0.5)
    return Study({name: setting.world}, policies, setting.horizon, trials, scope.seed + TUNING_SEED)


def tuned_settings(setting: Setting, tuned: Result) -> dict[str, TunedSetting]:
    """Return the setting with the smallest mean regret on the tuning seeds, for each tuned policy."""
    means = tuned.total().mean(["trial", "world"]).to_series().to_dict()
    return {policy: choose_setting(policy, grid, means.__getitem__) for policy, grid in all_grids(setting).items()}


def comparison(name: str, setting: Setting, tuned: Mapping[str, TunedSetting], scope: Scope) -> Study:
    """Return the study of all policies in a world, with the tuned settings."""
    policies: dict[str, Policy] = untuned() | {each: choice.policy for each, choice in tuned.items()}
    policies |= oracles(setting.world)
    trials = scope.trials_for(setting.horizon)
    return Study({name: setting.world}, policies, setting.horizon, trials, scope.seed)


def policy_count(setting: Setting) -> int:
    """Return the number of policies that are compared in a world."""
    return len(untuned()) + len(all_grids(setting)) + len(oracles(setting.world))
