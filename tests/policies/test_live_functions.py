"""The functions that agents use, for every policy: action probabilities, predictions and missing rewards."""

import math
from typing import Any

import numpy as np
import pytest

import larl
from larl._core.states import copy_state
from larl.policies import Policy
from larl.policies._deployment import Deployment
from tests.conftest import world_of
from tests.stepping import Chooser, learn_all

DRAWS = 2_000


def after(spec: Policy, steps: int, missing: float = 0.0, seed: int = 0) -> Any:
    """Return a State after `steps` random arms and rewards, some of them missing."""
    draws = np.random.default_rng(seed)
    rewards = draws.normal(size=steps)
    rewards[draws.random(steps) < missing] = math.nan
    return updated_state(spec, draws.integers(3, size=steps), rewards)


def updated_state(spec: Policy, arms: Any, rewards: Any) -> Any:
    state = copy_state(spec.init(3, horizon=40, world=world_of(spec)))
    learn_all(state, arms, rewards)
    return state


def simulate_choices(
    state: Any, available: list[bool], draws: int = 1, min_probability: float = 0.0
) -> tuple[Any, Any, Any]:
    """Return the action probabilities, the predictions of the chosen arms, and how often each arm was chosen."""
    rules = Deployment().rules("test", larl.Random(), ["0", "1", "2"])
    rules = rules._replace(equal_minimum=min_probability, minimum=np.full(3, min_probability))
    chooser = Chooser(state, 3, rules)
    counts, seen = chooser.choose_often(draws, available)
    return chooser.probabilities, seen, counts


@pytest.mark.parametrize("steps", [0, 1, 7, 30])
def test_action_probabilities_are_the_frequencies_of_act(spec: Policy, steps: int) -> None:
    out, _, counts = simulate_choices(after(spec, steps, 0.2), [True, True, True], DRAWS)
    assert out.sum() == pytest.approx(1.0, abs=1e-12)
    assert out.min() >= 0.0
    error = np.sqrt(DRAWS * out * (1.0 - out))
    assert np.all(np.abs(counts - DRAWS * out) <= 4.0 * error + 1e-6)


@pytest.mark.parametrize("steps", [0, 1, 7, 30])
def test_unavailable_arms_are_not_chosen(spec: Policy, steps: int) -> None:
    state = after(spec, steps)
    for available in ([True, False, True], [False, True, True], [False, False, True], [True, False, False]):
        out, _, _ = simulate_choices(state, available)
        assert np.all(out[~np.array(available)] == 0.0)
        assert out.sum() == pytest.approx(1.0, abs=1e-12)
        unrestricted, _, _ = simulate_choices(state, [True, True, True])
        if np.max(unrestricted * available) == 1.0:  # removing other arms does not change a certain choice
            assert out.tolist() == unrestricted.tolist()


def test_decide_does_not_change_the_state_and_missing_rewards_leave_no_nan(spec: Policy) -> None:
    state = after(spec, 30, 0.3)
    before = copy_state(state)
    out, seen, _ = simulate_choices(state, [True, True, False], 10)
    assert np.all(np.isfinite(out))
    assert not np.any(np.isinf(seen[:, 0]))
    for one, other in zip(leaves(before), leaves(state), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def leaves(state: Any) -> list[Any]:
    return [leaf for field in state for leaf in (leaves(field) if isinstance(field, tuple) else [field])]


SHIFTS = [
    larl.UCB(),
    larl.DiscountedUCB(0.9),
    larl.AdaptiveLARL(2),
    larl.SharedLARL(2),
    larl.Auto(orders=(1,), particles=16),
]


@pytest.mark.parametrize("spec", SHIFTS, ids=str)
def test_predictions_are_in_units_of_the_reward(spec: Policy) -> None:
    draws = np.random.default_rng(1)
    arms = draws.integers(3, size=90)
    state = updated_state(spec, arms, 1000.0 + np.array([-20.0, 0.0, 30.0])[arms] + draws.normal(size=90))
    _, seen, _ = simulate_choices(state, [True] * 3, 200, 1 / 3)
    tolerance = 40.0 if isinstance(spec, larl.UCB) else 10.0  # its penalty shrinks means towards 0
    assert seen[:, 0] == pytest.approx([980.0, 1000.0, 1030.0], abs=tolerance)
    assert np.all(seen[:, 1] >= 0.0)
