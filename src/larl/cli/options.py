"""Command-line options that several commands share."""

from typing import Annotated

import typer

Threads = Annotated[int | None, typer.Option(min=1, help="Threads to run on.", show_default="all cores")]
