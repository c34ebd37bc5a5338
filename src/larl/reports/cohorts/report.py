"""The page docs/pooling.md: what units learn from each other."""

import math
from pathlib import Path

import numpy as np
import pandas as pd

from larl._core.files import write_atomically
from larl._core.progress import Progress
from larl.reports.auto.report import markdown_table
from larl.reports.cached_pilots import Values
from larl.reports.cached_studies import run_cached, total_steps
from larl.reports.cohorts.experiments import (
    ALONE,
    AVERAGED,
    COLD,
    FOREIGN,
    FOREIGN_UNITS,
    GIVEN_K,
    NEW_STEPS,
    PILOTS,
    POOLED,
    SHARED,
    SPREADS,
    STEPS,
    UNITS,
    Floats,
    NewUnits,
    Scope,
    cohort_studies,
    cohort_world,
    filter_regret,
    new_units,
    run_all_pilots,
    settings,
    spread_settings,
    steps_of_pilots,
)
from larl.simulation.figure import image

POLICIES = (ALONE, SHARED, GIVEN_K, POOLED, AVERAGED)


def write_report(out: Path, scope: Scope, *, threads: int | None = None, command: str = "larl report cohorts") -> str:
    """Run all experiments; write pooling.md, its figure and the data to `out`; return the page."""
    populations = settings() | spread_settings()
    studies = {
        f"cohort-{number}-{pooling}": study
        for number, (name, setting) in enumerate(populations.items())
        for pooling, study in cohort_studies(name, setting, scope).items()
    }
    pilots = {name: setting for name, setting in settings().items() if not name.endswith("another")}
    with Progress(total_steps(studies) + len(pilots) * scope.cohorts * steps_of_pilots(scope), True) as bar:
        results = run_cached(studies, out / "data", bar, threads)
        bar.title = "new units"
        after = run_all_pilots(pilots, out / "pilots", scope, bar, threads)
    regrets: dict[str, dict[str, Floats]] = {}
    for number, (name, setting) in enumerate(populations.items()):
        regrets[name] = {"Kalman": filter_regret(cohort_world(setting, scope), scope)}
        for pooling in ("none", "full", "partial"):
            total = results[f"cohort-{number}-{pooling}"].total()
            regrets[name] |= {str(each): total.sel(policy=each).values.ravel() for each in total["policy"].values}
    figure = plot_spread(spread_rows(regrets))
    images = out / "images"
    images.mkdir(parents=True, exist_ok=True)
    write_atomically(images / "pooling-spread.png", lambda draft: draft.write_bytes(image(figure, "png")))
    page = make_page(command, scope, regrets, after)
    write_atomically(out / "pooling.md", lambda draft: draft.write_text(page, encoding="utf-8"))
    return page


def spread_rows(regrets: dict[str, dict[str, Floats]]) -> dict[str, dict[str, Floats]]:
    """Return the rows of populations of increasing spread."""
    return {label: regrets[name] for label, name in SPREADS.items()}


def format_ratio(regret: Floats, best: Floats) -> str:
    """Return the ratio of mean regrets and its standard error over cohorts."""
    ratio = regret.mean() / best.mean()
    error = (regret - ratio * best).std(ddof=1) / math.sqrt(regret.size) / best.mean()
    return f"{ratio:.3f} ± {error:.3f}"


def ratio_table(rows: dict[str, dict[str, Floats]]) -> str:
    """Return the table of regret per unit relative to the Kalman filter, one row for each population."""
    frame = pd.DataFrame(
        {
            name: {"Kalman, regret": f"{totals['Kalman'].mean():.1f}"}
            | {policy: format_ratio(totals[policy], totals["Kalman"]) for policy in POLICIES}
            for name, totals in rows.items()
        }
    ).T
    return markdown_table(frame, "population")


def format_share(regret: Floats, units: NewUnits) -> str:
    """Return the share of the gap from the baseline to the filter that is closed; its error is over pilots."""
    gap = units.baseline - units.best
    share = (units.baseline - regret).mean() / gap.mean()
    error = ((units.baseline - regret) - share * gap).mean(axis=1).std(ddof=1) / math.sqrt(len(gap)) / gap.mean()
    return f"{100 * share:.0f} ± {100 * error:.0f}"


def share_table(rows: dict[str, NewUnits]) -> str:
    """Return the table of new units after a pilot."""
    frame = pd.DataFrame(
        {
            name: {
                "LARL (BIC) → Kalman": f"{units.baseline.mean():.0f} → {units.best.mean():.0f}",
                COLD: format_share(units.cold, units),
            }
            | {f"n = {n}": format_share(regret, units) for n, regret in units.after.items()}
            for name, units in rows.items()
        }
    ).T
    return markdown_table(frame, "population")


