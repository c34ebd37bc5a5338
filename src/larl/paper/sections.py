"""The sections of the report: for each experiment its figures, its tables, its claims, and the words between them."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from larl import plots, worlds
from larl.paper import claims as judge
from larl.paper.claims import CHANGED, FAILS, HOLDS, OPEN, Claim
from larl.paper.experiments import (
    HORIZON,
    ORDERS,
    TUNED_NAMES,
    Scope,
    best_settings,
    hard_worlds,
    name,
)  # fmt: skip
from larl.paper.report import claims_table, picture, table
from larl.result import Result
from larl.theory import floor, predictability, random_cost


class Section(NamedTuple):
    """A part of the report and what it leaves in the folder."""

    html: str
    claims: list[Claim]
    figures: dict[str, Figure]
    tables: dict[str, pd.DataFrame]


def _text(*paragraphs: str) -> str:
    return "".join(f"<p>{escape(words)}</p>" for words in paragraphs)


def _only(result: Result, policies: Sequence[str]) -> Result:
    return Result(result.data.sel(policy=list(policies)))


def claims_section(verdicts: list[Claim], scope: Scope) -> Section:
    """What holds, at a glance."""
    counts = {kind: sum(claim.verdict == kind for claim in verdicts) for kind in (HOLDS, CHANGED, FAILS, OPEN)}
    words = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    html = _text(
        f"Trella, Dempsey, Gazi, Xu, Doshi-Velez and Murphy (2025) study bandits whose mean rewards move with a hidden "
        f"auto-regressive state, and propose LARL. This page re-runs their experiments from nothing ({scope.trials:,} "
        f"trials each, seed {scope.seed}) and checks every claim: {words}. Intervals are 95%; all policies of a "
        f"comparison meet the same luck."
    )
    return Section(f"<h2>The claims</h2>{html}{claims_table(verdicts)}", [], {}, {})


def experiment_1(main: Result, found: dict[str, Result]) -> Section:
    """LARL against the baselines, as set by their theory and at their best."""
    printed = [each for each in main.policies if each not in TUNED_NAMES]
    tuned = ["LARL (BIC)", "LARL (BIC, alternating)", *TUNED_NAMES, "Kalman, true parameters"]
    floors = {name(k): floor(worlds.paper(k)) for k in ORDERS}
    apart, trials = _only(found["beyond"], ["Auto"]), found["beyond"].data.sizes["trial"]
    said = f"Auto: {trials:,} trials"
    figures = {
        "regret": plots.plot_regret(
            _only(main, printed), skip="k", floors=floors, palette=main.policies, apart=apart, note=said
        ),
        "regret-column": plots.plot_regret(
            _only(main, printed), skip="k", floors=floors, palette=main.policies, apart=apart, note=said, column=True
        ),
        "regret-tuned": plots.plot_regret(
            _only(main, tuned),
            skip="k",
            band="se",
            floors=floors,
            palette=main.policies,
            apart=apart,
            note=f"baselines tuned on other seeds, {said}",
        ),
        "wins": plots.plot_wins(_only(main, printed), skip="k"),
        "wins-tuned": plots.plot_wins(_only(main, tuned), skip="k"),
    }
    summary, ours = main.summary("k"), found["beyond"].summary("k")
    beyond = [
        [world, policy, f"{row['mean']:.1f}", f"{row['se']:.1f}", f"{row['sd']:.1f}"]
        for world, policy, row in ((w, p, ours.loc[w].loc[p]) for w in main.worlds for p in found["beyond"].policies)
    ]
    rows = [
        [world, policy, f"{row['mean']:.1f}", f"{row['se']:.1f}", f"{row['sd']:.1f}", f"{100 * row['duels won']:.0f}%"]
        for world, policy, row in ((w, p, summary.loc[w].loc[p]) for w in main.worlds for p in main.policies)
    ]
    value = [
        [name(k), *(f"{each(worlds.paper(k)):.3f}" for each in (random_cost, floor, predictability))] for k in ORDERS
    ]
    chosen = [
        f"{name(k)}: " + ", ".join(map(" ".join, zip(("window", "discount", "batch"), best.values(), strict=True)))
        for k, best in ((k, best_settings(found[f"tuning-k{k}"])) for k in ORDERS)
    ]
    html = "".join(
        [
            "<h2>1. LARL against the baselines</h2>",
            _text(
                f"T = {HORIZON}, two arms with β = (−1, 1). Regret is counted from t = k. The dotted floor is the "
                "regret that even the policy pays that knows every parameter, once its filter has settled (from the "
                "paper's start, far from zero, the first steps are easier)."
            ),
            picture(
                figures["regret"],
                "Cumulative regret, the paper's policies, and Auto, which is not the paper's, in black.",
            ),
            picture(figures["regret-tuned"], "Baselines tuned, on other seeds. Band: ± two standard errors."),
            picture(figures["wins"], "How often the row's policy has less total regret than the column's."),
            picture(figures["wins-tuned"], "The same against baselines tuned on other seeds."),
            table(["world", "policy", "mean regret", "± se", "sd", "duels won"], rows),
            "<h3>Beyond the paper</h3>",
            _text(
                f"Policies that the paper does not have and that are told nothing, on the first {trials:,} trials of "
                "the same luck. docs/auto.md compares them in more worlds."
            ),
            table(["world", "policy", "mean regret", "± se", "sd"], beyond),
            "<h3>How much is there to win?</h3>",
            table(["world", "random, regret a step", "floor, regret a step", "predictability"], value),
            _text("Tuned: " + "; ".join(chosen) + "."),
        ]
    )
    verdicts = [*judge.beats_baselines(main), judge.gain_shrinks(main), *judge.published_claims(main)]
    return Section(html, verdicts, figures, {"baselines": summary, "beyond": ours})


def experiment_2(result: Result) -> Section:
    """The choice of s."""
    shown = [each for each in ("s = 0", "s = 1", "s = 5", "s = 10", "s = 15") if each in result.policies]
    figures = {
        "lookback": plots.plot_lookback(result, ORDERS),
        "lookback-regret": plots.plot_regret(_only(result, shown), skip="k"),
        "lookback-wins": plots.plot_wins(_only(result, shown), skip="k"),
    }
    html = "".join(
        [
            "<h2>2. How far to look back</h2>",
            _text("LARL with s fixed from the start; s = 0 is Stationary."),
            picture(figures["lookback"], "Total regret over s. Bars: two standard errors."),
            picture(figures["lookback-regret"], "Cumulative regret. Band: ± one standard deviation."),
            picture(figures["lookback-wins"], "Pairwise win rates."),
        ]
    )
    return Section(html, judge.lookback_claims(result), figures, {"lookback": result.summary("k")})


def theory(scope: Scope) -> Section:
    """The lemmas and the theorem."""
    verdicts, bounds = judge.theory_claims(scope.seed, max(scope.trials, 100))
    rows = [
        [name(b.k), f"{b.printed:,.0f}", f"{b.corrected:,.0f}", f"{b.first_term:,.0f}", f"{b.trivial:,.0f}",
         f"{b.regret:.0f}", f"{b.corrected / b.regret:,.0f}", f"{b.held:.1%}"]
        for b in bounds
    ]  # fmt: skip
    header = [
        "world",
        "printed",
        "corrected",
        "of it, first term",
        "trivial",
        "mean regret",
        "times too large",
        "held in",
    ]
    html = (
        "<h2>3. The theory</h2>"
        + _text(
            "The bound of Theorem 1 for LARL(s = k) with the radius of Lemma 3, T = 200, δ = 0.1. The trivial bound is "
            "what nobody can exceed, with the same confidence. docs/theory.md derives the corrected form."
        )
        + table(header, rows)
    )
    return Section(html, verdicts, {}, {"bounds": pd.DataFrame(bounds)})


def experiment_3(found: dict[str, Result]) -> Section:
    """Sub-linear regret."""
    results = {int(key.removeprefix("sublinear-T")): one for key, one in found.items() if key.startswith("sublinear")}
    slopes = judge.slopes(results)
    figures = {"sublinear": plots.plot_growth(results)}
    rows = [[f"{e.c:g}", e.policy, f"{e.value:.3f}", f"{e.low:.3f} – {e.high:.3f}", f"{e.predicted:g}"] for e in slopes]
    html = "".join(
        [
            "<h2>4. Sub-linear regret</h2>",
            _text(
                "σ_z² = T^(c−2), in a world where that is a claim about learning: two arms ±z that only knowledge of z "
                "tells apart, and a third that is worse by 1 whatever z is. Random is linear, and whoever filters z "
                "pays in proportion to σ_z T = T^(c/2). For LARL and UCB the prediction is a bound, max(c/2, 1/2). "
                "The lines are not quite straight: while σ_z is not yet small beside the reward noise, z becomes "
                "harder to predict as T grows, so exponents at these T lie above their limits; intervals are of "
                "chance only."
            ),
            picture(figures["sublinear"], "Total regret over the horizon. Bars: two standard errors."),
            table(["c", "policy", "measured exponent", "95% interval", "predicted"], rows),
        ]
    )
    return Section(html, [judge.sublinear_claim(slopes)], figures, {"sublinear": pd.DataFrame(slopes)})


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
            _text(
                "The k = 1 world from a stationary start with one thing changed, and worlds of another kind. Regret "
                "as a share of random's; the Kalman filter where it is defined. With burden, regret is against the "
                "best arm at the state that the policy's own actions led to."
            ),
            picture(figures["robustness"], "Mean total regret divided by that of choosing at random."),
        ]
    )
    return Section(html, [], figures, {"robustness": pd.DataFrame(shares, places, columns)})
