"""Row operations in vector instructions give the numbers that their definitions give, and touch nothing else."""

import numba
import numpy as np
import pytest

from larl.policies._spans import add_rows, subtract_products


@numba.njit
def subtract(x, at, other, weight, second, y, count):
    subtract_products(x, at, other, weight, second, y, count)


@numba.njit
def add(x, weight, y, first, second, count):
    add_rows(x, weight, y, first, second, count)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8, 11, 40])
def test_rows_are_what_their_definition_says(count):
    rng = np.random.default_rng(count)
    y, x = rng.normal(size=100), rng.normal(size=100)
    expected = x.copy()
    expected[2 : 2 + count] -= 0.3 * y[:count]
    expected[51 : 51 + count] -= 0.7 * y[:count]
    subtract(x, 2, 51, 0.3, 0.7, y, count)
    assert np.array_equal(x, expected)
    expected[:count] += 0.9 * y[5 : 5 + count] + y[47 : 47 + count]
    add(x, 0.9, y, 5, 47, count)
    assert np.array_equal(x, expected)
