"""The commands `larl policies` and `larl precompile`."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from larl._core.validation import InvalidValue


def mount(app: typer.Typer, guarded: Callable[[Any], Any]) -> None:
    """Add the commands to the command line."""
    app.command()(guarded(policies))
    app.command()(guarded(precompile))


def policies(name: Annotated[str | None, typer.Argument(help="Show the fields of this policy.")] = None) -> None:
    """List the policies, or describe one and its fields."""
    from dataclasses import MISSING, fields
    from inspect import getdoc

    from larl.policies import REGISTRY

    if name is None:
        width = max(map(len, REGISTRY))
        for title, spec in sorted(REGISTRY.items()):
            print(f"{title:{width}}  {(getdoc(spec) or '').splitlines()[0]}")
        return
    if name not in REGISTRY:
        raise InvalidValue("larl policies", "name", name, ", ".join(sorted(REGISTRY)))
    print(f"{name}\n\n{getdoc(REGISTRY[name])}\n")
    for field in fields(REGISTRY[name]):
        default = "required" if field.default is MISSING else f"default {field.default!r}"
        print(f"  {field.name}: {getattr(field.type, '__name__', field.type)}, {default}")


def precompile(names: Annotated[list[str] | None, typer.Argument(help="Policies.", show_default="all")] = None) -> None:
    """Compile the policies' kernels now, so that nobody waits for them later (minutes, the first time)."""
    from larl.simulation import precompile as kernels

    kernels.precompile(names or ())
