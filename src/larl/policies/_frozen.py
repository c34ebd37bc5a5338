"""The State of a policy's last update, and how it is overwritten by the next."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numba import types
from numba.extending import overload

from larl._core.compile import INNER, UNCOPIED, assign
from larl.policies._pooling import UNSHARED


class FrozenState(NamedTuple):
    """The State of the last update; with pooling, every unit has a copy of what units share."""

    state: Any


UNSHARED.add(FrozenState)


def assign_fields(target: Any, source: Any) -> None:
    """Write the arrays of a NamedTuple, and those of nested NamedTuples, into another one of the same type."""
    shared = UNCOPIED.get(type(source), ())
    for name, ours, theirs in zip(source._fields, target, source, strict=True):
        if name in shared:
            continue
        if isinstance(theirs, tuple):
            assign_fields(ours, theirs)
        elif isinstance(theirs, np.ndarray):
            ours[...] = theirs


@overload(assign_fields, jit_options=cast(Any, INNER), strict=False)
def _assign_fields(target: Any, source: Any) -> Callable[..., Any]:
    """Return `assign_fields` for one type of State, for kernels."""
    lines, shared = ["    pass"], UNCOPIED.get(source.instance_class, ())
    for name, kind in zip(source.fields, source.types, strict=True):
        if name in shared:
            continue
        if isinstance(kind, types.BaseNamedTuple):
            lines.append(f"    assign_fields(target.{name}, source.{name})")
        elif isinstance(kind, types.Array):
            rows, indent = "", "    "
            for axis in range(kind.ndim - 1):
                lines.append(f"{indent}for i{axis} in range(source.{name}{rows}.shape[0]):")
                rows, indent = f"{rows}[i{axis}]", indent + "    "
            lines.append(f"{indent}assign(target.{name}{rows}, source.{name}{rows})")
    scope: dict[str, Any] = {"assign_fields": assign_fields, "assign": assign}
    exec("\n".join(["def implementation(target, source):", *lines]), scope)
    return cast(Callable[..., Any], scope["implementation"])
