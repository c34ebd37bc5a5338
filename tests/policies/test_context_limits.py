"""Contexts that are refused, in agents and in files, and contexts that differ by rounding errors."""

import numpy as np
import pytest

import larl
from larl._core.states import copy_state
from larl.policies import Policy
from larl.policies._bounds import check_state
from larl.policies._context_scale import FIRST
from larl.worlds.variants import Contextual
from tests.policies.test_context_policies import BASE, SPECS, WORLD, learn


def test_length_of_contexts_is_checked() -> None:
    for spec in SPECS:
        with pytest.raises(larl.InvalidValue, match=rf"{type(spec).__name__}: context = 3 .* 0 or 2"):
            larl.compare({"it": spec}, Contextual(BASE, eta=[[1.0, 0.0]] * 2), horizon=5, trials=1)
        agent = larl.Agent(spec, 2)
        for context in ([1.0], 5, "abc"):
            with pytest.raises(larl.InvalidValue, match="context"):
                agent.decide(context=context)  # type: ignore[arg-type]


def test_agents_with_the_oracle_refuse_contexts() -> None:
    with pytest.raises(larl.InvalidValue, match="a world without contexts"):
        larl.Agent(larl.KalmanOracle(), 2, world=WORLD)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_steps_with_a_reward_have_an_arm_in_files(spec: Policy) -> None:
    initial = spec.init(2)
    state = copy_state(initial)
    state.first_arm[0], state.is_missing[0] = -1, True
    check_state(initial, state)
    state.is_missing[0] = False
    with pytest.raises(ValueError, match="first_arm"):
        check_state(initial, state)


def test_rounding_errors_of_a_constant_context_are_not_its_scale() -> None:
    state = larl.SharedLARL(1, context=1).init(2)
    for t in range(FIRST + 8):
        learn(state, np.array([0.3 if t % 2 else 0.1 + 0.2]), t % 2, float(t % 3))
    assert state.scale[0, 1] == 0.0
