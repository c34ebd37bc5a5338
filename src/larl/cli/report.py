"""The commands `larl paper`, `larl report paper` and `larl report auto`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from larl.cli.options import Threads


def mount(app: typer.Typer, guarded: Callable[[Any], Any]) -> None:
    """Add the commands to the command line."""
    app.command()(guarded(paper))
    report = typer.Typer(help="Write a report of simulations.", no_args_is_help=True)
    report.command("paper")(guarded(paper))
    report.command("auto")(guarded(auto))
    app.add_typer(report, name="report")


def paper(
    out: Annotated[Path, typer.Option(help="Folder for the report, figures and data.")] = Path("results/paper"),
    trials: Annotated[int, typer.Option(min=2, help="Trials of each policy in each world (the paper: 100).")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="At most 100 trials: a look in half a minute.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Also sub-linear regret and robustness.")] = False,
    threads: Threads = None,
) -> None:
    """Reproduce the paper: experiments, claims with verdicts, report.html.

    Stopped, it keeps what was finished; the same command goes on from there.
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
    print(f"\nwritten: {out / 'report.html'}, with figures, data, claims.json and reproduction.md beside it")


def auto(
    out: Annotated[Path, typer.Option(help="Folder for the page, its figures and data.")] = Path("results/auto"),
    trials: Annotated[int, typer.Option(min=20, help="Trials in each of the paper's worlds; fewer elsewhere.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    threads: Threads = None,
) -> None:
    """Show what Auto is worth: beside LARL, tuned baselines and the filter that knows everything (many minutes).

    Stopped, it keeps what was finished; the same command goes on from there.
    """
    from larl._core.files import output_folder
    from larl.reports.auto import Scope, write_report

    command = f"larl report auto --trials {trials} --seed {seed}"
    with output_folder(out):
        print(write_report(out, Scope(trials, seed), threads=threads, command=command))
    print(f"written: {out / 'auto.md'}, with images and data beside it")
