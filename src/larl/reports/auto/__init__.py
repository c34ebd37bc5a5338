"""What Auto is worth: beside LARL, tuned baselines, the filter that knows every parameter, and the floor."""

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
from larl.reports.auto.places import (
    BIC,
    KALMAN,
    LONG,
    TUNED,
    Place,
    Scope,
    contest,
    hard_worlds,
    paper_worlds,
    parts,
    test_worlds,
    tuning,
)
from larl.reports.paper import stages
from larl.simulation import plots
from larl.simulation.figure import image
from larl.simulation.result import Result
from larl.simulation.result_files import join
from larl.theory import regret_floor
from larl.worlds.latent_ar import LatentAR

OURS = ("Auto", "SharedLARL", "AdaptiveLARL")


class Closed(NamedTuple):
    """The share of the gap from LARL (BIC) to the Kalman filter that a policy closes, in percent, and its error."""

    share: float
    error: float


def closed(result: Result, policy: str, world: str) -> Closed:
    """Ratio of mean differences over the trials that all policies share; its error by the delta method."""
    total = result.total("k").sel(world=world)
    worst, best, mine = (total.sel(policy=each).values for each in (BIC, KALMAN, policy))
    gap = float((worst - best).mean())
    share = float((worst - mine).mean()) / gap
    rest = (worst - mine) - share * (worst - best)
    return Closed(100.0 * share, 100.0 * float(rest.std(ddof=1)) / math.sqrt(rest.size) / gap)


def closed_table(results: Mapping[str, Result], policies: tuple[str, ...]) -> pd.DataFrame:
    """One row a world: regret of both ends of the gap, and the share that each policy closes."""
    rows = {}
    for name, result in results.items():
        means = result.total("k").sel(world=name).mean("trial").to_series()
        row = {
            "trials": f"{result.data.sizes['trial']:,}",
            f"{BIC} → Kalman": f"{means[BIC]:.0f} → {means[KALMAN]:.0f}",
        }
        for policy in policies:
            found = closed(result, policy, name)
            row[policy] = f"{found.share:.0f} ± {found.error:.1f}"
        rows[name] = row
    return pd.DataFrame(rows).T


def regret_table(results: Mapping[str, Result]) -> pd.DataFrame:
    """One row a world: mean total regret and its standard error."""
    rows = {}
    for name, result in results.items():
        total = result.total("k").sel(world=name)
        mean, error = total.mean("trial").to_series(), total.std("trial", ddof=1).to_series()
        rows[name] = {p: f"{mean[p]:.1f} ± {error[p] / math.sqrt(total.sizes['trial']):.1f}" for p in result.policies}
    return pd.DataFrame(rows).T.fillna("–")


