"""Two long row operations in vector instructions: the compiler's own loops are slow on rows of ten or twenty entries.

Each is defined by lines of numpy. Nothing is fused or reordered, so both ways give the same numbers.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from larl._compile import config, inline

Floats = NDArray[np.float64]
LANES = 4
VECTOR = ir.VectorType(ir.DoubleType(), LANES)
WORD = ir.IntType(32)


def _places(context: Any, builder: Any, signature: Any, arguments: Any, array: int, starts: list[int]) -> list[Any]:
    """Pointers to LANES numbers of one array, from each of some starts."""
    data = context.make_array(signature.args[array])(context, builder, arguments[array]).data
    return [builder.bitcast(builder.gep(data, [arguments[start]]), VECTOR.as_pointer()) for start in starts]


def _everywhere(builder: Any, number: Any) -> Any:
    """A vector of LANES times the same number."""
    empty = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(empty, number, ir.Constant(WORD, 0))
    return builder.shuffle_vector(first, empty, ir.Constant(ir.VectorType(WORD, LANES), [0] * LANES))


def _subtract(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    (target,) = _places(context, builder, signature, arguments, 0, [1])
    (source,) = _places(context, builder, signature, arguments, 3, [4])
    product = builder.fmul(_everywhere(builder, arguments[2]), builder.load(source, align=8))
    builder.store(builder.fsub(builder.load(target, align=8), product), target, align=8)
    return context.get_dummy_value()


def _add(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    (target,) = _places(context, builder, signature, arguments, 0, [1])
    first, second = _places(context, builder, signature, arguments, 3, [4, 5])
    product = builder.fmul(_everywhere(builder, arguments[2]), builder.load(first, align=8))
    both = builder.fadd(product, builder.load(second, align=8))
    builder.store(builder.fadd(builder.load(target, align=8), both), target, align=8)
    return context.get_dummy_value()


def _compiled(operation: Callable[..., None], typer: Callable[..., Any]) -> Callable[..., None]:
    return operation if config.DISABLE_JIT else cast(Callable[..., None], intrinsic(cast(Any, typer)))


def _type_subtract(typing: Any, x: Any, at: Any, weight: Any, y: Any, start: Any) -> Any:
    return types.void(x, types.intp, types.float64, y, types.intp), _subtract


def _type_add(typing: Any, x: Any, at: Any, weight: Any, y: Any, first: Any, second: Any) -> Any:
    return types.void(x, types.intp, types.float64, y, types.intp, types.intp), _add


def _subtract_lanes(x: Floats, at: int, weight: float, y: Floats, start: int) -> None:
    x[at : at + LANES] -= weight * y[start : start + LANES]


def _add_lanes(x: Floats, at: int, weight: float, y: Floats, first: int, second: int) -> None:
    x[at : at + LANES] += weight * y[first : first + LANES] + y[second : second + LANES]


subtract_lanes = _compiled(_subtract_lanes, _type_subtract)
add_lanes = _compiled(_add_lanes, _type_add)


@inline
def subtract_products(x: Floats, at: int, other: int, weight: float, second: float, y: Floats, count: int) -> None:
    """x[at + j] −= weight·y[j] and x[other + j] −= second·y[j] for j < count."""
    whole = count & -LANES
    for j in range(0, whole, LANES):
        subtract_lanes(x, at + j, weight, y, j)
        subtract_lanes(x, other + j, second, y, j)
    for j in range(whole, count):
        x[np.uintp(at + j)] -= weight * y[np.uintp(j)]
        x[np.uintp(other + j)] -= second * y[np.uintp(j)]


@inline
def add_rows(x: Floats, weight: float, y: Floats, first: int, second: int, count: int) -> None:
    """x[j] += weight·y[first + j] + y[second + j] for j < count."""
    whole = count & -LANES
    for j in range(0, whole, LANES):
        add_lanes(x, j, weight, y, first + j, second + j)
    for j in range(whole, count):
        x[np.uintp(j)] += weight * y[np.uintp(first + j)] + y[np.uintp(second + j)]
