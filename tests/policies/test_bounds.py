"""Every whole number of a State has declared bounds, and play never leaves them."""

import math
from typing import Any

import numpy as np
import pytest

import larl
from larl._core.states import copy_state
from larl.policies import Policy
from larl.policies._bounds import MAX_STEPS, check_state, state_arrays, state_bounds
from larl.policies._pooling import pooled_state
from tests.conftest import world_of
from tests.stepping import learn, units_of

STEPS = 260


def initial_state(spec: Policy) -> Any:
    return copy_state(spec.init(3, horizon=STEPS, world=world_of(spec)))


def undeclared(state: Any) -> set[str]:
    whole = {name for name, array in state_arrays(state).items() if array.dtype.kind != "f"}
    return whole - set(state_bounds(state, state))


def test_every_whole_number_has_bounds(spec: Policy) -> None:
    state = initial_state(spec)
    assert undeclared(state) == set()
    check_state(state, state)


POOLED = [larl.LARL(2), larl.LARL(1, context=3), larl.LARL(1, standardise=True), larl.UCB(), larl.UCB(standardise=True)]
POOLED += [larl.CohortLARL(s=2), larl.CohortLARL(s=2, context=3), larl.CohortAuto(), larl.CohortAuto(context=2)]


@pytest.mark.parametrize("spec", POOLED, ids=str)
@pytest.mark.parametrize("pooling", ["full", "partial"])
def test_every_whole_number_of_a_pooled_state_has_bounds(spec: Policy, pooling: str) -> None:
    state = pooled_state(spec, copy_state(spec.init(3)), pooling)
    assert undeclared(state) == set()
    check_state(state, units_of(state, 4).stacked())


def test_play_stays_in_bounds(spec: Policy) -> None:
    initial, draws = initial_state(spec), np.random.default_rng(1)
    state = copy_state(initial)
    for t in range(STEPS):
        is_missing = t % 11 == 3 or 150 <= t < 160
        learn(state, int(draws.integers(3)), math.nan if is_missing else round(float(draws.normal()), 1))
        if t % 13 == 0:
            check_state(initial, state)
    check_state(initial, state)


def test_number_out_of_bounds_is_named() -> None:
    initial = larl.LARL(2).init(3)
    for name, index, value, message in (
        ("lags.indices", 1, 4, r"state lags\.indices\[1\] = 4, which is not between 1 and 3"),
        ("lags.indices", 0, -1, r"state lags\.indices\[0\] = -1, which is not between 0 and 0"),
        ("time", 0, MAX_STEPS + 1, rf"state time\[0\] = {MAX_STEPS + 1}"),
        ("ridge.theta", (0, 0), math.inf, r"state ridge\.theta contains an infinite number"),
        ("ridge.theta", (0, 0), math.nan, r"state ridge\.theta contains nan"),
    ):
        state = copy_state(initial)
        state_arrays(state)[name][index] = value
        with pytest.raises(ValueError, match=message):
            check_state(initial, state)
