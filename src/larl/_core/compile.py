"""Compiled functions, and where their machine code is kept between processes.

numba's disk cache looks only at the file of the outermost function. Ours call policies that live in other files, so a
changed policy would silently keep its old machine code. The cache folder is therefore named after a digest of every
source that can end up inside a kernel: a changed source means a new folder.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numba.extending import overload

from larl._core.numba_parts import PartCompiler

config: Any = numba.config
PACKAGE = Path(__file__).parents[1]
KERNEL_SOURCES = (
    "_core/compile.py",
    "_core/numba_parts.py",
    "_core/random.py",
    "worlds/**/*.py",
    "statespace/*.py",
    "theory/*.py",
    "policies/**/*.py",
    "live/kernels.py",
    "live/cohort_kernels.py",
    "simulation/moments.py",
    "simulation/engine.py",
    "simulation/cohort_engine.py",
    "diagnosis/kernels.py",
)

# Division by zero gives inf or nan, as in numpy: without the check, inner loops can be vectorised.
# No fast-math anywhere: its rounding depends on what a loop is inlined into, and then a live step
# would not equal a batched one bit for bit. Nothing is called from C, so no wrapper is compiled for that.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# Most of a function's compile time is the wrapper that takes its NamedTuples apart for Python.
INNER = OPTIONS | {"no_cpython_wrapper": True, "pipeline_class": PartCompiler}
# Passing a State by value costs more than many a step's work.
INLINE = INNER | {"forceinline": True}


def source_digest() -> str:
    """Sixteen hex digits that change whenever a source that can be compiled into a kernel changes."""
    digest = hashlib.sha256()
    for pattern in KERNEL_SOURCES:
        for path in sorted(PACKAGE.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where machine code is kept: under $NUMBA_CACHE_DIR, else the user's cache folder, else a temporary one."""
    if config.CACHE_DIR:
        base = Path(config.CACHE_DIR)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "larl" / source_digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="larl-"))


_FOLDER = cache_folder()
F = TypeVar("F", bound=Callable[..., Any])
POLICY_NAMES: dict[type, str] = {}  # States by the name of their policy
_ENTRIES: dict[Any, str] = {}  # compiled functions that take States from Python, and what becomes of their machine code


