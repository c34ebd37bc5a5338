"""The claims: how a verdict is reached, and checks of the theory that can fail."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import larl
from larl import worlds
from larl.reports.paper import checks, lookback_claims, published, regret_claims
from larl.reports.paper.claims import CHANGED, FAILS, HOLDS, OPEN, UNINFORMATIVE, interval, ratio, similar, verdict
from larl.reports.paper.experiments import ALTERNATING, KALMAN, ORDERS, noise_name
from larl.reports.paper.regret_claims import random_regret
from larl.reports.paper.settings import AUTHORS, LARL_BIC, THEORY, TUNED, label
from larl.reports.paper.theory_claims import Slope, slopes, sublinear_claims
from larl.statespace.steady_state import steady_state
from larl.theory import regret_bound, regret_floor, reward_parameters, steady_start
from tests.conftest import THREE_ARMS
from tests.theory.test_theory import context, steady_predictions

ROOT = Path(__file__).parents[2]


def sample(mean: float, sd: float = 1.0, size: int = 1000) -> np.ndarray:
    """Numbers with exactly this mean and sd."""
    draws = np.random.default_rng(size).normal(size=size)
    return mean + sd * (draws - draws.mean()) / draws.std(ddof=1)


def test_verdicts():
    assert verdict([(1.0, 0.5, 1.5), (2.0, 1.0, 3.0)]) == HOLDS
    assert verdict([(1.0, 0.5, 1.5), (-2.0, -3.0, -1.0)]) == FAILS
    assert verdict([(1.0, 0.5, 1.5), (0.1, -0.5, 0.7)]) == OPEN
    assert similar([(0.02, -0.01, 0.05), (-0.03, -0.06, 0.0)], 0.1) == HOLDS
    assert similar([(0.02, -0.01, 0.05), (0.3, 0.2, 0.4)], 0.1) == FAILS
    assert similar([(-0.3, -0.4, -0.2)], 0.1) == FAILS
    assert similar([(0.08, 0.02, 0.14)], 0.1) == OPEN
    mean, low, high = interval(np.array([1.0, 2.0, 3.0, 4.0]))
    assert (mean, high - mean) == (2.5, pytest.approx(1.96 * math.sqrt(5 / 3) / 2, rel=1e-4))
    assert low + high == pytest.approx(5.0)


def test_a_ratio_and_its_interval():
    # The delta method against the bootstrap of 4,000 samples.
    draws = np.random.default_rng(3)
    below = draws.normal(10.0, 2.0, 80)
    above = 0.4 * below + draws.normal(0.0, 1.0, 80)
    value, low, high = ratio(above, below)
    picks = draws.integers(0, 80, size=(4000, 80))
    again = above[picks].mean(axis=1) / below[picks].mean(axis=1)
    assert value == pytest.approx(above.mean() / below.mean())
    assert (high - low) / 2 == pytest.approx(1.96 * again.std(), rel=0.15)


def everyone(**means: float) -> dict[str, np.ndarray]:
    """Totals of all policies of the comparison, at their published means unless given."""
    row = published.REGRET[5]
    found = {LARL_BIC: sample(175.0), ALTERNATING: sample(row["LARL"].mean), KALMAN: sample(85.0)}
    for kind in ("Stationary", "AR UCB", "SW UCB", "Rexp3", "D-UCB"):
        for way in (AUTHORS, THEORY, TUNED):
            found[label(kind, way)] = sample(row[kind].mean if kind in row else 200.0)
    return found | {policy: sample(mean) for policy, mean in means.items()}


def test_reproduced_means_within_three_standard_errors(monkeypatch):
    # The published mean of k = 5 has a standard error of 2.484: at 3.5 of them it is not reproduced, at 2.5 it is.
    for apart, expected in ((3.5, FAILS), (-3.5, FAILS), (2.5, HOLDS)):
        row = published.REGRET[5]["LARL"]
        error = math.hypot(row.sd / 10, 1 / math.sqrt(1000))
        total = everyone(**{ALTERNATING: row.mean - apart * error})
        monkeypatch.setattr(regret_claims, "totals", lambda *_, total=total: total)
        claims = {claim.claim: claim for claim in regret_claims.published_claims(None)}
        found = claims["The published LARL regret is reproduced (k = 5)"]
        assert found.verdict == expected
        assert f"z = {apart:+.2f}" in found.measured


def test_rows_that_agree_with_random_are_not_called_reproduced(monkeypatch):
    monkeypatch.setattr(regret_claims, "totals", lambda *_: everyone())
    claims = {claim.claim: claim for claim in regret_claims.published_claims(None)}
    assert claims["The published baseline regrets are reproduced (k = 5)"].verdict == UNINFORMATIVE
    assert claims["The published baseline regrets are reproduced (k = 1)"].verdict == FAILS


def test_the_gain_as_a_share_of_the_winnable_gap(monkeypatch):
    means = {"k = 1": (272.0, 193.0, 53.0), "k = 5": (222.0, 175.0, 86.0), "k = 10": (186.0, 170.0, 105.0)}
    stationary = label("Stationary", AUTHORS)

    def totals(_, world):
        start, larl_, kalman = means[world]
        return everyone(**{stationary: start, LARL_BIC: larl_, KALMAN: kalman, label("Stationary", THEORY): 158.0})

    monkeypatch.setattr(regret_claims, "totals", totals)
    claims = {claim.claim: claim for claim in regret_claims.gain_shrinks(None)}
    share = claims["The gain over Stationary shrinks as k grows, as a share of the winnable gap, Stationary: authors"]
    assert re.findall(r"(\d+)% \(", share.measured) == ["36", "35", "20"]
    assert claims["The gain over Stationary shrinks as k grows, as a share of Stationary's regret"].verdict == HOLDS
    theory = claims["The gain over Stationary shrinks as k grows, as a share of the winnable gap, Stationary: theory"]
    assert "k = 1: -33%" in theory.measured


def test_like_stationary_is_judged_by_the_winnable_gap(monkeypatch):
    stationary, sliding, rexp3 = label("Stationary", AUTHORS), label("SW UCB", THEORY), label("Rexp3", THEORY)
    for means, expected in (((272.0, 152.0, 371.0, 53.0), FAILS), ((222.0, 226.0, 225.0, 86.0), HOLDS)):
        found = everyone(**dict(zip((stationary, sliding, rexp3, KALMAN), means, strict=True)))
        monkeypatch.setattr(regret_claims, "totals", lambda *_, found=found: found)
        claims = {claim.claim: claim for claim in regret_claims.like_stationary(None)}
        assert claims["SW UCB and Rexp3 perform like Stationary (k = 1)"].verdict == expected


def test_a_poor_s_is_judged_by_the_winnable_gap(monkeypatch):
    start = label("Stationary", AUTHORS)
    found = {f"s = {s}": sample(m) for s, m in ((0, 272.0), (1, 79.0), (5, 124.0), (10, 165.0), (15, 192.0))}
    monkeypatch.setattr(lookback_claims, "totals", lambda *_: found | {start: sample(272.0), KALMAN: sample(53.0)})
    result = type("Result", (), {"policies": list(found)})
    claims = {claim.claim: claim for claim in lookback_claims._poor_s(result, None)}
    assert claims["A poor s (too small or too large) performs like Stationary (k = 1)"].verdict == FAILS
    found["s = 15"] = sample(268.0)
    claims = {claim.claim: claim for claim in lookback_claims._poor_s(result, None)}
    assert claims["A poor s (too small or too large) performs like Stationary (k = 1)"].verdict == HOLDS
    assert "s = 1:" not in claims["A poor s (too small or too large) performs like Stationary (k = 1)"].measured


def test_the_noise_claim_says_what_common_noise_costs(monkeypatch):
    others = {label("Stationary", AUTHORS): sample(170.0), KALMAN: sample(35.0)}
    scaled = {noise_name(k, "scaled"): others | {LARL_BIC: sample(120.0)} for k in ORDERS}
    for mean, expected in ((120.0, HOLDS), (150.0, CHANGED), (180.0, FAILS)):
        found = scaled | {noise_name(k, "common"): others | {LARL_BIC: sample(mean)} for k in ORDERS}
        monkeypatch.setattr(regret_claims, "totals", lambda _, world, found=found: found[world])
        assert regret_claims.noise_claim(None).verdict == expected


def test_slopes_recover_a_known_exponent():
    results = {}
    for t in (100, 1000, 10_000):
        places = {f"c = {c}": worlds.paper(1) for c in ("0.5", "1", "1.5", "2")}
        result = larl.compare({"LARL": larl.Random()}, places, horizon=5, trials=50, keep="summary")
        noise = np.random.default_rng(t).normal(1.0, 0.05, result.data["total"].shape)
        result.data["total"] = result.data["total"] * 0.0 + 3.0 * t**0.7 * noise
        results[t] = result
    for slope in slopes(results):
        assert slope.low < 0.7 < slope.high
        assert slope.high - slope.low < 0.02
        assert slope.last == pytest.approx(0.7, abs=0.02)


def test_an_exponent_above_the_prediction_is_not_passed():
    found = [Slope(c, "LARL s = 1", v, v - 0.005, v + 0.005, max(c / 2, 0.5), v) for c, v in ((1.0, 0.47), (1.5, 0.79))]
    below_one, order = sublinear_claims(found)
    assert (below_one.verdict, order.verdict) == (CHANGED, FAILS)
    _, order = sublinear_claims(found[:1])
    assert order.verdict == HOLDS


def test_random_regret_is_the_closed_form():
    assert [random_regret(k) for k in ORDERS] == pytest.approx([402.49, 222.62, 185.73], abs=0.01)


def test_checks_agree_with_the_tests_own():
    arms, rewards = (each[0] for each in checks.history(THREE_ARMS, 12, 1, 0))
    assert np.allclose(checks.predictions(THREE_ARMS, arms, rewards), steady_predictions(THREE_ARMS, arms, rewards))
    rows = checks.contexts(arms, rewards, 4, 3)
    assert np.array_equal(rows, [context(arms[:t], rewards[:t], 4, 3) for t in range(4, 13)])
    assert checks.reduction_error(0, cases=6) < 1e-9


def test_the_whole_past_is_the_filter_up_to_its_start(monkeypatch):
    found = checks.whole_past(0, cases=8)
    assert found.difference > 0.1  # with γ₀ ≠ 0 the two are not equal
    assert max(found.unexplained, found.centred) < 1e-9

    def printed(world, s):  # with the indicators' sign as the paper prints it
        theta, half = reward_parameters(world, s).copy(), s * world.arms
        theta[:, half : 2 * half] *= -1.0
        return theta

    monkeypatch.setattr(checks, "reward_parameters", printed)
    assert min(checks.whole_past(0, cases=8)[1:]) > 1e-3  # θ is really involved


def test_no_lookback_is_compared_with_a_formula_of_its_own(monkeypatch):
    assert checks.differs_from_ucb(0, trials=50) == (0, 10_000)
    monkeypatch.setattr(checks, "LARL", lambda s: larl.LARL(s, alpha=1.3))
    assert checks.differs_from_ucb(0, trials=50)[0] > 0


def test_coverage_says_how_loose_the_radius_is(monkeypatch):
    world = worlds.random(2, 2, 3, radius=0.8)
    found = checks.coverage(world, 2, 60, 40, 0.1, 0)
    assert found["printed"].share == found["corrected"].share == 1.0
    assert found["printed"].needed < found["corrected"].needed < 0.5
    radius = checks.confidence_radius
    monkeypatch.setattr(checks, "confidence_radius", lambda *a, **o: found["corrected"].needed * radius(*a, **o))
    assert checks.coverage(world, 2, 60, 40, 0.1, 0)["corrected"].share == pytest.approx(0.9)


def test_the_printed_theorem_is_evaluated_as_printed():
    world, s, delta = steady_start(worlds.paper(1)), 1, 0.1
    arms, rewards = (each[0] for each in checks.history(world, 30, 1, 5))
    phi, z = checks.contexts(arms, rewards, s, 2)[:-1], checks.predictions(world, arms, rewards)
    theta = reward_parameters(world, s)
    b = [[beta * float(steady_state(world).closed_loop[0, 0] ** s * z[t, 0]) for beta in world.beta] for t in range(29)]
    potential, gram = 0.0, [np.eye(5), np.eye(5)]
    for row, arm in zip(phi, arms[1:], strict=True):
        potential += row @ np.linalg.inv(gram[arm]) @ row
        gram[arm] = gram[arm] + np.outer(row, row)
    reach = math.sqrt(2 * math.log(3 / delta))
    length, radii = s * (reach**2 + 1) + 1, []
    for arm in (0, 1):
        mine = np.flatnonzero(arms[1:] == arm)
        tau = math.sqrt(sum(phi[t] @ np.linalg.inv(gram[arm]) @ phi[t] for t in mine))
        spread = math.sqrt(5 * math.log((1 + mine.size * length) / (delta / 3)))
        noise = math.sqrt(steady_state(world).cov[0, 0] + 1) * spread
        radii.append(noise + np.linalg.norm(theta[arm]) + tau * math.sqrt(sum(b[t][arm] ** 2 for t in mine)))
    first = 8 * math.sqrt(1 / (1 - 0.81)) * math.sqrt(2 * (1 + math.log(3 / delta))) * 30
    rest = 2 * max(radii) * math.sqrt(potential * 30) + 2 * sum(max(map(abs, row)) for row in b)
    found = checks.printed_theorem(world, s, arms, rewards, delta)
    assert found == pytest.approx(first + rest)
    assert found < regret_bound(world, s, 30, delta=delta, form="printed").total  # which is not the printed theorem
    assert checks.printed_theorem(steady_start(worlds.paper(5)), 5, arms, rewards, delta) == math.inf


def test_what_the_theory_page_says_of_floor_and_bound():
    text = (ROOT / "docs" / "theory.md").read_text()
    still = larl.LatentAR(gammas=(0.9,), beta=(-1, 1), mu=(0, 0))
    away = larl.LatentAR(gammas=(0.9,), beta=(-1, 1), mu=(0, 0), gamma0=0.3)
    var, error = away.stationary_var, steady_state(away).cov[0, 0]
    closed = 2 * math.sqrt(var) * (1 - math.sqrt(1 - error / var)) / math.sqrt(2 * math.pi)
    assert regret_floor(still) == pytest.approx(closed)
    assert f"{regret_floor(away):.3f} a step, where the formula would give the {closed:.3f} of γ₀ = 0" in text.replace(
        "\n", " "
    )
    steps = {t: regret_bound(steady_start(worlds.paper(1)), 1, t, delta=0.1) for t in (200, 100_000)}
    said = f"{steps[200].total / 200:,.0f} a step at T = 200, {steps[100_000].total / 100_000:,.0f} at T = 100,000"
    assert said in text
    assert all(bound.total > bound.trivial for bound in steps.values())
    assert "statement about growth in T, not" not in text


def test_the_readme_says_what_the_reproduction_found():
    page = (ROOT / "docs" / "reproduction.md").read_text()
    rows = {
        row.split(" | ")[0][2:]: row.split(" | ")[2].strip("*") for row in page.splitlines() if row.startswith("| ")
    }
    less = "LARL has less regret than each baseline, baselines"
    assert [rows[f"{less} as the authors set them (k = {k})"] for k in ORDERS] == [HOLDS] * 3
    assert [rows[f"{less} as their own theory sets them (k = {k})"] for k in ORDERS] == [FAILS, HOLDS, HOLDS]
    assert [rows[f"{less} tuned (k = {k})"] for k in ORDERS] == [FAILS, OPEN, FAILS]
    text = (ROOT / "README.md").read_text().replace("\n", " ")
    assert "LARL with s by BIC beats both at k = 1, 5 and 10." in text
    assert "beat it at k = 1, and tuned baselines at k = 1 and 10." in text


def test_the_readme_has_autos_numbers_from_its_page():
    page, readme = (ROOT / "docs" / "auto.md").read_text(), (ROOT / "README.md").read_text()
    table = page[: page.index("## Worlds that nothing")]
    rows = {row.split("|")[1].strip(): row.split("|") for row in table.splitlines() if row.startswith("| k = ")}
    for world in ("k = 1", "k = 5", "k = 10", "k = 10, stationary start"):
        assert f"{rows[world][8].split('±')[0].strip()}%" in readme, world
    assert "close to the filter that knows everything" not in readme.replace("\n", " ")
