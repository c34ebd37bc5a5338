"""The page docs/auto.md: the regret of Auto compared with LARL, tuned baselines and the Kalman filter."""

import math
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from larl._core.files import write_atomically
from larl._core.progress import Progress
from larl.reports.auto.experiments import (
    DUCB_TUNED,
    KALMAN,
    LARL_BIC,
    LARL_K,
    LONG_HORIZON,
    Scope,
    Setting,
    ablations,
    comparison,
    held_out_worlds,
    misspecified_worlds,
    paper_worlds,
    tuning,
)
from larl.reports.auto.robustness import studies as robustness_studies
from larl.reports.auto.robustness import write_section
from larl.reports.cached_studies import run_cached, total_steps
from larl.simulation import plots
from larl.simulation.figure import image
from larl.simulation.result import Result
from larl.simulation.result_files import join
from larl.theory import regret_floor
from larl.worlds.latent_ar import LatentAR

ADAPTIVE = ("Auto", "SharedLARL", "AdaptiveLARL")  # policies that are not in the paper


class ShareClosed(NamedTuple):
    """The share of the gap from LARL (BIC) to the Kalman filter that a policy closes, and its error, in percent."""

    share: float
    error: float


def share_closed(result: Result, policy: str, world: str) -> ShareClosed:
    """Return the ratio of mean differences over paired trials, with its standard error by the delta method."""
    total = result.total("k").sel(world=world)
    worst, best, regret = (total.sel(policy=each).values for each in (LARL_BIC, KALMAN, policy))
    gap = float((worst - best).mean())
    share = float((worst - regret).mean()) / gap
    residual = (worst - regret) - share * (worst - best)
    return ShareClosed(100.0 * share, 100.0 * float(residual.std(ddof=1)) / math.sqrt(residual.size) / gap)


def share_table(results: Mapping[str, Result], policies: tuple[str, ...]) -> pd.DataFrame:
    """Return one row for each world: the regret at both ends of the gap, and the share that each policy closes."""
    rows = {}
    for name, result in results.items():
        means = result.total("k").sel(world=name).mean("trial").to_series()
        row = {
            "trials": f"{result.data.sizes['trial']:,}",
            f"{LARL_BIC} → Kalman": f"{means[LARL_BIC]:.0f} → {means[KALMAN]:.0f}",
        }
        for policy in policies:
            closed = share_closed(result, policy, name)
            row[policy] = f"{closed.share:.0f} ± {closed.error:.1f}"
        rows[name] = row
    return pd.DataFrame(rows).T


def regret_table(results: Mapping[str, Result]) -> pd.DataFrame:
    """Return one row for each world: mean total regret and its standard error."""
    rows = {}
    for name, result in results.items():
        total = result.total("k").sel(world=name)
        mean, error = total.mean("trial").to_series(), total.std("trial", ddof=1).to_series()
        rows[name] = {p: f"{mean[p]:.1f} ± {error[p] / math.sqrt(total.sizes['trial']):.1f}" for p in result.policies}
    return pd.DataFrame(rows).T.fillna("–")


