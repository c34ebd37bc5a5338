"""The comparison of all policies: which policies and settings it has, ties, ratios, and the page."""

import numpy as np
import pandas as pd
import pytest

import larl
from larl import worlds
from larl.policies import REGISTRY
from larl.reports.comparison import Scope, experiments, report, write_report
from larl.reports.comparison.experiments import Setting, all_grids, all_settings, tuned_settings, tuning
from larl.reports.comparison.report import Outcome
from larl.reports.comparison.tuning_grids import SHORT_ALPHA, oracle_grids, oracles, untuned
from larl.reports.grids import Grid

# Regret 0 by definition; no policy for drifting rewards; for cohorts; no world here has rewards that are not normal.
NOT_COMPARED = {"DynamicOracle", "RoundRobin", "FilterOracle", "CohortAuto", "CohortLARL"}
NOT_COMPARED |= {"BetaThompson", "DiscountedBetaThompson", "SlidingWindowBetaThompson", "KLUCB", "DiscountedKLUCB"}


def test_every_policy_is_compared_in_some_world():
    compared = set()
    for world in (worlds.paper(1), next(iter(experiments.markov_worlds().values())).world):
        grids = all_grids(Setting(world))
        policies = [
            *untuned().values(),
            *oracles(world).values(),
            *(grid.build(*grid.points[0]) for grid in grids.values()),
        ]
        compared |= {type(policy).__name__ for policy in policies}
    assert compared == {name for name, kind in REGISTRY.items() if kind.__module__.startswith("larl.")} - NOT_COMPARED


def test_every_setting_of_every_grid_is_accepted():
    for group in all_settings().values():
        for setting in group.values():
            for name, grid in all_grids(setting).items():
                points = [grid.build(*point) for point in grid.points]
                assert len(set(points)) == len(points), name
                for policy in points:
                    policy.init(setting.world.arms, horizon=setting.horizon, world=setting.world)
            for policy in [*untuned().values(), *oracles(setting.world).values()]:
                policy.init(setting.world.arms, horizon=setting.horizon, world=setting.world)


def test_tuning_uses_other_seeds_than_the_comparison():
    setting = Setting(worlds.paper(1))
    assert tuning("k = 1", setting, Scope(8, 5)).seed != experiments.comparison("k = 1", setting, {}, Scope(8, 5)).seed


def outcome(**total: list[float]) -> Outcome:
    return Outcome(
        Setting(worlds.paper(1)),
        pd.DataFrame({"KalmanOracle": [1.0] * 4, "KalmanUCB": [1.0] * 4, "PredictiveSampling": [1.0] * 4} | total),
        {},
    )


def test_ratio_is_relative_to_the_best_policy_that_is_no_oracle():
    found = outcome(a=[2.0, 4.0, 2.0, 4.0], b=[6.0, 6.0, 6.0, 6.0])
    assert dict(found.ratio) == {
        "a": 1.0,
        "b": 2.0,
        "KalmanOracle": pytest.approx(1 / 3),
        "KalmanUCB": pytest.approx(1 / 3),
        "PredictiveSampling": pytest.approx(1 / 3),
    }


def test_best_policies_are_those_within_two_standard_errors_of_the_paired_difference():
    rng = np.random.default_rng(0)
    luck, noise = 10.0 * rng.normal(size=400), rng.normal(size=400)
    found = Outcome(
        Setting(worlds.paper(1)),
        pd.DataFrame(
            {
                "KalmanOracle": luck,
                "KalmanUCB": luck,
                "PredictiveSampling": luck,
                "a": luck,
                "tied": luck + noise - noise.mean() + 0.05,  # 1 standard error
                "worse": luck + noise - noise.mean() + 0.15,  # 3 standard errors, far less than one of the unpaired one
            }
        ),
        {},
    )
    assert found.best == {"a", "tied"}


@pytest.fixture
def few_policies(monkeypatch):
    """Two worlds, two tuned policies and two without settings."""
    settings = {
        "paper": {"k = 1": Setting(worlds.paper(1), 60)},
        "others": {"change": Setting(worlds.ChangePoints(2), 60)},
    }
    grids = {
        "UCB": Grid((SHORT_ALPHA,), larl.UCB),
        "LARL": Grid((SHORT_ALPHA,), lambda alpha: larl.LARL(1, alpha=alpha)),
    }
    free = {"Auto": larl.UCB(2.0), "random": larl.Random()}
    monkeypatch.setattr(report, "all_settings", lambda: settings)
    monkeypatch.setattr(experiments, "grids", lambda arms, horizon: grids)
    for module in (experiments, report):
        monkeypatch.setattr(module, "untuned", lambda: free)
        monkeypatch.setattr(module, "oracle_grids", lambda world: {})
        assert module.oracle_grids is not oracle_grids


def test_tuned_setting_has_the_least_mean_regret(few_policies):
    setting = Setting(worlds.paper(1), 60)
    study = tuning("k = 1", setting, Scope(40, 3))
    result = study.run(progress=False)
    totals = result.total("k").mean(["trial", "world"]).to_series()
    from larl.simulation.result import Result

    chosen = tuned_settings(setting, Result(result.total("k").to_dataset().assign_attrs(result.data.attrs)))
    for policy in ("UCB", "LARL"):
        named = {name: mean for name, mean in totals.items() if str(name).startswith(policy)}
        assert chosen[policy].regret == min(named.values())
        assert f"{policy}|{chosen[policy].point[0]:g}" == min(named, key=named.get)


def test_report_is_written_and_second_run_reads_cached_studies(tmp_path, few_policies, monkeypatch):
    page = write_report(tmp_path, Scope(20, 3), command="larl report comparison --trials 20 --seed 3")
    assert (tmp_path / "comparison.md").read_text() == page
    assert [file.name for file in (tmp_path / "images").iterdir()] == ["comparison.png"]
    assert "Generated by `larl report comparison --trials 20 --seed 3`" in page
    assert "nan" not in page
    rows = [line for line in page.splitlines() if line.startswith("| ") and "±" in line]
    assert len(rows) == 4 + 2 + 4  # in the first world two oracles too
    assert sum("**" in row for row in rows) >= 2
    monkeypatch.setattr("larl.simulation.study.Study.run", lambda *_, **__: pytest.fail("it ran again"))
    assert write_report(tmp_path, Scope(20, 3), command="larl report comparison --trials 20 --seed 3") == page
