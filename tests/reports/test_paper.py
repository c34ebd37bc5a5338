"""The reproduction of the paper: its studies, its output files, and that an interrupted run continues.

The experiments run once in this process and once more, in part, by `larl paper` in another.
"""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

import larl
from larl import worlds
from larl.reports.grids import point_name
from larl.reports.paper import Scope, reproduce
from larl.reports.paper.claims import FAILS, HOLDS, VERDICTS, Claim
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
from larl.reports.paper.settings import ALL_BASELINES, AUTHORS, THEORY, TUNED, label
from larl.simulation.study import Study
from larl.theory import random_regret, regret_floor
from tests.cli.running import run, run_here

ARGUMENTS = ("paper", "--all", "--quick", "--trials", "4", "--seed", "0")
TINY = Scope(trials=4, all_experiments=True).quick()  # the scope of these arguments
FIRST = "tuning-k1-0.nc"  # the first study that is finished
# Studies that are simulated in both runs: every policy, and every kind of result that is kept.
DAMAGED = "baselines-k5.nc"
MISSING = {"lookback.nc", "beyond.nc", "noise.nc", "robustness-05.nc", "sublinear-T1000.nc"}
COUNT_STUDIES = """
import sys
from larl.simulation.study import Study
run = Study.run
def run_and_count(study, **options):
    print("running a study", file=sys.stderr)
    return run(study, **options)
Study.run = run_and_count
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder and the claims of a run without interruption."""
    out = tmp_path_factory.mktemp("paper")
    return out, reproduce(out, TINY, command=f"larl {' '.join(ARGUMENTS)}")


class Continued(NamedTuple):
    """A run of `larl paper` that was interrupted, and finished with some results of another run."""

    out: Path
    found: dict[str, int]  # file in `data` before it continued: time of its last change
    runs: int  # studies that were simulated after the interruption
    printed: str


save = larl.Result.save


def save_and_interrupt(result, path):
    """Do what Ctrl-C does as soon as the first study is finished. tests/cli/test_errors.py presses it."""
    save(result, path)
    raise KeyboardInterrupt


@pytest.fixture(scope="module")
def continued(finished, tmp_path_factory):
    out = tmp_path_factory.mktemp("continued")
    data, complete = out / "data", finished[0] / "data"
    with patch.object(larl.Result, "save", save_and_interrupt):
        interrupted = run_here(*ARGUMENTS, "--out", out)
    assert interrupted.returncode == 130, interrupted.stderr
    assert [path.name for path in data.glob("*.nc")] == [FIRST]
    assert not (out / "report.html").exists()
    for path in complete.glob("*.nc"):
        if path.name not in {FIRST, *MISSING}:
            shutil.copy(path, data)
    (data / DAMAGED).write_bytes((data / DAMAGED).read_bytes()[:1000])
    found = {path.name: path.stat().st_mtime_ns for path in data.glob("*.nc")}
    done = run(*ARGUMENTS, "--out", out, setup=COUNT_STUDIES)
    assert done.returncode == 0, done.stderr
    return Continued(out, found, done.stderr.count("running a study"), done.stdout)


def test_every_experiment_has_its_studies():
    names = [*tuning(TINY), *lookback(TINY), *noise_structure(TINY), *sublinear(TINY), *robustness(TINY)]
    assert len(names) == len(set(names)) == 3 * 10 + 1 + 1 + len(TINY.horizons) + 11


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
        assert random_regret(one) > 1 / 3
        assert 10**2 * regret_floor(two) / regret_floor(one) == pytest.approx(100 ** (c / 2), rel=0.05)


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


def test_interrupted_run_continues_and_writes_identical_files(finished, continued):
    out, _ = finished
    files = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(continued.out) for path in continued.out.rglob("*") if path.is_file())
    for path in files:
        assert (out / path).read_bytes() == (continued.out / path).read_bytes(), path


def test_command_prints_claims_and_report(finished, continued):
    assert f"written: {continued.out / 'report.html'}" in continued.printed
    for claim in finished[1]:
        assert f"{claim.verdict:{max(len(each.verdict) for each in finished[1])}}  {claim.claim}" in continued.printed
    assert "less regret than each baseline, baselines with the authors' settings (k = 10)" in continued.printed


def test_finished_studies_are_not_run_again(continued):
    assert MISSING.isdisjoint(continued.found)
    times = {path.name: path.stat().st_mtime_ns for path in (continued.out / "data").glob("*.nc")}
    assert {name for name in times if times[name] != continued.found.get(name)} == {DAMAGED, *MISSING}
    assert continued.runs == 1 + len(MISSING)


def test_with_other_settings_the_first_changed_study_runs_again(finished, monkeypatch):
    # Tuning has a quarter of the trials, at least 2: with 5 trials its studies are the same, with 12 they change.
    for trials, name, studies in ((5, "lookback", lookback), (12, "tuning-k1-0", tuning)):
        ran, scope = [], replace(TINY, trials=trials)
        monkeypatch.setattr(Study, "run", lambda self, ran=ran, **options: (ran.append(self), 1 / 0)[1])
        with pytest.raises(ZeroDivisionError):
            reproduce(finished[0], scope)
        assert ran == [studies(scope)[name]]


def test_digest_depends_on_code_and_versions(monkeypatch):
    study = lookback(TINY)["lookback"]
    digest = study.digest()
    for package in ("numpy", "numba"):
        changed = study.to_dict()
        changed["code"] = changed["code"] | {package: "0"}
        monkeypatch.setattr(Study, "to_dict", lambda _, changed=changed: changed)
        assert study.digest() != digest
        monkeypatch.undo()


def test_pages_escape_html():
    claim = Claim("a < b", "§1", "<script>|", HOLDS, "&")
    for text in (claims_html([claim]), page_html("<t>", [table_html(["<h>"], [["<c>", "1.0"]])])):
        assert "<script>" not in text
        assert "<c>" not in text
        assert "<h>" not in text
    assert r"<script>\|" in claims_markdown([claim], "larl paper")


def test_markdown_has_every_claim_once_in_the_section_of_its_place_and_counts_verdicts():
    places = {"§5.1": "LARL and its baselines", "Fig. 2": "Published regret", "App. E": "The number of past steps"}
    places |= {"§4.2": "Theory", "not in the paper": "LARL and its baselines"}
    claims = [Claim(f"claim {place}", place, "1", HOLDS if "§" in place else FAILS, "") for place in places]
    page = claims_markdown(claims, "larl paper")
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}
    for claim in claims:
        assert page.count(f"| {claim.claim} |") == 1
        assert f"| {claim.claim} |" in sections[places[claim.where]]
    assert f"“{HOLDS}”: 2; “{FAILS}”: 3." in page
