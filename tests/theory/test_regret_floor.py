"""Expected best mean, regret floor and lower bound against quadrature and simulations in plain NumPy."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import larl
from larl import worlds
from larl.theory import (
    expected_best_mean,
    greedy_regret,
    predictability,
    random_regret,
    regret_floor,
    regret_lower_bound,
)
from tests.conftest import THREE_ARMS
from tests.statespace.test_kalman_vector import collinear_world
from tests.worlds.test_latent_var import TWO, as_scalar, random_world

UNEQUAL = larl.LatentAR(gammas=(0.6, 0.3), beta=(-1.0, 0.3, 2.0), mu=(0.0, 0.4, -0.2), noise="common", sigma_r=1.5)


def simulate_filter(
    world: larl.LatentVAR, chains: int, steps: int, skip: int, seed: int, *, full_information: bool
) -> np.ndarray:
    """Return the mean regret per step of each chain of the best arm at a textbook filter, in plain NumPy.

    The filter sees the reward of the arm played, or with `full_information` the rewards of all arms.
    """
    rng, system, size = np.random.default_rng(seed), world.system, world.m * world.k
    first = np.linalg.cholesky(world.stationary_cov + 1e-12 * np.eye(size))
    shock = np.linalg.cholesky(system.noise[: world.m, : world.m] + 1e-300 * np.eye(world.m))
    centre = np.tile(world.long_run_mean, world.k)
    z = centre + rng.normal(size=(chains, size)) @ first.T
    mean, cov = np.tile(centre, (chains, 1)), np.tile(world.stationary_cov, (chains, 1, 1))
    total = np.zeros(chains)
    for t in range(steps):
        true = system.mu + z @ system.c.T
        arm = np.argmax(system.mu + mean @ system.c.T, axis=1)
        if t >= skip:
            total += true.max(1) - true[np.arange(chains), arm]
        reward = true + system.sd * rng.normal(size=true.shape)
        for seen in range(world.arms) if full_information else [arm]:
            c = np.broadcast_to(system.c[seen], mean.shape)
            product = np.einsum("nij,nj->ni", cov, c)
            scale = np.sum(c * product, axis=1) + system.sd[seen] ** 2
            value = reward[np.arange(chains), seen] - system.mu[seen]
            mean = mean + product * ((value - np.sum(c * mean, axis=1)) / scale)[:, None]
            cov = cov - product[:, :, None] * product[:, None, :] / scale[:, None, None]
        mean, cov = mean @ system.gamma.T + system.drift, system.gamma @ cov @ system.gamma.T + system.noise
        z = z @ system.gamma.T + system.drift
        z[:, : world.m] += rng.normal(size=(chains, world.m)) @ shock.T
    return total / (steps - skip)


def is_near(value: float, sample: np.ndarray, error: float = 0.0, errors: float = 4.0) -> bool:
    """Whether a value with a standard error is within `errors` standard errors of a sample's mean."""
    return abs(value - sample.mean()) < errors * np.hypot(sample.std(ddof=1) / np.sqrt(sample.size), error)


