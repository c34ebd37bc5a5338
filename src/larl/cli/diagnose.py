"""The command `larl diagnose`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from larl._core.validation import InvalidValue
from larl.cli.options import ActionColumn, DayFirst, RewardColumn, Threads, TimeColumn, UnitColumn


def mount(app: typer.Typer, guarded: Callable[[Any], Any]) -> None:
    """Add the command to the command line."""
    app.command()(guarded(diagnose))


def diagnose(
    log: Annotated[Path, typer.Argument(help="A CSV (.csv, .csv.gz) or Parquet file with one row for each decision.")],
    time: TimeColumn = None,
    action: ActionColumn = None,
    reward: RewardColumn = None,
    unit: UnitColumn = None,
    no_unit: Annotated[bool, typer.Option("--no-unit", help="The log has one unit only.")] = False,
    context: Annotated[
        list[str] | None,
        typer.Option(
            help="Column that was known at the decision; its linear effect in each arm is subtracted from the rewards "
            "first. Can be repeated; hour and weekday are derived from dates."
        ),
    ] = None,
    clock_grid: Annotated[
        bool,
        typer.Option("--clock-grid", help="A step is a fixed time interval. By default a step is a decision."),
    ] = False,
    day_first: DayFirst = None,
    rewards: Annotated[
        str | None,
        typer.Option(help="Model of the rewards: binary, count or continuous.", show_default="inferred from them"),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the page, table and data.")] = Path("results/diagnosis"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    replay: Annotated[
        bool, typer.Option(help="Simulate policies in worlds fitted to the log; takes most of the time.")
    ] = True,
    threads: Threads = None,
) -> None:
    """Diagnose drift in a log: is there any, does it matter, how far ahead does the past predict, what can be gained.

    Prints five answers with their uncertainty and writes them as an HTML page.
    """
    from larl import diagnosis
    from larl._core.files import output_folder

    if no_unit and unit is not None:
        raise InvalidValue("diagnose", "unit", unit, "either --unit or --no-unit")
    with output_folder(out):
        result = diagnosis.diagnose(
            log,
            time=time,
            action=action,
            reward=reward,
            unit=False if no_unit else unit,
            context=context or None,
            clock_grid=clock_grid,
            day_first=day_first,
            rewards=cast(Any, rewards),
            seed=seed,
            replay=replay,
            threads=threads,
            progress=True,
        )
        page = result.save(out)
    print(f"{result}\n\nwritten: {page}, answers.csv and diagnosis.json")
