"""The section of the report on LARL and its baselines."""

import numpy as np
from matplotlib.figure import Figure

from larl import worlds
from larl.policies import UCB
from larl.reports.paper import regret_claims
from larl.reports.paper.claims import settings
from larl.reports.paper.experiments import ALTERNATING, KALMAN, ORDERS, best_settings, name
from larl.reports.paper.figures import Curve, plot_alpha
from larl.reports.paper.report import picture, table
from larl.reports.paper.sections import Section, only, text
from larl.reports.paper.settings import (
    ALL,
    AUTHORS,
    HORIZON,
    LARL_ALPHA,
    LARL_BIC,
    LARL_TUNED,
    THEORY,
    TUNED,
    Choice,
    candidate,
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
SHOWN_TUNED = (LARL_BIC, LARL_TUNED, *(label(kind, TUNED) for kind in ALL), KALMAN)
# Colours: a baseline has the same one in every figure; the seventh, black, is Auto's.
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
    "authors: α = 1, λ = 1. theory: Stationary α = sd·√(2 log T); SW UCB window 2B√log T, scale B; Rexp3 batch for the "
    "true variation"
)


def experiment_1(main: Result, found: dict[str, Result]) -> Section:
    """LARL against the baselines, in each of their settings."""
    best = {k: best_settings(k, found) for k in ORDERS}
    figures = _regret_figures(main, found)
    summary, ours = main.summary("k"), found["beyond"].summary("k")
    trials = found["beyond"].data.sizes["trial"]
    beyond = [
        [world, policy, f"{row['mean']:.1f}", f"{row['se']:.1f}", f"{row['sd']:.1f}"]
        for world, policy, row in ((w, p, ours.loc[w].loc[p]) for w in main.worlds for p in found["beyond"].policies)
    ]
    rows = [
        [world, policy, settings(main, world)[policy], f"{row['mean']:.1f}", f"{row['se']:.1f}", f"{row['sd']:.1f}"]
        for world, policy, row in ((w, p, summary.loc[w].loc[p]) for w in main.worlds for p in main.policies)
    ]
    value = [
        [name(k), *(f"{each(worlds.paper(k)):.3f}" for each in (random_regret, regret_floor, predictability))]
        for k in ORDERS
    ]
    html = "".join(
        [
            "<h2>1. LARL against the baselines</h2>",
            text(
                f"T = {HORIZON}, two arms with β = (−1, 1). Regret is counted from t = k. The dotted floor is the "
                "long-run regret of the policy that knows every parameter (from the paper's start, far from zero, the "
                "first steps are easier)."
            ),
            picture(
                figures["regret"],
                f"Cumulative regret; the name of a baseline says whose setting it has. {SETTINGS}. LARL: α = 1. Auto, "
                "which is not the paper's, in black.",
            ),
            picture(
                figures["regret-tuned"],
                "Baselines tuned over α, or scale and window, discount or batch, on other seeds; LARL (BIC, tuned) "
                "over α and the length of its exploration. Band: ± two standard errors.",
            ),
            picture(
                figures["alpha"],
                "Total regret over α, on the tuning seeds. Bars: two standard errors. Dashed: the authors' α; dotted: "
                "sd·√(2 log T), what the theory of UCB asks for.",
            ),
            picture(
                figures["wins"], f"How often the row's policy has less total regret than the column's. {SETTINGS}."
            ),
            picture(figures["wins-tuned"], "The same against baselines tuned on other seeds."),
            table(["world", "policy", "setting", "mean regret", "± se", "sd"], rows),
            "<h3>Tuned settings</h3>",
            text(
                "The setting with the least mean regret on the tuning seeds. Every grid runs from one limit of the "
                "policy to the other, so that nothing better lies outside it; the last column names the limits chosen."
            ),
            table(["world", "policy", "setting", "regret when tuned", "at a limit"], _tuned_rows(best)),
            "<h3>Beyond the paper</h3>",
            text(
                f"Policies that the paper does not have and that are told nothing, on the first {trials:,} trials of "
                "the same luck. docs/auto.md compares them in more worlds."
            ),
            table(["world", "policy", "mean regret", "± se", "sd"], beyond),
            "<h3>How much is there to win?</h3>",
            table(["world", "random, regret a step", "floor, regret a step", "predictability"], value),
        ]
    )
    verdicts = [
        *regret_claims.beats_baselines(main, best),
        *regret_claims.gain_shrinks(main),
        *regret_claims.like_stationary(main),
        regret_claims.noise_claim(found["noise"]),
        *regret_claims.published_claims(main),
    ]
    return Section(html, verdicts, figures, {"baselines": summary, "beyond": ours})


def _regret_figures(main: Result, found: dict[str, Result]) -> dict[str, Figure]:
    floors = {name(k): regret_floor(worlds.paper(k)) for k in ORDERS}
    apart = only(found["beyond"], ["Auto"])
    auto = f"Auto: {apart.data.sizes['trial']:,} trials"
    shown, tuned = only(main, SHOWN), only(main, SHOWN_TUNED)
    short = "authors: α = 1; theory: see the caption"
    return {
        "regret": plots.plot_regret(
            shown,
            skip="k",
            regret_floors=floors,
            palette=PALETTE,
            overlay=apart,
            note=f"settings in brackets, {auto}",
        ),
        "regret-column": plots.plot_regret(
            shown, skip="k", regret_floors=floors, palette=PALETTE, overlay=apart, note=f"{short}\n{auto}", stacked=True
        ),
        "regret-tuned": plots.plot_regret(
            tuned,
            skip="k",
            band="se",
            regret_floors=floors,
            palette=PALETTE_TUNED,
            overlay=apart,
            note=f"tuned on other seeds, {auto}",
        ),
        "alpha": _alpha_figure(found),
        "wins": plots.plot_wins(shown, skip="k"),
        "wins-tuned": plots.plot_wins(tuned, skip="k"),
    }


def _alpha_figure(found: dict[str, Result]) -> Figure:
    """Regret over α of Stationary and of LARL with the paper's exploration, on the tuning seeds."""
    curves: dict[str, dict[str, Curve]] = {}
    marks: dict[str, dict[str, float]] = {}
    for k in ORDERS:
        world = worlds.paper(k)
        kinds = list(grids(world))
        tried = {
            "Stationary": [(alpha, candidate("Stationary", [alpha])) for (alpha,) in grids(world)["Stationary"].points],
            LARL_BIC: [(alpha, candidate(LARL_BIC, [HORIZON // 5, alpha])) for alpha in LARL_ALPHA.values],
        }
        curves[name(k)] = {}
        for kind, points in tried.items():
            total = found[f"tuning-k{k}-{kinds.index(kind)}"].total().isel(world=0)
            inside = [(alpha, total.sel(policy=each).values) for alpha, each in points if 0 < alpha < 1000]
            curves[name(k)][kind] = Curve(
                [alpha for alpha, _ in inside],
                [float(sample.mean()) for _, sample in inside],
                [float(sample.std(ddof=1) / np.sqrt(sample.size)) for _, sample in inside],
            )
        asked = theory_settings(world)["Stationary"]
        marks[name(k)] = {"the authors' α": 1.0, "theory's α": asked.alpha if isinstance(asked, UCB) else np.nan}
    return plot_alpha(curves, marks)


def _tuned_rows(best: dict[int, dict[str, Choice]]) -> list[list[str]]:
    return [
        [name(k), kind, choice.words, f"{choice.regret:.1f}", "; ".join(choice.limits) or "no"]
        for k, choices in best.items()
        for kind, choice in choices.items()
    ]
