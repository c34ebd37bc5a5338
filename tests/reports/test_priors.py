"""The report on priors: its pilots, its coverage, its page and its cache."""

import json
from pathlib import Path

import numpy as np
import pytest

import larl
from larl._core.progress import Progress
from larl.reports.priors import Scope, experiments, report, write_report
from larl.reports.priors.experiments import covered, pilot_log, populations, run_all


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PILOTS": (1, 2), "STEPS": 20, "NEW_STEPS": 85, "COVERED_PILOTS": (2,)}.items():
        monkeypatch.setattr(experiments, name, value)
    monkeypatch.setattr(experiments, "populations", lambda: {"k = 1": populations()["k = 1"]})
    monkeypatch.setattr(experiments, "COVERED", {"k = 1": 1})
    monkeypatch.setattr(report, "PILOTS", (1, 2))
    monkeypatch.setattr(report, "COVERED", {"k = 1": 1})
    monkeypatch.setattr(report, "COVERED_PILOTS", (2,))
    monkeypatch.setattr(experiments, "prior_of_first", quick_prior)
    # Compiling Auto for a Population takes a minute. UCB ignores the prior: the tables are what is tested here.
    monkeypatch.setattr(experiments, "Auto", lambda prior: larl.UCB())


full_prior = experiments.prior_of_first


def quick_prior(log, units, arms, orders=(1,)):  # type: ignore[no-untyped-def]
    return full_prior(log, units, arms, orders)


def test_page_has_all_tables_and_finished_pilots_are_read_again(small: None, tmp_path: Path) -> None:
    scope = Scope(2, 2, 3)
    page = write_report(tmp_path, scope)
    assert (tmp_path / "prior.md").read_text(encoding="utf-8") == page
    assert page.count("| k = 1 |") == 3
    path = tmp_path / "data" / "0-1.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(values | {"n = 2": [0.0, 0.0]}), encoding="utf-8")
    again = run_all(tmp_path / "data", scope, Progress(1, False), 1)
    assert again["k = 1"][1]["n = 2"] == [0.0, 0.0]
    assert again["k = 1"][0] == json.loads((tmp_path / "data" / "0-0.json").read_text(encoding="utf-8"))
    assert run_all(tmp_path / "data", Scope(2, 2, 4), Progress(1, False), 1)["k = 1"][1]["n = 2"] != [0.0, 0.0]


def test_an_interval_covers_if_the_truth_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    part = larl.priors.PriorComponent(
        order=1,
        weight=1.0,
        mean=[np.arctanh(0.9) + 0.2, 1, 1, 0, 0, 0, 0],
        mean_covariance=np.diag([0.1**2, 1, 1, 1, 1, 1, 1]),
        spread=[1.0] * 7,
        level=[0, 0],
        same_sign=[0.5, 0.5],
        errors=0.0,
        shock_sd=0.0,
    )
    prior = larl.Prior(arms=("0", "1"), rewards="continuous", units=5, steps=50, components=(part,))
    monkeypatch.setattr(experiments, "prior_of_first", lambda *_: prior)
    log = pilot_log(larl.worlds.Population([experiments.stationary(1)]), 2, 1)
    assert covered(log, 2, 1) == [False]
    monkeypatch.setattr(experiments, "QUANTILE_95", 2.1)
    assert covered(log, 2, 1) == [True]
