"""The settings of the baselines: the authors', their theory's, and the tuning grids."""

import math

import numpy as np
import pytest

import larl
from larl import worlds
from larl._core.validation import InvalidValue
from larl.reports.grids import Axis, Grid, choose_setting, point_name
from larl.reports.paper.claims import FAILS, HOLDS, judge_positive, mean_estimate
from larl.reports.paper.settings import (
    ALL_BASELINES,
    BASELINES,
    BATCH,
    EXPLORE,
    HORIZON,
    LARL_BIC,
    authors_settings,
    describe_settings,
    grids,
    reward_range,
    reward_sd,
    theory_settings,
    variation,
    variation_for_batch,
)


def test_rexp3_gets_the_batch_size_of_its_grid():
    for batch in BATCH.values:
        assert larl.Rexp3(variation_for_batch(int(batch), 2, HORIZON)).batch(2, HORIZON) == batch


def test_variation_equals_mean_path_length():
    # 2,000 stationary paths; the mean of Σ|Δz| within 4 standard errors.
    base = larl.LatentAR(gammas=worlds.paper(5).gammas, beta=(-1, 1), mu=(0, 0))
    paths = np.array([base.path(HORIZON + 1, trial=trial) for trial in range(2000)])
    length = np.abs(np.diff(paths)).sum(1)
    low, high = reward_range(base)
    expected = variation(base, HORIZON) * (high - low)
    assert length.mean() == pytest.approx(expected, abs=4 * length.std() / math.sqrt(2000))


def test_theory_settings_match_their_formulas():
    # The k = 1 world: Var z = 1/(1 − 0.81), reward noise 1.
    world, sd = worlds.paper(1), math.sqrt(1 / 0.19 + 1)
    assert reward_sd(world) == pytest.approx(sd)
    theory = theory_settings(world)
    assert theory["Stationary"].alpha == pytest.approx(sd * math.sqrt(2 * math.log(200)))
    assert theory["Stationary"].alpha == pytest.approx(8.1467, abs=1e-4)
    assert theory["AR UCB"].radius == "theory"
    assert theory["SW UCB"].scale == pytest.approx(6 * sd)
    assert theory["SW UCB"].window == round(2 * 6 * sd * math.sqrt(math.log(200)))
    assert theory["D-UCB"].discount == pytest.approx(1 - 1 / (4 * 6 * sd))
    assert set(theory) == set(ALL_BASELINES)
    # SW UCB and Rexp3 have no authors' setting because it is not published.
    assert set(authors_settings(world)) == {"Stationary", "AR UCB"} < set(BASELINES)
    assert all((policy.alpha, policy.ridge) == (1.0, 1.0) for policy in authors_settings(world).values())


def test_larl_beats_stationary_only_with_the_authors_setting():
    # k = 1, 400 trials, differences in regret with 95% intervals, on a seed that neither the report nor tuning uses.
    theory = theory_settings(worlds.paper(1))["Stationary"]
    policies = {"LARL": larl.LARLBIC(40), "authors": larl.UCB(1.0), "theory": theory, "tuned": larl.UCB(20.0)}
    total = larl.compare(policies, worlds.paper(1), horizon=200, trials=400, seed=77, progress=False).total(1)
    saved = {each: mean_estimate((total.sel(policy=each) - total.sel(policy="LARL")).values) for each in policies}
    assert judge_positive([saved["authors"]]) == HOLDS
    assert judge_positive([saved["theory"]]) == FAILS
    assert judge_positive([saved["tuned"]]) == FAILS


def value_beyond(axis: Axis, high: bool) -> float | None:
    """Return a valid value beyond an end of an axis, or None if there is none."""
    if high:
        return {"α": 1e6, "scale": 1e6, "range": 1e6}.get(axis.name)
    return {"scale": axis.values[0] / 100, "range": 1e-5, "discount": 1e-5}.get(axis.name)


def test_regret_does_not_change_beyond_the_end_of_a_grid():
    # k = 1, 60 paired trials of 200 steps: mean regret at the end and beyond it agree within 4 standard errors.
    world = worlds.paper(1)
    for policy, grid in grids(world).items():
        for number, axis in enumerate(grid.axes):
            assert list(axis.values) == sorted(axis.values)
            for high in (False, True):
                beyond = value_beyond(axis, high)
                if beyond is None:
                    continue
                points = {}
                for name, value in (("end", axis.values[-1 if high else 0]), ("beyond", beyond)):
                    point = [other.values[len(other.values) // 2] for other in grid.axes]
                    point[number] = value
                    points[name] = grid.build(*point)
                total = larl.compare(points, world, horizon=200, trials=60, progress=False).total()
                difference = (total.sel(policy="beyond") - total.sel(policy="end")).values
                assert abs(difference.mean()) <= 4 * difference.std() / math.sqrt(60), (policy, axis.name, high)


def test_other_ends_of_a_grid_are_limits_of_the_parameter():
    assert {axis.name: axis.values[0] for axis in (EXPLORE,)} == {"exploration": 17}
    with pytest.raises(InvalidValue):
        larl.LARLBIC(16)
    lowest = {"α": 0, "window": 1, "batch": 1}
    highest = {"window": HORIZON, "batch": HORIZON, "discount": 1, "exploration": HORIZON}
    for grid in grids(worlds.paper(1)).values():
        for axis in grid.axes:
            assert axis.values[0] == lowest.get(axis.name, axis.values[0])
            assert axis.values[-1] == highest.get(axis.name, axis.values[-1])
            assert value_beyond(axis, high=False) is not None or axis.name in (*lowest, "exploration")
            assert value_beyond(axis, high=True) is not None or axis.name in highest


def test_choose_setting_returns_best_point_and_its_limits():
    axes = (
        Axis("window", (1, 2, 3), "alternates", "never forgets"),
        Axis("scale", (0.1, 1, 10), "none", "all"),
    )
    grid = Grid(axes, lambda window, scale: larl.SlidingWindowUCB(int(window), scale))
    regret = {point_name("SW", point): abs(point[0] - 2) + abs(point[1] - 10) for point in grid.points}
    best = choose_setting("SW", grid, regret.__getitem__)
    assert best.point == (2, 10)
    assert best.policy == larl.SlidingWindowUCB(2, 10)
    assert best.limits == ("scale 10: all",)
    # If the scale has no effect, no end of its axis is chosen.
    flat = {point_name("SW", point): float(point[0] != 2) for point in grid.points}
    assert choose_setting("SW", grid, flat.__getitem__).limits == ()
    assert choose_setting("SW", grid, flat.__getitem__).point == (2, 1)


def test_describe_settings():
    assert describe_settings(larl.UCB(8.1467)) == "α = 8.15"
    assert describe_settings(larl.SlidingWindowUCB(69, scale=15.0)) == "window 69, scale 15"
    assert describe_settings(larl.LARLBIC(41, explore_with="alternate")) == "α = 1, 41 alternating steps"
    assert "radius of its paper" in describe_settings(theory_settings(worlds.paper(1))["AR UCB"])
    assert LARL_BIC in grids(worlds.paper(1))
