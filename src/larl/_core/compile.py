"""Decorators that compile functions with numba.

| decorator | called by       | use                                                                 |
| --------- | --------------- | ------------------------------------------------------------------- |
| `kernel`  | Python, kernels | arguments are numbers, arrays and types of larl                     |
| `inner`   | kernels         | a function of its own inside the kernel                             |
| `inline`  | kernels         | inlined into each caller                                            |
| `generic` | Python, kernels | resolved by the type of its first argument; `implement` adds a case |

The functions of policies and worlds are compiled for their States by `entries.py`.
"""

import atexit
import gc
import inspect
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

import numba
from numba.core import event
from numba.extending import overload

from larl._core.kernel_cache import DigestCache
from larl._core.numba_parts import PIPELINE, can_cache, compile_once_for_literals

config: Any = numba.config

# error_model "numpy": division by zero gives inf or nan, without a check that prevents vectorised loops.
# No fast-math: its rounding depends on the function that a loop is inlined into, and a live step
# would not equal a simulated one bit for bit. Nothing is called from C, so numba compiles no wrapper for that.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# The wrapper that unpacks NamedTuples from Python takes most of a function's compile time; kernels do not need it.
# Without an explicit value, numba would also inline them into each caller if the first caller is inlined itself.
INNER = OPTIONS | {"no_cpython_wrapper": True, "forceinline": False} | PIPELINE
# Inlining avoids passing a State by value, which can cost more than the step itself.
INLINE = INNER | {"forceinline": True}

_CAN_CACHE = can_cache()
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
GENERICS: list[Any] = []  # all generic functions
POLICY_NAMES: dict[type, str] = {}  # State class: name of its policy


class CollectorPause(event.Listener):
    """Stops the garbage collector while any thread compiles: numba makes many objects, and few of them are garbage."""

    def __init__(self) -> None:
        self._lock, self._depth, self._was_enabled = threading.RLock(), 0, False

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        with self._lock:
            if self._depth == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._depth += 1

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._was_enabled:
                gc.enable()


class Compilations:
    """Knows what was compiled in this process, and says so on stderr if that is a terminal, otherwise in the log."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.quiet = False

    def announce(self, name: str, compile_: Callable[[], T]) -> T:
        """Return what `compile_` returns, after a line with the name of what it compiles."""
        if not self.quiet and name not in self.names:
            if sys.stderr.isatty():
                print(f"compiling {name} for the first time…", file=sys.stderr, flush=True)
            else:
                logging.getLogger("larl").info("compiling %s for the first time", name)
        self.names.add(name)
        return compile_()


compilations = Compilations()
cast(Any, event).register("numba:compile", CollectorPause())
atexit.register(gc.freeze)  # otherwise Python visits all objects of numba once more before the process ends


def kernel(function: F) -> F:
    """Compile `function`; its machine code is kept for later processes, if numba allows it."""
    dispatcher = numba.njit(**OPTIONS)(function)
    if _CAN_CACHE and not config.DISABLE_JIT:
        cast(Any, dispatcher)._cache = DigestCache(dispatcher)
        # Compiled callers contain the function without the wrapper for Python, which takes long to compile.
        callee = cast(Any, inner(function))
        cast(Any, dispatcher).get_call_template = callee.get_call_template
        cast(Any, dispatcher).get_overload = callee.get_overload
    return cast(F, dispatcher)


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
        function = implementations.get(getattr(state, "instance_class", type(None)), default)
        return function if is_larl(function) else _with_checked_indices(function)

    call.__dict__["implementations"] = implementations
    GENERICS.append(call)
    return cast(F, call)


def is_larl(value: Any) -> bool:
    """Whether a function or a class is defined in larl."""
    return str(value.__module__).startswith("larl.")


def place_of(function: Callable[..., Any]) -> str:
    """File and line of a function, for error messages."""
    code = function.__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


@contextmanager
def naming_own_functions(*states: type) -> Iterator[None]:
    """Add to an exception the places of the functions from outside larl for these States: an index error has none."""
    try:
        yield
    except Exception as error:
        for state in states:
            if own := own_functions(state):
                error.add_note(f"functions of {state.__name__}: {', '.join(own)}")
        raise


def own_functions(state: type) -> list[str]:
    """Return names and places of the functions from outside larl for States of a class."""
    given = ((each.__name__, each.__dict__["implementations"].get(state)) for each in GENERICS)
    return [f"{name} ({place_of(function)})" for name, function in given if function and not is_larl(function)]


def _with_checked_indices(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the parameters of another one, which it calls compiled with a check of every index."""
    checked = numba.njit(**(INLINE | {"boundscheck": True}))(function)
    callers: dict[int, Callable[..., Any]] = {
        2: lambda state, a: checked(state, a),
        3: lambda state, a, b: checked(state, a, b),
    }
    return callers[function.__code__.co_argcount]


def implement(function: Callable[..., Any], state: type, implementation: Callable[..., Any]) -> None:
    """Set what a generic function does for States of one class. Compiled kernels contain it: it cannot be replaced."""
    wanted = inspect.signature(cast(Any, function).__wrapped__)
    if len(inspect.signature(implementation).parameters) != len(wanted.parameters):
        names, given = (", ".join(each.parameters) for each in (wanted, inspect.signature(implementation)))
        name = function.__name__
        raise TypeError(f"{place_of(implementation)}: {name} has the parameters ({given}); accepted: {name}({names})")
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


@inline
def any_nan(array: Any) -> bool:
    """Whether a vector contains nan."""
    has_nan = False
    for i in range(array.size):  # without an early exit the loop is vectorised
        has_nan |= array[i] != array[i]
    return has_nan
