"""Decorators that compile functions with numba.

| decorator     | called by        | use                                                                     |
| ------------- | ---------------- | ----------------------------------------------------------------------- |
| `kernel`      | Python, kernels  | arguments are numbers, arrays and types of larl                         |
| `entry_point` | Python           | arguments include policy States, which may be defined outside larl      |
| `inner`       | kernels          | a function of its own inside the kernel                                 |
| `inline`      | kernels          | inlined into each caller                                                |
| `generic`     | Python, kernels  | resolved by the type of its first argument; `implement` adds a case     |
"""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numba.extending import overload

from larl._core.kernel_cache import cache_folder
from larl._core.numba_parts import PIPELINE, SEPARATE, can_cache, compile_once_for_literals, use_unique_cache_names

config: Any = numba.config

# error_model "numpy": division by zero gives inf or nan, without a check that prevents vectorised loops.
# No fast-math: its rounding depends on the function that a loop is inlined into, and a live step
# would not equal a simulated one bit for bit. Nothing is called from C, so numba compiles no wrapper for that.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# The wrapper that unpacks NamedTuples from Python takes most of a function's compile time; kernels do not need it.
# Without an explicit value, numba would also inline them into each caller if the first caller is inlined itself.
INNER = OPTIONS | {"no_cpython_wrapper": True, "forceinline": False} | PIPELINE
# One function for all arrays of a type: inlining it for each field of a State takes seconds to compile.
PER_ARRAY = INNER | SEPARATE
# Inlining avoids passing a State by value, which can cost more than the step itself.
INLINE = INNER | {"forceinline": True}

_FOLDER, _CAN_CACHE = cache_folder(), can_cache()
F = TypeVar("F", bound=Callable[..., Any])
POLICY_NAMES: dict[type, str] = {}  # State class: name of its policy
_ENTRY_POINTS: dict[Any, str] = {}  # compiled function that takes States from Python: whether it is cached, as text


