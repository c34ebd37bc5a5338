"""The command line `larl`: one module for each group of commands."""

from typing import Annotated

import typer

from larl import __version__
from larl.cli import compare, diagnose, learn_prior, policies, renamed, report
from larl.cli.errors import guarded
from larl.rehearsal import commands as rehearsal
from larl.service import cli as service

app = typer.Typer(
    help="Bandits whose rewards drift: compare policies in worlds with a hidden auto-regressive state.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"larl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


for group in (report, compare, policies, diagnose, learn_prior, service, rehearsal, renamed):
    group.mount(app, guarded)


def main() -> None:
    """Run the command line."""
    app()
