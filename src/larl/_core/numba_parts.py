"""numba's private API, all of it in this module: safe files of machine code, and a pipeline that compiles faster.

Files: processes that compile the same kernel for different arguments can choose the same name for their files, and
numba would then load the machine code of one for the arguments of the other. `use_unique_cache_names` prevents this.

For every function, numba optimises its code together with the code of all functions that it calls, and emits machine
code for it; a function at depth n of the calls is optimised n times. Only the kernel at the top needs machine code. So
the callees of kernels are compiled to a `LinkOnlyLibrary`, which is linked into the kernel and emits no machine code of
its own. The first use of Auto takes 15 s of processor time instead of 50, that of LARL(5) 2.7 instead of 3.2.
Their code counts no references to arrays that only their callers own, and is shared by calls with different literals.

The pipeline is optional. `PIPELINE` is empty, and `numba.njit` compiles as usual, if the installed numba lacks an
attribute that the pipeline uses (with one RuntimeWarning) or if the environment variable LARL_PLAIN_NUMBA is 1.
Results are the same bit for bit; only the compile time differs.
"""

import os
import uuid
import warnings
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, cast

PLAIN_NUMBA = "LARL_PLAIN_NUMBA"  # environment variable; 1: do not use numba's private API
MAX_OPTIMISED_SIZE = 300_000  # characters of LLVM code; larger functions are optimised only within their kernel
ENVIRONMENT_PREFIX = "_ZN08NumbaEnv"  # names of the global variables that numba sets after a function is compiled


ATTRIBUTES = (
    "llvmlite.binding.parse_assembly",
    "numba.core.codegen.JITCodeLibrary._optimize_final_module",
    "numba.core.codegen.JITCodeLibrary._finalize_final_module",
    "numba.core.codegen.JITCodeLibrary._finalize_dynamic_globals",
    "numba.core.codegen.JITCodeLibrary._finalized",
    "numba.core.codegen.JITCPUCodegen._add_module",
    "numba.core.compiler.Compiler.define_pipelines",
    "numba.core.dispatcher.Dispatcher.get_call_template",
    "numba.core.analysis.compute_cfg_from_blocks",
)
# Attributes of instances, each with a method of numba that uses it: they are not visible on their class.
INSTANCE_ATTRIBUTES = {
    "_final_module": "numba.core.codegen.JITCodeLibrary.finalize",
    "_codegen": "numba.core.codegen.JITCodeLibrary.finalize",
    "_engine": "numba.core.codegen.JITCPUCodegen._add_module",
    "finalize_object": "numba.core.codegen.JITCodeLibrary._finalize_specific",
    "library": "numba.core.typed_passes.BaseNativeLowering.run_pass",
    "targetctx": "numba.core.typed_passes.BaseNativeLowering.run_pass",
}
# The same for the files of machine code.
CACHE_ATTRIBUTES = ("numba.core.caching.IndexDataCacheFile._data_name",)
CACHE_INSTANCE_ATTRIBUTES = {
    "_cache": "numba.core.dispatcher.Dispatcher.enable_caching",
    "_cache_file": "numba.core.caching.Cache._save_overload",
    "_data_name": "numba.core.caching.IndexDataCacheFile.save",
}


def missing_attributes(
    paths: Iterable[str] = ATTRIBUTES, instances: Mapping[str, str] = INSTANCE_ATTRIBUTES
) -> list[str]:
    """The attributes of numba and llvmlite that larl uses, by default in the pipeline, and that are not there."""
    missing = [path for path in paths if _find(path) is None]
    for name, method in instances.items():
        if name not in getattr(getattr(_find(method), "__code__", None), "co_names", ()):
            missing.append(f"{name} in {method}")
    return missing


def _find(path: str) -> Any:
    """The object at the dotted path "package.module.Class.name" or "package.module.name"; None if there is none."""
    parts = path.split(".")
    modules = [part for part in parts[:-1] if not part[0].isupper()]
    try:
        target: Any = import_module(".".join(modules))
    except ImportError:
        return None
    for name in parts[len(modules) :]:
        target = getattr(target, name, None)
    return target


def _can_use_pipeline() -> bool:
    """Return whether the pipeline is enabled and numba has what it uses; warn if an attribute is missing."""
    if os.environ.get(PLAIN_NUMBA, "0") not in ("", "0"):
        return False
    missing = missing_attributes()
    if missing:
        text = f"this numba lacks {', '.join(missing)}: larl compiles more slowly, with the same results"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    return not missing


def can_cache() -> bool:
    """Return whether machine code can be kept between processes; warn if it cannot."""
    missing = missing_attributes(CACHE_ATTRIBUTES, CACHE_INSTANCE_ATTRIBUTES)
    if missing:
        text = f"this numba lacks {', '.join(missing)}: larl compiles its kernels again in every process"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    return not missing


def use_unique_cache_names(cache: Any) -> Any:
    """Return numba's files of a kernel; one of its machine code never gets the name that another process chooses.

    numba numbers the files of a kernel. Its index is read, extended and written without a lock: if two processes do so
    at once for different arguments, both use the same number, and the index can lead to the wrong file. With unique
    names, one of the two entries can be lost; its code is then compiled again.
    """
    numbered = cache._cache_file._data_name
    cache._cache_file._data_name = lambda number: f"{numbered(number).removesuffix('.nbc')}-{uuid.uuid4().hex}.nbc"
    return cache


