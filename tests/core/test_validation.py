"""Numbers of numpy's types are accepted as Python's are, without warnings (which are errors in tests)."""

from typing import Any

import numpy as np
import pytest

import larl
from larl._core.validation import InvalidValue, matrix, number, numbers

KINDS = [np.float16, np.float32, np.float64, np.longdouble, np.int8, np.uint8, np.int64, np.uint64]


@pytest.mark.parametrize("kind", KINDS)
def test_every_numeric_type_of_numpy_is_a_number(kind: Any) -> None:
    for check, value, expected in (
        (number(), kind(3), 3.0),
        (number(0.0, 1e50), kind(3), 3.0),
        (numbers(), np.array([1, 2], kind), (1.0, 2.0)),
        (matrix(), np.array([[1, 2], [3, 4]], kind), ((1.0, 2.0), (3.0, 4.0))),
    ):
        result = check("owner", "name", value)
        assert result == expected
        assert type(result) is type(expected)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64])
def test_the_smallest_integer_of_a_type_is_a_number(kind: Any) -> None:
    smallest = np.iinfo(kind).min
    assert number()("owner", "name", kind(smallest)) == float(smallest)


@pytest.mark.parametrize("value", [np.float32(np.inf), np.float16(np.nan), np.longdouble("1e300"), np.float64(-1e101)])
def test_numbers_of_numpy_that_are_not_finite_or_too_large_are_refused(value: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^owner: name = .* is not usable; accepted: a finite number"):
        number()("owner", "name", value)


def test_an_agent_accepts_rewards_and_contexts_of_short_floats() -> None:
    agent = larl.Agent(larl.LARL(s=0, context=2), 2)
    decision = agent.decide(context=np.array([1, 2], np.float32))
    assert agent.observe(decision, np.float32(1)) == "learnt"
    assert agent.observe(decision, np.float16(1)) == "repeated"
