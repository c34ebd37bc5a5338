"""Machine code that is kept between processes: its folder, and the digest of the code that it was compiled from.

A compiled function contains everything that it calls, also functions of other files. Its machine code is therefore kept
under a digest of all code that it can reach, of the constants that this uses, and of the versions of numba, LLVM and
the processor. What was edited has another digest, also in the process in which it was defined again: only this is
compiled again, and no code can be taken for another's.
"""

import hashlib
import os
import sys
import tempfile
import types
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, cast

import llvmlite
import llvmlite.binding as _llvm
import numba
import numpy as np

from larl._core.numba_parts import ENTRY, use_unique_cache_names

llvm: Any = _llvm
config: Any = numba.config
PACKAGE = Path(__file__).parents[1]
SOURCES = (  # of everything that determines a result
    *("_core/compile.py", "_core/entries.py", "_core/random.py", "_core/states.py"),
    *("worlds/**/*.py", "statespace/*.py", "theory/*.py", "policies/**/*.py", "diagnosis/kernels.py"),
    *("live/kernels.py", "simulation/engine.py", "simulation/moments.py"),
)


COMPILERS = tuple(f"_core/{name}.py" for name in ("compile", "entries", "kernel_cache", "numba_parts", "states"))


def source_digest(patterns: Iterable[str] = SOURCES) -> str:
    """Sixteen hex digits that change whenever a source changes, by default one that determines a result."""
    digest = hashlib.sha256()
    for pattern in patterns:
        for path in sorted(PACKAGE.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path:
    """The folder for machine code: in $NUMBA_CACHE_DIR, else in the user's cache folder, else a temporary folder."""
    if config.CACHE_DIR:
        base = Path(config.CACHE_DIR)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "larl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="larl-"))


class DigestCache:
    """The files of a kernel, one set for each digest of its code; numba asks it for machine code and gives it some."""

    cache_path = ""  # numba reports it in `inspect_disasm_cfg` and the like

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self._caches: dict[str, Any] = {}  # of numba, by digest

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled function for a signature, None if there is none."""
        return self._cache(signature).load_overload(signature, context)

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled function."""
        self._cache(signature).save_overload(signature, result)

    def flush(self) -> None:
        """Forget the machine code of this kernel."""
        for each in self._caches.values():
            each.flush()

    def _cache(self, signature: Any) -> Any:
        arguments = getattr(signature, "args", signature)
        digest = digest_of(self._dispatcher.py_func, (each for kind in arguments for each in _classes_in(kind)))
        if digest not in self._caches:
            before, config.CACHE_DIR = config.CACHE_DIR, str(cache_folder() / digest)
            try:
                self._caches[digest] = use_unique_cache_names(numba_cache(self._dispatcher.py_func))
            finally:
                config.CACHE_DIR = before
        return self._caches[digest]


def numba_cache(function: Callable[..., Any]) -> Any:
    """Return numba's files of machine code for a function, in the folder that its configuration names now."""
    from numba.core.caching import FunctionCache

    return cast(Any, FunctionCache)(function)


def _classes_in(kind: Any) -> Iterator[type]:
    """Yield the NamedTuple classes of one of numba's types."""
    if hasattr(kind, "instance_class"):
        yield kind.instance_class
    for each in getattr(kind, "types", ()):
        yield from _classes_in(each)


def reachable(values: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of functions and classes, and of everything that their code refers to, each once.

    Functions are without their decorators. Of generic functions, the default and the implementations for the classes
    that are reached are yielded.
    """
    seen: set[int] = set()
    stack, generics, classes = list(values), list[Any](), list[type]()
    while stack:
        name, value = stack.pop()
        if isinstance(options := getattr(value, "targetoptions", None), dict):  # of numba.njit
            yield name, repr(sorted((key, each) for key, each in options.items() if isinstance(each, bool | str)))
        value = getattr(value, "py_func", getattr(value, "_defn", value))  # of numba.njit and numba's intrinsics
        if id(value) in seen:
            continue
        seen.add(id(value))
        implementations = getattr(value, "__dict__", {}).get("implementations")
        if isinstance(implementations, dict):
            generics.append((name, implementations))
            stack.append((name, value.__wrapped__))
            stack += [(name, implementations[each]) for each in classes if each in implementations]
            continue
        yield name, value
        if isinstance(value, types.FunctionType):
            stack += _references(value)
        elif isinstance(value, type):
            classes.append(value)
            stack += [(name, functions[value]) for name, functions in generics if value in functions]


def _references(function: types.FunctionType) -> list[tuple[str, Any]]:
    """Return what the code of a function refers to by a global name or from an enclosing function."""
    found = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        found.append((name, cell.cell_contents))
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
        scope = function.__globals__
        found += [(name, scope[name]) for name in code.co_names if name in scope]
        modules, seen = [scope[name] for name in code.co_names if name in scope], set[int]()
        while modules:  # functions of modules: larl._core.random.uniform
            module = modules.pop()
            if isinstance(module, types.ModuleType) and id(module) not in seen and not is_library(module.__name__):
                seen.add(id(module))
                attributes = [(name, getattr(module, name)) for name in code.co_names if hasattr(module, name)]
                found += attributes
                modules += [value for _, value in attributes]
    return found


def is_library(module: str) -> bool:
    """Whether a module is of numba or numpy, or is math: their versions are part of every digest."""
    return module.partition(".")[0] in ("numba", "llvmlite", "numpy", "math", "cmath")


def digest_of(function: Callable[..., Any], classes: Iterable[type], *settings: str) -> str:
    """Return 32 hex digits that change whenever the code of a function, or something that it uses, changes.

    `classes` are those of the NamedTuples that it gets.
    """
    result = hashlib.sha256(_versions())
    result.update(repr(settings).encode())
    for name, value in reachable([(cast(Any, each).__name__, each) for each in (function, *classes)]):
        result.update(f"\0{name}\0".encode() + _content(value))
    return result.hexdigest()[:32]


def _content(value: Any) -> bytes:
    """Return bytes that identify a function, a class or a constant."""
    if isinstance(value, types.FunctionType):
        return _code(value.__code__) + repr(value.__defaults__).encode()
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape}".encode() + value.tobytes()
    if isinstance(value, type):
        members = [(each.name, repr(each.value)) for each in value] if issubclass(value, Enum) else ""
        return f"{value.__module__}.{value.__qualname__}{getattr(value, '_fields', '')}{members}".encode()
    if isinstance(value, tuple):
        return b"(" + b",".join(map(_content, value)) + b")"
    if isinstance(value, types.ModuleType):
        return value.__name__.encode()
    if isinstance(value, int | float | str | bool | np.generic | None):
        return repr(value).encode()
    return type(value).__name__.encode() + _file_digest(str(getattr(value, "__module__", "")))


@cache
def _file_digest(module: str) -> bytes:
    """Return a digest of the file of a module whose values are compiled without their code being visible here."""
    path = getattr(sys.modules.get(module), "__file__", None)
    if path is None or module.startswith(("numba.", "numpy.")):
        return b""
    return hashlib.sha256(Path(path).read_bytes()).digest()


def _code(code: types.CodeType) -> bytes:
    """Return what identifies a code object: its instructions and constants, and its place for error messages."""
    constants = b"".join(
        _code(each) if isinstance(each, types.CodeType) else repr(each).encode() for each in code.co_consts
    )
    names = repr((code.co_names, code.co_varnames, code.co_freevars, code.co_filename, code.co_firstlineno))
    return code.co_code + code.co_linetable + constants + names.encode()


@cache
def _versions() -> bytes:
    cpu = config.CPU_NAME or llvm.get_host_cpu_name(), config.CPU_FEATURES or llvm.get_host_cpu_features().flatten()
    settings = bool(ENTRY), config.OPT, config.BOUNDSCHECK, source_digest(COMPILERS)
    versions = sys.version_info[:2], numba.__version__, llvmlite.__version__, np.__version__, cpu, settings
    return repr(versions).encode()
