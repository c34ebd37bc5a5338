"""The reproduction: settings, verdicts, what it leaves behind, and that it goes on where it was stopped."""

import json
import math
import re

import numpy as np
import pytest

import larl
from larl import worlds
from larl.paper import Scope, checks, reproduce, stages
from larl.paper.claims import CHANGED, FAILS, HOLDS, OPEN, Claim, interval, random_regret, slopes, verdict
from larl.paper.experiments import (
    BATCHES,
    HORIZON,
    ORDERS,
    baselines,
    best_settings,
    candidates,
    lookback,
    reward_range,
    robustness,
    shrinking_world,
    sublinear,
    tuning,
    variation,
    variation_of_batch,
)  # fmt: skip
from larl.paper.report import claims_table, markdown, page, table
from larl.theory import floor, random_cost
from tests.conftest import THREE_ARMS
from tests.test_theory import context, steady_predictions

TINY = Scope(trials=4, every_s=(0, 1, 5), horizons=(50, 100), long_trials=3, everything=True)


def test_batches_are_what_they_are_called():
    for batch in BATCHES:
        assert larl.Rexp3(variation_of_batch(batch, 2, HORIZON)).batch(2, HORIZON) == batch


def test_variation_is_the_expected_path_length():
    # 2,000 stationary paths; the mean of Σ|Δz| within 4 standard errors.
    base = larl.LatentAR(gammas=worlds.paper(5).gammas, beta=(-1, 1), mu=(0, 0))
    paths = np.array([base.path(HORIZON + 1, trial=trial) for trial in range(2000)])
    length = np.abs(np.diff(paths)).sum(1)
    low, high = reward_range(base)
    expected = variation(base, HORIZON) * (high - low)
    assert length.mean() == pytest.approx(expected, abs=4 * length.std() / math.sqrt(2000))


def test_every_experiment_is_there():
    names = [*tuning(TINY), *lookback(TINY), *sublinear(TINY), *robustness(TINY)]
    assert len(names) == len(set(names)) == 3 + 1 + 2 + 11
    tuned = {name: study.run() for name, study in tuning(TINY).items()}
    compared = baselines(TINY, tuned)
    for k in ORDERS:
        study = compared[f"baselines-k{k}"]
        assert study.policies["AR UCB"] == larl.ARUCB(k)
        assert study.policies["LARL (BIC)"] == larl.LARLBIC(40)
        assert study.seed != tuning(TINY)[f"tuning-k{k}"].seed
        best = best_settings(tuned[f"tuning-k{k}"])
        means = tuned[f"tuning-k{k}"].total("k").mean(["world", "trial"])
        offered = [float(means.sel(policy=each)) for each in candidates(worlds.paper(k)) if each.startswith("SW UCB")]
        assert float(means.sel(policy=f"SW UCB, tuned|{best['SW UCB, tuned']}")) == min(offered)


def test_the_shrinking_world_makes_the_claim_testable():
    # Random is linear in T; the informed pay in proportion to T^{c/2}, once z is small beside the reward noise.
    for c in (0.5, 1.0, 1.5):
        one, two = (shrinking_world(c, t) for t in (10**8, 10**10))
        assert random_cost(one) > 1 / 3
        assert 10**2 * floor(two) / floor(one) == pytest.approx(100 ** (c / 2), rel=0.05)


def test_verdicts():
    assert verdict([(1.0, 0.5, 1.5), (2.0, 1.0, 3.0)]) == HOLDS
    assert verdict([(1.0, 0.5, 1.5), (-2.0, -3.0, -1.0)]) == FAILS
    assert verdict([(1.0, 0.5, 1.5), (0.1, -0.5, 0.7)]) == OPEN
    mean, low, high = interval(np.array([1.0, 2.0, 3.0, 4.0]))
    assert (mean, high - mean) == (2.5, pytest.approx(1.96 * math.sqrt(5 / 3) / 2, rel=1e-4))
    assert low + high == pytest.approx(5.0)


def test_slopes_recover_a_known_exponent():
    results = {}
    for t in (100, 1000, 10_000):
        result = larl.compare({"LARL": larl.Random()}, {f"c = {c}": worlds.paper(1) for c in ("0.5", "1", "1.5", "2")},
                              horizon=5, trials=50, keep="summary")  # fmt: skip
        noise = np.random.default_rng(t).normal(1.0, 0.05, result.data["total"].shape)
        result.data["total"] = result.data["total"] * 0.0 + 3.0 * t**0.7 * noise
        results[t] = result
    for slope in slopes(results):
        assert slope.low < 0.7 < slope.high
        assert slope.high - slope.low < 0.02


def test_random_regret_is_the_closed_form():
    assert [random_regret(k) for k in ORDERS] == pytest.approx([402.49, 222.62, 185.73], abs=0.01)


def test_checks_agree_with_the_tests_own():
    arms, rewards = (each[0] for each in checks.history(THREE_ARMS, 12, 1, 0))
    assert np.allclose(checks.predictions(THREE_ARMS, arms, rewards), steady_predictions(THREE_ARMS, arms, rewards))
    rows = checks.contexts(arms, rewards, 4, 3)
    assert np.array_equal(rows, [context(arms[:t], rewards[:t], 4, 3) for t in range(4, 13)])
    assert max(checks.reduction_error(0, cases=6)) < 1e-9
    assert checks.same_as_ucb(0) == 0.0


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
    assert html.count("<figure>") == html.count("</figure>") == 9
    assert len(list((out / "figures").glob("*.png"))) == len(list((out / "figures").glob("*.svg"))) == 10
    for claim in verdicts:
        assert claim.verdict in (HOLDS, CHANGED, FAILS, OPEN)
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
    reproduce(out, Scope(**TINY.__dict__ | {"trials": 5}))
    assert len(ran) > 10  # other settings, other results


def test_pages_escape_what_they_show():
    claim = Claim("a < b", "§1", "<script>|", HOLDS, "&")
    for text in (claims_table([claim]), page("<t>", [table(["<h>"], [["<c>", "1.0"]])])):
        assert "<script>" not in text
        assert "<c>" not in text
        assert "<h>" not in text
    assert r"<script>\|" in markdown([claim], "larl paper")
