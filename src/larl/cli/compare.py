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
    study: Annotated[
        Path, typer.Argument(help="The study, a TOML file. `larl examples study` writes one that shows every key.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for figures, tables and data.")] = Path("results"),
    threads: Threads = None,
    cluster: Annotated[
        str | None, typer.Option(help="Run on a Dask cluster: tcp://HOST:8786, or local:N to start N processes.")
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps finished blocks; the same command runs only the missing ones."),
    ] = None,
    block: Annotated[
        int | None, typer.Option(min=1, help="Trials in a block.", show_default="set by the study")
    ] = None,
    heatmap: Annotated[
        str | None, typer.Option(help="Draw regret over one or two hyper-parameters of a grid: s or s,alpha.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Policy that the others are compared to.", show_default="the first")
    ] = None,
    units: Annotated[
        int | None, typer.Option(min=1, help="Units in a cohort.", show_default="set by the study")
    ] = None,
    pooling: Annotated[
        str | None, typer.Option(help="What units share: none, full or partial.", show_default="set by the study")
    ] = None,
) -> None:
    """Compare the policies of a study in its worlds.

    The result does not depend on threads, cluster, store or interruptions.
    """
    from larl._core.files import output_folder
    from larl._core.validation import one_of
    from larl.simulation.study import read_study
    from larl.simulation.tables import check_axes

    comparison = read_study(study, units=units, pooling=pooling)
    axes = () if heatmap is None else check_axes(heatmap, comparison.candidates)
    if reference is not None:
        one_of(*comparison.policies)("larl compare", "reference", reference)

    from larl.simulation.study_output import write_study  # imports matplotlib, which the errors above do not need

    with output_folder(out):
        result = comparison.run(threads=threads, progress=True, cluster=cluster, store=store, block=block)
        write_study(result, out, axes, reference)


def examples(
    name: Annotated[str | None, typer.Argument(help="Example to write.", show_default="list all")] = None,
    to: Annotated[Path, typer.Option(help="Folder for the file.")] = Path(),
) -> None:
    """List the example files, or write one of them to a folder."""
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
