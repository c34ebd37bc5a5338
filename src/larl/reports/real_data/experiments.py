"""Policies, their tuning on the first third of each problem, and what they earn on the rest."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl.policies import (
    KLUCB,
    LARL,
    UCB,
    AdaptiveLARL,
    Auto,
    BetaThompson,
    DiscountedBetaThompson,
    DiscountedKLUCB,
    DiscountedLinUCB,
    DiscountedUCB,
    Policy,
    SharedLARL,
    SlidingWindowUCB,
    ThompsonSampling,
)
from larl.reports.grids import Axis, Grid, TunedSetting, choose_setting, point_name
from larl.reports.real_data.forecaster import forecast_arms
from larl.reports.real_data.problems import Problem, window_count
from larl.simulation.result import Result
from larl.simulation.result_recorded import FIXED, Earnings, Windows, all_earnings
from larl.simulation.study import Study
from larl.worlds import Recorded

FORECASTER = "(forecaster that sees all arms)"
OWN = ("Auto", "SharedLARL", "AdaptiveLARL", "LARL")  # the policies that larl proposes; the others are baselines
MANY_ARMS = 5  # with more arms, the longest contexts are left out
TUNING_SEED = 1_000_003  # added to the seed

LAGS = Axis("s", (1, 2, 3, 5, 10), "s = 0 is UCB", "the longest")
SHORT_LAGS = Axis("s", (1, 2, 5), "s = 0 is UCB", "the longest")
ALPHA = Axis("α", (0.1, 0.3, 1, 3, 10), "hardly a bonus", "mostly the bonus decides")
FEW_ALPHAS = Axis("α", (0.1, 0.3, 1, 3), "hardly a bonus", "the largest")
WINDOW = Axis("window", (5, 10, 20, 50, 100, 200, 400), "the shortest", "the longest")
DISCOUNT = Axis("discount", (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1), "forgets nearly all", "never forgets")
LONG_DISCOUNT = Axis("discount", (0.95, 0.98, 0.99, 1), "the shortest memory", "never forgets")
SCALE = Axis("scale", (0.01, 0.1, 0.3, 1, 3), "hardly a bonus", "the largest")
SIGMA = Axis("σ", (0.03, 0.1, 0.3, 1, 3), "follows each reward", "mostly random")
EXTRA = Axis("c", (0, 3), "the smaller bonus", "the larger bonus")
RIDGE = Axis("ridge", (3, 30, 300), "the least", "the most")


@dataclass(frozen=True)
class Scope:
    """How often each window is played, the seed, and whether only a few windows and settings are used."""

    repeats: int = 1
    seed: int = 0
    quick: bool = False

    def windows(self, world: Recorded) -> int:
        """Return the number of windows that are played."""
        return min(window_count(world), 3) if self.quick else window_count(world)

    def trials(self, world: Recorded) -> int:
        """Return the number of trials: every window, `repeats` times."""
        return self.windows(world) * (1 if self.quick else self.repeats)


def untuned(problem: Problem) -> dict[str, Policy]:
    """Return the policies that run with their defaults."""
    binary: dict[str, Policy] = {"BetaThompson": BetaThompson()} if problem.is_binary else {}
    return {"Auto": Auto(), "SharedLARL": SharedLARL(), "AdaptiveLARL": AdaptiveLARL()} | binary


def grids(problem: Problem, scope: Scope) -> dict[str, Grid]:
    """Return the tuning grid of each of the other policies; all but ThompsonSampling standardise rewards themselves."""
    has_many = problem.table.shape[1] > MANY_ARMS
    lags, short_lags = (_first(LAGS, 4), _first(SHORT_LAGS, 2)) if has_many else (LAGS, SHORT_LAGS)
    spread, size = pilot_scale(problem)
    found = {
        "LARL": Grid((lags,), lambda s: LARL(int(s), standardise=True)),
        "DiscountedLinUCB": Grid(
            (short_lags, LONG_DISCOUNT, FEW_ALPHAS),
            lambda s, discount, alpha: DiscountedLinUCB(int(s), discount, alpha, standardise=True),
        ),
        "DiscountedUCB": Grid(
            (DISCOUNT, SCALE), lambda discount, scale: DiscountedUCB(discount, scale, standardise=True)
        ),
        "SlidingWindowUCB": Grid(
            (WINDOW, SCALE), lambda window, scale: SlidingWindowUCB(int(window), scale, standardise=True)
        ),
        "UCB": Grid((ALPHA,), lambda alpha: UCB(alpha, standardise=True)),
        "ThompsonSampling": Grid((SIGMA,), lambda sigma: ThompsonSampling(sigma * spread, 3.0 * size)),
    }
    if problem.is_binary:
        found |= {
            "DiscountedBetaThompson": Grid((DISCOUNT,), DiscountedBetaThompson),
            "KLUCB": Grid((EXTRA,), KLUCB),
            "DiscountedKLUCB": Grid((DISCOUNT, EXTRA), DiscountedKLUCB),
        }
    return {name: _thin(grid) if scope.quick else grid for name, grid in found.items()}


def forecaster_grid(problem: Problem, scope: Scope) -> Grid:
    """Return the grid of the forecaster; its points have no policy."""
    lags = _first(SHORT_LAGS, 2) if problem.table.shape[1] > MANY_ARMS else SHORT_LAGS
    grid = Grid((lags, RIDGE), lambda *_: UCB())
    return _thin(grid) if scope.quick else grid


def _first(axis: Axis, count: int) -> Axis:
    return axis._replace(values=axis.values[:count])


def _thin(grid: Grid) -> Grid:
    """Return a grid with the ends of each axis only."""
    return grid._replace(axes=tuple(axis._replace(values=axis.values[:: len(axis.values) - 1]) for axis in grid.axes))


def pilot_scale(problem: Problem) -> tuple[float, float]:
    """Return the standard deviation and the root mean square of the rewards for tuning; 1 in place of 0."""
    values = problem.table.iloc[: problem.first_reported].to_numpy()
    values = values[np.isfinite(values)]
    return float(values.std()) or 1.0, math.sqrt(float((values**2).mean())) or 1.0


def tuning(problem: Problem, scope: Scope) -> Study:
    """Return the study of every point of every grid, on the windows for tuning."""
    world = problem.tuning_world()
    points = {
        point_name(name, point): grid.build(*point)
        for name, grid in grids(problem, scope).items()
        for point in grid.points
    }
    return Study({problem.name: world}, points, problem.window, scope.trials(world), scope.seed + TUNING_SEED)


def comparison(problem: Problem, tuned: Mapping[str, TunedSetting], scope: Scope) -> Study:
    """Return the study of all policies with their chosen settings, on the windows for reporting."""
    world, chosen = problem.reporting_world(), {name: setting.policy for name, setting in tuned.items()}
    return Study({problem.name: world}, untuned(problem) | chosen, problem.window, scope.trials(world), scope.seed)


class Outcome(NamedTuple):
    """What every policy earned in each window for reporting of a problem."""

    problem: Problem
    earnings: dict[str, Earnings]
    tuned: dict[str, TunedSetting]

    @property
    def windows(self) -> int:
        """The number of windows, which share no row."""
        return int(self.earnings[FIXED].steps.size)

    @property
    def policies(self) -> list[str]:
        """Names of the bandit policies."""
        return [name for name in self.earnings if not name.startswith("(")]

    def share(self, name: str) -> float:
        """Return 0 for a random arm, 100 for the best arm at every step."""
        return self.earnings[name].share

    def difference(self, name: str, other: str) -> tuple[float, float]:
        """Return the difference in share, and its standard error over windows, paired; nan if there is one window."""
        influence = self.earnings[name].influence - self.earnings[other].influence
        error = float(influence.std(ddof=1)) / math.sqrt(self.windows) if self.windows > 1 else math.nan
        return self.share(name) - self.share(other), error

    def error(self, name: str) -> float:
        """Return the standard error of a share over windows; nan if there is one window."""
        influence = self.earnings[name].influence
        return float(influence.std(ddof=1)) / math.sqrt(self.windows) if self.windows > 1 else math.nan


def earnings_by_window(result: Result, world: Recorded, windows: int) -> dict[str, Earnings]:
    """Return the earnings of policies and benchmarks, summed over the repetitions of each window."""
    seed, horizon = int(result.data.attrs["seed"]), world.window
    data = result.data.isel(world=0) if "world" in result.data.dims else result.data
    found, _ = all_earnings(world, data, horizon, seed)
    return {
        name: Earnings(*(part.reshape(-1, windows).sum(axis=0) for part in each))  # trial i plays window i % windows
        for name, each in found.items()
    }


def forecaster_earnings(world: Recorded, windows: int, lags: int, ridge: float) -> Earnings:
    """Return what the forecaster earns in the first windows of a world."""
    rows = np.arange(windows * world.window).reshape(windows, world.window)
    rewards = world.table.values[rows]
    arms = forecast_arms(rewards, lags, ridge)
    played = np.take_along_axis(rewards, arms[..., None], axis=2)[..., 0]
    observed: NDArray[np.bool_] = np.isfinite(played)
    best = np.where(np.isfinite(rewards), rewards, -np.inf).max(axis=2)
    regret = np.where(observed, best - played, 0.0)
    return Windows(world, world.window, 0).earnings(rows, regret, observed)


def choose_settings(problem: Problem, tuned: Result, scope: Scope) -> dict[str, TunedSetting]:
    """Return the setting with the largest share on the windows for tuning, of each tuned policy and the forecaster."""
    world = problem.tuning_world()
    windows = scope.windows(world)
    earnings = earnings_by_window(tuned, world, windows)
    found = {
        name: choose_setting(name, grid, lambda point: -earnings[point].share)
        for name, grid in grids(problem, scope).items()
    }
    grid = forecaster_grid(problem, scope)
    shares: dict[str, Any] = {
        point_name(FORECASTER, point): -forecaster_earnings(world, windows, int(point[0]), point[1]).share
        for point in grid.points
    }
    return found | {FORECASTER: choose_setting(FORECASTER, grid, shares.__getitem__)}
