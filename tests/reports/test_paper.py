"""The reproduction: settings, verdicts, what it leaves behind, and that it goes on where it was stopped."""

import json
import re

import numpy as np
import pytest

import larl
from larl import worlds
from larl.reports.paper import Scope, reproduce, stages
from larl.reports.paper.claims import HOLDS, VERDICTS, Claim
from larl.reports.paper.experiments import (
    ORDERS,
    baselines,
    best_settings,
    lookback,
    noise_structure,
    robustness,
    shrinking_world,
    sublinear,
    tuned_lookback,
    tuning,
    tuning_grids,
)
from larl.reports.paper.report import claims_table, markdown, page, table
from larl.reports.paper.settings import ALL, AUTHORS, THEORY, TUNED, candidate, label
from larl.theory import random_regret, regret_floor

TINY = Scope(trials=4, every_s=(0, 1, 5), horizons=(50, 100), long_trials=3, everything=True)


def test_every_experiment_is_there():
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
        assert {label(kind, way) for kind in ALL for way in (THEORY, TUNED)} < set(study.policies)
        assert study.seed == again[f"lookback-tuned-k{k}"].seed == lookback(TINY)["lookback"].seed  # so trials pair up
        best = best_settings(k, tuned)
        for number, (kind, grid) in enumerate(tuning_grids(worlds.paper(k)).items()):
            tried = tuning(TINY)[f"tuning-k{k}-{number}"]
            assert tried.seed != study.seed
            means = tuned[f"tuning-k{k}-{number}"].total().mean(["world", "trial"])
            assert len(grid.points) == means.size
            assert float(means.sel(policy=candidate(kind, best[kind].point))) == float(means.min())


def test_tuning_counts_regret_from_k_on(finished):
    out, _ = finished
    number = list(tuning_grids(worlds.paper(10))).index("Stationary")
    kept = larl.load(out / "data" / f"tuning-k10-{number}.nc").total()
    study = tuning(TINY)[f"tuning-k10-{number}"]
    assert np.array_equal(kept.values, study.run(progress=False).total("k").values)


def test_the_shrinking_world_makes_the_claim_testable():
    # Random is linear in T; the informed pay in proportion to T^{c/2}, once z is small beside the reward noise.
    for c in (0.5, 1.0, 1.5):
        one, two = (shrinking_world(c, t) for t in (10**8, 10**10))
        assert random_regret(one) > 1 / 3
        assert 10**2 * regret_floor(two) / regret_floor(one) == pytest.approx(100 ** (c / 2), rel=0.05)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("paper")
    return out, reproduce(out, TINY)


def test_it_leaves_report_claims_figures_and_data(finished):
    out, verdicts = finished
    assert {path.name for path in out.iterdir()} == {"report.html", "claims.json", "reproduction.md", "data", "figures"}
    assert json.loads((out / "claims.json").read_text()) == [claim._asdict() for claim in verdicts]
    html = (out / "report.html").read_text()
    assert not re.search(r'(src|href)="(?!data:|#)', html), "the page asks for something from elsewhere"
    assert html.count("<figure>") == html.count("</figure>") == 10
    assert len(list((out / "figures").glob("*.png"))) == len(list((out / "figures").glob("*.svg"))) == 11
    for claim in verdicts:
        assert claim.verdict in VERDICTS
        assert claim.claim in (out / "reproduction.md").read_text()
    assert not list(out.rglob(".*"))


def test_a_second_run_gives_the_same_bytes(finished, tmp_path):
    out, _ = finished
    reproduce(tmp_path, TINY)
    files = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    for path in files:
        assert (out / path).read_bytes() == (tmp_path / path).read_bytes(), path


def test_what_is_finished_is_not_run_again(finished, tmp_path, monkeypatch):
    out, _ = finished
    ran = []
    original = stages.Study.run
    monkeypatch.setattr(stages.Study, "run", lambda self, **options: (ran.append(self), original(self, **options))[1])
    lost = out / "data" / "baselines-k5.nc"
    lost.write_bytes(lost.read_bytes()[:1000])  # half a file
    (out / "data" / "lookback.nc").unlink()
    before = {path: path.stat().st_mtime_ns for path in (out / "data").glob("*.nc")}
    reproduce(out, TINY)
    assert len(ran) == 2
    changed = {path.name for path in (out / "data").glob("*.nc") if path.stat().st_mtime_ns != before.get(path)}
    assert changed == {"baselines-k5.nc", "lookback.nc"}
    monkeypatch.setattr(stages.Study, "run", lambda self, **options: (ran.append(self), 1 / 0)[1])
    with pytest.raises(ZeroDivisionError):  # other settings, other results: its first study is run
        reproduce(out, Scope(**TINY.__dict__ | {"trials": 5}))
    assert len(ran) == 3


def test_pages_escape_what_they_show():
    claim = Claim("a < b", "§1", "<script>|", HOLDS, "&")
    for text in (claims_table([claim]), page("<t>", [table(["<h>"], [["<c>", "1.0"]])])):
        assert "<script>" not in text
        assert "<c>" not in text
        assert "<h>" not in text
    assert r"<script>\|" in markdown([claim], "larl paper")
