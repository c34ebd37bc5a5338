"""The evaluation of Auto: the share of the gap closed, the held-out worlds, and the page."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import larl
from larl import worlds
from larl.reports.auto import Scope, experiments, report, robustness, write_report
from larl.reports.auto.experiments import KALMAN, LARL_BIC, Setting
from larl.reports.auto.report import markdown_table, share_closed
from larl.worlds import LatentAR


def test_share_closed_is_0_for_larl_bic_and_100_for_kalman():
    policies = {LARL_BIC: larl.LARLBIC(20), KALMAN: larl.KalmanOracle(), "same": larl.LARLBIC(20), "half": larl.LARL(1)}
    result = larl.compare(policies, {"world": worlds.paper(1)}, horizon=100, trials=50, seed=1)
    assert share_closed(result, "same", "world") == (0.0, 0.0)
    assert share_closed(result, KALMAN, "world").share == pytest.approx(100.0)
    total = result.total("k").sel(world="world")
    worst, best, regret = (total.sel(policy=each).values for each in (LARL_BIC, KALMAN, "half"))
    closed = share_closed(result, "half", "world")
    assert closed.share == pytest.approx(100.0 * (worst.mean() - regret.mean()) / (worst.mean() - best.mean()))
    rng = np.random.default_rng(2)  # the delta method agrees with the bootstrap
    picks = rng.integers(0, 50, size=(4000, 50))
    shares = 100.0 * (worst[picks] - regret[picks]).mean(axis=1) / (worst[picks] - best[picks]).mean(axis=1)
    assert closed.error == pytest.approx(shares.std(), rel=0.25)


def test_held_out_worlds_cover_arms_orders_horizons_and_noises():
    settings = experiments.held_out_worlds()
    assert len(settings) == 12
    tested = [setting.world for setting in settings.values()]
    assert {world.arms for world in tested} == {2, 3, 4}
    assert {world.k for world in tested} == {1, 2, 3, 6}
    assert {setting.horizon for setting in settings.values()} == {200, 500, 2000}
    assert {world.noise for world in tested} == {"scaled", "common"}
    assert any(min(abs(b) for b in world.beta) == 0.02 for world in tested)
    assert len({str(world) for world in tested}) == 12
    assert experiments.held_out_worlds() == settings


def test_report_is_written_and_second_run_reads_cached_studies(tmp_path, monkeypatch):
    constant = LatentAR((0.0,), beta=(0.0, 0.0), mu=(0.0, 0.5), noise="common")
    settings = {f"k = {k}": Setting(worlds.paper(k), 100, 0.2) for k in (1, 5)}
    for module in (report, experiments):
        monkeypatch.setattr(
            module, "paper_worlds", lambda: settings | {f"{name} again": p for name, p in settings.items()}
        )
        monkeypatch.setattr(module, "LONG_HORIZON", 100)
    monkeypatch.setattr(report, "held_out_worlds", lambda: settings)
    monkeypatch.setattr(report, "misspecified_worlds", lambda: {"constant": Setting(constant, 100)})
    monkeypatch.setattr(worlds, "non_gaussian", lambda: {"one": constant, "two": robustness.THREE})
    for name in ("Outliers", "HeavyTails", "ParameterChange"):
        monkeypatch.setattr(robustness, name, lambda base, **_: base)
    monkeypatch.setattr(robustness, "FilterOracle", larl.KalmanOracle)
    for module in (experiments, robustness):
        monkeypatch.setattr(module, "Auto", partial(larl.Auto, orders=(1, 3), particles=16))  # a tenth of the time
    monkeypatch.setattr(robustness, "CHANGE", 50)
    monkeypatch.setattr(robustness, "STILL_HORIZONS", (50, 100))
    page = write_report(tmp_path, Scope(20, 3))
    assert (tmp_path / "auto.md").read_text() == page
    assert {file.name for file in (tmp_path / "images").iterdir()} == {
        "auto-paper.png",
        "auto-stationary.png",
        "auto-test.png",
    }
    assert "| k = 1 | 8 |" in page
    assert "nan" not in page
    modified = {file: file.stat().st_mtime_ns for file in (tmp_path / "data").iterdir()}
    assert write_report(tmp_path, Scope(20, 3)) == page
    assert modified == {file: file.stat().st_mtime_ns for file in (tmp_path / "data").iterdir()}


def test_every_policy_runs_in_every_kind_of_world_of_the_robustness_studies(monkeypatch):
    monkeypatch.setattr(robustness, "Auto", partial(larl.Auto, orders=(1,), particles=16))
    monkeypatch.setattr(robustness, "FilterOracle", partial(larl.FilterOracle, particles=20))
    monkeypatch.setattr(robustness, "SETTINGS", dict(list(robustness.SETTINGS.items())[:1]))
    kinds = {}
    for name, study in robustness.studies(Scope()).items():
        if not name.startswith("constant"):
            regret = replace(study, horizon=8, trials=1).run(progress=False).regret.values
            assert regret.size == 8 * len(study.worlds) * len(study.policies)
            assert (regret >= 0.0).all()
            kinds[name] = {type(world).__name__ for world in study.worlds.values()}
    assert kinds == {
        "families": {"LatentGLM"},
        "outliers": {"HeavyTails", "LatentAR", "Outliers"},
        "changes": {"ParameterChange"},
        "changes-fresh": {"LatentAR"},
    }


def test_markdown_table_has_header_and_rows():
    import pandas as pd

    frame = pd.DataFrame({"a": ["1"], "b": ["2"]}, index=["row"])
    assert markdown_table(frame, "name").splitlines() == ["| name | a | b |", "| --- | --- | --- |", "| row | 1 | 2 |"]
