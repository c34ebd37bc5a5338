"""The reproduction of the paper: its studies, its output files, and that it resumes."""

import json
import re

import numpy as np
import pytest

import larl
from larl import worlds
from larl.reports import cached_studies
from larl.reports.paper import Scope, reproduce
from larl.reports.paper.claims import HOLDS, VERDICTS, Claim
from larl.reports.paper.experiments import (
    ORDERS,
    baselines,
    lookback,
    noise_structure,
    robustness,
    shrinking_world,
    sublinear,
    tuned_lookback,
    tuned_settings,
    tuning,
    tuning_grids,
)
from larl.reports.paper.report import claims_html, claims_markdown, page_html, table_html
from larl.reports.paper.settings import ALL_BASELINES, AUTHORS, THEORY, TUNED, label, point_name
from larl.simulation.study import Study
from larl.theory import random_cost, regret_floor

TINY = Scope(trials=4, s_values=(0, 1, 5), horizons=(50, 100), long_trials=3, all_experiments=True)


def test_every_experiment_has_its_studies():
    names = [*tuning(TINY), *lookback(TINY), *noise_structure(TINY), *sublinear(TINY), *robustness(TINY)]
    assert len(names) == len(set(names)) == 3 * 10 + 1 + 1 + 2 + 11


def test_baselines_are_compared_in_every_setting(finished):
    out, _ = finished
    tuned = {each: larl.load(out / "data" / f"{each}.nc") for each in tuning(TINY)}
    compared, again = baselines(TINY, tuned), tuned_lookback(TINY, tuned)
    for k in ORDERS:
        study = compared[f"baselines-k{k}"]
        assert study.policies[label("AR UCB", AUTHORS)] == larl.ARUCB(k)
        assert study.policies["LARL (BIC)"] == larl.LARLBIC(40)
        assert {label(baseline, source) for baseline in ALL_BASELINES for source in (THEORY, TUNED)} < set(
            study.policies
        )
        assert study.seed == again[f"lookback-tuned-k{k}"].seed == lookback(TINY)["lookback"].seed  # paired trials
        best = tuned_settings(k, tuned)
        for number, (policy, grid) in enumerate(tuning_grids(worlds.paper(k)).items()):
            tried = tuning(TINY)[f"tuning-k{k}-{number}"]
            assert tried.seed != study.seed
            means = tuned[f"tuning-k{k}-{number}"].total().mean(["world", "trial"])
            assert len(grid.points) == means.size
            assert float(means.sel(policy=point_name(policy, best[policy].point))) == float(means.min())


def test_tuning_counts_regret_from_step_k(finished):
    out, _ = finished
    number = list(tuning_grids(worlds.paper(10))).index("Stationary")
    kept = larl.load(out / "data" / f"tuning-k10-{number}.nc").total()
    study = tuning(TINY)[f"tuning-k10-{number}"]
    assert np.array_equal(kept.values, study.run(progress=False).total("k").values)


def test_shrinking_world_has_linear_random_regret_and_sublinear_floor():
    # Random regret is linear in T. The floor grows as T^{c/2} once z is small relative to the reward noise.
    for c in (0.5, 1.0, 1.5):
        one, two = (shrinking_world(c, t) for t in (10**8, 10**10))
        assert random_cost(one) > 1 / 3
        assert 10**2 * regret_floor(two) / regret_floor(one) == pytest.approx(100 ** (c / 2), rel=0.05)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("paper")
    return out, reproduce(out, TINY)


def test_reproduce_writes_report_claims_figures_and_data(finished):
    out, claims = finished
    assert {path.name for path in out.iterdir()} == {"report.html", "claims.json", "reproduction.md", "data", "figures"}
    assert json.loads((out / "claims.json").read_text()) == [claim._asdict() for claim in claims]
    html = (out / "report.html").read_text()
    assert not re.search(r'(src|href)="(?!data:|#)', html), "the page loads something from elsewhere"
    assert html.count("<figure>") == html.count("</figure>") == 10
    assert len(list((out / "figures").glob("*.png"))) == len(list((out / "figures").glob("*.svg"))) == 11
    for claim in claims:
        assert claim.verdict in VERDICTS
        assert claim.claim in (out / "reproduction.md").read_text()
    assert not list(out.rglob(".*"))


def test_second_run_writes_identical_files(finished, tmp_path):
    out, _ = finished
    reproduce(tmp_path, TINY)
    files = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    for path in files:
        assert (out / path).read_bytes() == (tmp_path / path).read_bytes(), path


def test_finished_studies_are_not_run_again(finished, monkeypatch):
    out, _ = finished
    ran = []
    original = Study.run
    monkeypatch.setattr(Study, "run", lambda self, **options: (ran.append(self), original(self, **options))[1])
    damaged = out / "data" / "baselines-k5.nc"
    damaged.write_bytes(damaged.read_bytes()[:1000])
    (out / "data" / "lookback.nc").unlink()
    before = {path: path.stat().st_mtime_ns for path in (out / "data").glob("*.nc")}
    reproduce(out, TINY)
    assert len(ran) == 2
    changed = {path.name for path in (out / "data").glob("*.nc") if path.stat().st_mtime_ns != before.get(path)}
    assert changed == {"baselines-k5.nc", "lookback.nc"}
    monkeypatch.setattr(Study, "run", lambda self, **options: (ran.append(self), 1 / 0)[1])
    with pytest.raises(ZeroDivisionError):  # with other settings the first study runs again
        reproduce(out, Scope(**TINY.__dict__ | {"trials": 5}))
    assert len(ran) == 3


def test_digest_depends_on_code_and_versions(monkeypatch):
    study = lookback(TINY)["lookback"]
    digest = cached_studies.study_digest(study)
    for package in ("numpy", "numba"):
        changed = study.to_dict()
        changed["code"] = changed["code"] | {package: "0"}
        monkeypatch.setattr(Study, "to_dict", lambda _, changed=changed: changed)
        assert cached_studies.study_digest(study) != digest
        monkeypatch.undo()


def test_pages_escape_html():
    claim = Claim("a < b", "§1", "<script>|", HOLDS, "&")
    for text in (claims_html([claim]), page_html("<t>", [table_html(["<h>"], [["<c>", "1.0"]])])):
        assert "<script>" not in text
        assert "<c>" not in text
        assert "<h>" not in text
    assert r"<script>\|" in claims_markdown([claim], "larl paper")
