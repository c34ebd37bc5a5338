"""Command-line options that several commands share."""

from typing import Annotated

import typer

Threads = Annotated[int | None, typer.Option(min=1, help="Threads to run on.", show_default="all cores")]

# Columns of a log
TimeColumn = Annotated[str | None, typer.Option(help="Column of the time.", show_default="t, time, step, timestamp")]
ActionColumn = Annotated[str | None, typer.Option(help="Column of the action.", show_default="a, action, played, arm")]
RewardColumn = Annotated[str | None, typer.Option(help="Column of the reward.", show_default="r, reward")]
UnitColumn = Annotated[
    str | None,
    typer.Option(help="Column of the unit, such as the user.", show_default="u, unit, user, or an id that repeats"),
]
DayFirst = Annotated[
    bool | None,
    typer.Option(
        "--day-first/--month-first", help="Order of dates like 03/04/2026.", show_default="inferred from the column"
    ),
]
