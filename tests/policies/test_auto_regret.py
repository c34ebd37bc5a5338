"""Auto in whole trials: its regret, its bounded memory, and rewards that are no help."""

import math

import numpy as np

import larl
from larl import worlds
from larl._core.random import policy_bits
from tests.policies.test_auto import SMALL, run_trial
from tests.stepping import decide, learn


def test_all_arms_are_played_while_rewards_are_equal():
    state, chosen = SMALL.init(3), set()
    for t in range(30):
        arm = decide(state, int(policy_bits(1, 1, t)))
        chosen.add(arm)
        learn(state, arm, 3.0)
    assert chosen == {0, 1, 2}
    learn(state, 0, 2.0)
    assert np.isfinite(state.score).all()


def test_memory_limits_the_history_and_has_no_effect_before_it_is_full():
    world = worlds.paper(1)
    full, short = (larl.Auto(orders=(1, 2), particles=32, memory=memory) for memory in (200, 40))
    _, chosen = run_trial(full, world, 80)
    _, other = run_trial(short, world, 80)
    assert chosen == other  # the first 2 × 40 steps are all replayed
    state, _ = run_trial(short, world, 200)
    pops = state.smc.populations
    assert state.smc.history.arm.size == 80
    is_old = pops.alive & (pops.born == 0)
    assert is_old.any()
    assert set(pops.first[is_old]) == {160}  # windows rolled after 80 and 160 steps
    assert (pops.first[pops.alive] > 200 - 80).all()
    assert (pops.next[pops.alive] == 200).all()


def test_relabelling_arms_does_not_change_mean_regret():
    # The same noise with the arms swapped. Particles are drawn by arm number, so single choices may differ.
    trials, world = 60, larl.LatentAR(gammas=(0.8,), beta=(-1.0, 0.6), mu=(0.3, 0.0))
    swapped = larl.LatentAR(gammas=(0.8,), beta=(0.6, -1.0), mu=(0.0, 0.3))
    totals = [
        larl.compare({"Auto": SMALL}, each, horizon=60, trials=trials, seed=9).total().values.ravel()
        for each in (world, swapped)
    ]
    difference = totals[0] - totals[1]
    assert abs(difference.mean()) < 4.0 * difference.std(ddof=1) / math.sqrt(trials)


def test_regret_is_between_larl_bic_and_kalman_oracle():
    trials = 60
    policies = {"Auto": larl.Auto(), "BIC": larl.LARLBIC(40), "Kalman": larl.KalmanOracle()}
    total = larl.compare(policies, worlds.paper(1), horizon=200, trials=trials, seed=10).total("k")
    auto_regret, bic, kalman = (total.sel(policy=name).values for name in policies)
    closed = bic - auto_regret - 0.6 * (bic - kalman)  # over 60% of the gap
    assert closed.mean() > 4.0 * closed.std(ddof=1) / math.sqrt(trials)
    assert (auto_regret - kalman).mean() > 0.0


def test_regret_with_stationary_arms_is_not_above_ucb():
    trials = 60
    world = larl.LatentAR(gammas=(0.0,), beta=(0.0, 0.0, 0.0), mu=(0.0, 0.5, 1.0), noise="common")
    total = larl.compare({"Auto": larl.Auto(), "UCB": larl.UCB()}, world, horizon=200, trials=trials, seed=11).total()
    difference = (total.sel(policy="Auto") - total.sel(policy="UCB")).values
    assert difference.mean() < 3.0 * difference.std(ddof=1) / math.sqrt(trials)
