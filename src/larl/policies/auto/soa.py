"""SIMD arithmetic on rows of a (rows, LANES) array (structure of arrays): one call updates LANES particles.

The body of each function is its NumPy reference, which runs if numba is disabled. Kernels use the vector instructions
of the decorator instead, because the compiler does not vectorise loops over rows that might overlap. No operation is
fused or reordered, so both give the same bits; tests/policies/test_auto_soa.py compares them.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from larl._core.compile import config

Floats = NDArray[np.float64]
LANES = 16
VECTOR = ir.VectorType(ir.DoubleType(), LANES)
Operation = Callable[..., None]
REFERENCES: dict[str, Operation] = {}  # the NumPy definition of each operation, by name


def row_intrinsic(build: Callable[..., Any]) -> Callable[[Operation], Operation]:
    """Return a decorator that compiles a row operation: `build(builder, *rows)` is the new value of the target row."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, pointers = context.make_array(signature.args[0])(context, builder, arguments[0]).data, []
        for row in arguments[1:]:
            pointer = builder.gep(start, [builder.mul(row, ir.Constant(row.type, LANES))])
            pointers.append(builder.bitcast(pointer, VECTOR.as_pointer()))
        builder.store(build(builder, *(builder.load(pointer, align=8) for pointer in pointers)), pointers[0], align=8)
        return context.get_dummy_value()

    def two_rows(typing: Any, x: Any, target: Any, a: Any) -> Any:
        return types.void(x, types.intp, types.intp), generate

    def three_rows(typing: Any, x: Any, target: Any, a: Any, b: Any) -> Any:
        return types.void(x, types.intp, types.intp, types.intp), generate

    def four_rows(typing: Any, x: Any, target: Any, a: Any, b: Any, c: Any) -> Any:
        return types.void(x, types.intp, types.intp, types.intp, types.intp), generate

    def attach(operation: Operation) -> Operation:
        REFERENCES[operation.__name__] = operation
        by_rows: Any = {2: two_rows, 3: three_rows, 4: four_rows}[operation.__code__.co_argcount - 1]
        return operation if config.DISABLE_JIT else cast(Operation, intrinsic(by_rows))

    return attach


@row_intrinsic(lambda _builder, _target, a: a)
def copy(x: Floats, target: int, a: int) -> None:
    x[target] = x[a]


@row_intrinsic(lambda builder, target, a: builder.fadd(target, a))
def add(x: Floats, target: int, a: int) -> None:
    x[target] += x[a]


@row_intrinsic(lambda builder, target, a: builder.fsub(target, a))
def subtract(x: Floats, target: int, a: int) -> None:
    x[target] -= x[a]


@row_intrinsic(lambda builder, target, a: builder.select(builder.fcmp_ordered(">", target, a), target, a))
def elementwise_max(x: Floats, target: int, a: int) -> None:
    x[target] = np.where(x[target] > x[a], x[target], x[a])


@row_intrinsic(lambda builder, target, a: builder.fadd(target, builder.fsub(a, a)))
def add_nan_if_nonfinite(x: Floats, target: int, a: int) -> None:
    """Add 0 where row `a` is finite and nan elsewhere."""
    x[target] += x[a] - x[a]


@row_intrinsic(lambda builder, _, a: builder.fdiv(ir.Constant(VECTOR, [1.0] * LANES), a))
def reciprocal(x: Floats, target: int, a: int) -> None:
    x[target] = 1.0 / x[a]


@row_intrinsic(lambda builder, _, a, b: builder.fmul(a, b))
def multiply(x: Floats, target: int, a: int, b: int) -> None:
    x[target] = x[a] * x[b]


@row_intrinsic(lambda builder, target, a, b: builder.fadd(target, builder.fmul(a, b)))
def add_product(x: Floats, target: int, a: int, b: int) -> None:
    x[target] += x[a] * x[b]


@row_intrinsic(lambda builder, target, a, b: builder.fsub(target, builder.fmul(a, b)))
def subtract_product(x: Floats, target: int, a: int, b: int) -> None:
    x[target] -= x[a] * x[b]


@row_intrinsic(lambda builder, _, a, b, c: builder.fadd(a, builder.fmul(b, c)))
def sum_product(x: Floats, target: int, a: int, b: int, c: int) -> None:
    x[target] = x[a] + x[b] * x[c]
