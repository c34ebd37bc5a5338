"""What every policy says of itself live: the law of its choices, what it expects, and steps without a reward."""

import math
from typing import Any

import numpy as np
import pytest

import larl
from larl._core.compile import compiled_for, copy_fields
from larl.live.kernels import choose, replay
from larl.policies import Policy
from tests.conftest import THREE_ARMS

DRAWS = 4_000


def after(spec: Policy, steps: int, missing: float = 0.0, seed: int = 0) -> Any:
    """A State after `steps` random arms and their rewards, some of them missing."""
    draws = np.random.default_rng(seed)
    rewards = draws.normal(size=steps)
    rewards[draws.random(steps) < missing] = math.nan
    return taught(spec, draws.integers(3, size=steps), rewards)


def taught(spec: Policy, arms: Any, rewards: Any) -> Any:
    state = copy_fields(spec.init(3, horizon=40, world=THREE_ARMS))
    replay(state, np.zeros((arms.size, 0)), arms, rewards, 0, arms.size)
    return state


def laws(state: Any, available: list[bool], draws: int = 1, min_probability: float = 0.0) -> tuple[Any, Any, Any]:
    """The probabilities of the arms, what is expected of each, and how often each was chosen."""
    out, notes, counts, can = np.zeros(3), np.zeros(3), np.zeros(3, dtype=np.int64), np.array(available)
    fixed = (state, np.zeros(0), np.uint64(7), np.uint64(8))
    call = compiled_for(choose, *fixed, 0, 0.5, can, out, notes)
    seen = np.full((3, 2), math.nan)
    for t in range(draws):
        arm = call(*fixed, t, min_probability, can, out, notes)
        counts[arm] += 1
        seen[arm] = notes[:2]
    return out, seen, counts


@pytest.mark.parametrize("steps", [0, 1, 7, 30])
def test_odds_are_the_law_of_act(spec: Policy, steps: int) -> None:
    out, _, counts = laws(after(spec, steps, 0.2), [True, True, True], DRAWS)
    assert out.sum() == pytest.approx(1.0, abs=1e-12)
    assert out.min() >= 0.0
    error = np.sqrt(DRAWS * out * (1.0 - out))
    assert np.all(np.abs(counts - DRAWS * out) <= 4.0 * error + 1e-6)


@pytest.mark.parametrize("steps", [0, 1, 7, 30])
def test_closed_arms_are_not_chosen(spec: Policy, steps: int) -> None:
    state = after(spec, steps)
    for available in ([True, False, True], [False, True, True], [False, False, True], [True, False, False]):
        out, _, _ = laws(state, available)
        assert np.all(out[~np.array(available)] == 0.0)
        assert out.sum() == pytest.approx(1.0, abs=1e-12)
        whole, _, _ = laws(state, [True, True, True])
        if np.max(whole * available) == 1.0:  # an open arm that is surely chosen among all is chosen among some
            assert out.tolist() == whole.tolist()


def test_a_look_changes_nothing_and_missing_rewards_leave_no_nan(spec: Policy) -> None:
    state = after(spec, 30, 0.3)
    before = copy_fields(state)
    out, seen, _ = laws(state, [True, True, False], 10)
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
def test_what_is_expected_is_in_the_rewards_own_units(spec: Policy) -> None:
    draws = np.random.default_rng(1)
    arms = draws.integers(3, size=90)
    state = taught(spec, arms, 1000.0 + np.array([-20.0, 0.0, 30.0])[arms] + draws.normal(size=90))
    _, seen, _ = laws(state, [True] * 3, 200, 1 / 3)
    loose = 40.0 if isinstance(spec, larl.UCB) else 10.0  # its penalty draws means towards 0
    assert seen[:, 0] == pytest.approx([980.0, 1000.0, 1030.0], abs=loose)
    assert np.all(seen[:, 1] >= 0.0)
