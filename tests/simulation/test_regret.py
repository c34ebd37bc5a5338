"""Mean regret equals the table of an independent prototype, and closed forms."""

import numpy as np
import pytest

import larl
from larl import worlds
from larl.statespace.steady_state import steady_state

# The prototype's mean and standard error of total regret from t = k, T = 200, 4,000 trials, k = 1 / 5 / 10.
TABLE = {
    "Random": [(404.1, 1.2), (222.2, 0.4), (185.6, 0.2)],
    "Kalman": [(52.5, 0.2), (85.7, 0.2), (105.2, 0.2)],
    "LARL s=0": [(272.6, 1.9), (222.0, 0.5), (185.4, 0.3)],
    "LARL s=1": [(78.4, 0.3), (212.4, 0.5), (183.5, 0.3)],
    "LARL s=2": [(88.4, 0.4), (179.2, 0.6), (180.4, 0.4)],
    "LARL s=5": [(124.0, 0.6), (133.6, 0.3), (169.6, 0.4)],
    "LARL s=10": [(165.4, 0.8), (160.9, 0.4), (157.8, 0.3)],
    "LARL s=15": [(193.7, 0.9), (175.8, 0.4), (167.8, 0.3)],
    "BIC random": [(194.5, 0.9), (173.9, 0.5), (169.3, 0.4)],
    "BIC alternating": [(162.6, 0.8), (172.1, 0.5), (173.7, 0.3)],
    "AR-UCB": [(304.5, 2.0), (219.2, 0.6), (185.5, 0.4)],
}


@pytest.mark.parametrize(("column", "k"), [(0, 1), (1, 5), (2, 10)])
def test_mean_regret_equals_that_of_an_independent_prototype(column, k):
    policies = {
        "Random": larl.Random(),
        "Kalman": larl.KalmanOracle(),
        **{f"LARL s={s}": larl.LARL(s) for s in (0, 1, 2, 5, 10, 15)},
        "BIC random": larl.LARLBIC(40),
        "BIC alternating": larl.LARLBIC(41, explore_with="alternate"),
        "AR-UCB": larl.ARUCB(k),
    }
    result = larl.compare(policies, worlds.paper(k), horizon=200, trials=2000, seed=2025)
    summary = result.summary(skip=k)
    for name, row in TABLE.items():
        expected_mean, expected_error = row[column]
        mean, error = summary.loc[name, "mean"], summary.loc[name, "se"]
        # Both are estimates; the printed error is rounded to 0.1, so it may be 0.05 larger.
        allowed = 4 * np.hypot(error, expected_error + 0.05)
        assert abs(mean - expected_mean) < allowed, f"{name}, k={k}: {mean:.1f} ± {error:.2f} against {expected_mean}"


@pytest.mark.parametrize("k", [1, 5, 10])
def test_regret_of_random_equals_its_closed_form(k):
    # Arms ±z: the mean regret of Random is |z_t|, and E|z_t| = √(2 Var z_t/π), with Var z_t from the world's start.
    world = worlds.paper(k)
    cov, expected = world.start_moments[1], 0.0
    for _ in range(k, 200):
        cov = world.system.gamma @ cov @ world.system.gamma.T + world.system.noise
        expected += np.sqrt(2 * cov[0, 0] / np.pi)
    total = larl.compare({"it": larl.Random()}, world, horizon=200, trials=20_000, seed=1).total(skip=k).values
    assert total.mean() == pytest.approx(expected, abs=4 * total.std() / np.sqrt(total.size))


@pytest.mark.parametrize(("k", "known"), [(1, 0.2794), (5, 0.4705), (10, 0.5928)])
def test_regret_of_kalman_oracles_equals_the_regret_floor(k, known):
    # Two arms ±z in steady state: per step 2√S(1 − ρ)/√(2π) with ρ = √(1 − P₁₁/S).
    world = larl.LatentAR.from_dict(worlds.paper(k).to_dict() | {"start": "stationary"})
    variance, error = world.stationary_var, steady_state(world).cov[0, 0]
    floor = 2 * np.sqrt(variance) * (1 - np.sqrt(1 - error / variance)) / np.sqrt(2 * np.pi)
    assert floor == pytest.approx(known, abs=5e-5)
    result = larl.compare(
        {name: larl.KalmanOracle(filter=name) for name in ("exact", "steady")}, world, horizon=300, trials=4000
    )
    total = result.total(skip=100) / 200  # the filters have forgotten their start by then
    for name in ("exact", "steady"):
        sample = total.sel(policy=name).values.ravel()
        assert sample.mean() == pytest.approx(floor, abs=4 * sample.std() / np.sqrt(sample.size))


def test_dynamic_oracle_has_no_regret():
    world = worlds.random(3, 4, 0)
    result = larl.compare({"it": larl.DynamicOracle()}, world, horizon=100, trials=20)
    assert np.array_equal(result.regret, np.zeros((1, 20, 100)))


def test_policies_with_more_knowledge_win():
    # Win rates in 500 paired trials; ties have probability 0.
    policies = {"Kalman": larl.KalmanOracle(), "LARL": larl.LARL(1), "UCB": larl.UCB()}
    rate = larl.compare(policies, worlds.paper(1), horizon=200, trials=500).wins()["rate"]
    assert rate.sel(policy="Kalman", versus="LARL") > 0.8
    assert rate.sel(policy="LARL", versus="UCB") > 0.8
