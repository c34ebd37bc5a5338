"""The sections of the report: for each experiment its figures, its tables, its claims, and the words between them."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from larl.reports.paper import lookback_claims, theory_claims
from larl.reports.paper.claims import VERDICTS, Claim
from larl.reports.paper.experiments import ORDERS, Scope, hard_worlds, name
from larl.reports.paper.report import claims_table, picture, table
from larl.reports.paper.settings import GLOSSARY
from larl.simulation import plots
from larl.simulation.result import Result


class Section(NamedTuple):
    """A part of the report and what it leaves in the folder."""

    html: str
    claims: list[Claim]
    figures: dict[str, Figure]
    tables: dict[str, pd.DataFrame]


def text(*paragraphs: str) -> str:
    """Paragraphs of the page."""
    return "".join(f"<p>{escape(words)}</p>" for words in paragraphs)


def only(result: Result, policies: Sequence[str]) -> Result:
    """A result with some of its policies."""
    return Result(result.data.sel(policy=list(policies)))


def claims_section(verdicts: list[Claim], scope: Scope) -> Section:
    """What holds, at a glance."""
    counts = {kind: sum(claim.verdict == kind for claim in verdicts) for kind in VERDICTS}
    words = "; ".join(f"“{kind}” {count} times" for kind, count in counts.items() if count)
    html = text(
        f"Trella, Dempsey, Gazi, Xu, Doshi-Velez and Murphy (2025) study bandits whose mean rewards move with a hidden "
        f"auto-regressive state, and propose LARL. This page re-runs their experiments from nothing ({scope.trials:,} "
        f"trials each, seed {scope.seed}) and checks every claim: {words}. Intervals are 95%, ± is one standard error; "
        f"all policies of a comparison get the same random numbers.",
        *GLOSSARY,
    )
    return Section(f"<h2>The claims</h2>{html}{claims_table(verdicts)}", [], {}, {})


def experiment_2(result: Result, main: Result, found: dict[str, Result]) -> Section:
    """The choice of s."""
    shown = [each for each in ("s = 0", "s = 1", "s = 5", "s = 10", "s = 15") if each in result.policies]
    figures = {
        "lookback": plots.plot_lookback(result, ORDERS),
        "lookback-regret": plots.plot_regret(only(result, shown), skip="k"),
        "lookback-wins": plots.plot_wins(only(result, shown), skip="k"),
    }
    html = "".join(
        [
            "<h2>2. How far to look back</h2>",
            text("LARL with s fixed from the start and α = 1; s = 0 is Stationary with α = 1, the authors' setting."),
            picture(figures["lookback"], "Total regret over s, α = 1. Bars: two standard errors."),
            picture(figures["lookback-regret"], "Cumulative regret, α = 1. Band: ± one standard deviation."),
            picture(figures["lookback-wins"], "Pairwise win rates, α = 1."),
        ]
    )
    tuned = {k: found[f"lookback-tuned-k{k}"] for k in ORDERS}
    verdicts = lookback_claims.lookback_claims(result, main, tuned)
    return Section(html, verdicts, figures, {"lookback": result.summary("k")})


def theory(scope: Scope) -> Section:
    """The lemmas and the theorem."""
    verdicts, bounds = theory_claims.theory_claims(scope.seed, max(scope.trials, 100))
    rows = [
        [
            name(b.k),
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
        "printed theorem, after the run",
        "printed first term, others before the trial",
        "corrected",
        "of it, first term",
        "trivial",
        "mean regret",
        "corrected ÷ regret",
        "held in",
    ]
    html = (
        "<h2>3. The theory</h2>"
        + text(
            f"The bound of Theorem 1 for LARL(s = k) with the radius of Lemma 3, T = 200, δ = {theory_claims.DELTA:g}. "
            "The trivial bound is what no policy can exceed, with the same confidence. docs/theory.md derives the "
            "corrected form."
        )
        + table(header, rows)
    )
    return Section(html, verdicts, {}, {"bounds": pd.DataFrame(bounds)})


def experiment_3(found: dict[str, Result]) -> Section:
    """Sub-linear regret."""
    results = {int(key.removeprefix("sublinear-T")): one for key, one in found.items() if key.startswith("sublinear")}
    slopes = theory_claims.slopes(results)
    figures = {"sublinear": plots.plot_growth(results)}
    rows = [
        [f"{e.c:g}", e.policy, f"{e.value:.3f}", f"{e.low:.3f} – {e.high:.3f}", f"{e.last:.3f}", f"{e.predicted:g}"]
        for e in slopes
    ]
    html = "".join(
        [
            "<h2>4. Sub-linear regret</h2>",
            text(
                "σ_z² = T^(c−2), in a world where that is a claim about learning: two arms ±z that only knowledge of z "
                "tells apart, and a third that is worse by 1 whatever z is. Random is linear, and whoever filters z "
                "pays in proportion to σ_z T = T^(c/2). For LARL and UCB the prediction is a bound, max(c/2, 1/2). "
                "The lines are not quite straight: while σ_z is not yet small beside the reward noise, z becomes "
                "harder to predict as T grows, so exponents at these T lie above their limits; intervals are of "
                "chance only."
            ),
            picture(figures["sublinear"], "Total regret over the horizon. Bars: two standard errors."),
            table(["c", "policy", "measured exponent", "95% interval", "between the two longest T", "predicted"], rows),
        ]
    )
    return Section(html, theory_claims.sublinear_claims(slopes), figures, {"sublinear": pd.DataFrame(slopes)})


def experiment_4(found: dict[str, Result]) -> Section:
    """Robustness."""
    places = list(hard_worlds())
    results = [found[f"robustness-{i:02d}"] for i in range(len(places))]
    columns = results[0].policies
    means = [{each: float(one.total().sel(policy=each).mean()) for each in one.policies} for one in results]
    shares = np.array([[row[each] / row["random"] if each in row else np.nan for each in columns] for row in means])
    figures = {"robustness": plots.plot_shares(places, columns, shares)}
    html = "".join(
        [
            "<h2>5. Where the assumptions fail</h2>",
            text(
                "The k = 1 world from a stationary start with one thing changed, and worlds of another kind. Regret "
                "as a share of random's; the Kalman filter where it is defined. Nothing is tuned: α = 1, and scale 1 "
                "for D-UCB (discount 0.9) and SW UCB (window 20). With burden, regret is against the best arm at the "
                "state that the policy's own actions led to."
            ),
            picture(figures["robustness"], "Mean total regret divided by that of choosing at random; α = 1, scale 1."),
        ]
    )
    return Section(html, [], figures, {"robustness": pd.DataFrame(shares, places, columns)})
