"""FilterOracle against the Kalman filter, against a filter on a grid in NumPy, and its limits."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import larl
from larl._core.compile import kernel
from larl._core.states import copy_state
from larl.statespace.kalman import current_offset
from larl.worlds import LatentGLM, Simulator, binary
from larl.worlds.families import GAUSSIAN, RewardFamily, log_likelihood
from tests.policies.test_contract import same
from tests.policies.test_finite import finite
from tests.stepping import decide, learn
from tests.worlds.test_latent_glm import FAMILIES, reference, world_with

PARTICLES = 4000
# A mean over N particles with weights, resampled at times, has at most the variance of one over N/4 exact draws.
PER_ERROR = math.sqrt(4.0 / PARTICLES)


@kernel
def log_likelihoods(family: RewardFamily, etas: Any, sd: float, reward: float) -> Any:
    out = np.empty(etas.size)
    for i in range(etas.size):
        out[i] = log_likelihood(family, etas[i], sd, reward)
    return out


def log_density(name: str, eta: Any, reward: float) -> Any:
    """Return the log-density of a reward given each η, from scipy."""
    law = reference(name, eta)
    if name != "hurdle":
        return law.logpmf(reward)
    return np.log1p(-law.positive) if reward == 0.0 else np.log(law.positive) + law.part.logpdf(reward)


def play(world: Any, steps: int, seed: int) -> tuple[list[int], list[float]]:
    """Return random arms and their rewards in one trial; every seventh reward is missing."""
    simulator, rng, arms, rewards = Simulator(world, seed, trial=0), np.random.default_rng(seed), [], []
    for t in range(steps):
        arms.append(int(rng.integers(world.arms)))
        rewards.append(math.nan if t % 7 == 3 else simulator.reward(arms[-1]))
        simulator.advance()
    return arms, rewards


def filter_on_grid(name: str, world: LatentGLM, arms: list[int], rewards: list[float]) -> tuple[Any, Any]:
    """Return mean and sd of each arm's mean given the past at each step, (steps, arms) each, by 401 points of z."""
    scale = math.sqrt(world.process.stationary_var)
    z = world.process.stationary_mean + scale * np.linspace(-7.0, 7.0, 401)
    move = stats.norm.pdf(z[None, :], world.gamma0 + world.gammas[0] * z[:, None], world.sigma_z)
    eta = np.array(world.mu) + np.outer(z, world.beta)
    means, belief = reference(name, eta).mean(), stats.norm.pdf(z, world.process.stationary_mean, scale)
    centres, spreads = np.empty((len(arms), world.arms)), np.empty((len(arms), world.arms))
    for t, (arm, reward) in enumerate(zip(arms, rewards, strict=True)):
        belief /= belief.sum()
        centres[t] = belief @ means
        spreads[t] = np.sqrt(belief @ (means - centres[t]) ** 2)
        if not math.isnan(reward):
            logs = log_density(name, eta[:, arm], reward)
            belief *= np.exp(logs - logs.max())
        belief = belief @ move
    return centres, spreads


@pytest.mark.parametrize("name", FAMILIES)
def test_likelihood_is_that_of_scipy_up_to_a_constant(name: str) -> None:
    etas = np.array([-6.0, -1.0, 0.0, 0.7, 3.0, 5.0])
    for reward in (
        (0.0, 1.0, 7.0, 150.0, 180.0) if name == "hurdle" else (0.0, 1.0) if "it" in name else (0.0, 1.0, 7.0)
    ):
        expected = log_density(name, etas, reward)
        drawn = log_likelihoods(world_with(name).reward_family, etas, 1.0, reward)
        assert drawn - drawn[0] == pytest.approx(expected - expected[0], rel=1e-9, abs=1e-9)
    impossible = {"hurdle": (-1.0, 180.1), "logit": (0.5, 2.0), "probit": (0.5, 2.0)}.get(name, (-1.0, 0.5))
    for reward in impossible:
        assert np.all(log_likelihoods(world_with(name).reward_family, etas, 1.0, reward) == -np.inf)


def test_likelihood_in_the_tails() -> None:
    etas = np.array([-1e5, -40.0, -20.5, -19.5, -8.0])
    probit, normal = world_with("probit").reward_family, RewardFamily(GAUSSIAN, 0.0, 1.0, 0.0)
    assert log_likelihoods(probit, etas, 1.0, 1.0) == pytest.approx(stats.norm.logcdf(etas), rel=1e-8)
    assert log_likelihoods(normal, etas, 3.0, 2.0) == pytest.approx(-0.5 * ((2.0 - etas) / 3.0) ** 2)
    for name in FAMILIES:
        for reward in (0.0, 1.0, 1e100):
            extreme = log_likelihoods(world_with(name).reward_family, np.array([-1e200, 1e200]), 1.0, reward)
            assert not np.isnan(extreme).any()
            assert np.all(extreme < np.inf)


