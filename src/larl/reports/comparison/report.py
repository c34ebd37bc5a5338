"""The page docs/comparison.md: the regret of all policies in all worlds of the comparison."""

import math
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from larl._core.files import write_atomically
from larl._core.progress import Progress
from larl.reports.auto.report import markdown_table
from larl.reports.cached_studies import run_cached, total_steps
from larl.reports.comparison.experiments import (
    HORIZON,
    Scope,
    Setting,
    all_settings,
    comparison,
    policy_count,
    tuned_settings,
    tuning,
)
from larl.reports.comparison.figure import plot_ratios
from larl.reports.comparison.tuning_grids import RANDOM, oracle_grids, oracles, untuned
from larl.reports.grids import TunedSetting
from larl.simulation.figure import image
from larl.simulation.result import Result

CLOSE = 0.1  # a policy whose regret is within this share of the least is close to the best


class Outcome(NamedTuple):
    """The regret of all policies in one world."""

    setting: Setting
    total: pd.DataFrame  # (trials, policies) total regret from t = k
    tuned: dict[str, TunedSetting]

    @property
    def oracles(self) -> set[str]:
        """Names of the policies that know the parameters of the world."""
        return {*oracles(self.setting.world), *oracle_grids(self.setting.world)}

    @property
    def rivals(self) -> pd.DataFrame:
        """The total regret of the other policies."""
        return self.total.drop(columns=list(self.oracles))

    @property
    def ratio(self) -> pd.Series:
        """The mean regret of each policy, divided by the least mean regret of a policy that is no oracle."""
        return self.total.mean() / float(self.rivals.mean().min())

    @property
    def best(self) -> set[str]:
        """The policy with the least mean regret, and those within two standard errors of the paired difference."""
        means = self.rivals.mean()
        difference = self.rivals.sub(self.rivals[means.idxmin()], axis=0)
        return set(means.index[difference.mean() <= 2.0 * difference.sem()])


def write_report(
    out: Path, scope: Scope, *, threads: int | None = None, command: str = "larl report comparison"
) -> str:
    """Tune and compare all policies; write comparison.md, its figure and the data to `out`; return the page."""
    groups = all_settings()
    outcomes = _run(groups, scope, out / "data", threads)
    print("drawing the figure", file=sys.stderr, flush=True)
    ratios = pd.DataFrame({name: outcome.ratio for group in outcomes.values() for name, outcome in group.items()})
    order = _summary(outcomes).index
    figure = plot_ratios(ratios.loc[[*order, *(name for name in ratios.index if name not in order)]])
    page = _page(outcomes, scope, command)
    write_atomically(out / "images" / "comparison.png", partial(_write_bytes, image(figure, "png")))
    write_atomically(out / "data" / "ratios.csv", ratios.to_csv)
    write_atomically(out / "comparison.md", partial(_write_bytes, page.encode()))
    return page


def _write_bytes(content: bytes, draft: Path) -> None:
    draft.write_bytes(content)


def _run(
    groups: Mapping[str, Mapping[str, Setting]], scope: Scope, data: Path, threads: int | None
) -> dict[str, dict[str, Outcome]]:
    """Return the outcome in every world, by group."""
    named = {name: setting for group in groups.values() for name, setting in group.items()}
    numbers = {name: f"{number:02d}" for number, name in enumerate(named)}
    studies = {f"tuning-{numbers[name]}": tuning(name, setting, scope) for name, setting in named.items()}
    steps = sum(policy_count(each) * each.horizon * scope.trials_for(each.horizon) for each in named.values())
    outcomes: dict[str, Outcome] = {}
    with Progress(total_steps(studies) + steps, True) as bar:
        results = run_cached(studies, data, bar, threads, totals_only=True)
        for name, setting in named.items():
            tuned = tuned_settings(setting, results[f"tuning-{numbers[name]}"])
            study = {f"world-{numbers[name]}": comparison(name, setting, tuned, scope)}
            (result,) = run_cached(study, data, bar, threads, totals_only=True).values()
            outcomes[name] = Outcome(setting, _totals(result), tuned)
    return {group: {name: outcomes[name] for name in settings} for group, settings in groups.items()}


def _totals(result: Result) -> pd.DataFrame:
    """Return the total regret of each trial as a table with one column for each policy."""
    total = result.total().isel(world=0).transpose("trial", "policy")
    return pd.DataFrame(total.values, columns=[str(name) for name in total["policy"].values])


def _lower_first(text: str) -> str:
    return text[0].lower() + text[1:]


def _summary(outcomes: Mapping[str, Mapping[str, Outcome]]) -> pd.DataFrame:
    """Return one row for each policy that is no oracle, the best first: its regret relative to the least in a world."""
    everywhere = [outcome for group in outcomes.values() for outcome in group.values()]
    names = everywhere[0].rivals.columns
    logs = pd.DataFrame({id(outcome): np.log(outcome.ratio) for outcome in everywhere}).loc[names]
    rows = pd.DataFrame(index=names)
    rows["tuned"] = ["no" if name in untuned() else "yes" for name in names]
    for group, named in outcomes.items():
        rows[_lower_first(group)] = np.exp(logs[[id(outcome) for outcome in named.values()]].mean(axis=1))
    rows["all worlds"] = np.exp(logs.mean(axis=1))
    rows["largest"] = np.exp(logs.max(axis=1))
    rows["best"] = [sum(name in outcome.best for outcome in everywhere) for name in names]
    rows["within 10%"] = [sum(outcome.ratio[name] <= 1.0 + CLOSE for outcome in everywhere) for name in names]
    return rows.sort_values("all worlds")


