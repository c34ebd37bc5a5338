"""The section of the report on LARL and the baselines."""

import numpy as np
from matplotlib.figure import Figure

from larl import worlds
from larl.policies import UCB
from larl.reports.grids import TunedSetting, point_name
from larl.reports.paper import regret_claims
from larl.reports.paper.alpha_figure import Curve, plot_alpha
from larl.reports.paper.claims import settings_in
from larl.reports.paper.experiments import ALTERNATING, KALMAN, ORDERS, tuned_settings, world_name
from larl.reports.paper.report import figure_html, table_html
from larl.reports.paper.sections import Section, paragraphs_html, select_policies
from larl.reports.paper.settings import (
    ALL_BASELINES,
    AUTHORS,
    HORIZON,
    LARL_ALPHA,
    LARL_BIC,
    LARL_TUNED,
    THEORY,
    TUNED,
    grids,
    label,
    theory_settings,
)
from larl.simulation import plots
from larl.simulation.result import Result
from larl.theory import predictability, random_regret, regret_floor

SHOWN = (
    LARL_BIC,
    ALTERNATING,
    label("Stationary", AUTHORS),
    label("Stationary", THEORY),
    label("AR UCB", AUTHORS),
    label("SW UCB", THEORY),
    label("Rexp3", THEORY),
    KALMAN,
)
SHOWN_TUNED = (LARL_BIC, LARL_TUNED, *(label(baseline, TUNED) for baseline in ALL_BASELINES), KALMAN)
# A baseline has the same colour in every figure. The seventh colour, black, is that of Auto.
PALETTE = (*SHOWN[:6], "Auto", *SHOWN[6:])
PALETTE_TUNED = (
    LARL_BIC,
    LARL_TUNED,
    label("Stationary", TUNED),
    label("D-UCB", TUNED),
    label("AR UCB", TUNED),
    label("SW UCB", TUNED),
    "Auto",
    label("Rexp3", TUNED),
    KALMAN,
)
SETTINGS = (
    "authors: α = 1, λ = 1. theory: Stationary α = sd·√(2 log T); SW UCB window 2B√log T, scale B; Rexp3 batch size "
    "for the true variation"
)


def regret_section(main: Result, results: dict[str, Result]) -> Section:
    """Return the section on LARL and the baselines in each of their settings."""
    best, others = {k: tuned_settings(k, results) for k in ORDERS}, results["beyond"]
    figures = _regret_figures(main, results)
    summary, other_summary = main.summary("k"), others.summary("k")
    trials = others.data.sizes["trial"]
    other_rows = [
        [world, policy, f"{row['mean']:.1f}", f"{row['se']:.1f}", f"{row['sd']:.1f}"]
        for world, policy, row in ((w, p, other_summary.loc[w].loc[p]) for w in main.worlds for p in others.policies)
    ]
    rows = [
        [world, policy, settings_in(main, world)[policy], f"{row['mean']:.1f}", f"{row['se']:.1f}", f"{row['sd']:.1f}"]
        for world, policy, row in ((w, p, summary.loc[w].loc[p]) for w in main.worlds for p in main.policies)
    ]
    achievable = [
        [world_name(k), *(f"{each(worlds.paper(k)):.3f}" for each in (random_regret, regret_floor, predictability))]
        for k in ORDERS
    ]
    html = "".join(
        [
            "<h2>1. LARL against the baselines</h2>",
            paragraphs_html(
                f"T = {HORIZON}, two arms with β = (−1, 1). Regret is counted from t = k. The dotted line is the "
                "regret floor: the long-run regret of the policy that knows all parameters. With the paper's initial "
                "state, far from zero, the first steps are easier."
            ),
            figure_html(
                figures["regret"],
                f"Cumulative regret. The brackets give the source of a baseline's setting. {SETTINGS}. LARL: α = 1. "
                "Auto (black) is not in the paper.",
            ),
            figure_html(
                figures["regret-tuned"],
                "Baselines tuned over α, or over scale and window, discount or batch size, on other seeds; LARL (BIC, "
                "tuned) over α and the length of its exploration. Band: ± two standard errors.",
            ),
            figure_html(
                figures["alpha"],
                "Total regret over α, on the tuning seeds. Bars: two standard errors. Dashed: the authors' α; dotted: "
                "sd·√(2 log T), the α of UCB's theory.",
            ),
            figure_html(
                figures["wins"],
                f"Share of trials in which the row's policy has less total regret than the column's. {SETTINGS}.",
            ),
            figure_html(figures["wins-tuned"], "The same against baselines tuned on other seeds."),
            table_html(["world", "policy", "setting", "mean regret", "± se", "sd"], rows),
            "<h3>Tuned settings</h3>",
            paragraphs_html(
                "The setting with the smallest mean regret on the tuning seeds. Each grid covers the full range of "
                "its settings, so there is no better value outside it. The last column gives the settings at a "
                "grid limit."
            ),
            table_html(
                ["world", "policy", "setting", "regret on the tuning seeds", "at a grid limit"], _tuned_rows(best)
            ),
            "<h3>Policies that are not in the paper</h3>",
            paragraphs_html(
                f"These policies get no information about the world. They run on the first {trials:,} trials, with "
                "the same random numbers. docs/auto.md compares them in more worlds."
            ),
            table_html(["world", "policy", "mean regret", "± se", "sd"], other_rows),
            "<h3>Regret of random choice and the regret floor</h3>",
            table_html(
                ["world", "random choice, regret per step", "regret floor, per step", "predictability"], achievable
            ),
        ]
    )
    claims = [
        *regret_claims.beats_baselines(main, best),
        *regret_claims.gain_shrinks(main),
        *regret_claims.like_stationary(main),
        regret_claims.noise_claim(results["noise"]),
        *regret_claims.published_claims(main),
    ]
    return Section(html, claims, figures, {"baselines": summary, "beyond": other_summary})


