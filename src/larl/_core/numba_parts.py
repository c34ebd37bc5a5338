"""Functions that only kernels call: their code is linked into each kernel, and large ones are optimised there alone.

numba would optimise every function together with all that it calls, and make machine code of it, once more at each
level of calls. Nobody but the kernel at the top needs the machine code, and small functions alone gain by being
optimised before.
"""

from typing import Any, cast

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

SMALL = 300_000  # characters of LLVM's language
ENVIRONMENT = "_ZN08NumbaEnv"  # how names begin of the variables that numba sets once a function is compiled


class Part(JITCodeLibrary):
    """The code of one function and of what it calls, to be linked into others."""

    _codegen: Any
    _final_module: Any

    def _optimize_final_module(self) -> None:
        """Only while it is small: loops that are optimised first within a large function are slower."""
        if len(str(self._final_module)) <= SMALL:
            cast(Any, super())._optimize_final_module()

    def _finalize_final_module(self) -> None:
        """Put into memory no more than the variables that numba sets. Kernels that have them too share them."""
        cast(Any, self)._finalize_dynamic_globals()
        names = [each.name for each in self._final_module.global_variables if each.name.startswith(ENVIRONMENT)]
        variables = "\n".join(f'@"{name}" = common global i64 0' for name in names)
        self._codegen._add_module(binding.parse_assembly(variables))
        self._codegen._engine.finalize_object()
        self._finalized = True


class PartCompiler(Compiler):
    """numba's compiler, for a Part."""

    def define_pipelines(self) -> Any:
        """numba's own passes, with a library made beforehand."""
        self.state.library = cast(Any, Part)(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return cast(Any, super()).define_pipelines()
