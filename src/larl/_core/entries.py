"""Entries: the compiled code of one type of State, kept as object code for later processes (kernel_cache.py)."""

import dis
import hashlib
import os
import random
import re
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

import llvmlite.binding as _llvm
import numba
import numpy as np
from numba.core.registry import cpu_target

from larl._core.compile import GENERICS, INNER, OPTIONS, compilations, config, is_larl, place_of
from larl._core.files import write_atomically
from larl._core.kernel_cache import PACKAGE, cache_folder, digest_of, is_library, reachable
from larl._core.numba_parts import ENTRY, ENVIRONMENT_PREFIX
from larl._core.states import CONSTANT, ENTRIES

llvm: Any = _llvm
DEBUG = "LARL_DEBUG"  # environment variable; 1: errors of the compiler are shown whole
PLACE = re.compile(r'(?P<message>[^\n]+)\s+File "(?P<file>[^"]+)", line (?P<line>\d+):')
MAGIC = b"larl entry 1\n"  # of the files, before the digest of the object code
_lock = threading.RLock()
_addresses: dict[str, int] = {}  # by digest
_kept: list[Any] = []  # compiled functions outside the engine


def entry_address(name: str, entry: Callable[..., Any], signature: Any, kind: Any = None) -> int:
    """Return the address of a compiled function whose arguments are numbers; compile it unless that was done before.

    Parameters
    ----------
    name : str
        What is compiled, for the line that says so.
    entry : callable
        The function.
    signature
        Its numba signature.
    kind
        The `kind_of` of the State, if it has one.
    """
    if config.DISABLE_JIT:
        ENTRIES.append(entry)
        return len(ENTRIES)
    digest = digest_of(entry, _classes(kind), _described(kind))
    with _lock:
        if digest not in _addresses:
            path = cache_folder() / f"{digest}.o"
            symbol = f"larl_{digest}"
            code: bytes | int | None = _read(path)
            if code is None:
                refuse_random_numbers(kind)
                try:
                    code = compilations.announce(name, lambda: _compile(entry, signature, symbol))
                except numba.core.errors.NumbaError as error:
                    if os.environ.get(DEBUG, "0") not in ("", "0"):
                        raise
                    raise TypeError(explain(name, error, kind)) from None
                if isinstance(code, int):  # it cannot be kept
                    _addresses[digest] = code
                    return code
                content = _sealed(code)
                with suppress(OSError):  # it is compiled again in the next process
                    write_atomically(path, lambda temporary: temporary.write_bytes(content))
            _addresses[digest] = _load(cast(bytes, code), symbol)
        return _addresses[digest]


def _sealed(code: bytes) -> bytes:
    return MAGIC + hashlib.sha256(code).digest() + code


def _read(path: Path) -> bytes | None:
    """Return the object code in a file, None if there is none or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    code = content[len(MAGIC) + 32 :]
    return code if _sealed(code) == content else None


def _own_functions(kind: Any) -> Iterator[types.FunctionType]:
    """Yield the functions from outside larl that a State's code can reach."""
    generics = [each for each in GENERICS if each.__dict__["implementations"]]
    start = [(each.__name__, each) for each in (*_classes(kind), *generics)]
    for _, value in reachable(start):
        if isinstance(value, types.FunctionType) and not is_larl(value) and not is_library(str(value.__module__)):
            yield value


def refuse_random_numbers(kind: Any) -> None:
    """Raise TypeError if a function from outside larl uses random numbers that a seed of larl does not determine."""
    for function in _own_functions(kind):
        line, before = function.__code__.co_firstlineno, None
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        scope = function.__globals__ | {name: cell.cell_contents for name, cell in cells}
        for each in dis.get_instructions(function):
            line = (each.positions and each.positions.lineno) or line
            value = scope.get(each.argval) if each.opname in ("LOAD_GLOBAL", "LOAD_DEREF") else None
            is_module = before is np and each.argval == "random"
            if is_module or value is np.random or value is random or _is_random(value):
                text = "accepted: uniform(bits), pick(bits, count) and normal(bits) of larl.policies"
                name = "numpy.random" if is_module else each.argval
                raise TypeError(f"{function.__code__.co_filename}:{line}: {function.__name__} uses {name}; {text}")
            before = value


