"""SIMD type with one number of each of LANES particles: a row of a (rows, LANES) array (structure of arrays).

Rows have +, −, ×, ÷ and the operations below. The body of each function is its NumPy reference, which runs if numba is
disabled. Kernels use the vector instructions of the decorator instead, because the compiler does not vectorise loops
over rows that might overlap. No operation is fused or reordered, so both give the same bits;
tests/policies/test_auto_soa.py compares them.
"""

import math
import operator
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import models, register_model
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl.policies._linalg.simd4 import INT32, cgutils, compile_operator, simd_intrinsic

Floats = NDArray[np.float64]
Row = NDArray[np.float64]  # (LANES,)
LANES = 16
LINE = 8  # numbers in a cache line
VECTOR = ir.VectorType(ir.DoubleType(), LANES)
INT64S = ir.VectorType(ir.IntType(64), LANES)
MANTISSA_BITS, EXPONENT_BIAS = 52, 1023  # of a double
REFERENCES: dict[str, Callable[..., Any]] = {}  # the NumPy definition of each operation, by name


class RowType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Row")


ROW = RowType()


@register_model(RowType)
class RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        cast(Any, super()).__init__(manager, kind, VECTOR)


compile_operator(ROW, operator.add, lambda builder, a, b: builder.fadd(a, b))
compile_operator(ROW, operator.iadd, lambda builder, a, b: builder.fadd(a, b))
compile_operator(ROW, operator.sub, lambda builder, a, b: builder.fsub(a, b))
compile_operator(ROW, operator.isub, lambda builder, a, b: builder.fsub(a, b))
compile_operator(ROW, operator.mul, lambda builder, a, b: builder.fmul(a, b))
compile_operator(ROW, operator.truediv, lambda builder, a, b: builder.fdiv(a, b))


