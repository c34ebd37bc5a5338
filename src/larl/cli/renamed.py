"""Commands of earlier versions. They print the new name and exit with code 2."""

import sys
from collections.abc import Callable
from typing import Any

import typer

RENAMED = {"auto": "report auto", "warm": "precompile"}  # old command: new command
ANY_ARGUMENTS = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


def mount(app: typer.Typer, guarded: Callable[[Any], Any]) -> None:  # noqa: ARG001
    """Add the commands to the command line, hidden from its help."""
    for name in RENAMED:
        app.command(name, hidden=True, context_settings=ANY_ARGUMENTS)(_refuse)


def _refuse(context: typer.Context) -> None:
    name = str(context.info_name)
    print(f"error: `larl {name}` is now `larl {RENAMED[name]}`", file=sys.stderr)
    raise typer.Exit(2)