def _regret_table(group: Mapping[str, Outcome], order: list[str]) -> pd.DataFrame:
    """Return mean total regret and its standard error; oracles last, the best of the other policies in bold."""
    oracle_names = sorted({name for outcome in group.values() for name in outcome.oracles})
    table = pd.DataFrame("–", index=[*order, *(f"*{name}*" for name in oracle_names)], columns=list(group))
    for world, outcome in group.items():
        best = outcome.best
        for name in map(str, outcome.total):
            total = outcome.total[name].to_numpy()
            cell = f"{total.mean():.1f} ± {total.std(ddof=1) / math.sqrt(total.size):.1f}"
            row = f"*{name}*" if name in outcome.oracles else name
            table.loc[row, world] = f"**{cell}**" if name in best else cell
    return table


def _settings_table(group: Mapping[str, Outcome], order: list[str]) -> pd.DataFrame:
    """Return the tuned settings; a star marks a setting at an end of its grid."""
    rows = [name for name in order if name not in untuned()]
    table = pd.DataFrame("–", index=rows, columns=list(group))
    for world, outcome in group.items():
        for name in rows:
            choice = outcome.tuned[name]
            table.loc[name, world] = choice.description + (" *" if choice.limits else "")
    return table


def _sentence(group: str, outcomes: Mapping[str, Outcome]) -> str:
    """Return who has the least regret in each world of a group."""
    winners = [
        f"{world}: {', '.join(name for name in outcome.rivals.mean().sort_values().index if name in outcome.best)}"
        for world, outcome in outcomes.items()
    ]
    return "\n".join(
        [f"Least regret in “{_lower_first(group)}”, with ties:", "", *(f"- {winner}" for winner in winners)]
    )


def _losses(outcomes: Mapping[str, Mapping[str, Outcome]]) -> str:
    """Return the worlds in which Auto has clearly more regret than the best policy."""
    lines = []
    for group in outcomes.values():
        for world, outcome in group.items():
            best = str(outcome.rivals.mean().idxmin())
            if outcome.ratio["Auto"] > 1.0 + CLOSE and "Auto" not in outcome.best:
                lines.append(f"- {world}: {100.0 * (outcome.ratio['Auto'] - 1.0):.0f}% more than {best}")
    return "\n".join(lines) or "- none"


def _page(outcomes: Mapping[str, Mapping[str, Outcome]], scope: Scope, command: str) -> str:
    summary = _summary(outcomes)
    order, count = list(summary.index), sum(map(len, outcomes.values()))
    shown = summary.map(lambda value: f"{value:.2f}" if isinstance(value, float) else value)
    sections = []
    for group, named in outcomes.items():
        sections += [
            f"## {group}",
            _sentence(group, named),
            markdown_table(_regret_table(named, order), "policy"),
            '<details markdown="1"><summary>Tuned settings</summary>',
            markdown_table(_settings_table(named, order), "policy"),
            "</details>",
        ]
    body = "\n\n".join(sections)
    without = ", ".join(name for name in untuned() if name != RANDOM)
    oracle = min(
        outcome.total[list(outcome.oracles)].mean().min() / outcome.rivals.mean().min()
        for group in outcomes.values()
        for outcome in group.values()
        if outcome.oracles
    )
    return f"""# Comparison of all policies

Generated by `{command}`.

{count} worlds, {len(order)} policies that do not know the world, and policies that do (in italics, last in each
table). All policies of a world get the same random numbers. Tables show mean total regret from t = k ± one standard
error over {scope.trials:,} trials of 200 steps, fewer where trials are longer. Bold: the least regret of a policy that
does not know the world, and those within two standard errors of the paired difference.

Most policies are tuned in each world: they have the setting with the least mean regret over
{scope.trials_for(HORIZON, 0.5):,} trials of 200 steps on other seeds (fewer where trials are longer). So they know more
than a user does before a trial. {without} are not tuned: they run with their defaults in all worlds.

## Summary

Regret ÷ the least regret of any policy that does not know the world: geometric mean over the worlds of a group, and the
largest ratio in any world. “best”: number of worlds, of {count}, in which the policy has the least regret or ties;
“within 10%”: in which its regret is at most 10% above the least.

{markdown_table(shown, "policy")}

![Regret of each policy relative to the best in each world](images/comparison.png)

The largest gain from knowing the world: an oracle has {oracle:.2f} times the regret of the best other policy.

Worlds in which Auto has more than {100 * CLOSE:.0f}% more regret than the best of the other policies:

{_losses(outcomes)}

{body}

## How to read this

- The worlds of “other worlds” are the paper's k = 1 world with one change, or of another kind: see experiment 4 of
  `larl paper --all`. The random worlds of hidden Markov states are `larl.worlds.random_markov` with seeds 0 to 4.
- A star marks a tuned setting at an end of its grid; `larl.reports.comparison` has the grids. They are coarse, and not
  every grid reaches the limits of its settings. CUSUMUCB and MUCB have one scale for the bonus and the test.
- Ties are not corrected for the number of comparisons.
- Adaptive exploration for latent-state bandits (Jin et al. 2026) is not included: its probing rules are not
  published in a form that we could read. Without probing, LinUCB on the last action and reward is LARL with s = 1.
"""
