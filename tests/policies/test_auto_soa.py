"""Compiled operations on rows equal their NumPy references bit for bit."""

import operator

import numpy as np
import pytest

from larl._core.compile import kernel
from larl.policies.auto.soa import (
    LANES,
    MAX_EXP,
    REFERENCES,
    broadcast,
    exp,
    exponent,
    load,
    mantissa,
    maximum,
    minimum,
    scale_by_power,
    square_root,
    store,
    sum_lanes,
    where_positive,
)

# One case per operation: it reads rows 0 … 2 and writes row 3. `load` and `store` are in all of them.
CASES = {
    "load": lambda x: store(x, 3, load(x, 1)),
    "store": lambda x: store(x, 3, load(x, 0)),
    "broadcast": lambda x: store(x, 3, broadcast(x[1, 5])),
    "maximum": lambda x: store(x, 3, maximum(load(x, 0), load(x, 1))),
    "minimum": lambda x: store(x, 3, minimum(load(x, 0), load(x, 1))),
    "square_root": lambda x: store(x, 3, square_root(load(x, 2))),
    "where_positive": lambda x: store(x, 3, where_positive(load(x, 0), load(x, 1), load(x, 2))),
    "exponent": lambda x: store(x, 3, exponent(load(x, 2))),
    "mantissa": lambda x: store(x, 3, mantissa(load(x, 2))),
    "scale_by_power": lambda x: store(x, 3, scale_by_power(load(x, 2), exponent(load(x, 2)))),
    "sum_lanes": lambda x: store(x, 3, broadcast(sum_lanes(load(x, 0)))),
}
OPERATORS = {
    "+": lambda x: store(x, 3, load(x, 0) + load(x, 1)),
    "-": lambda x: store(x, 3, load(x, 0) - load(x, 1)),
    "*": lambda x: store(x, 3, load(x, 0) * load(x, 1)),
    "/": lambda x: store(x, 3, load(x, 0) / load(x, 1)),
    "a + b * c": lambda x: store(x, 3, load(x, 0) + load(x, 1) * load(x, 2)),  # not fused
    "a - b * c": lambda x: store(x, 3, load(x, 0) - load(x, 1) * load(x, 2)),
}
NUMPY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "a + b * c": lambda a, b, c: a + b * c,
    "a - b * c": lambda a, b, c: a - b * c,
}
ARGUMENTS = {"load": [1], "store": [0], "square_root": [2], "exponent": [2], "mantissa": [2], "sum_lanes": [0]}


def rows(seed):
    """Return rows of normal numbers, and one of positive numbers of very different sizes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(4, LANES))
    x[2] = np.exp(rng.uniform(-200.0, 200.0, LANES))
    return x


def expected(name, x):
    """Return the NumPy reference of a case."""
    reference = REFERENCES[name]
    if name in ("load", "store"):
        return x[ARGUMENTS[name][0]]
    if name == "broadcast":
        return reference(x[1, 5])
    if name == "scale_by_power":
        return reference(x[2].copy(), REFERENCES["exponent"](x[2].copy()))
    count = 3 if name == "where_positive" else 2
    found = reference(*(x[i].copy() for i in ARGUMENTS.get(name, range(count))))
    return np.full(LANES, found) if name == "sum_lanes" else found


def test_every_operation_has_a_case():
    assert set(REFERENCES) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_compiled_operation_equals_reference_bit_for_bit(name):
    x = rows(1)
    before = x.copy()
    kernel(CASES[name])(x)
    assert x[3].tobytes() == np.asarray(expected(name, before)).tobytes()
    assert x[:3].tobytes() == before[:3].tobytes()


@pytest.mark.parametrize("name", OPERATORS)
def test_compiled_operator_equals_numpy_bit_for_bit(name):
    x = rows(2)
    kernel(OPERATORS[name])(x)
    count = 3 if "c" in name else 2
    assert x[3].tobytes() == NUMPY[name](*x[:count]).tobytes()


def test_exponent_and_mantissa_multiply_to_the_number():
    x = rows(3)[2]
    e, m = REFERENCES["exponent"](x), REFERENCES["mantissa"](x)
    assert ((m >= 1.0) & (m < 2.0)).all()
    np.testing.assert_array_equal(np.ldexp(m, e.astype(int)), x)
    np.testing.assert_array_equal(REFERENCES["scale_by_power"](m, e), x)


def test_maximum_and_minimum_return_the_second_number_beside_nan():
    for name in ("maximum", "minimum"):
        x = rows(4)
        x[0, 2] = np.nan
        kernel(CASES[name])(x)
        assert x[3, 2] == x[1, 2]


@pytest.mark.parametrize("scale", [1e-9, 0.3, 20.0, 690.0])
def test_exponential_function_is_accurate(scale):
    x = np.random.default_rng(5).uniform(-scale, scale, size=(2, LANES))
    kernel(lambda x: store(x, 1, exp(load(x, 0))))(x)
    np.testing.assert_allclose(x[1], np.exp(x[0]), rtol=2e-15)


def test_exponential_function_limits_its_argument():
    x = np.zeros((2, LANES))
    x[0, :4] = -np.inf, -1e300, 1e300, np.inf
    kernel(lambda x: store(x, 1, exp(load(x, 0))))(x)
    np.testing.assert_allclose(x[1, :5], np.exp([-MAX_EXP, -MAX_EXP, MAX_EXP, MAX_EXP, 0.0]), rtol=2e-15)
