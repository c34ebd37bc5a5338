"""The sections of the report: figures, tables, claims and text of each experiment."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from larl.reports.paper import lookback_claims, theory_claims
from larl.reports.paper.claims import Claim
from larl.reports.paper.experiments import ORDERS, Scope, robustness_worlds, world_name
from larl.reports.paper.report import claims_html, count_verdicts, figure_html, table_html
from larl.reports.paper.settings import GLOSSARY
from larl.simulation import plots
from larl.simulation.result import Result


class Section(NamedTuple):
    """A section of the report, and its figures and tables as files."""

    html: str
    claims: list[Claim]
    figures: dict[str, Figure]
    tables: dict[str, pd.DataFrame]


def paragraphs_html(*paragraphs: str) -> str:
    """Return HTML paragraphs."""
    return "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)


def select_policies(result: Result, policies: Sequence[str]) -> Result:
    """Return a result with some of its policies."""
    return Result(result.data.sel(policy=list(policies)))


def summary_section(claims: list[Claim], scope: Scope) -> Section:
    """Return the section with all claims and the number of each verdict."""
    html = paragraphs_html(
        "Trella, Dempsey, Gazi, Xu, Doshi-Velez and Murphy (2025) study bandits whose mean rewards depend on a "
        "latent auto-regressive state, and propose LARL. This page repeats their experiments with a new "
        f"implementation ({scope.trials:,} trials each, seed {scope.seed}) and gives a verdict on every claim. Number "
        f"of claims by verdict: {count_verdicts(claims)}. Intervals are 95% intervals, ± is one standard error. "
        "All policies of a comparison get the same random numbers.",
        *GLOSSARY,
    )
    return Section(f"<h2>The claims</h2>{html}{claims_html(claims)}", [], {}, {})


def lookback_section(result: Result, baselines: Result, results: dict[str, Result]) -> Section:
    """Return the section on the choice of s."""
    shown = [each for each in ("s = 0", "s = 1", "s = 5", "s = 10", "s = 15") if each in result.policies]
    figures = {
        "lookback": plots.plot_lookback(result, ORDERS),
        "lookback-regret": plots.plot_regret(select_policies(result, shown), skip="k"),
        "lookback-wins": plots.plot_wins(select_policies(result, shown), skip="k"),
    }
    html = "".join(
        [
            "<h2>2. The number of lags s</h2>",
            paragraphs_html("LARL with a fixed s and α = 1. s = 0 is Stationary with α = 1, the authors' setting."),
            figure_html(figures["lookback"], "Total regret over s, with α = 1. Bars: two standard errors."),
            figure_html(figures["lookback-regret"], "Cumulative regret, with α = 1. Band: ± one standard deviation."),
            figure_html(figures["lookback-wins"], "Pairwise win rates, with α = 1."),
        ]
    )
    tuned = {k: results[f"lookback-tuned-k{k}"] for k in ORDERS}
    claims = lookback_claims.lookback_claims(result, baselines, tuned)
    return Section(html, claims, figures, {"lookback": result.summary("k")})


def theory_section(scope: Scope) -> Section:
    """Return the section on the lemmas and the theorem."""
    claims, bounds = theory_claims.theory_claims(scope.seed, max(scope.trials, 100))
    rows = [
        [
            world_name(b.k),
            f"{b.theorem:,.0f}",
            f"{b.mixed:,.0f}",
            f"{b.corrected:,.0f}",
            f"{b.first_term:,.0f}",
            f"{b.trivial:,.0f}",
            f"{b.regret:.0f}",
            f"{b.corrected / b.regret:,.0f}",
            f"{b.held:.1%}",
        ]
        for b in bounds
    ]
    header = [
        "world",
        "printed theorem, evaluated after the run",
        "printed first term, other terms bounded before the trial",
        "corrected bound",
        "first term of the corrected bound",
        "trivial bound",
        "mean regret",
        "corrected ÷ regret",
        "share of runs within the corrected bound",
    ]
    html = (
        "<h2>3. The theory</h2>"
        + paragraphs_html(
            f"The bound of Theorem 1 for LARL(s = k) with the radius of Lemma 3, T = 200, δ = {theory_claims.DELTA:g}. "
            "The trivial bound holds for every policy, with the same confidence. docs/theory.md derives the corrected "
            "bound."
        )
        + table_html(header, rows)
    )
    return Section(html, claims, {}, {"bounds": pd.DataFrame(bounds)})


def sublinear_section(results: dict[str, Result]) -> Section:
    """Return the section on sub-linear regret."""
    by_horizon = {
        int(name.removeprefix("sublinear-T")): result
        for name, result in results.items()
        if name.startswith("sublinear")
    }
    slopes = theory_claims.slopes(by_horizon)
    figures = {"sublinear": plots.plot_growth(by_horizon)}
    rows = [
        [f"{e.c:g}", e.policy, f"{e.value:.3f}", f"{e.low:.3f} – {e.high:.3f}", f"{e.last:.3f}", f"{e.predicted:g}"]
        for e in slopes
    ]
    html = "".join(
        [
            "<h2>4. Sub-linear regret</h2>",
            paragraphs_html(
                "σ_z² = T^(c−2), in a world in which sub-linear regret requires learning: the means of two arms are "
                "±z, that of the third is 0.1z − 1. The regret of random choice is linear in T. The regret of a "
                "policy that filters z is in proportion to σ_z T = T^(c/2). For LARL and UCB the prediction is a "
                "bound, max(c/2, 1/2). The lines are not quite straight: until σ_z is small relative to the reward "
                "noise, z becomes harder to predict as T grows, so the exponents at these T are above their limits. "
                "The intervals include sampling error only."
            ),
            figure_html(figures["sublinear"], "Total regret over the horizon. Bars: two standard errors."),
            table_html(
                ["c", "policy", "measured exponent", "95% interval", "from the two longest T", "predicted"], rows
            ),
        ]
    )
    return Section(html, theory_claims.sublinear_claims(slopes), figures, {"sublinear": pd.DataFrame(slopes)})


def robustness_section(results: dict[str, Result]) -> Section:
    """Return the section on worlds that violate the assumptions."""
    rows = list(robustness_worlds())
    by_world = [results[f"robustness-{i:02d}"] for i in range(len(rows))]
    columns = by_world[0].policies
    means = [{each: float(one.total().sel(policy=each).mean()) for each in one.policies} for one in by_world]
    shares = np.array([[row[each] / row["random"] if each in row else np.nan for each in columns] for row in means])
    figures = {"robustness": plots.plot_shares(rows, columns, shares)}
    html = "".join(
        [
            "<h2>5. Worlds that violate the assumptions</h2>",
            paragraphs_html(
                "The k = 1 world from a stationary start with one change, and other kinds of worlds. Regret relative "
                "to random choice; the Kalman filter where it is defined. No policy is tuned: α = 1, and scale 1 for "
                "D-UCB (discount 0.9) and SW UCB (window 20). With burden, the actions change the state; regret is "
                "relative to the best arm in that state."
            ),
            figure_html(figures["robustness"], "Mean total regret divided by that of random choice; α = 1, scale 1."),
        ]
    )
    return Section(html, [], figures, {"robustness": pd.DataFrame(shares, rows, columns)})