def markdown_table(frame: pd.DataFrame, first: str) -> str:
    """A table in Markdown."""
    lines = [[first, *map(str, frame.columns)], ["---"] * (frame.shape[1] + 1)]
    lines += [[str(name), *map(str, row)] for name, row in zip(frame.index, frame.values, strict=True)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def show(out: Path, scope: Scope, *, threads: int | None = None, command: str = "larl report auto") -> str:
    """Run everything; leave auto.md, its figures and the data in `out`. Returns the page."""
    sets = {"paper": paper_worlds(), "test": test_worlds(), "hard": hard_worlds()}
    first = {key: one for label, places in sets.items() for key, one in tuning(places, scope, label).items()}
    count = sum(
        8 * place.horizon * scope.of(place.horizon, place.part)
        for label, places in sets.items()
        for place in places.values()
    )
    rest = parts(scope)
    with Progress(stages.steps(first) + stages.steps(rest) + count, True) as bar:
        found = stages.run(first, out / "data", bar, threads, totals=True)
        found |= stages.run(rest, out / "data", bar, threads)
        for label, places in sets.items():
            found |= stages.run(contest(places, found, scope, label), out / "data", bar, threads)
    results = {
        label: {name: found[f"{label}-{i:02d}"] for i, name in enumerate(places)} for label, places in sets.items()
    }
    print("drawing", file=sys.stderr, flush=True)
    page, figures = _page(sets, results, found, command)
    for name, figure in figures.items():
        write_atomically(out / "images" / f"{name}.png", partial(_bytes, image(figure, "png")))
    write_atomically(out / "auto.md", partial(_bytes, page.encode()))
    return page


def _bytes(content: bytes, draft: Path) -> None:
    draft.write_bytes(content)


def _against_the_better(result: Result, world: str) -> float:
    """Auto's regret as a multiple of the better of LARL (BIC) and the tuned D-UCB."""
    means = result.total("k").sel(world=world).mean("trial").to_series()
    return float(means["Auto"] / min(means[BIC], means[TUNED]))


def _page(
    sets: Mapping[str, Mapping[str, Place]],
    results: Mapping[str, Mapping[str, Result]],
    found: Mapping[str, Result],
    command: str,
) -> tuple[str, dict[str, Figure]]:
    compared = ("LARL, told s = k", TUNED, "AdaptiveLARL", "SharedLARL", "Auto")
    shares = {name: [closed(one, each, name) for each in OURS] for name, one in results["test"].items()}
    mine = np.array([row[0].share for row in shares.values()])
    figures = {"auto-test": plots.plot_gap_closed(list(shares), OURS, list(shares.values()))}
    shown = [BIC, TUNED, *reversed(OURS), KALMAN]
    for label, names in (("paper", list(sets["paper"])[:3]), ("stationary", list(sets["paper"])[3:])):
        joined = join(Result(results["paper"][name].data.sel(policy=shown)) for name in names)
        floors = {
            name: regret_floor(world) for name in names if isinstance(world := sets["paper"][name].world, LatentAR)
        }
        figures[f"auto-{label}"] = plots.plot_regret(joined, skip="k", band="se", regret_floors=floors)
    ablation = found["ablation"]
    variants = tuple(each for each in ablation.policies if each not in (BIC, KALMAN))
    pieces = closed_table(dict.fromkeys(ablation.worlds, ablation), variants)
    forgetting = regret_table({"k = 5": found["forgetting"]})
    worse = [
        f"{name} ({100.0 * (ratio - 1.0):.0f}% more)"
        for name, ratio in ((name, _against_the_better(one, name)) for name, one in results["hard"].items())
        if ratio > 1.1
    ]
    least = min(results["paper"], key=lambda name: closed(results["paper"][name], "Auto", name).share)
    text = f"""# What Auto is worth

Made by `{command}`; not typed by hand. `larl.Auto()` is told nothing: neither s nor the order of the process, no scale,
no horizon. Every number below is with the same defaults. ± is one standard error; all policies of a row meet the same
luck. "Closed" is the share, in percent, of the gap in regret from LARL with s by BIC (random exploration) to the Kalman
filter that knows every parameter; regret is counted from t = k. LARL has α = 1, as in the paper. D-UCB has
scale 1 and is tuned over its discount, in each world, on other seeds. docs/theory.md derives the model.

## The paper's worlds (T = 200)

{markdown_table(closed_table(results["paper"], compared), "world")}

![Cumulative regret from the paper's start](images/auto-paper.png)

![Cumulative regret from a stationary start](images/auto-stationary.png)

Bands are two standard errors; the dotted line is the floor of docs/theory.md.

## Worlds that nothing was chosen on

Twelve random worlds. The priors of Auto were chosen on other random worlds and on the paper's. Mean share closed by
Auto: **{mine.mean():.0f}%**, least {mine.min():.0f}%.

{markdown_table(closed_table(results["test"], compared), "world")}

![Share closed in the test worlds](images/auto-test.png)

## Where there is nothing to gain, or the model is wrong

Total regret. Arms that stand still have no state at all; with change points and seasons it is no AR process; with two
components the arms see different states. How much Auto believes in each kind of world beforehand was chosen on these
worlds too, with other luck; nothing was chosen on those with a star.

{markdown_table(regret_table(results["hard"]), "world")}

## Which part brings what

Share closed, from a stationary start. AdaptiveLARL is evidence over s without the shared state; SharedLARL is the
shared state without evidence over orders; Auto has both, and exact filters in place of s lags.

{markdown_table(pieces, "world")}

Beyond 2 × `memory` steps Auto no longer replays the oldest rewards. Total regret over
{LONG:,} steps from a stationary start, with and without:

{markdown_table(forgetting, "world")}

## When it fails

- It costs more time than all others: `benchmarks/auto.py` measures it.
- Where z is barely predictable there is little to learn from. Of the paper's worlds Auto closes least in {least}.
- Of the worlds where the model is wrong, its regret exceeds the better of {BIC} and {TUNED} by more than 10% in:
  {"; ".join(worse) or "none"}.
- Arms that see one state in the plane from different sides are within its reach; where they see more than two
  components, it falls back on arms that wander each on its own, which share nothing.
"""
    return text, figures
