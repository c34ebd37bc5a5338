"""Row operations as compiled against the numpy that defines them."""

import numba
import numpy as np
import pytest

from larl.policies.auto import soa as _rows
from larl.policies.auto.soa import LANES

DEFINED = {
    "copy": lambda x, t, a: x[a],
    "add": lambda x, t, a: x[t] + x[a],
    "subtract": lambda x, t, a: x[t] - x[a],
    "raise_to": lambda x, t, a: np.maximum(x[t], x[a]),
    "add_not_finite": lambda x, t, a: x[t] + (x[a] - x[a]),
    "invert": lambda x, t, a: 1.0 / x[a],
    "multiply": lambda x, t, a, b: x[a] * x[b],
    "add_product": lambda x, t, a, b: x[t] + x[a] * x[b],
    "subtract_product": lambda x, t, a, b: x[t] - x[a] * x[b],
    "sum_product": lambda x, t, a, b, c: x[a] + x[b] * x[c],
}


@pytest.mark.parametrize("name", DEFINED)
@pytest.mark.parametrize("rows", [(0, 1, 2, 3), (2, 2, 1, 0), (3, 1, 3, 3)])  # also rows that are both read and written
def test_an_operation_is_its_definition_bit_for_bit(name, rows):
    operation, count = getattr(_rows, name), DEFINED[name].__code__.co_argcount - 1
    compiled = {
        2: lambda: numba.njit(lambda x, t, a: operation(x, t, a)),
        3: lambda: numba.njit(lambda x, t, a, b: operation(x, t, a, b)),
        4: lambda: numba.njit(lambda x, t, a, b, c: operation(x, t, a, b, c)),
    }[count]()
    x = np.random.default_rng(1).normal(size=(4, LANES))
    expected = x.copy()
    expected[rows[0]] = DEFINED[name](x, *rows[:count])
    compiled(x, *rows[:count])
    assert x.tobytes() == expected.tobytes()