class Compilations(event.Listener):
    """Counts compiled entry points, and prints one line for each policy if stderr is a terminal."""

    def __init__(self) -> None:
        self.count, self.quiet = 0, False
        self._announced: set[str] = set()

    def on_start(self, event: Any) -> None:
        caching = _ENTRY_POINTS.get(event.data["dispatcher"])
        names = [POLICY_NAMES[kind] for kind in _named_tuples(event.data["args"]) if kind in POLICY_NAMES]
        if caching is None or not names:
            return
        self.count += 1
        if not self.quiet and names[0] not in self._announced and sys.stderr.isatty():
            self._announced.add(names[0])
            print(f"compiling {names[0]} for the first time ({caching})…", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        pass


def _named_tuples(numba_types: Any) -> list[type]:
    """The Python classes of the NamedTuples among numba's types."""
    return [kind.instance_class for kind in numba_types if hasattr(kind, "instance_class")]


compilations = Compilations()
cast(Any, event).register("numba:compile", compilations)


def kernel(function: F) -> F:
    """Compile `function`; its machine code is stored in `cache_folder()` for later processes, if numba allows it."""
    if not _CAN_CACHE:
        return cast(F, numba.njit(**OPTIONS)(function))
    before = config.CACHE_DIR
    config.CACHE_DIR = str(_FOLDER)
    try:
        return cast(F, use_unique_cache_names(numba.njit(cache=True, **OPTIONS)(function)))
    finally:
        config.CACHE_DIR = before


def is_larl(argument: Any) -> bool:
    """Whether an argument of a kernel, and every NamedTuple inside it, is defined in larl."""
    if not isinstance(argument, tuple):
        return True
    return type(argument).__module__.startswith("larl.") and all(map(is_larl, argument))


def entry_point(function: F) -> F:
    """Compile `function`, which Python calls with policy States.

    For States that are defined outside larl, the machine code is not cached: the digest does not cover their source.
    """
    cached, uncached = kernel(function), numba.njit(**OPTIONS)(function)
    _ENTRY_POINTS.update({cached: "cached afterwards", uncached: "not cached, as it is from outside larl"})

    def dispatcher(arguments: tuple[Any, ...]) -> Any:
        return cached if all(map(is_larl, arguments)) else uncached

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return dispatcher(arguments)(*arguments)

    call.__dict__["dispatcher"] = dispatcher
    return cast(F, call)


def compiled_for(function: F, *arguments: Any) -> F:
    """The machine code of an entry point for arguments of these types.

    Calling it skips numba's type dispatch, which takes longer than a small step. It does not check the types of its
    arguments: the caller must pass the same types every time.
    """
    if config.DISABLE_JIT:
        return function
    types = tuple(cast(Any, numba).typeof(each) for each in arguments)
    return cast(F, function.__dict__["dispatcher"](arguments).compile(types))


def inner(function: F) -> F:
    """Compile `function` for calls from kernels only; its machine code is stored with theirs."""
    return cast(F, compile_once_for_literals(numba.njit(**INNER)(function)))


def inline(function: F) -> F:
    """Compile `function` for calls from kernels only, inlined into each of them."""
    return cast(F, compile_once_for_literals(numba.njit(**INLINE)(function)))


def generic(default: F) -> F:
    """A function resolved by the type of its first argument: by look-up in Python, at compile time in kernels.

    `implement(function, State, implementation)` adds a case; States of any other type get `default`.
    """
    # "Go to definition" on a call such as `act(state, bits)` leads to the stub in policies/_contract.py that this
    # decorates. The implementation is one step further: `@register(State, act, update, …)` or `bind(State, …)` at the
    # end of the policy's own module (policies/larl.py, …) puts the function defined there into `implementations`.
    implementations: dict[type, Callable[..., Any]] = {}

    @wraps(default)
    def call(state: Any, *rest: Any) -> Any:  # in Python: look up the class of the State
        return implementations.get(type(state), default)(state, *rest)

    @overload(call, jit_options=cast(Any, INLINE), strict=False)
    def _(state: Any, *_: Any) -> Any:  # in kernels: numba calls this once for each type and compiles what it returns
        return implementations.get(getattr(state, "instance_class", type(None)), default)

    call.__dict__["implementations"] = implementations
    return cast(F, call)


def implement(function: Callable[..., Any], state: type, implementation: Callable[..., Any]) -> None:
    """Set what a generic function does for States of one class. Compiled kernels contain it: it cannot be replaced."""
    if function.__dict__["implementations"].setdefault(state, implementation) is not implementation:
        raise TypeError(f"{state.__name__} already has another {function.__name__}; define a State for this policy")


def has_implementation(function: Callable[..., Any], state: type) -> bool:
    """Whether `implement` was called for a generic function and States of this class."""
    return state in function.__dict__["implementations"]


@inline
def assign(target: Any, source: Any) -> None:
    """target[:] = source for two vectors. numba's own slice assignment takes seconds to compile."""
    for i in range(target.size):
        target[i] = source[i]


UNCOPIED: dict[type, tuple[str, ...]] = {}  # fields of a NamedTuple that kernels only read


def share_fields(state: type, names: tuple[str, ...]) -> None:
    """Declare arrays and nested NamedTuples of a class that no kernel changes: copies and cohorts share them."""
    UNCOPIED[state] = names


def copy_array(array: Any) -> Any:
    """A copy of an array."""
    return array.copy()


@overload(copy_array, jit_options=cast(Any, PER_ARRAY))
def _copy_array(array: Any) -> Callable[..., Any]:  # noqa: ARG001
    return copy_array


def copy_fields(state: Any) -> Any:
    """A deep copy of a NamedTuple: its arrays, and those of nested NamedTuples, are copied (see `share_fields`)."""
    shared = UNCOPIED.get(type(state), ())

    def copied(name: str, field: Any) -> Any:
        if name in shared:
            return field
        if isinstance(field, np.ndarray):
            return field.copy()
        return copy_fields(field) if isinstance(field, tuple) else field

    return type(state)(*(copied(*each) for each in zip(state._fields, state, strict=True)))


@overload(copy_fields, jit_options=cast(Any, INNER), strict=False)
def _copy_fields(state: Any) -> Callable[..., Any]:
    """Return `copy_fields` for one type of State, for kernels."""

    def source(name: str, kind: Any) -> str:
        if name in UNCOPIED.get(state.instance_class, ()):
            return f"state.{name}"
        if isinstance(kind, numba.types.Array):
            return f"copy_array(state.{name})"
        return f"copy_fields(state.{name})" if isinstance(kind, numba.types.BaseNamedTuple) else f"state.{name}"

    arguments = ", ".join(source(name, kind) for name, kind in zip(state.fields, state.types, strict=True))
    scope: dict[str, Any] = {"Class": state.instance_class, "copy_fields": copy_fields, "copy_array": copy_array}
    exec(f"def implementation(state):\n    return Class({arguments})", scope)
    return cast(Callable[..., Any], scope["implementation"])


@inline
def any_nan(array: Any) -> bool:
    """Whether a vector contains nan."""
    has_nan = False
    for i in range(array.size):  # without an early exit the loop is vectorised
        has_nan |= array[i] != array[i]
    return has_nan


def array_nan(array: Any) -> bool:
    """Whether an array of any number of dimensions contains nan."""
    return bool(np.isnan(array).any())


@overload(array_nan, jit_options=cast(Any, PER_ARRAY), strict=False)
def _array_nan(array: Any) -> Callable[..., Any]:
    """Return `array_nan` for one type of array, for kernels."""
    lines, row, indent = ["def implementation(array):"], "array", "    "
    for axis in range(array.ndim - 1):
        lines.append(f"{indent}for i{axis} in range({row}.shape[0]):")
        row, indent = f"{row}[i{axis}]", indent + "    "
    lines.append(f"{indent}if any_nan({row}):\n{indent}    return True\n    return False")
    scope: dict[str, Any] = {"any_nan": any_nan}
    exec("\n".join(lines), scope)
    return cast(Callable[..., Any], scope["implementation"])


def fields_nan(state: Any) -> bool:
    """Whether any array of a NamedTuple, or of nested NamedTuples, contains nan."""
    return any(
        fields_nan(field) if isinstance(field, tuple) else field.dtype.kind == "f" and array_nan(field)
        for field in state
        if isinstance(field, np.ndarray | tuple)
    )


@overload(fields_nan, jit_options=cast(Any, INNER), strict=False)
def _fields_nan(state: Any) -> Callable[..., Any]:
    """Return `fields_nan` for one type of State, for kernels."""
    calls = []
    for name, kind in zip(state.fields, state.types, strict=True):
        if isinstance(kind, numba.types.BaseNamedTuple):
            calls.append(f"fields_nan(state.{name})")
        elif isinstance(kind, numba.types.Array) and isinstance(kind.dtype, numba.types.Float):
            calls.append(f"array_nan(state.{name})")
    lines = [f"    if {call}:\n        return True" for call in calls]
    scope: dict[str, Any] = {"fields_nan": fields_nan, "array_nan": array_nan}
    exec("\n".join(["def implementation(state):", *lines, "    return False"]), scope)
    return cast(Callable[..., Any], scope["implementation"])
