"""The commands `larl policies` and `larl precompile`."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from larl._core.validation import InvalidValue


def mount(app: typer.Typer, guarded: Callable[[Any], Any]) -> None:
    """Add the commands to the command line."""
    app.command()(guarded(policies))
    app.command()(guarded(precompile))


def policies(
    name: Annotated[str | None, typer.Argument(help="Policy to describe.", show_default="list all")] = None,
) -> None:
    """List the policies, or describe one and its parameters."""
    from difflib import get_close_matches
    from inspect import getdoc

    from larl.policies import REGISTRY

    if name is None:
        width = max(map(len, REGISTRY))
        for title, spec in sorted(REGISTRY.items()):
            print(f"{title:{width}}  {(getdoc(spec) or '').splitlines()[0]}")
        return
    if name not in REGISTRY:
        close = get_close_matches(name.casefold(), {each.casefold(): each for each in REGISTRY}, n=1)
        hint = "".join(f"; did you mean {each}?" for each in REGISTRY if close == [each.casefold()])
        raise InvalidValue("larl policies", "name", name, ", ".join(sorted(REGISTRY)) + hint)
    print(f"{name}\n\n{getdoc(REGISTRY[name])}")


def precompile(
    names: Annotated[list[str] | None, typer.Argument(help="Names of policies.", show_default="all")] = None,
) -> None:
    """Compile policies ahead of time, so that later runs start at once. All of them take a minute or two."""
    from larl.simulation.precompile import precompile as compile_all

    compile_all(names or ())