@pytest.mark.parametrize("name", FAMILIES)
def test_expected_means_are_those_of_a_filter_on_a_grid(name: str) -> None:
    # 60 steps of 4,000 particles; at most 5 standard errors.
    world = world_with(name, gammas=(0.8,), gamma0=0.1)
    arms, rewards = play(world, 60, seed=2)
    centres, spreads = filter_on_grid(name, world, arms, rewards)
    state = copy_state(larl.FilterOracle(PARTICLES).init(3, world=world))
    assert np.ptp(centres[:, 2]) > 5.0 * spreads.mean() * PER_ERROR  # the rewards move the prediction
    for t in range(60):
        assert np.all(np.abs(state.filter.expected - centres[t]) < 5.0 * PER_ERROR * spreads[t] + 1e-12), t
        gap = np.sort(centres[t])[-1] - np.sort(centres[t])[-2]
        if gap > 10.0 * PER_ERROR * spreads[t].max():
            assert decide(state, t) == centres[t].argmax()
        learn(state, arms[t], rewards[t])


NORMAL = [
    larl.worlds.random(3, 4, seed=1),
    larl.LatentAR((0.6, 0.3), (-1, 0.3, 2), (0, 0.4, -0.2), gamma0=0.2, noise="common", start=larl.Normal(1.0, 1.0)),
]


@pytest.mark.parametrize("world", NORMAL, ids=["3 lags", "2 lags, given start"])
def test_normal_rewards_give_the_predictions_of_the_kalman_filter(world: larl.LatentAR) -> None:
    # 80 steps of 4,000 particles; at most 5 standard errors.
    arms, rewards = play(world, 80, seed=1)
    state = copy_state(larl.FilterOracle(PARTICLES).init(world.arms, world=world))
    kalman, compared = larl.KalmanOracle().init(world.arms, world=world), 0
    for t in range(80):
        belief, offset = kalman.belief, current_offset(kalman.belief)
        expected = np.array(world.mu) + np.array(world.beta) * belief.mean[offset]
        error = PER_ERROR * np.abs(world.beta) * math.sqrt(belief.cov[offset, offset])
        assert np.all(np.abs(state.filter.expected - expected) < 5.0 * error), t
        best, second = np.sort(expected)[-1], np.sort(expected)[-2]
        if best - second > 10.0 * error.max():
            assert decide(state, t) == decide(kalman, t)
            compared += 1
        learn(state, arms[t], rewards[t])
        learn(kalman, arms[t], rewards[t])
    assert compared > 40


@pytest.mark.parametrize("name", FAMILIES)
def test_impossible_rewards_count_as_missing(name: str) -> None:
    world = world_with(name)
    start = larl.FilterOracle(50).init(3, world=world)
    for reward in (-1.0, -1e100) if name == "hurdle" else (-1.0, 0.5):
        state, other = copy_state(start), copy_state(start)
        for each in (state, other):
            learn(each, 1, 1.0)
        learn(state, 0, reward)
        learn(other, 0, math.nan)
        assert same(state, other)


@pytest.mark.parametrize("name", FAMILIES)
def test_state_stays_finite_in_any_world(name: str) -> None:
    huge: dict[str, Any] = {"mu": (1e100, -1e100, 0.0), "beta": (-1e100, 1e100, 1.0), "sigma_z": 1e100}
    worlds = [world_with(name), world_with(name, **huge), world_with(name, sigma_z=0.0)]
    normal = larl.LatentAR((0.5, 0.3), (-1, 0.4, 1.5), (0, 0, 0), sigma_r=0.0)
    for world in (*worlds, normal):
        state = copy_state(larl.FilterOracle(20).init(3, world=world))
        for t, reward in enumerate((0.0, 1.0, 1e6, 1e100, -1e100, 1e-300, 3.0, 179.0, 0.0, 1.0)):
            learn(state, t % 3, reward)
            assert finite(state)
            assert state.filter.weight.sum() == pytest.approx(1.0)


def test_more_particles_have_less_regret() -> None:
    # 60 paired trials of 100 steps; 4 standard errors of the difference.
    policies: dict[str, Any] = {"2": larl.FilterOracle(2), "1000": larl.FilterOracle()}
    total = larl.compare(policies, binary(), horizon=100, trials=60, seed=1).regret.to_numpy().sum(axis=-1)
    gap = total[0] - total[1]
    assert gap.mean() > 4.0 * gap.std() / math.sqrt(60)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: larl.FilterOracle(1), "FilterOracle: particles = 1 "),
        (
            lambda: larl.FilterOracle().init(2),
            r"FilterOracle: world = None .*a larl\.worlds\.LatentGLM or a larl\.LatentAR",
        ),
        (
            lambda: larl.FilterOracle().init(2, world=larl.worlds.random_markov(2, 2, 0)),
            "FilterOracle: world = LatentMar",
        ),
        (lambda: larl.FilterOracle().init(3, world=binary()), "FilterOracle: arms = 3 is not usable; accepted: 2"),
    ],
)
def test_unusable_worlds_are_refused(make: Any, message: str) -> None:
    with pytest.raises(larl.InvalidValue, match=message):
        make()
