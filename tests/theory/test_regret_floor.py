"""What there is to win: the best mean, the floor and its bound, against quadrature and simulations in plain numpy."""

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
from tests.statespace.test_kalman_vector import on_a_line
from tests.worlds.test_latent_var import TWO, as_scalar, random_world

UNEQUAL = larl.LatentAR(gammas=(0.6, 0.3), beta=(-1.0, 0.3, 2.0), mu=(0.0, 0.4, -0.2), noise="common", sigma_r=1.5)


def filtered(world: larl.LatentVAR, chains: int, steps: int, skip: int, seed: int, *, everything: bool) -> np.ndarray:
    """Mean regret a step of each chain, playing the arm best at a textbook filter: world and filter in plain numpy.

    The filter sees the reward of the arm played, or of `everything`: all arms at once.
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
        for seen in range(world.arms) if everything else [arm]:
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


def near(found: float, sample: np.ndarray, error: float = 0.0, errors: float = 4.0) -> bool:
    """Whether a number is within so many standard errors of a sample's mean, its own error counted in."""
    return abs(found - sample.mean()) < errors * np.hypot(sample.std(ddof=1) / np.sqrt(sample.size), error)


@pytest.mark.parametrize("arms", [2, 3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_best_mean_in_the_plane_is_the_integral(arms, seed):
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
def test_best_mean_is_the_average_best(m, arms):
    # 400,000 draws, 4 standard errors; the exact part of the integral leaves the sequence's own error far below that.
    rng = np.random.default_rng(m)
    mu, beta, mean, factor = (
        rng.normal(size=arms),
        rng.normal(size=(arms, m)),
        rng.normal(size=m),
        rng.normal(size=(m, m)),
    )
    best = (mu + (mean + rng.normal(size=(400_000, m)) @ factor.T) @ beta.T).max(1)
    assert near(expected_best_mean(mu, beta, mean, factor @ factor.T), best)


@pytest.mark.parametrize(("arms", "away"), [(3, 1e-5), (5, 1e-4), (12, 3e-4)])
def test_best_mean_of_independent_arms_is_the_largest_of_so_many_normals(arms, away):
    # In arms − 1 directions; what is accepted is what the docstring says of the sequence's error.
    expected = quad(lambda x: x * arms * norm.pdf(x) * norm.cdf(x) ** (arms - 1), -12, 12)[0]
    assert expected_best_mean([0.0] * arms, np.eye(arms), np.zeros(arms), np.eye(arms)) == pytest.approx(
        expected, abs=away
    )


def test_best_mean_in_closed_form():
    # Four arms on the axes of a plane: E max(|x|, |y|) = 2/√π. Two arms with one β: the larger of two numbers.
    four = [[1, 0], [-1, 0], [0, 1], [0, -1]]
    assert expected_best_mean([0] * 4, four, np.zeros(2), np.eye(2)) == pytest.approx(2 / np.sqrt(np.pi), abs=1e-5)
    assert expected_best_mean([1, 2], [[1, 1], [1, 1]], [5, 0], np.eye(2)) == pytest.approx(7.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", ["scaled", "common"])
def test_with_one_component_everything_is_the_scalar_worlds(seed, noise):
    world = random_world(seed, 1, noise)
    for ask in (regret_floor, random_regret, predictability, regret_lower_bound):
        assert ask(world) == ask(as_scalar(world))


@pytest.mark.parametrize(
    "world", [on_a_line(1), on_a_line(2, k=2, m=3, arms=4), THREE_ARMS], ids=["line", "line 3", "scalar"]
)
def test_where_all_measure_alike_the_floor_is_exact(world):
    # 2,000 chains of 100 steps after 100 in plain numpy; and the library's own simulation.
    assert regret_floor(world) > 0.01
    assert near(regret_floor(world), filtered(world, 2000, 200, 100, seed=1, everything=False))
    simulated = greedy_regret(world, seed=3)
    assert abs(simulated.mean - regret_floor(world)) < 4 * simulated.standard_error


@pytest.mark.parametrize(
    "world", [TWO, worlds.random_vector(3, 2, 5, 4, radius=0.8), UNEQUAL], ids=["two", "three", "scalar"]
)
def test_elsewhere_the_floor_is_what_the_greedy_filter_pays(world):
    # Against plain numpy (2,000 chains of 150 steps after 100), and the engine's oracle on seeds of its own.
    found = greedy_regret(world)
    assert regret_floor(world) == found.mean
    assert found.standard_error < 0.02 * found.mean
    assert near(found.mean, filtered(world, 2000, 250, 100, seed=2, everything=False), found.standard_error)
    result = larl.compare({"it": larl.KalmanOracle()}, world, horizon=400, trials=1000, seed=9)
    assert near(found.mean, result.total(skip=100).values.ravel() / 300, found.standard_error)


@pytest.mark.parametrize(
    "world", [TWO, worlds.random_vector(3, 2, 5, 4, radius=0.8), UNEQUAL, THREE_ARMS, on_a_line(1)]
)
def test_the_bound_is_the_regret_of_who_sees_all_arms(world):
    bound = regret_lower_bound(world)
    assert near(bound, filtered(world, 2000, 200, 100, seed=3, everything=True))
    assert 0.0 < bound < regret_floor(world) < random_regret(world)


@pytest.mark.parametrize("world", [TWO, worlds.random_vector(3, 2, 5, 4, radius=0.8)], ids=["two", "three"])
def test_random_cost_is_what_random_pays(world):
    result = larl.compare({"it": larl.Random()}, world, horizon=100, trials=3000, seed=4)
    assert near(random_regret(world), result.total().values.ravel() / 100)
    assert predictability(world) == 1.0 - regret_floor(world) / random_regret(world)


def test_nothing_to_win_is_said_of_vectors_too():
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