def compile_once_for_literals(dispatcher: Any) -> Any:
    """Return the callee of kernels; calls with a literal, such as 0, use its code for numbers of that type.

    numba would compile the function once for each literal, and again for other numbers.
    """
    if PIPELINE and hasattr(dispatcher, "get_call_template"):  # numba.njit returns the plain function if uncompiled
        get_call_template = dispatcher.get_call_template

        def without_literals(types: Any, named_types: Any) -> Any:
            unliteral = cast(Any, import_module("numba.core.types")).unliteral
            named = {name: unliteral(each) for name, each in named_types.items()}
            return get_call_template([unliteral(each) for each in types], named)

        dispatcher.get_call_template = without_literals
    return dispatcher


PIPELINE: dict[str, Any] = {}  # options of numba.njit for the callees of kernels
ENTRY: dict[str, Any] = {}  # the same for entries

if _can_use_pipeline():
    from llvmlite import binding
    from numba.core import analysis, ir, types
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.compiler_machinery import AnalysisPass, register_pass
    from numba.core.typed_passes import IRLegalization

    class LinkOnlyLibrary(JITCodeLibrary):
        """The code of one function and its callees, to be linked into a kernel."""

        _codegen: Any
        _final_module: Any
        has_loops = True

        def _optimize_final_module(self) -> None:
            """Optimise small functions with loops only; what is left is optimised within the kernel.

            Loops that are first optimised inside a large function become slower.
            """
            if self.has_loops and len(str(self._final_module)) <= MAX_OPTIMISED_SIZE:
                cast(Any, super())._optimize_final_module()

        def _finalize_final_module(self) -> None:
            """Emit only the variables that numba sets, which kernels share by name, and no machine code."""
            cast(Any, self)._finalize_dynamic_globals()
            names = [each.name for each in self._final_module.global_variables]
            variables = [f'@"{name}" = common global i64 0' for name in names if name.startswith(ENVIRONMENT_PREFIX)]
            self._codegen._add_module(binding.parse_assembly("\n".join(variables)))
            self._codegen._engine.finalize_object()
            self._finalized = True

    class EntryLibrary(LinkOnlyLibrary):
        """The code of an entry with everything that it calls, optimised, for `entry_object`."""

        def _optimize_final_module(self) -> None:
            cast(Any, JITCodeLibrary)._optimize_final_module(self)

    def owns_arrays(state: Any) -> bool:
        """Return whether a function creates or returns arrays, so that it must count references to them."""

        def has_arrays(kind: Any) -> bool:
            return bool(state.targetctx.data_model_manager[kind].contains_nrt_meminfo())

        def is_view(value: Any) -> bool:
            if value.op == "getitem":  # an index that is or contains an array would make a copy
                return not has_arrays(state.typemap[value.index.name])
            if value.op == "call":
                return isinstance(state.typemap[value.func.name], types.NamedTupleClass)
            return value.op in ("getattr", "static_getitem", "build_tuple", "exhaust_iter", "cast")

        def creates_array(statement: Any) -> bool:
            if isinstance(statement, ir.SetItem | ir.StaticSetItem):  # the source is copied if it overlaps the target
                return has_arrays(state.typemap[statement.value.name])
            is_expression = isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr)
            return is_expression and has_arrays(state.typemap[statement.target.name]) and not is_view(statement.value)

        statements = (each for block in state.func_ir.blocks.values() for each in block.body)
        return has_arrays(state.return_type) or any(map(creates_array, statements))

    class ExamineFunction(AnalysisPass):
        """Finds out what the code of a function need not contain.

        The caller of a function holds references to its arguments. A function that only uses them and views of them
        need not count references, which is much of the code of functions whose arguments are NamedTuples of arrays.
        """

        _name = "larl_examine_function"

        def __init__(self) -> None:
            cast(Any, super()).__init__()

        def run_pass(self, state: Any) -> bool:
            state.library.has_loops = bool(cast(Any, analysis).compute_cfg_from_blocks(state.func_ir.blocks).loops())
            if not owns_arrays(state):
                state.targetctx = state.targetctx.subtarget(enable_nrt=False)
            return False

    cast(Any, register_pass)(mutates_CFG=False, analysis_only=True)(ExamineFunction)

    class LinkOnlyCompiler(Compiler):
        """numba's compiler with a `LinkOnlyLibrary` as its output."""

        library: type = LinkOnlyLibrary

        def define_pipelines(self) -> Any:
            """numba's own passes; the library is created before the pass that would create numba's."""
            codegen, name = self.state.targetctx.codegen(), self.state.func_id.func_qualname
            self.state.library = self.library(codegen, name)
            pipelines = cast(Any, super()).define_pipelines()
            for each in pipelines:
                each.add_pass_after(ExamineFunction, IRLegalization)
                each.finalize()
            return pipelines

    class EntryCompiler(LinkOnlyCompiler):
        """numba's compiler with an `EntryLibrary` as its output."""

        library = EntryLibrary

    PIPELINE["pipeline_class"] = LinkOnlyCompiler
    ENTRY["pipeline_class"] = EntryCompiler
