"""The command line.

Exit codes: 0 done, 1 a file or storage could not be used, 2 the request was refused, 3 some blocks of a study failed
(each is named; the others are done), or a replay or rehearsal found what is not as it was stored or sent, 130 stopped.
"""

import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from larl import __version__
from larl import _diagnose_command as diagnosis
from larl._check import InvalidValue
from larl.rehearsal import commands as rehearsal
from larl.service import commands as service

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from larl.result import Result

app = typer.Typer(
    help="Bandits whose rewards drift: compare policies in worlds with a hidden auto-regressive state.",
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip
Threads = Annotated[int | None, typer.Option(min=1, help="Threads to run on.", show_default="all cores")]


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A user's mistake, a full disk or Ctrl-C: one line on standard error and an exit code, never a traceback."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except InvalidValue as error:
            code, line = 2, f"error: {error}"
        except OSError as error:
            code, line = 1, f"error: {error}"
        except MemoryError as error:
            code, line = 1, f"error: not enough memory ({error}); fewer trials, or keep = 'summary', need less"
        except RuntimeError as error:
            from larl.scale import BlocksFailed

            if not isinstance(error, BlocksFailed):
                raise
            code, line = 3, f"error: {error}"
        except KeyboardInterrupt:
            code, line = 130, "stopped; nothing was left half-written"
        else:
            return
        print(line, file=sys.stderr)
        raise typer.Exit(code)

    return run


def _version(wanted: bool) -> None:
    if wanted:
        print(f"larl {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
@guarded
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
    from larl._files import output_folder
    from larl.paper import Scope, reproduce

    scope = Scope(trials=trials, seed=seed, everything=everything)
    flags = f"{' --all' if everything else ''}{' --quick' if quick else ''}"
    command = f"larl paper{flags} --trials {trials} --seed {seed}"
    with output_folder(out):
        verdicts = reproduce(out, scope.quick() if quick else scope, threads=threads, command=command)
    width = max(len(claim.verdict) for claim in verdicts)
    for claim in verdicts:
        print(f"{claim.verdict:{width}}  {claim.claim}")
    print(f"\nwritten: {out / 'report.html'}, with figures, data, claims.json and reproduction.md beside it")


@app.command()
@guarded
def auto(
    out: Annotated[Path, typer.Option(help="Folder for the page, its figures and data.")] = Path("results/auto"),
    trials: Annotated[int, typer.Option(min=20, help="Trials in each of the paper's worlds; fewer elsewhere.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    threads: Threads = None,
) -> None:
    """Show what Auto is worth: beside LARL, tuned baselines and the filter that knows everything (many minutes).

    Stopped, it keeps what was finished; the same command goes on from there.
    """
    from larl._files import output_folder
    from larl.beyond import show
    from larl.beyond.places import Scope

    command = f"larl auto --trials {trials} --seed {seed}"
    with output_folder(out):
        print(show(out, Scope(trials, seed), threads=threads, command=command))
    print(f"written: {out / 'auto.md'}, with images and data beside it")


@app.command()
@guarded
def compare(
    study: Annotated[Path, typer.Argument(help="A TOML file; examples/study.toml shows every key.")],
    out: Annotated[Path, typer.Option(help="Folder for figures, table and data.")] = Path("results"),
    threads: Threads = None,
    cluster: Annotated[
        str | None, typer.Option(help="Run on a Dask cluster: tcp://HOST:8786, or local:N for N processes here.")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Keep finished blocks here; the same command runs only what is missing.")
    ] = None,
    block: Annotated[int | None, typer.Option(min=1, help="Trials of a block.", show_default="by the study")] = None,
    heatmap: Annotated[
        str | None, typer.Option(help="Two hyper-parameters of a grid, as s,alpha: regret over them as a figure.")
    ] = None,
    units: Annotated[int | None, typer.Option(min=1, help="Units of a cohort.", show_default="the study's")] = None,
    pooling: Annotated[
        str | None, typer.Option(help="What units share: none, full or partial.", show_default="the study's")
    ] = None,
) -> None:
    """Compare the policies of a study in its worlds.

    Where it runs, and how often it was stopped, changes no byte of the result.
    """
    from larl._files import output_folder
    from larl.study import read_study
    from larl.testbed import check_axes

    wanted = read_study(study, units=units, pooling=pooling)
    axes = check_axes(heatmap, wanted.candidates) if heatmap else None
    with output_folder(out):
        _write(wanted.run(threads=threads, progress=True, cluster=cluster, store=store, block=block), out, axes)


@app.command()
@guarded
def policies(name: Annotated[str | None, typer.Argument(help="Show the fields of this policy.")] = None) -> None:
    """List the policies, or describe one and its fields."""
    from dataclasses import MISSING, fields
    from inspect import getdoc

    from larl.policies import REGISTRY

    if name is None:
        width = max(map(len, REGISTRY))
        for title, spec in sorted(REGISTRY.items()):
            print(f"{title:{width}}  {(getdoc(spec) or '').splitlines()[0]}")
        return
    if name not in REGISTRY:
        raise InvalidValue("larl policies", "name", name, ", ".join(sorted(REGISTRY)))
    print(f"{name}\n\n{getdoc(REGISTRY[name])}\n")
    for field in fields(REGISTRY[name]):
        default = "required" if field.default is MISSING else f"default {field.default!r}"
        print(f"  {field.name}: {getattr(field.type, '__name__', field.type)}, {default}")


@app.command()
@guarded
def warm(names: Annotated[list[str] | None, typer.Argument(help="Policies.", show_default="all")] = None) -> None:
    """Compile the policies' kernels now, so that nobody waits for them later (minutes, the first time)."""
    from larl.warm import warm

    warm(names or ())


for part in (diagnosis, service, rehearsal):
    part.mount(app, guarded)


def _write(result: "Result", out: Path, axes: tuple[str, str] | None = None) -> None:
    """Figures, data and tables into a folder; the tables on the screen too."""
    from larl import plots, testbed
    from larl._files import write_whole

    shown = testbed.leading(result)
    figures = {"regret": shown.plot_regret(), "wins": shown.plot_wins()}
    if axes:
        figures["heatmap"] = plots.plot_heat(testbed.heat(result, *axes))
    table = testbed.units(result)
    written = [
        result.save(out / "result.nc"),
        write_whole(out / "summary.csv", result.summary().to_csv),
        write_whole(out / "units.csv", partial(table.to_csv, index=False)),
        write_whole(out / "units.tex", partial(Path.write_text, data=testbed.latex(table), encoding="utf-8")),
    ]
    for name, figure in figures.items():
        written += [write_whole(out / f"{name}.{kind}", partial(figure.savefig, dpi=200)) for kind in ("png", "svg")]
    _show(result)
    _show_units(table)
    print("\nwritten: " + ", ".join(str(path) for path in written))


def _show_units(units: "pd.DataFrame") -> None:
    from rich.table import Table
    from rich.text import Text

    wanted = [("regret", "mean"), ("regret", "p25"), ("regret", "p75"), ("reward", "mean"), ("reward", "p25")]
    columns = [(measure, part) for measure, part in wanted if measure in set(units["measure"])]
    words = {"mean": "mean", "p25": "25%", "p75": "75%"}
    table = Table("policy", *(f"{measure}: {words[part]}" for measure, part in columns), box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for world, rows in units.groupby("world", sort=False):
        if world:
            table.add_row(Text(str(world), style="bold"))
        for name, each in rows.groupby("policy", sort=False):
            value = each.set_index("measure")[["mean", "mean_se", "p25", "p25_se", "p75", "p75_se"]].to_dict("index")
            cells = [f"{value[m][part]:.1f} ± {value[m][f'{part}_se']:.1f}" for m, part in columns]
            table.add_row(Text(f"  {name}"), *cells)
    print("\nover units: mean and percentiles of the totals, ± their standard errors\n")
    _console().print(table)


def _show(result: "Result") -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("policy", *("mean", "± se", "sd", "95% of mean", "wins"), box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    summary = result.summary()
    for world in result.worlds or [""]:
        if world:
            table.add_row(Text(world, style="bold"))
        for name, row in (summary.loc[world] if world else summary).iterrows():
            wins = f"{100 * row['wins']:.0f}%" if "wins" in row else ""
            interval = f"{row['low']:.1f} – {row['high']:.1f}"
            table.add_row(
                Text(f"  {name}"), f"{row['mean']:.1f}", f"{row['se']:.1f}", f"{row['sd']:.1f}", interval, wins
            )
    each = f"cohorts of {result.units:,}, per unit" if result.units else "trials"
    print(f"total regret over {result.data.sizes['trial']:,} {each}; wins: share of duels won against the others\n")
    _console().print(table)


def _console() -> "Console":
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 140)


def main() -> None:
    """Run the command line."""
    app()
