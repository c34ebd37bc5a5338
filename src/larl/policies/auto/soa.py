"""Arithmetic on the rows of a (rows, LANES) array: a few vector instructions each, for LANES particles side by side.

Every operation is defined by a line of numpy, and compiled to vector instructions: left to itself, the compiler does
not vectorise loops over rows that might overlap. No operation fuses or reorders, so both ways give the same numbers.
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


def compiled_as(build: Callable[..., Any]) -> Callable[[Operation], Operation]:
    """Compile an operation on rows to `build(builder, *vectors)`: its first row's new value, from all rows' values."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, places = context.make_array(signature.args[0])(context, builder, arguments[0]).data, []
        for row in arguments[1:]:
            place = builder.gep(start, [builder.mul(row, ir.Constant(row.type, LANES))])
            places.append(builder.bitcast(place, VECTOR.as_pointer()))
        builder.store(build(builder, *(builder.load(place, align=8) for place in places)), places[0], align=8)
        return context.get_dummy_value()

    def two(typing: Any, x: Any, target: Any, a: Any) -> Any:
        return types.void(x, types.intp, types.intp), generate

    def three(typing: Any, x: Any, target: Any, a: Any, b: Any) -> Any:
        return types.void(x, types.intp, types.intp, types.intp), generate

    def four(typing: Any, x: Any, target: Any, a: Any, b: Any, c: Any) -> Any:
        return types.void(x, types.intp, types.intp, types.intp, types.intp), generate

    def attach(operation: Operation) -> Operation:
        by_rows: Any = {2: two, 3: three, 4: four}[operation.__code__.co_argcount - 1]
        return operation if config.DISABLE_JIT else cast(Operation, intrinsic(by_rows))

    return attach


@compiled_as(lambda _builder, _target, a: a)
def copy(x: Floats, target: int, a: int) -> None:
    x[target] = x[a]


@compiled_as(lambda builder, target, a: builder.fadd(target, a))
def add(x: Floats, target: int, a: int) -> None:
    x[target] += x[a]


@compiled_as(lambda builder, target, a: builder.fsub(target, a))
def subtract(x: Floats, target: int, a: int) -> None:
    x[target] -= x[a]


@compiled_as(lambda builder, target, a: builder.select(builder.fcmp_ordered(">", target, a), target, a))
def raise_to(x: Floats, target: int, a: int) -> None:
    x[target] = np.where(x[target] > x[a], x[target], x[a])


@compiled_as(lambda builder, target, a: builder.fadd(target, builder.fsub(a, a)))
def add_not_finite(x: Floats, target: int, a: int) -> None:
    """Add 0 where row `a` is finite, nan elsewhere."""
    x[target] += x[a] - x[a]


@compiled_as(lambda builder, _, a: builder.fdiv(ir.Constant(VECTOR, [1.0] * LANES), a))
def invert(x: Floats, target: int, a: int) -> None:
    x[target] = 1.0 / x[a]


@compiled_as(lambda builder, _, a, b: builder.fmul(a, b))
def multiply(x: Floats, target: int, a: int, b: int) -> None:
    x[target] = x[a] * x[b]


@compiled_as(lambda builder, target, a, b: builder.fadd(target, builder.fmul(a, b)))
def add_product(x: Floats, target: int, a: int, b: int) -> None:
    x[target] += x[a] * x[b]


@compiled_as(lambda builder, target, a, b: builder.fsub(target, builder.fmul(a, b)))
def subtract_product(x: Floats, target: int, a: int, b: int) -> None:
    x[target] -= x[a] * x[b]


@compiled_as(lambda builder, _, a, b, c: builder.fadd(a, builder.fmul(b, c)))
def sum_product(x: Floats, target: int, a: int, b: int, c: int) -> None:
    x[target] = x[a] + x[b] * x[c]
