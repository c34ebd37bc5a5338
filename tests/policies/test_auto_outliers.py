"""Auto and outliers: one or two large errors are ignored, three in a row are followed."""

import math

import numpy as np
import pytest

from larl.policies.auto.layout import CONTINUOUS, ModelKind, field_offsets
from tests.policies.test_auto import SMALL, replay_steps
from tests.stepping import learn


def history(steps, seed):
    """Return arms in random order and rewards of a slowly changing state, with noise of sd 1."""
    rng = np.random.default_rng(seed)
    arms, z = rng.integers(0, 2, steps), np.zeros(steps)
    for t in range(1, steps):
        z[t] = 0.9 * z[t - 1] + 0.5 * rng.normal()
    return arms, np.where(arms == 0, -1.0, 1.0) * z + rng.normal(size=steps)


def learnt(arms, rewards, spec=SMALL):
    """Return the State after these rewards."""
    state = spec.init(2)
    for arm, reward in zip(arms, rewards, strict=True):
        learn(state, int(arm), float(reward))
    return state


def predicted(state):
    """Return the predicted means of the arms."""
    return state.mean + state.smc.offset[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [30.0, -30.0, 1000.0])
def test_isolated_outlier_has_almost_the_effect_of_a_missing_reward(seed, size):
    arms, rewards = history(61, seed)
    outlying, missing = rewards.copy(), rewards.copy()
    outlying[60] += size
    missing[60] = math.nan
    state = learnt(arms, outlying)
    assert list(np.flatnonzero(state.smc.history.inflation > 1.0)) == [60]
    difference = predicted(state) - predicted(learnt(arms, missing))
    assert np.abs(difference).max() < 0.15  # in standard deviations of the noise


@pytest.mark.parametrize("seed", range(4))
def test_three_large_errors_in_a_row_are_followed(seed):
    arms, rewards = history(100, seed)
    rewards[60:] += 30.0
    two, three, many = (learnt(arms[:steps], rewards[:steps]) for steps in (62, 63, 100))
    assert list(np.flatnonzero(two.smc.history.inflation > 1.0)) == [60, 61]
    assert not (three.smc.history.inflation[:63] > 1.0).any()
    assert np.abs(predicted(two)).max() < 3.0
    assert np.mean(predicted(many)) > 25.0


@pytest.mark.parametrize("seed", range(4))
def test_a_pair_of_outliers_stays_marked_after_the_review(seed):
    arms, rewards = history(120, seed)
    rewards[60], rewards[61] = rewards[60] + 30.0, rewards[61] - 30.0
    assert (learnt(arms, rewards).smc.history.inflation[60:62] > 1.0).all()


@pytest.mark.parametrize("seed", range(4))
def test_reward_that_occurred_before_is_not_an_outlier(seed):
    arms, rewards = history(95, seed)
    rewards[30], rewards[70] = 30.0, 30.0
    before, after, reviewed = (learnt(arms[:steps], rewards[:steps]).smc.history.inflation for steps in (70, 71, 95))
    assert list(np.flatnonzero(before > 1.0)) == [30]
    assert list(np.flatnonzero(after > 1.0)) == [30]
    assert not (reviewed[[30, 70]] > 1.0).any()  # reviewed after 90 rewards
    rewards[70] = 31.0
    assert (learnt(arms, rewards).smc.history.inflation[[30, 70]] > 1.0).all()


@pytest.mark.parametrize("seed", range(4))
def test_missing_rewards_do_not_interrupt_a_run(seed):
    arms, rewards = history(65, seed)
    rewards[60:] += 30.0
    rewards[61], rewards[63] = math.nan, math.nan
    assert not (learnt(arms, rewards).smc.history.inflation > 1.0).any()


@pytest.mark.parametrize("seed", range(4))
def test_unmarking_gives_the_log_likelihoods_of_a_history_without_marks(seed):
    # After the third error, the weights are corrected for the others: replaying the history changes nothing.
    arms, rewards = history(63, seed)
    rewards[60:] += 30.0
    smc = learnt(arms, rewards).smc
    for population in np.flatnonzero(smc.populations.alive):
        pops = smc.populations
        kind = ModelKind(2, int(pops.order[population]), int(pops.form[population]), CONTINUOUS)
        fields, top = field_offsets(kind), int(pops.top[population])
        x = smc.data[top : top + fields.end].copy()
        born, first, seen = int(pops.born[population]), int(pops.first[population]), float(pops.seen[population])
        replay_steps(x, fields, kind, smc.history, born, first, 63, seen, float(pops.prior_square[population]))
        np.testing.assert_allclose(x[fields.log_lik], smc.data[top + fields.log_lik], atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_normal_rewards_have_no_outliers(seed):
    arms, rewards = history(150, seed)
    assert (learnt(arms, rewards).smc.history.inflation == 1.0).all()