def _is_random(value: Any) -> bool:
    """Return whether a value is a function of numpy.random or random."""
    owner = getattr(value, "__self__", None)
    return isinstance(owner, np.random.RandomState | random.Random)


def explain(name: str, error: Exception, kind: Any) -> str:
    """Return file, line and reason of an error of the compiler in a function that a user wrote."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    for match in PLACE.finditer(text):
        path, message = Path(match["file"]).resolve(), match["message"].strip()
        if PACKAGE not in path.parents and "site-packages" not in path.parts:
            reason = _innermost(text) if message.startswith("During") else message
            return f"{path}:{match['line']}: {reason} ({name}; {DEBUG}=1 shows all)"
    state = next(_classes(kind), type(None))
    given = {each.__name__: each.__dict__["implementations"].get(state) for each in GENERICS}
    failed = [each for each in re.findall(r"Function\(<function (\w+) at", text) if given.get(each)]
    function = given.get(failed[-1] if failed else "act")
    place = "" if function is None or is_larl(function) else f"{place_of(function)}: "
    return f"{place}{_innermost(text)} ({name}; {DEBUG}=1 shows all)"


def _innermost(text: str) -> str:
    """Return the reason in an error of the compiler, which repeats it for each function that contains the next one."""
    if "act returns" in text:  # `whole_number` in policies/_entry.py
        return text[text.index("act returns") :].partition("\n")[0]
    last = text.rpartition("Failed in nopython mode pipeline")[2].splitlines()[1:]
    lines = [line.strip().removeprefix("TypingError: ") for line in last if line.strip()]
    reason = lines[0] if lines else text
    return f"{reason} {lines[1].lstrip('> ')}" if reason.endswith(":") and len(lines) > 1 else reason


def _compile(entry: Callable[..., Any], signature: Any, symbol: str) -> bytes | int:
    """Return the object code of an entry, or its address if the code refers to this process."""
    dispatcher = numba.njit(**(INNER | ENTRY))(entry)
    dispatcher.compile(signature)
    result = next(iter(dispatcher.overloads.values()))
    name, library = result.fndesc.llvm_func_name, result.library
    module = library._final_module if ENTRY else llvm.parse_assembly(library.get_llvm_str())
    if _refers_to_process(module):
        plain = numba.njit(**(OPTIONS | {"no_cpython_wrapper": True}))(entry)
        plain.compile(signature)
        _kept.append(plain)
        result = next(iter(plain.overloads.values()))
        return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))
    for function in module.functions:
        if not function.is_declaration and function.name != name:
            function.linkage = "internal"
    function = module.get_function(name)
    function.name, function.linkage = symbol, "external"
    return cast(bytes, library.codegen._tm.emit_object(module))


def _refers_to_process(module: Any) -> bool:
    """Return whether code has addresses of this process, or uses an environment of numba, as `print` does."""
    if any(".dynamic." in each.name for each in module.global_variables):  # large constant arrays, pointers of ctypes
        return True
    names = [each.name for each in module.global_variables if each.name.startswith(ENVIRONMENT_PREFIX)]
    text = str(module) if names else ""
    return any(text.count(f"@{name}") > 1 for name in names)


@cache
def _engine() -> Any:
    """The engine that holds the object code of all entries of this process."""
    machine = llvm.Target.from_default_triple().create_target_machine()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def _load(code: bytes, symbol: str) -> int:
    """Load object code and return the address of its function."""
    if b"NRT_" in code:
        cpu_target.target_context.refresh()  # numba makes its runtime functions known to LLVM
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return int(engine.get_function_address(symbol))


def _classes(kind: Any) -> Iterator[type]:
    """Yield the NamedTuple classes of a `kind_of`."""
    if isinstance(kind, tuple) and isinstance(kind[0], type):
        yield kind[0]
        for each in kind[1:]:
            yield from _classes(each)


def _described(kind: Any) -> str:
    """Return a `kind_of` as text that is the same in every process."""
    if isinstance(kind, tuple):
        return f"({','.join(map(_described, kind))})"
    if isinstance(kind, type) and issubclass(kind, tuple):
        fields = ",".join(cast(Any, kind)._fields)
        return f"{kind.__module__}.{kind.__qualname__}[{fields}]{CONSTANT.get(kind, ())}"
    return str(kind)
