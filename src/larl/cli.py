"""The command line.

Exit codes: 0 done, 1 a file or storage could not be used, 2 the request was refused, 3 some blocks of a study failed
(each is named; the others are done), or a replay or rehearsal found what is not as it was stored or sent, 130 stopped.
"""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from larl import __version__
from larl import _diagnose_command as diagnosis
from larl._check import InvalidValue
from larl.rehearsal import commands as rehearsal
from larl.service import commands as service

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
            from larl._memory import not_enough

            code, line = 1, f"error: {not_enough(error)}"
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
    study: Annotated[Path, typer.Argument(help="A TOML file; `larl examples study` writes one that shows every key.")],
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
        str | None, typer.Option(help="One or two hyper-parameters of a grid, as s or s,alpha: draw regret over them.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Policy that the others are compared with.", show_default="the study's first")
    ] = None,
    units: Annotated[int | None, typer.Option(min=1, help="Units of a cohort.", show_default="the study's")] = None,
    pooling: Annotated[
        str | None, typer.Option(help="What units share: none, full or partial.", show_default="the study's")
    ] = None,
) -> None:
    """Compare the policies of a study in its worlds.

    Where it runs, and how often it was stopped, changes no byte of the result.
    """
    from larl._check import one_of
    from larl._files import output_folder
    from larl._study_output import write_study
    from larl.study import read_study
    from larl.testbed import check_axes

    wanted = read_study(study, units=units, pooling=pooling)
    axes = () if heatmap is None else check_axes(heatmap, wanted.candidates)
    if reference is not None:
        one_of(*wanted.policies)("larl compare", "reference", reference)
    with output_folder(out):
        result = wanted.run(threads=threads, progress=True, cluster=cluster, store=store, block=block)
        write_study(result, out, axes, reference)


@app.command()
@guarded
def examples(
    name: Annotated[str | None, typer.Argument(help="Write this example.", show_default="list them all")] = None,
    to: Annotated[Path, typer.Option(help="Folder to write it to.")] = Path(),
) -> None:
    """List the example files, or write one of them, to be changed and run."""
    from larl.examples import example_names, example_text, first_comment

    if name is None:
        for each in example_names():
            print(f"{each:12}  {first_comment(each)}")
        return
    text, path = example_text(name), to / f"{name.removesuffix('.toml')}.toml"
    to.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidValue("larl examples", "to", str(path), "a file that does not exist yet") from None
    print(f"written: {path}")


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


def main() -> None:
    """Run the command line."""
    app()