def _regret_figures(main: Result, results: dict[str, Result]) -> dict[str, Figure]:
    floors = {world_name(k): regret_floor(worlds.paper(k)) for k in ORDERS}
    auto = select_policies(results["beyond"], ["Auto"])
    auto_note = f"Auto: {auto.data.sizes['trial']:,} trials"
    shown, tuned = select_policies(main, SHOWN), select_policies(main, SHOWN_TUNED)
    settings_note = "authors: α = 1; theory: see the caption"
    return {
        "regret": plots.plot_regret(
            shown,
            skip="k",
            regret_floors=floors,
            palette=PALETTE,
            overlay=auto,
            note=f"settings in brackets, {auto_note}",
        ),
        "regret-column": plots.plot_regret(
            shown,
            skip="k",
            regret_floors=floors,
            palette=PALETTE,
            overlay=auto,
            note=f"{settings_note}\n{auto_note}",
            stacked=True,
        ),
        "regret-tuned": plots.plot_regret(
            tuned,
            skip="k",
            band="se",
            regret_floors=floors,
            palette=PALETTE_TUNED,
            overlay=auto,
            note=f"tuned on other seeds, {auto_note}",
        ),
        "alpha": _alpha_figure(results),
        "wins": plots.plot_wins(shown, skip="k"),
        "wins-tuned": plots.plot_wins(tuned, skip="k"),
    }


def _alpha_figure(results: dict[str, Result]) -> Figure:
    """Plot regret over α of Stationary and of LARL with the paper's exploration, on the tuning seeds."""
    curves: dict[str, dict[str, Curve]] = {}
    marks: dict[str, dict[str, float]] = {}
    for k in ORDERS:
        world = worlds.paper(k)
        policies = list(grids(world))
        points = {
            "Stationary": [
                (alpha, point_name("Stationary", [alpha])) for (alpha,) in grids(world)["Stationary"].points
            ],
            LARL_BIC: [(alpha, point_name(LARL_BIC, [HORIZON // 5, alpha])) for alpha in LARL_ALPHA.values],
        }
        curves[world_name(k)] = {}
        for policy, named in points.items():
            total = results[f"tuning-k{k}-{policies.index(policy)}"].total().isel(world=0)
            inside = [(alpha, total.sel(policy=each).values) for alpha, each in named if 0 < alpha < 1000]
            curves[world_name(k)][policy] = Curve(
                [alpha for alpha, _ in inside],
                [float(sample.mean()) for _, sample in inside],
                [float(sample.std(ddof=1) / np.sqrt(sample.size)) for _, sample in inside],
            )
        ucb = theory_settings(world)["Stationary"]
        marks[world_name(k)] = {"the authors' α": 1.0, "theory's α": ucb.alpha if isinstance(ucb, UCB) else np.nan}
    return plot_alpha(curves, marks)


def _tuned_rows(best: dict[int, dict[str, TunedSetting]]) -> list[list[str]]:
    return [
        [world_name(k), policy, choice.description, f"{choice.regret:.1f}", "; ".join(choice.limits) or "no"]
        for k, choices in best.items()
        for policy, choice in choices.items()
    ]
