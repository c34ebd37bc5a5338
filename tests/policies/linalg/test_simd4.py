"""Operations on four numbers at once give what their definitions say, to the last bit, and touch nothing else."""

import numba
import numpy as np
import pytest

from larl.policies._linalg.simd4 import (
    again,
    aligned,
    as_it_stands,
    crossed,
    four,
    lane,
    put,
    roots,
    spread,
    totals,
    turned,
)


@numba.njit
def arithmetic(x):
    put(x, 8, four(x, 0) + four(x, 4))
    put(x, 12, four(x, 0) - four(x, 4))
    put(x, 16, four(x, 0) * four(x, 4))
    sums = four(x, 0) * spread(0.3)
    for i in range(1, 5):
        as_it_stands()
        sums += four(x, i)
    put(x, 21, sums)


@numba.njit
def moves(x):
    put(x, 4, again(four(x, 0)))
    put(x, 8, turned(four(x, 0)))
    put(x, 12, crossed(four(x, 0)))
    x[17] = lane(four(x, 0), 2)


@numba.njit
def ends(x):
    put(x, 16, totals(four(x, 0), four(x, 4), four(x, 8), four(x, 12)))
    put(x, 20, roots(four(x, 16)))


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
        x = aligned(*shape)
        assert x.shape == shape
        assert x.flags.c_contiguous
        assert x.ctypes.data % 64 == 0
        assert not x.any()
