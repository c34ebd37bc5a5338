"""Quads: four numbers in one vector register, with +, − and ×, and the few operations that tiles of 2×2 need.

Each operation is defined by lines of numpy, on arrays of four, and compiled to vector instructions: left to itself, the
compiler does not vectorise rows of ten or twenty numbers. Nothing is fused or reordered, so both ways give the same
numbers.
"""

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils
from numba.core.typing import templates as _templates
from numba.extending import intrinsic, lower_builtin, models, register_model
from numpy.typing import NDArray

from larl._core.compile import config

cgutils: Any = _cgutils
templates: Any = _templates
Floats = NDArray[np.float64]
Quad = NDArray[np.float64]  # (4,)
VECTOR = ir.VectorType(ir.DoubleType(), 4)
WORD = ir.IntType(32)


class QuadType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Quad")


QUAD = QuadType()


@register_model(QuadType)
class QuadModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        cast(Any, super()).__init__(manager, kind, VECTOR)


def _arithmetic(function: Any, build: Callable[[Any, Any, Any], Any]) -> None:
    """Compile an operator between two Quads."""

    class Typing(templates.ConcreteTemplate):  # type: ignore[misc]
        cases = (templates.signature(QUAD, QUAD, QUAD),)

    templates.infer_global(function)(Typing)
    cast(Any, lower_builtin)(function, QUAD, QUAD)(lambda _, builder, __, arguments: build(builder, *arguments))


_arithmetic(operator.add, lambda builder, a, b: builder.fadd(a, b))
_arithmetic(operator.iadd, lambda builder, a, b: builder.fadd(a, b))
_arithmetic(operator.sub, lambda builder, a, b: builder.fsub(a, b))
_arithmetic(operator.mul, lambda builder, a, b: builder.fmul(a, b))


def compiled_as(result: Any, kinds: list[Any], build: Callable[..., Any]) -> Callable[[Any], Any]:
    """Compile an operation to what `build(builder, *arguments)` emits; of an array (kind None) it gets the address."""

    def generate(context: Any, builder: Any, types_: Any, arguments: Any) -> Any:
        values = [
            value if kind is not None else context.make_array(given)(context, builder, value).data
            for kind, given, value in zip(kinds, types_.args, arguments, strict=True)
        ]
        built = build(builder, *values)
        return context.get_dummy_value() if result is types.void else built

    def typer(_typing: Any, *given: Any) -> Any:
        return result(*(other if kind is None else kind for kind, other in zip(kinds, given, strict=True))), generate

    def attach(operation: Any) -> Any:
        if config.DISABLE_JIT:
            return operation
        names = ["_typing", *inspect.signature(operation).parameters]
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        cast(Any, typer).__signature__ = inspect.Signature(parameters)
        return intrinsic(cast(Any, typer))

    return attach


def _place(builder: Any, data: Any, at: Any) -> Any:
    return builder.bitcast(builder.gep(data, [at]), VECTOR.as_pointer())


def _mixed(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    """The chosen ones of the eight numbers of two Quads."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(WORD, 4), order))


def _ordered(builder: Any, quad: Any, order: list[int]) -> Any:
    return _mixed(builder, quad, ir.Constant(VECTOR, ir.Undefined), order)


def _build_spread(builder: Any, number: Any) -> Any:
    one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), number, ir.Constant(WORD, 0))
    return _ordered(builder, one, [0, 0, 0, 0])


def _build_totals(builder: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    front = builder.fadd(_mixed(builder, a, b, [0, 4, 2, 6]), _mixed(builder, a, b, [1, 5, 3, 7]))
    back = builder.fadd(_mixed(builder, c, d, [0, 4, 2, 6]), _mixed(builder, c, d, [1, 5, 3, 7]))
    return builder.fadd(_mixed(builder, front, back, [0, 1, 4, 5]), _mixed(builder, front, back, [2, 3, 6, 7]))


def _build_roots(builder: Any, quad: Any) -> Any:
    zero = ir.Constant(VECTOR, [0.0] * 4)
    root = cgutils.get_or_insert_function(builder.module, ir.FunctionType(VECTOR, [VECTOR]), "llvm.sqrt.v4f64")
    return builder.call(root, [builder.select(builder.fcmp_ordered(">", quad, zero), quad, zero)])


@compiled_as(QUAD, [None, types.intp], lambda builder, data, at: builder.load(_place(builder, data, at), align=8))
def four(x: Floats, at: int) -> Quad:
    """The four numbers of x from `at` on."""
    return x[at : at + 4].copy()


@compiled_as(
    types.void,
    [None, types.intp, QUAD],
    lambda builder, data, at, quad: builder.store(quad, _place(builder, data, at), align=8),
)
def put(x: Floats, at: int, quad: Quad) -> None:
    """Put four numbers into x from `at` on."""
    x[at : at + 4] = quad


@compiled_as(QUAD, [types.float64], _build_spread)
def spread(number: float) -> Quad:
    """[a a a a]"""
    return np.full(4, number)


@compiled_as(types.float64, [QUAD, types.intp], lambda builder, quad, at: builder.extract_element(quad, at))
def lane(quad: Quad, at: int) -> float:
    """One of the four numbers."""
    return float(quad[at])


@compiled_as(QUAD, [QUAD], lambda builder, quad: _ordered(builder, quad, [0, 1, 0, 1]))
def again(quad: Quad) -> Quad:
    """[a b a b] of [a b c d]."""
    return quad[[0, 1, 0, 1]]


@compiled_as(QUAD, [QUAD], lambda builder, quad: _ordered(builder, quad, [2, 3, 0, 1]))
def turned(quad: Quad) -> Quad:
    """[c d a b] of [a b c d]."""
    return quad[[2, 3, 0, 1]]


@compiled_as(QUAD, [QUAD], lambda builder, quad: _ordered(builder, quad, [0, 1, 3, 2]))
def crossed(quad: Quad) -> Quad:
    """[a b d c] of [a b c d]."""
    return quad[[0, 1, 3, 2]]


@compiled_as(QUAD, [QUAD, QUAD, QUAD, QUAD], _build_totals)
def totals(a: Quad, b: Quad, c: Quad, d: Quad) -> Quad:
    """The sums of the numbers of four Quads."""
    return np.array([(each[0] + each[1]) + (each[2] + each[3]) for each in (a, b, c, d)])


@compiled_as(QUAD, [QUAD], _build_roots)
def roots(quad: Quad) -> Quad:
    """√max(a, 0) of each number."""
    return np.sqrt(np.where(quad > 0.0, quad, 0.0))


@compiled_as(
    types.void, [], lambda builder: builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], side_effect=True)
)
def as_it_stands() -> None:
    """Nothing, but a loop that has it is not unrolled: in five or ten rounds that costs more than it saves."""


def aligned(*shape: int) -> Floats:
    """Zeros, on the boundary of a cache line: a Quad that lies across one is slower to load and to store."""
    size = math.prod(shape)
    room = np.zeros(size + 7)
    start = -(room.ctypes.data // room.itemsize) % 8
    return room[start : start + size].reshape(shape)
