"""Operations on four numbers at once give what their definitions say, to the last bit, and touch nothing else."""

import numba
import numpy as np
import pytest

from larl.policies._linalg.simd4 import (
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


@numba.njit
def arithmetic(x):
    store4(x, 8, load4(x, 0) + load4(x, 4))
    store4(x, 12, load4(x, 0) - load4(x, 4))
    store4(x, 16, load4(x, 0) * load4(x, 4))
    sums = load4(x, 0) * broadcast4(0.3)
    for i in range(1, 5):
        no_unroll()
        sums += load4(x, i)
    store4(x, 21, sums)


@numba.njit
def moves(x):
    store4(x, 4, shuffle_0101(load4(x, 0)))
    store4(x, 8, shuffle_2301(load4(x, 0)))
    store4(x, 12, shuffle_0132(load4(x, 0)))
    x[17] = extract_lane(load4(x, 0), 2)


@numba.njit
def ends(x):
    store4(x, 16, horizontal_sums(load4(x, 0), load4(x, 4), load4(x, 8), load4(x, 12)))
    store4(x, 20, sqrt_nonnegative(load4(x, 16)))


@pytest.mark.parametrize("seed", range(5))
def test_arithmetic(seed):
    x = np.random.default_rng(seed).normal(size=27)
    expected, a, b = x.copy(), x[:4], x[4:8]
    expected[8:20] = np.concatenate([a + b, a - b, a * b])
    sums = a * 0.3
    for i in range(1, 5):
        sums = sums + x[i : i + 4]
    expected[21:25] = sums
    arithmetic(x)
    assert np.array_equal(x, expected)


def test_moves():
    x = np.append([1.0, 2.0, 3.0, 4.0], np.full(16, 9.0))
    moves(x)
    assert x.tolist() == [1, 2, 3, 4, 1, 2, 1, 2, 3, 4, 1, 2, 1, 2, 4, 3, 9, 3, 9, 9]


def test_totals_and_roots():
    x = np.append(np.random.default_rng(0).normal(size=16), np.full(9, 9.0))
    ends(x)
    assert np.array_equal(x[16:20], [(a + b) + (c + d) for a, b, c, d in x[:16].reshape(4, 4)])
    assert 0 < np.sum(x[16:20] < 0) < 4
    assert np.array_equal(x[20:24], np.sqrt(np.maximum(x[16:20], 0.0)))
    assert x[24] == 9.0


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 5), (3, 4, 5)])
def test_aligned_zeros_begin_a_cache_line(shape):
    for _ in range(10):
        x = aligned_zeros(*shape)
        assert x.shape == shape
        assert x.flags.c_contiguous
        assert x.ctypes.data % 64 == 0
        assert not x.any()
