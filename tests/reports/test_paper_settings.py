"""The baselines' settings: the authors', their theory's, and the grids that they are tuned over."""

import math

import numpy as np
import pytest

import larl
from larl import worlds
from larl._core.validation import InvalidValue
from larl.reports.paper.claims import FAILS, HOLDS, interval, verdict
from larl.reports.paper.settings import (
    ALL,
    BASELINES,
    BATCH,
    EXPLORE,
    HORIZON,
    LARL_BIC,
    Axis,
    Grid,
    authors_settings,
    candidate,
    choose,
    grids,
    reward_range,
    reward_sd,
    setting,
    theory_settings,
    variation,
    variation_of_batch,
)


def test_batches_are_what_they_are_called():
    for batch in BATCH.values:
        assert larl.Rexp3(variation_of_batch(int(batch), 2, HORIZON)).batch(2, HORIZON) == batch


def test_variation_is_the_expected_path_length():
    # 2,000 stationary paths; the mean of Σ|Δz| within 4 standard errors.
    base = larl.LatentAR(gammas=worlds.paper(5).gammas, beta=(-1, 1), mu=(0, 0))
    paths = np.array([base.path(HORIZON + 1, trial=trial) for trial in range(2000)])
    length = np.abs(np.diff(paths)).sum(1)
    low, high = reward_range(base)
    expected = variation(base, HORIZON) * (high - low)
    assert length.mean() == pytest.approx(expected, abs=4 * length.std() / math.sqrt(2000))


def test_theory_settings_are_those_of_the_theory():
    # The k = 1 world: Var z = 1/(1 − 0.81), reward noise 1.
    world, sd = worlds.paper(1), math.sqrt(1 / 0.19 + 1)
    assert reward_sd(world) == pytest.approx(sd)
    asked = theory_settings(world)
    assert asked["Stationary"].alpha == pytest.approx(sd * math.sqrt(2 * math.log(200)))
    assert asked["Stationary"].alpha == pytest.approx(8.1467, abs=1e-4)
    assert asked["AR UCB"].radius == "theory"
    assert asked["SW UCB"].scale == pytest.approx(6 * sd)
    assert asked["SW UCB"].window == round(2 * 6 * sd * math.sqrt(math.log(200)))
    assert asked["D-UCB"].discount == pytest.approx(1 - 1 / (4 * 6 * sd))
    assert set(asked) == set(ALL)
    # Where the authors' setting is not known none is made up.
    assert set(authors_settings(world)) == {"Stationary", "AR UCB"} < set(BASELINES)
    assert all((policy.alpha, policy.ridge) == (1.0, 1.0) for policy in authors_settings(world).values())


def test_the_setting_of_stationary_decides_whether_larl_beats_it():
    # k = 1, 400 trials, differences in regret with 95% intervals; the seed is neither the report's nor the tuning's.
    theory = theory_settings(worlds.paper(1))["Stationary"]
    policies = {"LARL": larl.LARLBIC(40), "authors": larl.UCB(1.0), "theory": theory, "tuned": larl.UCB(20.0)}
    total = larl.compare(policies, worlds.paper(1), horizon=200, trials=400, seed=77, progress=False).total(1)
    saved = {each: interval((total.sel(policy=each) - total.sel(policy="LARL")).values) for each in policies}
    assert verdict([saved["authors"]]) == HOLDS
    assert verdict([saved["theory"]]) == FAILS
    assert verdict([saved["tuned"]]) == FAILS


def further(axis: Axis, high: bool) -> float | None:
    """A value beyond the end of an axis; None where there is none."""
    if high:
        return {"α": 1e6, "scale": 1e6, "range": 1e6}.get(axis.name)
    return {"scale": axis.values[0] / 100, "range": 1e-5, "discount": 1e-5}.get(axis.name)


def test_nothing_changes_beyond_the_end_of_a_grid():
    # k = 1, 60 trials of 200 steps: mean regret at the end and beyond it agree within 4 standard errors, trials paired.
    world = worlds.paper(1)
    for kind, grid in grids(world).items():
        for place, axis in enumerate(grid.axes):
            assert list(axis.values) == sorted(axis.values)
            for high in (False, True):
                beyond = further(axis, high)
                if beyond is None:
                    continue
                points = {}
                for name, value in (("end", axis.values[-1 if high else 0]), ("beyond", beyond)):
                    point = [other.values[len(other.values) // 2] for other in grid.axes]
                    point[place] = value
                    points[name] = grid.build(*point)
                total = larl.compare(points, world, horizon=200, trials=60, progress=False).total()
                apart = (total.sel(policy="beyond") - total.sel(policy="end")).values
                assert abs(apart.mean()) <= 4 * apart.std() / math.sqrt(60), (kind, axis.name, high)


def test_other_ends_cannot_be_passed():
    assert {axis.name: axis.values[0] for axis in (EXPLORE,)} == {"exploration": 17}
    with pytest.raises(InvalidValue):
        larl.LARLBIC(16)
    lowest = {"α": 0, "window": 1, "batch": 1}
    highest = {"window": HORIZON, "batch": HORIZON, "discount": 1, "exploration": HORIZON}
    for grid in grids(worlds.paper(1)).values():
        for axis in grid.axes:
            assert axis.values[0] == lowest.get(axis.name, axis.values[0])
            assert axis.values[-1] == highest.get(axis.name, axis.values[-1])
            assert further(axis, high=False) is not None or axis.name in (*lowest, "exploration")
            assert further(axis, high=True) is not None or axis.name in highest


def test_the_best_point_is_chosen_and_its_limits_are_named():
    axes = (Axis("window", (1, 2, 3), "alternates", "never forgets"), Axis("scale", (0.1, 1, 10), "none", "all"))
    grid = Grid(axes, lambda window, scale: larl.SlidingWindowUCB(int(window), scale))
    regret = {candidate("SW", point): abs(point[0] - 2) + abs(point[1] - 10) for point in grid.points}
    best = choose("SW", grid, regret.__getitem__)
    assert best.point == (2, 10)
    assert best.policy == larl.SlidingWindowUCB(2, 10)
    assert best.limits == ("scale 10: all",)
    # Where the scale makes no difference its end is not chosen.
    flat = {candidate("SW", point): float(point[0] != 2) for point in grid.points}
    assert choose("SW", grid, flat.__getitem__).limits == ()
    assert choose("SW", grid, flat.__getitem__).point == (2, 1)


def test_settings_are_said_in_words():
    assert setting(larl.UCB(8.1467)) == "α = 8.15"
    assert setting(larl.SlidingWindowUCB(69, scale=15.0)) == "window 69, scale 15"
    assert setting(larl.LARLBIC(41, explore_with="alternate")) == "α = 1, 41 alternating steps"
    assert "its paper's radius" in setting(theory_settings(worlds.paper(1))["AR UCB"])
    assert LARL_BIC in grids(worlds.paper(1))
