"""LARL and its relatives learn from binary rewards whose log-odds drift, without a special case."""

import math

import numpy as np
import pytest
from scipy.special import expit

import larl

GAMMA, STEPS, TRIALS = 0.95, 300, 20


def run(policy, trial, values=(0.0, 1.0)):
    """Return the arms of one trial, its regret and that of random arms; log-odds are ±2z_t, z_t is an AR(1) process."""
    rng, agent, regret, arms = np.random.default_rng(trial), larl.Agent(policy, 2, seed=trial), np.zeros(2), []
    z = rng.normal()
    for _ in range(STEPS):
        p, decision = expit(np.array([2.0 * z, -2.0 * z])), agent.decide()
        arms.append(int(decision.arm))
        agent.observe(decision, values[int(rng.random() < p[arms[-1]])])
        regret += p.max() - p[arms[-1]], p.max() - p.mean()
        z = GAMMA * z + math.sqrt(1.0 - GAMMA**2) * rng.normal()
    return arms, *regret


# Each policy, and a share of the regret of random arms that it stays below.
POLICIES = [
    (larl.LARL(1, standardise=True), 0.6),
    (larl.AdaptiveLARL(), 0.6),
    (larl.SharedLARL(), 0.5),
    (larl.DiscountedKLUCB(0.9), 0.4),
    (larl.DiscountedBetaThompson(0.9), 0.6),
]


@pytest.mark.parametrize(("policy", "share"), POLICIES, ids=str)
def test_regret_is_a_share_of_that_of_random_arms(policy, share):
    _, regret, of_random = np.array([run(policy, trial) for trial in range(TRIALS)], dtype=object).T
    excess = (regret - share * of_random).astype(float)
    assert excess.mean() < -3.0 * excess.std() / math.sqrt(TRIALS)


@pytest.mark.parametrize("policy", [policy for policy, _ in POLICIES[:3]], ids=str)
def test_neither_offset_nor_unit_of_the_two_values_matters(policy):
    arms, *_ = run(policy, 0)
    assert set(arms) == {0, 1}
    assert run(policy, 0, (-4.0, 4.0))[0] == arms
