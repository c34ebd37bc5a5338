"""The command `larl learn-prior`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from larl._core.validation import InvalidValue
from larl.cli.options import ActionColumn, DayFirst, RewardColumn, TimeColumn, UnitColumn


def mount(app: typer.Typer, guarded: Callable[[Any], Any]) -> None:
    """Add the command to the command line."""
    app.command("learn-prior")(guarded(learn_prior))


def learn_prior(
    logs: Annotated[
        list[Path], typer.Argument(help="CSV (.csv, .csv.gz) or Parquet files with one row for each decision.")
    ],
    time: TimeColumn = None,
    action: ActionColumn = None,
    reward: RewardColumn = None,
    unit: UnitColumn = None,
    no_unit: Annotated[bool, typer.Option("--no-unit", help="Each file is the log of one unit.")] = False,
    day_first: DayFirst = None,
    arms: Annotated[
        str | None, typer.Option(help="Names of all arms, separated by commas, in the order of the policy.")
    ] = None,
    rewards: Annotated[str, typer.Option(help="Model of the rewards: detect, continuous or binary.")] = "detect",
    out: Annotated[Path, typer.Option(help="Folder for prior.json and its page, prior.html.")] = Path("results/prior"),
) -> None:
    """Learn from logs of earlier units what to expect of a new one, for the policy Auto.

    Prints the population and writes prior.json, for Auto(prior=Prior.load("prior.json")) and study files, and a page.
    """
    from larl import priors
    from larl._core.files import output_folder

    if no_unit and unit is not None:
        raise InvalidValue("learn-prior", "unit", unit, "either --unit or --no-unit")
    with output_folder(out):
        prior = priors.learn_prior(
            logs,
            arms=None if arms is None else [name.strip() for name in arms.split(",")],
            time=time,
            action=action,
            reward=reward,
            unit=False if no_unit else unit,
            day_first=day_first,
            rewards=rewards,
            progress=True,
        )
        prior.save(out / "prior.json")
        priors.write_page(prior, out / "prior.html")
    print(prior)
    print(f"\nwritten: {out / 'prior.json'}, {out / 'prior.html'}")