def markdown_table(frame: pd.DataFrame, first: str) -> str:
    """Return a table in Markdown; `first` is the header of the index."""
    lines = [[first, *map(str, frame.columns)], ["---"] * (frame.shape[1] + 1)]
    lines += [[str(name), *map(str, row)] for name, row in zip(frame.index, frame.values, strict=True)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_report(out: Path, scope: Scope, *, threads: int | None = None, command: str = "larl report auto") -> str:
    """Run all studies; write auto.md, its figures and the data to `out`; return the page."""
    groups = {"paper": paper_worlds(), "test": held_out_worlds(), "hard": misspecified_worlds()}
    tuning_studies = {
        name: study for group, settings in groups.items() for name, study in tuning(settings, scope, group).items()
    }
    # The studies of a comparison need the tuned discount, so their steps are counted before they are made: 8 policies.
    steps = sum(
        8 * setting.horizon * scope.trials_for(setting.horizon, setting.fraction)
        for settings in groups.values()
        for setting in settings.values()
    )
    fixed_studies, data = ablations(scope) | robustness_studies(scope), out / "data"
    with Progress(total_steps(tuning_studies | fixed_studies) + steps, True) as bar:
        results = run_cached(tuning_studies, data, bar, threads, totals_only=True)
        results |= run_cached(fixed_studies, data, bar, threads)
        for group, settings in groups.items():
            results |= run_cached(comparison(settings, results, scope, group), data, bar, threads)
    grouped = {
        group: {name: results[f"{group}-{i:02d}"] for i, name in enumerate(settings)}
        for group, settings in groups.items()
    }
    print("drawing figures", file=sys.stderr, flush=True)
    figures = _figures(groups["paper"], grouped)
    page = _page(grouped, results, command)
    for name, figure in figures.items():
        write_atomically(out / "images" / f"{name}.png", partial(_write_bytes, image(figure, "png")))
    write_atomically(out / "auto.md", partial(_write_bytes, page.encode()))
    return page


def _write_bytes(content: bytes, draft: Path) -> None:
    draft.write_bytes(content)


def _figures(paper: Mapping[str, Setting], results: Mapping[str, Mapping[str, Result]]) -> dict[str, Figure]:
    held_out = {name: [share_closed(one, each, name) for each in ADAPTIVE] for name, one in results["test"].items()}
    figures = {"auto-test": plots.plot_gap_closed(list(held_out), ADAPTIVE, list(held_out.values()))}
    shown = [LARL_BIC, DUCB_TUNED, *reversed(ADAPTIVE), KALMAN]
    for start, names in (("paper", list(paper)[:3]), ("stationary", list(paper)[3:])):
        joined = join(Result(results["paper"][name].data.sel(policy=shown)) for name in names)
        floors = {name: regret_floor(world) for name in names if isinstance(world := paper[name].world, LatentAR)}
        figures[f"auto-{start}"] = plots.plot_regret(joined, skip="k", band="se", regret_floors=floors)
    return figures


def _relative_to_best_baseline(result: Result, world: str) -> float:
    """Return Auto's regret divided by the smaller of those of LARL (BIC) and the tuned D-UCB."""
    means = result.total("k").sel(world=world).mean("trial").to_series()
    return float(means["Auto"] / min(means[LARL_BIC], means[DUCB_TUNED]))


def _page(results: Mapping[str, Mapping[str, Result]], others: Mapping[str, Result], command: str) -> str:
    compared = (LARL_K, DUCB_TUNED, "AdaptiveLARL", "SharedLARL", "Auto")
    held_out = np.array([share_closed(result, "Auto", name).share for name, result in results["test"].items()])
    ablation, memory = others["ablation"], others["memory"]
    variants = tuple(each for each in ablation.policies if each not in (LARL_BIC, KALMAN))
    ratios = {name: _relative_to_best_baseline(result, name) for name, result in results["hard"].items()}
    worse = [f"{name} ({100.0 * (ratio - 1.0):.0f}% more)" for name, ratio in ratios.items() if ratio > 1.1]
    steps = LONG_HORIZON
    least = min(results["paper"], key=lambda name: share_closed(results["paper"][name], "Auto", name).share)
    return f"""# Auto in many worlds

Generated by `{command}`.

`larl.Auto()` gets no information about the world: no s, no order, no scale and no horizon.
All results use its default parameters. ± is one standard error. All policies in a row get the same random numbers.
"Closed" is the share, in percent, of the gap in regret from LARL with s by BIC (random exploration) to the Kalman
filter with the true parameters. Regret is counted from t = k. LARL has α = 1, as in the paper. D-UCB has scale 1; its
discount is tuned in each world on other seeds. [Theory](theory.md#11-a-mixture-of-filters-auto) derives the
model.

## The paper's worlds (T = 200)

{markdown_table(share_table(results["paper"], compared), "world")}

![Cumulative regret from the paper's start](images/auto-paper.png)

![Cumulative regret from a stationary start](images/auto-stationary.png)

Bands are two standard errors. The dotted line is the [regret floor](theory.md#7-the-regret-floor).

## Held-out worlds

Twelve random worlds. The priors of Auto were chosen on other random worlds and on the paper's. Auto closes
**{held_out.mean():.0f}%** of the gap on average, and at least {held_out.min():.0f}%.

{markdown_table(share_table(results["test"], compared), "world")}

![Share closed in the held-out worlds](images/auto-test.png)

## Constant means and misspecified models

Total regret. Constant means have no latent state. Change points and seasons are not AR processes. With a
two-dimensional state the arms depend on different components. Auto's prior weights of the model kinds were also chosen
on these worlds, with other seeds, except on those marked with a star.

{markdown_table(regret_table(results["hard"]), "world")}

{write_section(others, markdown_table)}

## Ablations

Share closed, from a stationary start. AdaptiveLARL weights the values of s by their evidence but has no shared
state. SharedLARL has the shared state but does not weight orders. Auto does both, with exact Kalman filters in place
of s lags.

{markdown_table(share_table(dict.fromkeys(ablation.worlds, ablation), variants), "world")}

After 2 × `memory` steps Auto no longer replays the oldest rewards. Total regret over {steps:,} steps from a stationary
start, with limited and with full memory:

{markdown_table(regret_table({"k = 5": memory}), "world")}

## Limitations

- Auto is the slowest policy: `benchmarks/auto.py` measures its cost.
- Where z is hardly predictable, Auto gains little. Of the paper's worlds it closes the least in: {least}.
- Misspecified worlds in which its regret exceeds the better of {LARL_BIC} and {DUCB_TUNED} by more than 10%:
  {"; ".join(worse) or "none"}.
- Auto can model arms that depend on different components of a two-dimensional state. With more components it falls back
  on independent AR(1) processes for each arm, which share no information.
"""
