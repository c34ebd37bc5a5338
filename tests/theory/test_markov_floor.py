"""Regret per step in a LatentMarkov world against simulations in plain NumPy, and limits."""

import numpy as np
import pytest

import larl
from larl.theory import greedy_regret, predictability, random_regret, regret_floor, regret_lower_bound
from larl.worlds import LatentMarkov, random_markov

WORLDS = [random_markov(2, 2, 0, persistence=0.9), random_markov(3, 4, 1, sigma_r=0.5)]


def simulate(world: LatentMarkov, chains: int, steps: int, seed: int, *, full_information: bool) -> np.ndarray:
    """Return each chain's mean regret per step of the best arm at the belief; the noise of arms is independent."""
    rng, transition, means = np.random.default_rng(seed), np.array(world.transition), np.array(world.means)
    state = rng.choice(world.states, size=chains, p=world.stationary)
    belief, total, rows = np.tile(world.stationary, (chains, 1)), np.zeros(chains), np.arange(chains)
    for _ in range(steps):
        arm = np.argmax(belief @ means, axis=1)
        total += means.max(axis=1)[state] - means[state, arm]
        reward = means[state] + world.sigma_r * rng.normal(size=(chains, world.arms))
        for seen in range(world.arms) if full_information else [arm]:
            distance = (reward[rows, seen][:, None] - means.T[seen]) / world.sigma_r
            belief = belief * np.exp(-0.5 * (distance**2 - np.min(distance**2, axis=1, keepdims=True)))
            belief /= belief.sum(axis=1, keepdims=True)
        belief = belief @ transition
        state = np.argmax(rng.random(chains)[:, None] < np.cumsum(transition[state], axis=1), axis=1)
    return total / steps


@pytest.mark.parametrize("world", WORLDS, ids=["2", "3"])
def test_simulated_regret_equals_an_independent_simulation(world: LatentMarkov) -> None:
    # 1,000 chains of 500 steps, 4 standard errors. The first steps, with a stationary start, are a small part.
    greedy = greedy_regret(world)
    for value, error, full in ((greedy.mean, greedy.standard_error, False), (regret_lower_bound(world), 5e-4, True)):
        sample = simulate(world, 1000, 500, 1, full_information=full)
        assert abs(sample.mean() - value) < 4.0 * np.hypot(sample.std() / np.sqrt(1000), error) + 0.002
    assert regret_lower_bound(world) < regret_floor(world) == greedy.mean < random_regret(world)
    assert predictability(world) == 1.0 - greedy.mean / random_regret(world)


def test_random_regret_is_that_of_random_choices() -> None:
    # 200 trials of 200 steps; the standard error is that of the trials.
    result = larl.compare({"random": larl.Random()}, WORLDS[1], horizon=200, trials=200)
    total = result.regret[0].sum(axis=1).to_numpy() / 200
    assert abs(total.mean() - random_regret(WORLDS[1])) < 4.0 * total.std() / np.sqrt(200)


def test_limits() -> None:
    one = random_markov(1, 3, 0)
    assert (regret_floor(one), regret_lower_bound(one)) == (0.0, 0.0)
    # Without noise every reward reveals the state: the regret is that of the best arm given the state before.
    exact = random_markov(3, 3, 4, persistence=0.8, sigma_r=0.0)
    transition, means = np.array(exact.transition), np.array(exact.means)
    floor = exact.stationary @ means.max(axis=1) - exact.stationary @ (transition @ means).max(axis=1)
    greedy = greedy_regret(exact)
    assert abs(greedy.mean - floor) < 4.0 * greedy.standard_error
    assert regret_lower_bound(exact) == pytest.approx(greedy.mean, abs=1e-12)
    # With much noise nothing is learnt: the regret is that of the best fixed arm.
    noisy = LatentMarkov(exact.transition, exact.means, sigma_r=1e6)
    fixed = noisy.stationary @ means.max(axis=1) - (noisy.stationary @ means).max()
    assert regret_floor(noisy) == pytest.approx(fixed, rel=1e-3)


def test_unusable_worlds_are_refused() -> None:
    for function in (regret_floor, greedy_regret, random_regret, regret_lower_bound, predictability):
        with pytest.raises(larl.InvalidValue, match=r"world = .*a larl\.worlds\.LatentMarkov"):
            function(larl.worlds.ChangePoints())  # type: ignore[operator]
    fixed = LatentMarkov(np.eye(2), ((1.0, 0.0), (0.0, 1.0)), start=(0.5, 0.5))
    with pytest.raises(larl.InvalidValue, match="one stationary distribution"):
        regret_floor(fixed)
