"""The commands `larl paper` and `larl report` with paper, auto, cohorts, comparison, data, priors and theory."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from larl.cli.options import Threads


def mount(app: typer.Typer, guarded: Callable[[Any], Any]) -> None:
    """Add the commands to the command line."""
    app.command()(guarded(paper))
    report = typer.Typer(help="Simulate and write a report.", no_args_is_help=True)
    report.command("paper")(guarded(paper))
    report.command("auto")(guarded(auto))
    report.command("cohorts")(guarded(cohorts))
    report.command("comparison")(guarded(comparison))
    report.command("data")(guarded(data))
    report.command("priors")(guarded(priors))
    report.command("theory")(guarded(theory))
    app.add_typer(report, name="report")


def paper(
    out: Annotated[Path, typer.Option(help="Folder for the report, figures and data.")] = Path("results/paper"),
    trials: Annotated[int, typer.Option(min=2, help="Trials of each policy in each world (the paper: 100).")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="At most 100 trials; takes half a minute.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Also simulate sub-linear regret and robustness.")] = False,
    threads: Threads = None,
) -> None:
    """Reproduce the paper: run its experiments, check its claims and write report.html.

    An interrupted run keeps its finished experiments; the same command continues.
    """
    from larl._core.files import output_folder
    from larl.reports.paper import Scope, reproduce

    scope = Scope(trials=trials, seed=seed, all_experiments=everything)
    flags = f"{' --all' if everything else ''}{' --quick' if quick else ''}"
    command = f"larl paper{flags} --trials {trials} --seed {seed}"
    with output_folder(out):
        verdicts = reproduce(out, scope.quick() if quick else scope, threads=threads, command=command)
    width = max(len(claim.verdict) for claim in verdicts)
    for claim in verdicts:
        print(f"{claim.verdict:{width}}  {claim.claim}")
    print(f"\nwritten: {out / 'report.html'}, figures, data, claims.json and reproduction.md")


def auto(
    out: Annotated[Path, typer.Option(help="Folder for the page, its figures and data.")] = Path("results/auto"),
    trials: Annotated[int, typer.Option(min=20, help="Trials in each of the paper's worlds; fewer elsewhere.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    threads: Threads = None,
) -> None:
    """Compare Auto to LARL, tuned baselines and the Kalman filter that knows the world (many minutes).

    An interrupted run keeps its finished experiments; the same command continues.
    """
    from larl._core.files import output_folder
    from larl.reports.auto import Scope, write_report

    command = f"larl report auto --trials {trials} --seed {seed}"
    with output_folder(out):
        print(write_report(out, Scope(trials, seed), threads=threads, command=command))
    print(f"written: {out / 'auto.md'}, with images and data beside it")


def cohorts(
    out: Annotated[Path, typer.Option(help="Folder for the page, its figure and data.")] = Path("results/cohorts"),
    repeats: Annotated[int, typer.Option(min=2, help="Cohorts of each population, and pilots.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    threads: Threads = None,
) -> None:
    """Measure what units learn from each other: cohorts of 70 units, and new units after a pilot (an hour).

    An interrupted run keeps its finished cohorts; the same command continues.
    """
    from larl._core.files import output_folder
    from larl.reports.cohorts import Scope, write_report

    command = f"larl report cohorts --repeats {repeats} --seed {seed}"
    with output_folder(out):
        print(write_report(out, Scope(repeats, seed=seed), threads=threads, command=command))
    print(f"written: {out / 'pooling.md'}, with images and data beside it")


def priors(
    out: Annotated[Path, typer.Option(help="Folder for the page and its data.")] = Path("results/priors"),
    repeats: Annotated[int, typer.Option(min=2, help="Pilots of each population.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    threads: Threads = None,
) -> None:
    """Measure what a prior from a pilot gains for new units, and the coverage of its intervals (two hours).

    An interrupted run keeps its finished pilots; the same command continues.
    """
    from larl._core.files import output_folder
    from larl.reports.priors import Scope, write_report

    command = f"larl report priors --repeats {repeats} --seed {seed}"
    with output_folder(out):
        print(write_report(out, Scope(repeats, seed=seed), threads=threads, command=command))
    print(f"written: {out / 'prior.md'}, with data beside it")


def comparison(
    out: Annotated[Path, typer.Option(help="Folder for the page, its figure and data.")] = Path("results/comparison"),
    trials: Annotated[int, typer.Option(min=8, help="Trials of 200 steps in each world; fewer if longer.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    threads: Threads = None,
) -> None:
    """Tune all policies and compare them in all kinds of worlds (half an hour).

    An interrupted run keeps its finished experiments; the same command continues.
    """
    from larl._core.files import output_folder
    from larl.reports.comparison import Scope, write_report

    command = f"larl report comparison --trials {trials} --seed {seed}"
    with output_folder(out):
        print(write_report(out, Scope(trials, seed), threads=threads, command=command))
    print(f"written: {out / 'comparison.md'}, with images and data beside it")


def data(
    out: Annotated[Path, typer.Option(help="Folder for the page, its figure and data.")] = Path("results/data"),
    repeats: Annotated[int, typer.Option(min=1, help="How often each window is played.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="At most 3 windows and few settings of each problem.")] = False,
    threads: Threads = None,
) -> None:
    """Tune and compare policies on data inside other packages (ten minutes). Needs pip install 'larl[data]'.

    An interrupted run keeps its finished experiments; the same command continues.
    """
    from larl._core.files import output_folder
    from larl.reports.real_data import Scope, write_report

    command = f"larl report data{' --quick' if quick else ''} --repeats {repeats} --seed {seed}"
    with output_folder(out):
        print(write_report(out, Scope(repeats, seed, quick), threads=threads, command=command))
    print(f"written: {out / 'real-data.md'}, with images and data beside it")


def theory(
    page: Annotated[Path | None, typer.Option(help="Markdown page whose tables to replace, between markers.")] = None,
    trials: Annotated[int, typer.Option(min=2, help="Trials of each policy in the table of floor and learning.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
) -> None:
    """Split regret into floor and learning, and compare bounds on regret with the regret (two minutes)."""
    from larl.reports.theory import decomposition_table, ladder_table, update_page

    tables = {"decomposition": decomposition_table(trials, seed), "ladder": ladder_table(seed)}
    print("\n\n".join(tables.values()))
    if page is not None:
        update_page(page, tables, f"larl report theory --page docs/theory.md --trials {trials} --seed {seed}")
        print(f"written: {page}")
