"""Auto after a change of the world: dropped populations are started again and take over. Still arms: the best wins."""

import math

import numpy as np
import pytest

from tests.policies.test_auto import SMALL
from tests.stepping import decide, learn

STEPS, CHANGE = 400, 200


def changing_trial(seed, can_restart=True):
    """Return the State after a trial, the regret of each step, and the living populations after each.

    At step CHANGE, the autocorrelation of the state and the β of one arm change their signs.
    """
    rng, state, z, regret, alive = np.random.default_rng(seed), SMALL.init(2), 0.0, [], []
    for t in range(STEPS):
        sign = 1.0 if t < CHANGE else -1.0
        z = 0.9 * sign * z + 0.5 * rng.normal()
        means, noise = z * np.array([0.4, -1.2 * sign]), 0.3 * rng.normal()
        arm = decide(state, int(rng.integers(2**62)))
        learn(state, arm, means[arm] + noise)
        if not can_restart:
            state.smc.relearnt[0] = STEPS  # populations restart no earlier than 30 steps after this one
        regret.append(means.max() - means[arm])
        alive.append(state.smc.populations.alive.copy())
    return state, np.array(regret), np.array(alive)


def test_restarted_population_dominates_after_a_change():
    state, _, alive = changing_trial(0)
    pops = state.smc.populations
    best = np.argmax(np.where(pops.alive, pops.evidence, -np.inf))
    assert pops.born[best] > CHANGE - 30
    came_back = ~alive[:-1] & alive[1:]
    assert came_back.sum() > 3


def test_no_population_returns_if_restarts_are_prevented():
    state, _, alive = changing_trial(0, can_restart=False)
    assert (state.smc.populations.born == 0).all()
    assert not (~alive[:-1] & alive[1:]).any()


def test_restarts_reduce_regret_after_a_change():
    pairs = [[changing_trial(seed, can)[1][CHANGE:].sum() for can in (True, False)] for seed in range(12)]
    ratio = np.array([without - 1.5 * regret for regret, without in pairs])  # by more than a third
    assert ratio.mean() > 3.0 * ratio.std(ddof=1) / math.sqrt(ratio.size)


def births(rewards):
    """Return the steps at which populations of the State after these rewards, of two arms in turn, started."""
    state = SMALL.init(2)
    for t, reward in enumerate(rewards):
        learn(state, t % 2, float(reward))
    return set(state.smc.populations.born.tolist())


@pytest.mark.parametrize("seed", range(4))
def test_no_population_restarts_on_equal_rewards(seed):
    rng, rewards, z = np.random.default_rng(seed), np.zeros(61), 0.0
    for t in range(61):
        z = 0.9 * z + 0.5 * rng.normal()
        rewards[t] = (2.0 if t % 2 else -2.0) * z + 0.2 * rng.normal()
    assert 45 in births(rewards)  # at step 60, from the rewards of the last 15 steps on
    rewards[46:54] = 0.0
    assert 45 not in births(rewards)


def test_restarts_do_not_mislead_where_counts_repeat():
    rates, regret = np.array([0.2, 0.6, 1.0, 1.5]), []
    for seed in range(24):
        rng, state, chosen = np.random.default_rng(seed), SMALL.init(4), []
        for _ in range(400):
            chosen.append(decide(state, int(rng.integers(2**62))))
            learn(state, chosen[-1], -float(rng.poisson(rates[chosen[-1]])))
        regret.append(np.mean(rates[chosen[100:]]) - rates[0])
    assert 0.1 - np.mean(regret) > 3.0 * np.std(regret, ddof=1) / math.sqrt(len(regret))


def test_best_of_still_arms_is_played_at_the_end():
    trials, shares = 60, []
    for seed in range(trials):
        rng, state, chosen = np.random.default_rng(seed), SMALL.init(3), []
        for _ in range(150):
            chosen.append(decide(state, int(rng.integers(2**62))))
            learn(state, chosen[-1], 0.5 * chosen[-1] + rng.normal())
        shares.append(np.mean(np.array(chosen[110:]) == 2))
    assert np.mean(shares) - 0.8 > 3.0 * np.std(shares, ddof=1) / math.sqrt(trials)
