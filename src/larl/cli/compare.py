"""The commands `larl compare` and `larl examples`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from larl._core.validation import InvalidValue
from larl.cli.options import Threads


def mount(app: typer.Typer, guarded: Callable[[Any], Any]) -> None:
    """Add the commands to the command line."""
    app.command()(guarded(compare))
    app.command()(guarded(examples))


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
    from larl._core.files import output_folder
    from larl._core.validation import one_of
    from larl.simulation.study import read_study
    from larl.simulation.study_output import write_study
    from larl.simulation.tables import check_axes

    wanted = read_study(study, units=units, pooling=pooling)
    axes = () if heatmap is None else check_axes(heatmap, wanted.candidates)
    if reference is not None:
        one_of(*wanted.policies)("larl compare", "reference", reference)
    with output_folder(out):
        result = wanted.run(threads=threads, progress=True, cluster=cluster, store=store, block=block)
        write_study(result, out, axes, reference)


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
