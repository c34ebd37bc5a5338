"""Regret per step in a LatentGLM world against a filter on a grid in NumPy, quadrature, and limits."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import larl
from larl.theory import greedy_regret, predictability, random_regret, regret_floor, regret_lower_bound
from larl.theory.glm_floor import simulated_glm_regrets
from larl.worlds import LatentGLM, binary, brushing, counts

UNEQUAL = LatentGLM(gammas=(0.8,), beta=(-2.0, 0.5, 1.0), mu=(-0.5, 0.3, 0.0), gamma0=0.1, sigma_z=0.7)


def simulate(world: LatentGLM, chains: int, steps: int, *, full_information: bool) -> np.ndarray:
    """Return each chain's mean regret per step of the best arm under a filter on 161 points, for Bernoulli rewards."""
    rng, centre = np.random.default_rng(1), world.gamma0 / (1.0 - world.gammas[0])
    scale = world.sigma_z / np.sqrt(1.0 - world.gammas[0] ** 2)
    grid, rows = centre + scale * np.linspace(-5.0, 5.0, 161), np.arange(chains)

    def probability(z: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-np.array(world.mu) - np.multiply.outer(z, world.beta)))

    move = norm.pdf(grid[None, :], world.gamma0 + world.gammas[0] * grid[:, None], world.sigma_z)
    move /= move.sum(axis=1, keepdims=True)
    z, means, start = centre + scale * rng.normal(size=chains), probability(grid), norm.pdf(grid, centre, scale)
    belief, total = np.tile(start / start.sum(), (chains, 1)), np.zeros(chains)
    for _ in range(steps):
        true, arm = probability(z), np.argmax(belief @ means, axis=1)
        total += true.max(axis=1) - true[rows, arm]
        reward = rng.random((chains, world.arms)) < true
        for seen in range(world.arms) if full_information else [arm]:
            chance = means.T[seen] if not full_information else np.tile(means[:, seen], (chains, 1))
            belief = belief * np.where(reward[rows, seen][:, None], chance, 1.0 - chance)
        belief = belief @ move
        belief /= belief.sum(axis=1, keepdims=True)
        z = world.gamma0 + world.gammas[0] * z + world.sigma_z * rng.normal(size=chains)
    return total / steps


@pytest.mark.parametrize("full_information", [False, True])
def test_simulated_regret_equals_that_of_a_filter_on_a_grid(full_information: bool) -> None:
    # 40 trials of 200 steps and 300 chains of 200 steps; 4 standard errors, and 0.002 for the first steps of a chain.
    own = np.array(simulated_glm_regrets(UNEQUAL, 40, 200, 0, is_full=full_information))
    sample = simulate(UNEQUAL, 300, 200, full_information=full_information)
    error = np.hypot(own.std(ddof=1) / np.sqrt(40), sample.std(ddof=1) / np.sqrt(300))
    assert abs(own.mean() - sample.mean()) < 4.0 * error + 0.002
    if not full_information:
        assert greedy_regret(UNEQUAL, trials=40, steps=200).mean == own.mean()
        assert greedy_regret(UNEQUAL, trials=40, steps=200).standard_error == own.std(ddof=1) / np.sqrt(40)


def test_floor_lies_between_the_lower_bound_and_random_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("larl.theory.regret_floor")
    monkeypatch.setattr(module, "GLM_STEPS", 40)
    assert regret_lower_bound(UNEQUAL) < regret_floor(UNEQUAL) < random_regret(UNEQUAL)
    assert regret_floor(UNEQUAL) == greedy_regret(UNEQUAL, steps=40).mean
    assert predictability(UNEQUAL) == 1.0 - regret_floor(UNEQUAL) / random_regret(UNEQUAL)


@pytest.mark.parametrize(
    "world", [UNEQUAL, binary(0.1, 4, 2), counts(), brushing()], ids=["a", "b", "counts", "brushing"]
)
def test_random_regret_is_the_integral(world: LatentGLM) -> None:
    def gap(x: float) -> float:
        means = world.means(world.process.stationary_mean + np.sqrt(world.process.stationary_var) * x)
        return float((means.max() - means.mean()) * norm.pdf(x))

    expected = quad(gap, -12.0, 0.0, limit=200)[0] + quad(gap, 0.0, 12.0, limit=200)[0]
    assert random_regret(world) == pytest.approx(expected, rel=1e-5)


def test_limits() -> None:
    # Equal arms have no regret. A constant known state has no regret, whatever its start.
    equal = LatentGLM(gammas=(0.5,), beta=(1.0, 1.0), mu=(0.0, 0.0))
    constant = LatentGLM(gammas=(0.5,), beta=(1.0, -1.0), mu=(0.2, 0.0), gamma0=1.0, sigma_z=0.0, start=larl.Normal())
    for world in (equal, constant):
        assert greedy_regret(world, trials=2, steps=20) == (0.0, 0.0)
    assert random_regret(equal) == 0.0
    assert random_regret(constant) == pytest.approx((1 / (1 + np.exp(-2.2)) - 1 / (1 + np.exp(2.0))) / 2)