class Compilations(event.Listener):
    """Counts kernels that had to be compiled, and tells a person who waits at a terminal, once for each policy."""

    def __init__(self) -> None:
        self.count, self.quiet = 0, False
        self._told: set[str] = set()

    def on_start(self, event: Any) -> None:
        fate = _ENTRIES.get(event.data["dispatcher"])
        names = [POLICY_NAMES[kind] for kind in _classes(event.data["args"]) if kind in POLICY_NAMES]
        if fate is None or not names:
            return
        self.count += 1
        if not self.quiet and names[0] not in self._told and sys.stderr.isatty():
            self._told.add(names[0])
            print(f"compiling {names[0]} for the first time ({fate})…", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        pass


def _classes(kinds: Any) -> list[type]:
    return [kind.instance_class for kind in kinds if hasattr(kind, "instance_class")]


compilations = Compilations()
cast(Any, event).register("numba:compile", compilations)


def kernel(function: F) -> F:
    """`function` compiled; its machine code is kept in `cache_folder()` and found there by the next process."""
    before = config.CACHE_DIR
    config.CACHE_DIR = str(_FOLDER)
    try:
        return cast(F, numba.njit(cache=True, **OPTIONS)(function))
    finally:
        config.CACHE_DIR = before


def entry_point(function: F) -> F:
    """`function` compiled, for States of any origin: from outside the package, where a source may change without the
    digest knowing, its machine code is not kept."""
    cached, fresh = kernel(function), numba.njit(**OPTIONS)(function)
    _ENTRIES.update({cached: "cached afterwards", fresh: "not cached, as it is from outside larl"})

    def compiled(arguments: tuple[Any, ...]) -> Any:
        ours = all(type(each).__module__.startswith("larl.") for each in arguments if isinstance(each, tuple))
        return cached if ours else fresh

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return compiled(arguments)(*arguments)

    call.__dict__["compiled"] = compiled
    return cast(F, call)


def compiled_for(function: F, *arguments: Any) -> F:
    """The machine code of an `entry` for arguments of the types of these: to find it takes longer than a small step.

    It does not check them: whoever calls it answers for their types.
    """
    if config.DISABLE_JIT:
        return function
    types = tuple(cast(Any, numba).typeof(each) for each in arguments)
    return cast(F, function.__dict__["compiled"](arguments).compile(types))


def inner(function: F) -> F:
    """`function` compiled, to be called by kernels alone: they keep its machine code with theirs."""
    return cast(F, numba.njit(**INNER)(function))


def inline(function: F) -> F:
    """`function` compiled into each kernel that calls it, and to be called by kernels alone."""
    return cast(F, numba.njit(**INLINE)(function))


def generic(default: F) -> F:
    """A function resolved by the type of its first argument: in the interpreter, and at compile time in kernels.

    `implement(function, State, implementation)` adds a case; for any other type it is `default` itself.
    """
    table: dict[type, Callable[..., Any]] = {}

    @wraps(default)
    def call(state: Any, *rest: Any) -> Any:
        return table.get(type(state), default)(state, *rest)

    @overload(call, jit_options=cast(Any, INLINE), strict=False)
    def _(state: Any, *_: Any) -> Any:
        return table.get(getattr(state, "instance_class", type(None)), default)

    call.__dict__["table"] = table
    return cast(F, call)


def implement(function: Callable[..., Any], state: type, implementation: Callable[..., Any]) -> None:
    """What a generic function does for States of one type. It cannot be changed afterwards: kernels may be compiled."""
    if function.__dict__["table"].setdefault(state, implementation) is not implementation:
        raise TypeError(
            f"{state.__name__} is tied to another {function.__name__} already; give the policy its own State"
        )


@inline
def assign(target: Any, source: Any) -> None:
    """target[:] = source for two vectors. (numba's own slice assignment takes seconds to compile.)"""
    for i in range(target.size):
        target[i] = source[i]


def copy_fields(state: Any) -> Any:
    """A copy of a NamedTuple whose arrays, also those of NamedTuples within it, are its own."""
    return type(state)(
        *(
            field.copy() if isinstance(field, np.ndarray) else copy_fields(field) if isinstance(field, tuple) else field
            for field in state
        )
    )


@overload(copy_fields, jit_options=cast(Any, INNER), strict=False)
def _copy_fields(state: Any) -> Callable[..., Any]:
    def source(name: str, kind: Any) -> str:
        if isinstance(kind, numba.types.Array):
            return f"state.{name}.copy()"
        return f"copy_fields(state.{name})" if isinstance(kind, numba.types.BaseNamedTuple) else f"state.{name}"

    arguments = ", ".join(source(name, kind) for name, kind in zip(state.fields, state.types, strict=True))
    scope: dict[str, Any] = {"Class": state.instance_class, "copy_fields": copy_fields}
    exec(f"def implementation(state):\n    return Class({arguments})", scope)
    return cast(Callable[..., Any], scope["implementation"])


@inline
def any_nan(array: Any) -> bool:
    """Whether a vector has nan in it."""
    found = False
    for i in range(array.size):
        found |= array[i] != array[i]
    return found


def fields_nan(state: Any) -> bool:
    """Whether an array of a NamedTuple, or of a NamedTuple within it, has nan in it."""
    return any(
        fields_nan(field) if isinstance(field, tuple) else field.dtype.kind == "f" and bool(np.isnan(field).any())
        for field in state
        if isinstance(field, np.ndarray | tuple)
    )


@overload(fields_nan, jit_options=cast(Any, INNER), strict=False)
def _fields_nan(state: Any) -> Callable[..., Any]:
    lines = []
    for name, kind in zip(state.fields, state.types, strict=True):
        if isinstance(kind, numba.types.BaseNamedTuple):
            lines.append(f"    if fields_nan(state.{name}):\n        return True")
        elif isinstance(kind, numba.types.Array) and isinstance(kind.dtype, numba.types.Float):
            row, indent = f"state.{name}", "    "
            for axis in range(kind.ndim - 1):
                lines.append(f"{indent}for i{axis} in range({row}.shape[0]):")
                row, indent = f"{row}[i{axis}]", indent + "    "
            lines.append(f"{indent}if any_nan({row}):\n{indent}    return True")
    scope: dict[str, Any] = {"fields_nan": fields_nan, "any_nan": any_nan}
    exec("\n".join(["def implementation(state):", *lines, "    return False"]), scope)
    return cast(Callable[..., Any], scope["implementation"])
