"""Compiled row operations equal their NumPy references bit for bit."""

import inspect

import numba
import numpy as np
import pytest

from larl.policies.auto import soa
from larl.policies.auto.soa import LANES, REFERENCES


def test_every_operation_has_a_reference():
    assert set(REFERENCES) == {
        "copy",
        "add",
        "subtract",
        "elementwise_max",
        "add_nan_if_nonfinite",
        "reciprocal",
        "multiply",
        "add_product",
        "subtract_product",
        "sum_product",
    }


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("rows", [(0, 1, 2, 3), (2, 2, 1, 0), (3, 1, 3, 3)])  # also rows that are both read and written
def test_compiled_operation_equals_reference_bit_for_bit(name, rows):
    operation, count = getattr(soa, name), len(inspect.signature(REFERENCES[name]).parameters) - 1
    compiled = {
        2: lambda: numba.njit(lambda x, t, a: operation(x, t, a)),
        3: lambda: numba.njit(lambda x, t, a, b: operation(x, t, a, b)),
        4: lambda: numba.njit(lambda x, t, a, b, c: operation(x, t, a, b, c)),
    }[count]()
    x = np.random.default_rng(1).normal(size=(4, LANES))
    expected = x.copy()
    REFERENCES[name](expected, *rows[:count])
    compiled(x, *rows[:count])
    assert x.tobytes() == expected.tobytes()


def test_nonfinite_lanes_become_nan_and_finite_lanes_do_not_change():
    x = np.random.default_rng(2).normal(size=(2, LANES))
    x[1, :3] = np.nan, np.inf, -np.inf
    expected = x.copy()
    expected[0, :3] = np.nan
    numba.njit(lambda x: soa.add_nan_if_nonfinite(x, 0, 1))(x)
    assert np.array_equal(x, expected, equal_nan=True)
