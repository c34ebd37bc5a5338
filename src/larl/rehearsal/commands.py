"""The command `larl rehearse`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from larl.client import RequestRefused
    from larl.rehearsal.report import Report


def mount(app: typer.Typer, guarded: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
    """Add the command to `larl`; `guarded` turns errors into messages."""
    app.command()(guarded(rehearse))


def rehearse(
    plan: Annotated[
        Path, typer.Argument(help="A TOML file; `larl examples rehearsal` writes one that shows every key.")
    ],
    url: Annotated[str, typer.Option(help="Address of the running service.")] = "http://127.0.0.1:8080",
    token: Annotated[
        str | None, typer.Option(envvar="LARL_TOKEN", help="An admin's token, if the service requires tokens.")
    ] = None,
    study: Annotated[str | None, typer.Option(help="Name of the study.", show_default="the file's")] = None,
    units: Annotated[int | None, typer.Option(min=1, help="Simulated units.", show_default="the file's")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Decisions per unit.", show_default="the file's")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of all randomness.", show_default="the file's")] = None,
    clients: Annotated[int | None, typer.Option(min=1, help="Concurrent requests.", show_default="the file's")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("results/rehearsal"),
) -> None:
    """Run simulated units against a running service and check its records (exit code 3 if they are wrong).

    Rewards are lost, late, repeated or corrected; responses are lost; some requests are malformed.
    """
    from larl._core.files import output_folder
    from larl.client import Client, RequestRefused
    from larl.rehearsal.plan import read_plan
    from larl.rehearsal.run import rehearse

    wanted = read_plan(plan, study, units=units, steps=steps, seed=seed, clients=clients)
    with Client(url, token) as client, output_folder(out):
        try:
            report = rehearse(wanted, client, requires_token=token is not None, progress=True)
        except RequestRefused as error:
            print(f"error: {url}: {_reason(error)}", file=sys.stderr)
            raise typer.Exit(2) from error
    written = report.write(out)
    _show(report)
    print("\nwritten: " + ", ".join(str(path) for path in written))
    if report.differences:
        print(f"error: {report.verdict} The first: {report.differences[0]}", file=sys.stderr)
        raise typer.Exit(3)


def _reason(error: "RequestRefused") -> str:
    """Return the error message for a service that refuses a rehearsal."""
    if error.status == 401:
        is_missing = error.detail.startswith("a token is required")
        problem = "a token is required" if is_missing else "the token is not accepted"
        return f"{problem}; accepted: an admin's token of this service, by --token or LARL_TOKEN"
    return error.detail


def _show(report: "Report") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for title, rows in report.sections():
        table.add_row(Text(title, style="bold"))
        for name, value in rows:
            table.add_row(Text(f"  {name}"), Text(value))
    print(f"{report.about}\n")
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    print(f"\n{report.verdict}")
