"""SIMD type with four doubles in one vector register, with +, −, × and the operations that 2×2 tiles need.

The body of each function is its NumPy reference on arrays of four, which runs if numba is disabled. Kernels use the
vector instructions of the decorator instead, because the compiler does not vectorise rows of ten or twenty numbers.
Nothing is fused or reordered, so both give the same bits; tests/policies/linalg/test_simd4.py compares them.
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
Vec4 = NDArray[np.float64]  # (4,)
VECTOR = ir.VectorType(ir.DoubleType(), 4)
INT32 = ir.IntType(32)
REFERENCES: dict[str, Callable[..., Any]] = {}  # the NumPy definition of each operation, by name


class Vec4Type(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Vec4")


VEC4 = Vec4Type()


@register_model(Vec4Type)
class Vec4Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        cast(Any, super()).__init__(manager, kind, VECTOR)


def compile_operator(vector: Any, function: Any, build: Callable[[Any, Any, Any], Any]) -> None:
    """Compile an operator between two vectors of one type."""

    class Typing(templates.ConcreteTemplate):  # type: ignore[misc]
        cases = (templates.signature(vector, vector, vector),)

    templates.infer_global(function)(Typing)
    cast(Any, lower_builtin)(function, vector, vector)(lambda _, builder, __, arguments: build(builder, *arguments))


compile_operator(VEC4, operator.add, lambda builder, a, b: builder.fadd(a, b))
compile_operator(VEC4, operator.iadd, lambda builder, a, b: builder.fadd(a, b))
compile_operator(VEC4, operator.sub, lambda builder, a, b: builder.fsub(a, b))
compile_operator(VEC4, operator.mul, lambda builder, a, b: builder.fmul(a, b))


def simd_intrinsic(
    result: Any, kinds: list[Any], build: Callable[..., Any], references: dict[str, Callable[..., Any]] = REFERENCES
) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function to `build(builder, *arguments)`; kind None is an array's address.

    The NumPy definition is added to `references`.
    """

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
        references[operation.__name__] = operation
        if config.DISABLE_JIT:
            return operation
        names = ["_typing", *inspect.signature(operation).parameters]
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        cast(Any, typer).__signature__ = inspect.Signature(parameters)
        return intrinsic(cast(Any, typer))

    return attach


def _vector_pointer(builder: Any, data: Any, at: Any) -> Any:
    """Return the address of number `at` as that of a vector."""
    return builder.bitcast(builder.gep(data, [at]), VECTOR.as_pointer())


def _shuffle2(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    """Select four of the eight numbers of two Vec4."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT32, 4), order))


def _shuffle(builder: Any, vector: Any, order: list[int]) -> Any:
    """Select four of the numbers of one Vec4."""
    return _shuffle2(builder, vector, ir.Constant(VECTOR, ir.Undefined), order)


def _build_broadcast4(builder: Any, number: Any) -> Any:
    """Build `broadcast4`."""
    one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), number, ir.Constant(INT32, 0))
    return _shuffle(builder, one, [0, 0, 0, 0])


def _build_horizontal_sums(builder: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Build `horizontal_sums`."""
    front = builder.fadd(_shuffle2(builder, a, b, [0, 4, 2, 6]), _shuffle2(builder, a, b, [1, 5, 3, 7]))
    back = builder.fadd(_shuffle2(builder, c, d, [0, 4, 2, 6]), _shuffle2(builder, c, d, [1, 5, 3, 7]))
    return builder.fadd(_shuffle2(builder, front, back, [0, 1, 4, 5]), _shuffle2(builder, front, back, [2, 3, 6, 7]))


def _build_sqrt_nonnegative(builder: Any, vector: Any) -> Any:
    """Build `sqrt_nonnegative`."""
    zero = ir.Constant(VECTOR, [0.0] * 4)
    root = cgutils.get_or_insert_function(builder.module, ir.FunctionType(VECTOR, [VECTOR]), "llvm.sqrt.v4f64")
    return builder.call(root, [builder.select(builder.fcmp_ordered(">", vector, zero), vector, zero)])


@simd_intrinsic(
    VEC4, [None, types.intp], lambda builder, data, at: builder.load(_vector_pointer(builder, data, at), align=8)
)
def load4(x: Floats, at: int) -> Vec4:
    """Return x[at : at + 4]."""
    return x[at : at + 4].copy()


@simd_intrinsic(
    types.void,
    [None, types.intp, VEC4],
    lambda builder, data, at, vector: builder.store(vector, _vector_pointer(builder, data, at), align=8),
)
def store4(x: Floats, at: int, vector: Vec4) -> None:
    """Assign x[at : at + 4]."""
    x[at : at + 4] = vector


@simd_intrinsic(VEC4, [types.float64], _build_broadcast4)
def broadcast4(number: float) -> Vec4:
    """Return [number number number number]."""
    return np.full(4, number)


@simd_intrinsic(types.float64, [VEC4, types.intp], lambda builder, vector, at: builder.extract_element(vector, at))
def extract_lane(vector: Vec4, at: int) -> float:
    """Return number `at` of the four."""
    return float(vector[at])


@simd_intrinsic(VEC4, [VEC4], lambda builder, vector: _shuffle(builder, vector, [0, 1, 0, 1]))
def shuffle_0101(vector: Vec4) -> Vec4:
    """Return [a b a b] for [a b c d]."""
    return vector[[0, 1, 0, 1]]


@simd_intrinsic(VEC4, [VEC4], lambda builder, vector: _shuffle(builder, vector, [2, 3, 0, 1]))
def shuffle_2301(vector: Vec4) -> Vec4:
    """Return [c d a b] for [a b c d]."""
    return vector[[2, 3, 0, 1]]


@simd_intrinsic(VEC4, [VEC4], lambda builder, vector: _shuffle(builder, vector, [0, 1, 3, 2]))
def shuffle_0132(vector: Vec4) -> Vec4:
    """Return [a b d c] for [a b c d]."""
    return vector[[0, 1, 3, 2]]


@simd_intrinsic(VEC4, [VEC4, VEC4, VEC4, VEC4], _build_horizontal_sums)
def horizontal_sums(a: Vec4, b: Vec4, c: Vec4, d: Vec4) -> Vec4:
    """Return the sum of the numbers of each of four Vec4."""
    return np.array([(each[0] + each[1]) + (each[2] + each[3]) for each in (a, b, c, d)])


@simd_intrinsic(VEC4, [VEC4], _build_sqrt_nonnegative)
def sqrt_nonnegative(vector: Vec4) -> Vec4:
    """Return √max(a, 0) for each number."""
    return np.sqrt(np.where(vector > 0.0, vector, 0.0))


@simd_intrinsic(
    types.void, [], lambda builder: builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], side_effect=True)
)
def no_unroll() -> None:
    """Prevent unrolling of the enclosing loop: for five or ten iterations, unrolling costs more than it saves."""


def aligned_zeros(*shape: int) -> Floats:
    """Return zeros that start at a cache line: a Vec4 across two lines is slower to load and to store."""
    size = math.prod(shape)
    buffer = np.zeros(size + 7)
    start = -(buffer.ctypes.data // buffer.itemsize) % 8
    return buffer[start : start + size].reshape(shape)
