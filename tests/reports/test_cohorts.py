"""The report on cohorts: its populations, its ratios and shares, and the page."""

from pathlib import Path

import numpy as np
import pytest

import larl
from larl.reports.cohorts import Scope, experiments, report, write_report
from larl.reports.cohorts.experiments import NewUnits, cohort_world, filter_regret, settings, state_after_pilot


def test_filter_regret_is_that_of_the_oracle_in_the_world_of_each_unit(monkeypatch):
    monkeypatch.setattr(experiments, "UNITS", 4)
    monkeypatch.setattr(experiments, "STEPS", 30)
    scope = Scope(2, 3, 5)
    found = filter_regret(cohort_world(settings()["k = 1"], scope), scope)
    whole = larl.compare({"it": larl.KalmanOracle()}, experiments.stationary(1), horizon=30, trials=8, seed=5)
    assert np.allclose(found, whole.total().values.reshape(2, 4).mean(axis=1))


def test_members_of_a_population_are_drawn_anew_for_every_unit():
    world = cohort_world(settings()["k = 5, units 30% apart"], Scope(2, 3, 5))
    assert len(set(world.members)) == 2 * experiments.UNITS


def test_state_after_a_pilot_is_that_of_a_new_unit_of_the_cohort():
    """It equals the State of a unit that enters a live cohort after the pilot's units."""
    world, units, seed, policy = cohort_world(settings()["k = 1"], Scope(2)), 3, 9, larl.CohortLARL(s=2)
    state = state_after_pilot(policy, world, units, seed)
    cohort = larl.Cohort(policy, 2, seed, pooling="partial", horizon=experiments.STEPS)
    simulators = [larl.worlds.Simulator(world, seed, unit) for unit in range(units)]
    for _ in range(experiments.STEPS):
        for unit, simulator in enumerate(simulators):
            decision = cohort.decide(f"{unit}")
            cohort.observe(decision, simulator.reward(int(str(decision.arm))))
            simulator.advance(int(str(decision.arm)))
    cohort.enter("new")
    live = cohort.state("new")
    assert np.array_equal(state.inner.pooled.theta, live.inner.pooled.theta)
    assert np.array_equal(state.inner.own.theta, live.inner.own.theta)
    assert np.array_equal(state.standard, live.standard)


def test_ratio_and_share_have_the_errors_of_their_definition():
    best, regret = np.array([10.0, 12.0, 14.0]), np.array([11.0, 13.2, 15.4])
    assert report.format_ratio(regret, best) == "1.100 ± 0.000"
    units = NewUnits({}, cold=np.full((3, 2), 15.0), best=np.full((3, 2), 10.0), baseline=np.full((3, 2), 20.0))
    assert report.format_share(np.full((3, 2), 12.0), units) == "80 ± 0"
    spread = np.array([[12.0, 12.0], [14.0, 14.0], [10.0, 10.0]])
    assert report.format_share(spread, units) == "80 ± 12"  # sd 20 over three pilots


def test_page_names_populations_in_which_pooling_is_worse():
    rows = {"one": {report.POOLED: np.array([5.0, 5.1, 4.9]), report.ALONE: np.array([4.0, 4.1, 3.9])}}
    assert "one (1.0 ± 0.0 more)" in report.where_worse(rows, report.POOLED)
    rows["one"][report.ALONE] = rows["one"][report.POOLED] + 1.0
    assert "in no population" in report.where_worse(rows, report.POOLED)


def test_report_writes_its_page_and_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A small run with two populations and plain baselines, so that nothing else is compiled."""
    chosen = {"k = 1": settings()["k = 1"]}
    for module in (experiments, report):
        for name, value in {"UNITS": 3, "STEPS": 12, "NEW_STEPS": 90, "PILOTS": (2,)}.items():
            monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(experiments, "Auto", lambda: larl.UCB())
    monkeypatch.setattr(experiments, "CohortAuto", lambda: larl.CohortLARL(alpha=0.5))
    monkeypatch.setattr(report, "settings", lambda: chosen)
    monkeypatch.setattr(report, "spread_settings", lambda: {"units apart": chosen["k = 1"]})
    monkeypatch.setattr(report, "SPREADS", {"0%": "k = 1", "100%": "units apart"})
    page = write_report(tmp_path, Scope(2, 2, 1))
    assert (tmp_path / "pooling.md").read_text(encoding="utf-8") == page
    assert (tmp_path / "images" / "pooling-spread.png").stat().st_size > 1000
    assert page.count("| k = 1 |") == 4  # cohorts, pilots of two policies, pilots in another world
    assert page.count("| units apart |") == 0
    assert [page.count(f"| {label} |") for label in ("0%", "100%")] == [1, 1]
    assert "nan" not in page
    assert write_report(tmp_path, Scope(2, 2, 1)) == page  # from the stored results
    (tmp_path / "pilots" / "0-1.json").write_text("{", encoding="utf-8")
    assert write_report(tmp_path, Scope(2, 2, 1)) == page  # the damaged file is made again