def row_intrinsic(result: Any, kinds: list[Any], build: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function to `build(builder, *arguments)`; kind None is an array's address."""
    return simd_intrinsic(result, kinds, build, REFERENCES)


def _pointer(builder: Any, data: Any, row: Any) -> Any:
    """Return the address of a row as that of a vector."""
    return builder.bitcast(builder.gep(data, [builder.mul(row, ir.Constant(row.type, LANES))]), VECTOR.as_pointer())


def _int64s(value: int) -> Any:
    """Return a vector of equal 64-bit integers."""
    return ir.Constant(INT64S, [value] * LANES)


def _build_broadcast(builder: Any, number: Any) -> Any:
    """Build `broadcast`."""
    undefined, zeros = ir.Constant(VECTOR, ir.Undefined), ir.Constant(ir.VectorType(INT32, LANES), [0] * LANES)
    return builder.shuffle_vector(builder.insert_element(undefined, number, INT32(0)), undefined, zeros)


def _build_exponent(builder: Any, row: Any) -> Any:
    """Build `exponent`."""
    shifted = builder.lshr(builder.bitcast(row, INT64S), _int64s(MANTISSA_BITS))
    return builder.sitofp(builder.sub(shifted, _int64s(EXPONENT_BIAS)), VECTOR)


def _build_square_root(builder: Any, row: Any) -> Any:
    """Build `square_root`."""
    kind = ir.FunctionType(VECTOR, [VECTOR])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.sqrt.v{LANES}f64"), [row])


def _build_sum_lanes(builder: Any, row: Any) -> Any:
    """Build `sum_lanes`."""
    half = LANES // 2
    while half:
        low, high = (ir.Constant(ir.VectorType(INT32, half), list(range(at, at + half))) for at in (0, half))
        undefined = ir.Constant(row.type, ir.Undefined)
        row = builder.fadd(builder.shuffle_vector(row, undefined, low), builder.shuffle_vector(row, undefined, high))
        half //= 2
    return builder.extract_element(row, INT32(0))


def _build_scale_by_power(builder: Any, row: Any, power: Any) -> Any:
    """Build `scale_by_power`."""
    shifted = builder.shl(builder.fptosi(power, INT64S), _int64s(MANTISSA_BITS))
    return builder.bitcast(builder.add(builder.bitcast(row, INT64S), shifted), VECTOR)


def _build_mantissa(builder: Any, row: Any) -> Any:
    """Build `mantissa`."""
    kept = builder.and_(builder.bitcast(row, INT64S), _int64s((1 << MANTISSA_BITS) - 1))
    return builder.bitcast(builder.or_(kept, _int64s(EXPONENT_BIAS << MANTISSA_BITS)), VECTOR)


@row_intrinsic(ROW, [None, types.intp], lambda builder, data, row: builder.load(_pointer(builder, data, row), align=8))
def load(x: Floats, row: int) -> Row:
    """Return a row."""
    return x[row].copy()


@row_intrinsic(
    types.void,
    [None, types.intp, ROW],
    lambda builder, data, row, value: builder.store(value, _pointer(builder, data, row), align=8),
)
def store(x: Floats, row: int, value: Row) -> None:
    """Assign a row."""
    x[row] = value


@row_intrinsic(ROW, [types.float64], _build_broadcast)
def broadcast(number: float) -> Row:
    """Return the same number for all particles."""
    return np.full(LANES, number)


@inner
def aligned_rows(count: int) -> Floats:
    """Return rows of zeros that start at a cache line: across two lines, they are slower to load and store."""
    buffer = np.zeros(count * LANES + LINE - 1)
    start = -(np.int64(buffer.ctypes.data) // np.int64(buffer.itemsize)) % LINE
    return buffer[start : start + count * LANES].reshape((count, LANES))


@row_intrinsic(ROW, [ROW, ROW], lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
def maximum(a: Row, b: Row) -> Row:
    """Return the larger of two numbers; b if one of them is nan."""
    return np.where(a > b, a, b)


@row_intrinsic(ROW, [ROW, ROW], lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b))
def minimum(a: Row, b: Row) -> Row:
    """Return the smaller of two numbers; b if one of them is nan."""
    return np.where(a < b, a, b)


@row_intrinsic(ROW, [ROW], _build_square_root)
def square_root(row: Row) -> Row:
    """Return the square root of numbers that are not negative."""
    return np.sqrt(row)


@row_intrinsic(
    ROW, [ROW, ROW, ROW], lambda builder, m, a, b: builder.select(builder.fcmp_ordered(">", m, m.type(None)), a, b)
)
def where_positive(mark: Row, a: Row, b: Row) -> Row:
    """Return a where `mark` is positive, else b."""
    return np.where(mark > 0.0, a, b)


@row_intrinsic(ROW, [ROW], _build_exponent)
def exponent(row: Row) -> Row:
    """Return e of a = m · 2ᵉ with 1 ≤ m < 2, for positive normal numbers."""
    return ((row.view(np.int64) >> MANTISSA_BITS) - EXPONENT_BIAS).astype(np.float64)


@row_intrinsic(ROW, [ROW], _build_mantissa)
def mantissa(row: Row) -> Row:
    """Return m of a = m · 2ᵉ with 1 ≤ m < 2, for positive normal numbers."""
    kept = row.view(np.int64) & ((1 << MANTISSA_BITS) - 1)
    return (kept | (EXPONENT_BIAS << MANTISSA_BITS)).view(np.float64)


@row_intrinsic(types.float64, [ROW], _build_sum_lanes)
def sum_lanes(row: Row) -> float:
    """Return the sum over the particles."""
    while row.size > 1:
        row = row[: row.size // 2] + row[row.size // 2 :]
    return float(row[0])


@row_intrinsic(ROW, [ROW, ROW], _build_scale_by_power)
def scale_by_power(row: Row, power: Row) -> Row:
    """Return row · 2^power for whole numbers `power`, if argument and result are positive normal numbers."""
    return (row.view(np.int64) + (power.astype(np.int64) << MANTISSA_BITS)).view(np.float64)


ROUND = 1.5 * 2.0**MANTISSA_BITS  # adding and subtracting it rounds to a whole number
LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")  # log 2, in two parts: products of the first one are exact
LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
TAYLOR = tuple(1.0 / math.factorial(i) for i in range(13, -1, -1))
MAX_EXP = 700.0


@inline
def exp(row: Row) -> Row:
    """Return the exponential function, with a relative error of a few 1e-16; arguments are limited to ±MAX_EXP."""
    limited = minimum(maximum(row, broadcast(-MAX_EXP)), broadcast(MAX_EXP))
    power = (limited * broadcast(1.4426950408889634) + broadcast(ROUND)) - broadcast(ROUND)
    rest = (limited - power * broadcast(LOG_2_HIGH)) - power * broadcast(LOG_2_LOW)
    total = broadcast(TAYLOR[0])
    for coefficient in TAYLOR[1:]:
        total = total * rest + broadcast(coefficient)
    return scale_by_power(total, power)
