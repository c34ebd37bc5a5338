"""The claims: the rules that decide a verdict, and the numerical checks of the theory."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import larl
from larl import worlds
from larl.reports.paper import lookback_claims, published, regret_claims, theory_checks
from larl.reports.paper.claims import (
    CHANGED,
    FAILS,
    HOLDS,
    OPEN,
    UNINFORMATIVE,
    judge_positive,
    judge_similar,
    mean_estimate,
    ratio_estimate,
)
from larl.reports.paper.experiments import ALTERNATING, KALMAN, ORDERS, noise_name
from larl.reports.paper.regret_claims import total_random_regret
from larl.reports.paper.settings import AUTHORS, LARL_BIC, THEORY, TUNED, label
from larl.reports.paper.theory_claims import Slope, slopes, sublinear_claims
from larl.statespace.steady_state import steady_state
from larl.theory import regret_bound, regret_floor, reward_parameters, steady_start
from tests.conftest import THREE_ARMS
from tests.theory.test_theory import context, steady_predictions

ROOT = Path(__file__).parents[2]
GAIN = "The gain over Stationary shrinks as k grows, as a share of"


def sample(mean: float, sd: float = 1.0, size: int = 1000) -> np.ndarray:
    """Return numbers with exactly this mean and standard deviation."""
    draws = np.random.default_rng(size).normal(size=size)
    return mean + sd * (draws - draws.mean()) / draws.std(ddof=1)


def test_verdict_depends_on_intervals():
    assert judge_positive([(1.0, 0.5, 1.5), (2.0, 1.0, 3.0)]) == HOLDS
    assert judge_positive([(1.0, 0.5, 1.5), (-2.0, -3.0, -1.0)]) == FAILS
    assert judge_positive([(1.0, 0.5, 1.5), (0.1, -0.5, 0.7)]) == OPEN
    assert judge_similar([(0.02, -0.01, 0.05), (-0.03, -0.06, 0.0)], 0.1) == HOLDS
    assert judge_similar([(0.02, -0.01, 0.05), (0.3, 0.2, 0.4)], 0.1) == FAILS
    assert judge_similar([(-0.3, -0.4, -0.2)], 0.1) == FAILS
    assert judge_similar([(0.08, 0.02, 0.14)], 0.1) == OPEN
    mean, low, high = mean_estimate(np.array([1.0, 2.0, 3.0, 4.0]))
    assert (mean, high - mean) == (2.5, pytest.approx(1.96 * math.sqrt(5 / 3) / 2, rel=1e-4))
    assert low + high == pytest.approx(5.0)


def test_interval_of_a_ratio_agrees_with_bootstrap():
    # 4,000 bootstrap samples.
    draws = np.random.default_rng(3)
    denominator = draws.normal(10.0, 2.0, 80)
    numerator = 0.4 * denominator + draws.normal(0.0, 1.0, 80)
    value, low, high = ratio_estimate(numerator, denominator)
    picks = draws.integers(0, 80, size=(4000, 80))
    bootstrap = numerator[picks].mean(axis=1) / denominator[picks].mean(axis=1)
    assert value == pytest.approx(numerator.mean() / denominator.mean())
    assert (high - low) / 2 == pytest.approx(1.96 * bootstrap.std(), rel=0.15)


def all_regrets(**means: float) -> dict[str, np.ndarray]:
    """Return total regrets of all policies, with their published means unless given."""
    row = published.REGRET[5]
    regret = {LARL_BIC: sample(175.0), ALTERNATING: sample(row["LARL"].mean), KALMAN: sample(85.0)}
    for baseline in ("Stationary", "AR UCB", "SW UCB", "Rexp3", "D-UCB"):
        for source in (AUTHORS, THEORY, TUNED):
            regret[label(baseline, source)] = sample(row[baseline].mean if baseline in row else 200.0)
    return regret | {policy: sample(mean) for policy, mean in means.items()}


def test_published_mean_is_reproduced_within_three_standard_errors(monkeypatch):
    # The published mean of k = 5 has a standard error of 2.484. It is reproduced at 2.5 of them, not at 3.5.
    for score, expected in ((3.5, FAILS), (-3.5, FAILS), (2.5, HOLDS)):
        row = published.REGRET[5]["LARL"]
        error = math.hypot(row.sd / 10, 1 / math.sqrt(1000))
        total = all_regrets(**{ALTERNATING: row.mean - score * error})
        monkeypatch.setattr(regret_claims, "total_regrets", lambda *_, total=total: total)
        claims = {claim.claim: claim for claim in regret_claims.published_claims(None)}
        claim = claims["The published LARL regret is reproduced (k = 5)"]
        assert claim.verdict == expected
        assert f"z = {score:+.2f}" in claim.measured


def test_published_rows_like_random_choice_are_not_called_reproduced(monkeypatch):
    monkeypatch.setattr(regret_claims, "total_regrets", lambda *_: all_regrets())
    claims = {claim.claim: claim for claim in regret_claims.published_claims(None)}
    assert claims["The published baseline regrets are reproduced (k = 5)"].verdict == UNINFORMATIVE
    assert claims["The published baseline regrets are reproduced (k = 1)"].verdict == FAILS


def test_gain_as_a_share_of_the_achievable_gain(monkeypatch):
    means = {"k = 1": (272.0, 193.0, 53.0), "k = 5": (222.0, 175.0, 86.0), "k = 10": (186.0, 170.0, 105.0)}
    stationary = label("Stationary", AUTHORS)

    def total_regrets(_, world):
        start, bic, kalman = means[world]
        return all_regrets(**{stationary: start, LARL_BIC: bic, KALMAN: kalman, label("Stationary", THEORY): 158.0})

    monkeypatch.setattr(regret_claims, "total_regrets", total_regrets)
    claims = {claim.claim: claim for claim in regret_claims.gain_shrinks(None)}
    share = claims[
        "The gain over Stationary shrinks as k grows, as a share of the achievable gain, Stationary: authors"
    ]
    assert re.findall(r"(\d+)% \(", share.measured) == ["36", "35", "20"]
    assert claims[f"{GAIN} Stationary's regret"].verdict == HOLDS
    theory = claims[
        "The gain over Stationary shrinks as k grows, as a share of the achievable gain, Stationary: theory"
    ]
    assert "k = 1: -33%" in theory.measured


def test_like_stationary_is_relative_to_the_achievable_gain(monkeypatch):
    stationary, sliding, rexp3 = label("Stationary", AUTHORS), label("SW UCB", THEORY), label("Rexp3", THEORY)
    for means, expected in (((272.0, 152.0, 371.0, 53.0), FAILS), ((222.0, 226.0, 225.0, 86.0), HOLDS)):
        regret = all_regrets(**dict(zip((stationary, sliding, rexp3, KALMAN), means, strict=True)))
        monkeypatch.setattr(regret_claims, "total_regrets", lambda *_, regret=regret: regret)
        claims = {claim.claim: claim for claim in regret_claims.like_stationary(None)}
        assert claims["SW UCB and Rexp3 perform like Stationary (k = 1)"].verdict == expected


def test_poor_s_is_relative_to_the_achievable_gain(monkeypatch):
    start = label("Stationary", AUTHORS)
    regret = {f"s = {s}": sample(m) for s, m in ((0, 272.0), (1, 79.0), (5, 124.0), (10, 165.0), (15, 192.0))}
    monkeypatch.setattr(
        lookback_claims, "total_regrets", lambda *_: regret | {start: sample(272.0), KALMAN: sample(53.0)}
    )
    result = type("Result", (), {"policies": list(regret)})
    claims = {claim.claim: claim for claim in lookback_claims._poor_s_claims(result, None)}
    assert claims["A poor s (too small or too large) performs like Stationary (k = 1)"].verdict == FAILS
    regret["s = 15"] = sample(268.0)
    claims = {claim.claim: claim for claim in lookback_claims._poor_s_claims(result, None)}
    assert claims["A poor s (too small or too large) performs like Stationary (k = 1)"].verdict == HOLDS
    assert "s = 1:" not in claims["A poor s (too small or too large) performs like Stationary (k = 1)"].measured


def test_noise_claim_depends_on_the_cost_of_common_noise(monkeypatch):
    others = {label("Stationary", AUTHORS): sample(170.0), KALMAN: sample(35.0)}
    scaled = {noise_name(k, "scaled"): others | {LARL_BIC: sample(120.0)} for k in ORDERS}
    for mean, expected in ((120.0, HOLDS), (150.0, CHANGED), (180.0, FAILS)):
        regret = scaled | {noise_name(k, "common"): others | {LARL_BIC: sample(mean)} for k in ORDERS}
        monkeypatch.setattr(regret_claims, "total_regrets", lambda _, world, regret=regret: regret[world])
        assert regret_claims.noise_claim(None).verdict == expected


def test_slopes_recover_a_known_exponent():
    results = {}
    for t in (100, 1000, 10_000):
        slope_worlds = {f"c = {c}": worlds.paper(1) for c in ("0.5", "1", "1.5", "2")}
        result = larl.compare({"LARL": larl.Random()}, slope_worlds, horizon=5, trials=50, keep="summary")
        noise = np.random.default_rng(t).normal(1.0, 0.05, result.data["total"].shape)
        result.data["total"] = result.data["total"] * 0.0 + 3.0 * t**0.7 * noise
        results[t] = result
    for slope in slopes(results):
        assert slope.low < 0.7 < slope.high
        assert slope.high - slope.low < 0.02
        assert slope.last == pytest.approx(0.7, abs=0.02)


def test_exponent_above_the_bound_fails():
    fits = [
        Slope(c=c, policy="LARL s = 1", value=v, low=v - 0.005, high=v + 0.005, predicted=max(c / 2, 0.5), last=v)
        for c, v in ((1.0, 0.47), (1.5, 0.79))
    ]
    below_one, order = sublinear_claims(fits)
    assert (below_one.verdict, order.verdict) == (CHANGED, FAILS)
    _, order = sublinear_claims(fits[:1])
    assert order.verdict == HOLDS


def test_random_regret_equals_closed_form():
    assert [total_random_regret(k) for k in ORDERS] == pytest.approx([402.49, 222.62, 185.73], abs=0.01)


def test_checks_agree_with_independent_implementations():
    arms, rewards = (each[0] for each in theory_checks.random_play(THREE_ARMS, 12, 1, 0))
    assert np.allclose(
        theory_checks.steady_predictions(THREE_ARMS, arms, rewards), steady_predictions(THREE_ARMS, arms, rewards)
    )
    rows = theory_checks.contexts(arms, rewards, 4, 3)
    assert np.array_equal(rows, [context(arms[:t], rewards[:t], 4, 3) for t in range(4, 13)])
    assert theory_checks.reduction_error(0, cases=6) < 1e-9


def test_prediction_from_full_history_equals_filter_up_to_its_start(monkeypatch):
    errors = theory_checks.full_history_error(0, cases=8)
    assert errors.difference > 0.1  # with γ₀ ≠ 0 the two are not equal
    assert max(errors.unexplained, errors.centred) < 1e-9

    def printed(world, s):  # with the sign of the indicators as printed
        theta, half = reward_parameters(world, s).copy(), s * world.arms
        theta[:, half : 2 * half] *= -1.0
        return theta

    monkeypatch.setattr(theory_checks, "reward_parameters", printed)
    assert min(theory_checks.full_history_error(0, cases=8)[1:]) > 1e-3  # the check depends on θ


def test_larl_0_is_compared_with_an_independent_formula(monkeypatch):
    assert theory_checks.count_ucb_differences(0, trials=50) == (0, 10_000)
    monkeypatch.setattr(theory_checks, "LARL", lambda s: larl.LARL(s, alpha=1.3))
    assert theory_checks.count_ucb_differences(0, trials=50)[0] > 0


def test_coverage_measures_how_loose_the_radius_is(monkeypatch):
    world = worlds.random(2, 2, 3, radius=0.8)
    coverage = theory_checks.coverage(world, 2, 60, runs=40, delta=0.1, seed=0)
    assert coverage["printed"].share == coverage["corrected"].share == 1.0
    assert coverage["printed"].needed < coverage["corrected"].needed < 0.5
    radius = theory_checks.confidence_radius
    monkeypatch.setattr(
        theory_checks, "confidence_radius", lambda *a, **o: coverage["corrected"].needed * radius(*a, **o)
    )
    assert theory_checks.coverage(world, 2, 60, runs=40, delta=0.1, seed=0)["corrected"].share == pytest.approx(0.9)


def test_printed_theorem_is_evaluated_as_printed():
    world, s, delta = steady_start(worlds.paper(1)), 1, 0.1
    arms, rewards = (each[0] for each in theory_checks.random_play(world, 30, 1, 5))
    phi, z = theory_checks.contexts(arms, rewards, s, 2)[:-1], theory_checks.steady_predictions(world, arms, rewards)
    theta = reward_parameters(world, s)
    b = [[beta * float(steady_state(world).closed_loop[0, 0] ** s * z[t, 0]) for beta in world.beta] for t in range(29)]
    potential, gram = 0.0, [np.eye(5), np.eye(5)]
    for row, arm in zip(phi, arms[1:], strict=True):
        potential += row @ np.linalg.inv(gram[arm]) @ row
        gram[arm] = gram[arm] + np.outer(row, row)
    reach = math.sqrt(2 * math.log(3 / delta))
    length, radii = s * (reach**2 + 1) + 1, []
    for arm in (0, 1):
        played = np.flatnonzero(arms[1:] == arm)
        tau = math.sqrt(sum(phi[t] @ np.linalg.inv(gram[arm]) @ phi[t] for t in played))
        spread = math.sqrt(5 * math.log((1 + played.size * length) / (delta / 3)))
        noise = math.sqrt(steady_state(world).cov[0, 0] + 1) * spread
        radii.append(noise + np.linalg.norm(theta[arm]) + tau * math.sqrt(sum(b[t][arm] ** 2 for t in played)))
    first = 8 * math.sqrt(1 / (1 - 0.81)) * math.sqrt(2 * (1 + math.log(3 / delta))) * 30
    rest = 2 * max(radii) * math.sqrt(potential * 30) + 2 * sum(max(map(abs, row)) for row in b)
    value = theory_checks.printed_theorem(world, s, arms, rewards, delta)
    assert value == pytest.approx(first + rest)
    # form="printed" bounds the other terms before the trial, so it is larger.
    assert value < regret_bound(world, s, 30, delta=delta, form="printed").total
    assert theory_checks.printed_theorem(steady_start(worlds.paper(5)), 5, arms, rewards, delta) == math.inf


def test_theory_page_gives_the_computed_floor_and_bound():
    text = (ROOT / "docs" / "theory.md").read_text()
    centred = larl.LatentAR(gammas=(0.9,), beta=(-1, 1), mu=(0, 0))
    offset = larl.LatentAR(gammas=(0.9,), beta=(-1, 1), mu=(0, 0), gamma0=0.3)
    var, error = offset.stationary_var, steady_state(offset).cov[0, 0]
    closed = 2 * math.sqrt(var) * (1 - math.sqrt(1 - error / var)) / math.sqrt(2 * math.pi)
    assert regret_floor(centred) == pytest.approx(closed)
    assert f"{regret_floor(offset):.3f}" in text
    assert f"{closed:.3f}" in text
    steps = {t: regret_bound(steady_start(worlds.paper(1)), 1, t, delta=0.1) for t in (200, 100_000)}
    assert all(f"{bound.total / t:,.0f}" in text for t, bound in steps.items())
    assert all(bound.total > bound.trivial for bound in steps.values())


def test_readme_agrees_with_the_reproduction():
    page = (ROOT / "docs" / "reproduction.md").read_text()
    rows = {
        row.split(" | ")[0][2:]: row.split(" | ")[2].strip("*") for row in page.splitlines() if row.startswith("| ")
    }
    less = "LARL has less regret than each baseline, baselines"
    assert [rows[f"{less} with the authors' settings (k = {k})"] for k in ORDERS] == [HOLDS] * 3
    assert [rows[f"{less} with their theory's settings (k = {k})"] for k in ORDERS] == [FAILS, HOLDS, HOLDS]
    assert [rows[f"{less} tuned (k = {k})"] for k in ORDERS] == [FAILS, OPEN, FAILS]
    text = (ROOT / "README.md").read_text().replace("\n", " ")
    assert 'LARL (BIC) beats UCB ("Stationary") and AR UCB at every k.' in text
    assert "beat LARL (BIC) at k = 1; tuned baselines beat it at k = 1 and 10." in text


def test_readme_agrees_with_the_evaluation_of_auto():
    page, readme = (ROOT / "docs" / "auto.md").read_text(), (ROOT / "README.md").read_text()
    table = page[: page.index("## Held-out worlds")]
    rows = {row.split("|")[1].strip(): row.split("|") for row in table.splitlines() if row.startswith("| k = ")}
    for world in ("k = 1", "k = 5", "k = 10", "k = 10, stationary start"):
        assert f"{rows[world][8].split('±')[0].strip()}%" in readme, world
    assert "close to the filter that knows everything" not in readme.replace("\n", " ")