@pytest.mark.parametrize("arms", [2, 3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_expected_best_mean_in_two_dimensions_equals_the_integral(arms, seed):
    # The maximum has kinks: the trapezoid rule on 1,601² points is right to about the square of its step, 1e-4.
    rng = np.random.default_rng(seed)
    mu, beta, mean, factor = (
        rng.normal(size=arms),
        rng.normal(size=(arms, 2)),
        rng.normal(size=2),
        rng.normal(size=(2, 2)),
    )
    x = np.linspace(-8, 8, 1601)
    weight = np.exp(-x * x / 2) / np.sqrt(2 * np.pi) * (x[1] - x[0])
    height, slopes = mu + beta @ mean, beta @ factor
    best = np.max(
        height[:, None, None] + slopes[:, :1, None] * x[None, :, None] + slopes[:, 1:, None] * x[None, None, :], axis=0
    )
    assert expected_best_mean(mu, beta, mean, factor @ factor.T) == pytest.approx(weight @ best @ weight, abs=1e-5)


@pytest.mark.parametrize(("m", "arms"), [(3, 5), (5, 8), (2, 2), (4, 2)])
def test_expected_best_mean_equals_a_simulated_mean(m, arms):
    # 400,000 draws, 4 standard errors; the error of the Sobol sequence is far below that.
    rng = np.random.default_rng(m)
    mu, beta, mean, factor = (
        rng.normal(size=arms),
        rng.normal(size=(arms, m)),
        rng.normal(size=m),
        rng.normal(size=(m, m)),
    )
    best = (mu + (mean + rng.normal(size=(400_000, m)) @ factor.T) @ beta.T).max(1)
    assert is_near(expected_best_mean(mu, beta, mean, factor @ factor.T), best)


@pytest.mark.parametrize(("arms", "away"), [(3, 1e-5), (5, 1e-4), (12, 3e-4)])
def test_expected_best_mean_of_independent_arms_is_the_expected_maximum_of_normals(arms, away):
    # In arms − 1 dimensions; the tolerance is the error that the docstring gives.
    expected = quad(lambda x: x * arms * norm.pdf(x) * norm.cdf(x) ** (arms - 1), -12, 12)[0]
    assert expected_best_mean([0.0] * arms, np.eye(arms), np.zeros(arms), np.eye(arms)) == pytest.approx(
        expected, abs=away
    )


def test_expected_best_mean_in_closed_form():
    # Four arms on the axes of a plane: E max(|x|, |y|) = 2/√π. Two arms with one β: the larger of two numbers.
    four = [[1, 0], [-1, 0], [0, 1], [0, -1]]
    assert expected_best_mean([0] * 4, four, np.zeros(2), np.eye(2)) == pytest.approx(2 / np.sqrt(np.pi), abs=1e-5)
    assert expected_best_mean([1, 2], [[1, 1], [1, 1]], [5, 0], np.eye(2)) == pytest.approx(7.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", ["scaled", "common"])
def test_one_component_equals_the_scalar_world(seed, noise):
    world = random_world(seed, 1, noise)
    for compute in (regret_floor, random_regret, predictability, regret_lower_bound):
        assert compute(world) == compute(as_scalar(world))


@pytest.mark.parametrize(
    "world", [collinear_world(1), collinear_world(2, k=2, m=3, arms=4), THREE_ARMS], ids=["line", "line 3", "scalar"]
)
def test_floor_is_exact_if_arms_share_a_measurement(world):
    # 2,000 chains of 100 steps after 100 in plain NumPy, and the library's own simulation.
    assert regret_floor(world) > 0.01
    assert is_near(regret_floor(world), simulate_filter(world, 2000, 200, 100, seed=1, full_information=False))
    simulated = greedy_regret(world, seed=3)
    assert abs(simulated.mean - regret_floor(world)) < 4 * simulated.standard_error


@pytest.mark.parametrize(
    "world", [TWO, worlds.random_vector(3, 2, 5, 4, radius=0.8), UNEQUAL], ids=["two", "three", "scalar"]
)
def test_floor_is_the_greedy_regret_if_arms_measure_differently(world):
    # Against plain NumPy (2,000 chains of 150 steps after 100), and the engine's oracle with another seed.
    greedy = greedy_regret(world)
    assert regret_floor(world) == greedy.mean
    assert greedy.standard_error < 0.02 * greedy.mean
    assert is_near(
        greedy.mean, simulate_filter(world, 2000, 250, 100, seed=2, full_information=False), greedy.standard_error
    )
    result = larl.compare({"it": larl.KalmanOracle()}, world, horizon=400, trials=1000, seed=9)
    assert is_near(greedy.mean, result.total(skip=100).values.ravel() / 300, greedy.standard_error)


@pytest.mark.parametrize(
    "world", [TWO, worlds.random_vector(3, 2, 5, 4, radius=0.8), UNEQUAL, THREE_ARMS, collinear_world(1)]
)
def test_lower_bound_is_the_regret_with_full_information(world):
    bound = regret_lower_bound(world)
    assert is_near(bound, simulate_filter(world, 2000, 200, 100, seed=3, full_information=True))
    assert 0.0 < bound < regret_floor(world) < random_regret(world)


@pytest.mark.parametrize("world", [TWO, worlds.random_vector(3, 2, 5, 4, radius=0.8)], ids=["two", "three"])
def test_random_regret_equals_simulated_regret(world):
    result = larl.compare({"it": larl.Random()}, world, horizon=100, trials=3000, seed=4)
    assert is_near(random_regret(world), result.total().values.ravel() / 100)
    assert predictability(world) == 1.0 - regret_floor(world) / random_regret(world)


def test_regret_of_equal_or_constant_arms():
    same = larl.LatentVAR([[[0.5, 0.1], [0.0, 0.5]]], [[1.0, 2.0], [1.0, 2.0]], [0.0, 0.0])
    assert (regret_floor(same), random_regret(same), predictability(same), regret_lower_bound(same)) == (
        0.0,
        0.0,
        0.0,
        0.0,
    )
    still = larl.LatentVAR([[[0.5, 0.1], [0.0, 0.5]]], [[1.0, 0.0], [0.0, 1.0]], [0.0, 1.0], cov_z=np.zeros((2, 2)))
    assert regret_floor(still) == regret_lower_bound(still) == 0.0
    assert random_regret(still) == pytest.approx(0.5)
