"""The command `larl diagnose`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from larl._core.validation import InvalidValue


def mount(app: typer.Typer, guarded: Callable[[Any], Any]) -> None:
    """Add the command to the command line."""
    app.command()(guarded(diagnose))


def diagnose(
    log: Annotated[Path, typer.Argument(help="A CSV (also .csv.gz) or Parquet file with a row for each decision.")],
    time: Annotated[str | None, typer.Option(help="Column of the time.", show_default="t, time, step")] = None,
    action: Annotated[
        str | None, typer.Option(help="Column of the action.", show_default="a, action, played, arm")
    ] = None,
    reward: Annotated[str | None, typer.Option(help="Column of the reward.", show_default="r, reward")] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Column of the unit or user.", show_default="u, unit, user, or an id that repeats"),
    ] = None,
    no_unit: Annotated[bool, typer.Option("--no-unit", help="The log is of one unit.")] = False,
    context: Annotated[
        list[str] | None,
        typer.Option(
            help="Column that was known at the decision; its linear effect in each arm is taken off the rewards first. "
            "May be given several times; hour and weekday are made from dates."
        ),
    ] = None,
    clock_grid: Annotated[
        bool,
        typer.Option("--clock-grid", help="Count steps on the clock. By default a step is a decision."),
    ] = False,
    day_first: Annotated[
        bool | None,
        typer.Option("--day-first/--month-first", help="How 03/04/2026 is read.", show_default="as the column tells"),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the page, table and data.")] = Path("results/diagnosis"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    replay: Annotated[bool, typer.Option(help="Replay policies in worlds fitted to the log; takes longest.")] = True,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads to run on.", show_default="all cores")] = None,
) -> None:
    """Say what a log shows of drift: is there any, does it matter, how far does the past predict, what could be saved.

    Five answers, each with its uncertainty, on the screen and as one page.
    """
    from larl import diagnosis
    from larl._core.files import output_folder

    if no_unit and unit is not None:
        raise InvalidValue("diagnose", "unit", unit, "nothing beside --no-unit: a log of one unit has no such column")
    with output_folder(out):
        found = diagnosis.diagnose(
            log,
            time=time,
            action=action,
            reward=reward,
            unit=False if no_unit else unit,
            context=context or None,
            clock_grid=clock_grid,
            day_first=day_first,
            seed=seed,
            replay=replay,
            threads=threads,
            progress=True,
        )
        page = found.save(out)
    print(f"{found}\n\nwritten: {page}, with answers.csv and diagnosis.json beside it")