def foreign_table(after: dict[str, list[Values]]) -> str:
    """Return the table of new units after a pilot in another world."""
    rows = {}
    for name, pilots in after.items():
        if f"{POOLED}, {FOREIGN}" in pilots[0]:
            rows[name] = {COLD: format_share(new_units(pilots, POOLED).cold, new_units(pilots, POOLED))}
            for label in (POOLED, AVERAGED):
                regret = np.array([each[f"{label}, {FOREIGN}"] for each in pilots])
                rows[name][label.removesuffix(", partial")] = format_share(regret, new_units(pilots, label))
    return markdown_table(pd.DataFrame(rows).T, "population")


def plot_spread(rows: dict[str, dict[str, Floats]]) -> object:
    """Return the figure of relative regret over the spread between units."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes, spreads = figure.add_subplot(), [float(name.rstrip("%")) for name in rows]
    for policy in POLICIES:
        ratio = [totals[policy].mean() / totals["Kalman"].mean() for totals in rows.values()]
        axes.plot(spreads, ratio, marker="o", label=policy)
    axes.set_xlabel("spread of all parameters between units, percent")
    axes.set_ylabel("regret ÷ Kalman filter")
    axes.set_ylim(bottom=1.0)
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def where_worse(rows: dict[str, dict[str, Floats]], policy: str) -> str:
    """Return a sentence on the populations in which a policy has more regret than Auto alone."""
    worse = []
    for name, totals in rows.items():
        difference = totals[policy] - totals[ALONE]
        error = difference.std(ddof=1) / math.sqrt(difference.size)
        if difference.mean() > 2.0 * error:
            worse.append(f"{name} ({difference.mean():.1f} ± {error:.1f} more)")
    if not worse:
        return f"{policy}: in no population of this page is it worse than Auto alone by more than two standard errors."
    return f"{policy}: worse than Auto alone by more than two standard errors in {', '.join(worse)}."


def make_page(command: str, scope: Scope, regrets: dict[str, dict[str, Floats]], after: dict[str, list[Values]]) -> str:
    """Return the page as Markdown."""
    sizes = ", ".join(map(str, PILOTS))
    cohorts = {name: regrets[name] for name in settings()}
    means = {
        policy: float(np.mean([each[policy].mean() / each["Kalman"].mean() for each in cohorts.values()]))
        for policy in (POOLED, AVERAGED)
    }
    compared = "\n".join(f"- {where_worse(regrets, policy)}" for policy in (POOLED, AVERAGED))
    return f"""# What units learn from each other

Generated by `{command}`.

[`CohortLARL` and `CohortAuto`](cohort.md) get no information about the world: no s, no scale, no horizon, and not how
units differ. CohortAuto averages CohortLARL with an Auto for each unit that also learns from the other units.
The Kalman filter knows all parameters of the unit that it plays for. All policies in a row get the same random numbers.
The latent states start from their stationary distribution. "Units 30% apart" are drawn by
[`larl.worlds.random_population`](api/worlds.md): every parameter (partial autocorrelations, β, μ, noise) differs.
In "two hidden groups" γ is 0.9 for every second unit and −0.5 for the others.
`benchmarks/cohort_settings.py` compares settings of CohortLARL on other seeds and other random worlds with three arms.

## Units that learn at the same time

{scope.cohorts} cohorts of {UNITS} units × {STEPS} decisions. Regret per unit ÷ that of the Kalman filter,
± one standard error over cohorts. With partial pooling, CohortLARL has {means[POOLED]:.2f} times the filter's regret on
average, CohortAuto {means[AVERAGED]:.2f} times.

{ratio_table(cohorts)}

{compared}

## When units differ

The same, for k = 5 and an increasing spread of all parameters between units.

{ratio_table(spread_rows(regrets))}

![Regret relative to the Kalman filter, by the spread between units](images/pooling-spread.png)

## New units after a pilot

A pilot of n units × {STEPS} decisions (n = {sizes}) with partial pooling, then new units of {NEW_STEPS} decisions that
start with what the pilot learnt: `larl.Cohort.from_log` does this for a log ([how to](warm-start.md)). Share, in
percent, of the gap from LARL with s by BIC, alone, to the Kalman filter with the unit's own parameters;
{scope.cohorts} pilots with {scope.new_units} new units each, ± one standard error over pilots.
A new unit sees the pilot and itself, not other new units. Pilot and new units with CohortLARL:

{share_table({name: new_units(pilots, POOLED) for name, pilots in after.items()})}

The same with CohortAuto:

{share_table({name: new_units(pilots, AVERAGED) for name, pilots in after.items()})}

After a pilot of {FOREIGN_UNITS} units in a world of another order: k = 1, or k = 5 for the population k = 1.

{foreign_table(after)}

## Limits

- A new unit's first ten contexts are incomplete, where a filter uses what there is.
- One normal distribution describes how units differ; distinct groups are not part of the models.
- Full pooling assumes identical units. What one unit learns wrongly, all do.
"""
