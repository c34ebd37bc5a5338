"""Compiled operations on four numbers equal their NumPy references bit for bit, and write only where they should."""

import numpy as np
import pytest

from larl._core.compile import kernel
from larl.policies._linalg.simd4 import (
    REFERENCES,
    aligned_zeros,
    broadcast4,
    extract_lane,
    horizontal_sums,
    load4,
    no_unroll,
    shuffle_0101,
    shuffle_0132,
    shuffle_2301,
    sqrt_nonnegative,
    store4,
)

SIZE = 32
RESULT = 20  # where the cases write


# One case per operation: it reads x[:16] and writes x[RESULT : RESULT + 4]. `load4` and `store4` are in all of them.
def load4_case(x):
    store4(x, 20, load4(x, 3))


def store4_case(x):
    store4(x, 20, load4(x, 0))


def broadcast4_case(x):
    store4(x, 20, broadcast4(x[5]))


def extract_lane_case(x):
    x[20] = extract_lane(load4(x, 0), 0)
    x[21] = extract_lane(load4(x, 0), 1)
    x[22] = extract_lane(load4(x, 0), 2)
    x[23] = extract_lane(load4(x, 0), 3)


def shuffle_0101_case(x):
    store4(x, 20, shuffle_0101(load4(x, 0)))


def shuffle_2301_case(x):
    store4(x, 20, shuffle_2301(load4(x, 0)))


def shuffle_0132_case(x):
    store4(x, 20, shuffle_0132(load4(x, 0)))


def horizontal_sums_case(x):
    store4(x, 20, horizontal_sums(load4(x, 0), load4(x, 4), load4(x, 8), load4(x, 12)))


def sqrt_nonnegative_case(x):
    store4(x, 20, sqrt_nonnegative(load4(x, 0)))


def no_unroll_case(x):
    total = broadcast4(0.0)
    for i in range(5):
        no_unroll()
        total += load4(x, i)
    store4(x, 20, total)


def plus_case(x):
    store4(x, 20, load4(x, 0) + load4(x, 4))


def minus_case(x):
    store4(x, 20, load4(x, 0) - load4(x, 4))


def times_case(x):
    store4(x, 20, load4(x, 0) * load4(x, 4))


def nested_case(x):
    store4(x, 20, load4(x, 0) * load4(x, 4) - load4(x, 8) * load4(x, 12) + load4(x, 2))  # must not be fused


CASES = {name.removesuffix("_case"): case for name, case in list(globals().items()) if name.endswith("_case")}


def evaluate_with_references(case, x):
    """Run a case in the interpreter, with the NumPy reference of each operation in place of the intrinsic."""
    type(case)(case.__code__, globals() | REFERENCES)(x)


def test_every_operation_has_a_case():
    assert set(REFERENCES) <= set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_compiled_operation_equals_reference_bit_for_bit(name):
    compiled = kernel(CASES[name])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=SIZE) * 10.0 ** rng.integers(-8, 8, SIZE)
        expected = x.copy()
        evaluate_with_references(CASES[name], expected)
        compiled(x)
        assert x.tobytes() == expected.tobytes()  # nothing else is written either


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (shuffle_0101_case, [1.0, 2.0, 1.0, 2.0]),
        (shuffle_2301_case, [3.0, -4.0, 1.0, 2.0]),
        (shuffle_0132_case, [1.0, 2.0, -4.0, 3.0]),
        (sqrt_nonnegative_case, [1.0, np.sqrt(2.0), np.sqrt(3.0), 0.0]),
        (horizontal_sums_case, [2.0, 4.0, 4.0, 4.0]),
    ],
)
def test_operation_has_its_documented_result(case, expected):
    x = np.ones(SIZE)
    x[:4] = 1.0, 2.0, 3.0, -4.0
    kernel(case)(x)
    assert x[RESULT : RESULT + 4].tolist() == expected


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 5), (3, 4, 5)])
def test_aligned_zeros_start_at_a_cache_line(shape):
    for _ in range(10):
        x = aligned_zeros(*shape)
        assert x.shape == shape
        assert x.flags.c_contiguous
        assert x.ctypes.data % 64 == 0
        assert not x.any()
