"""Auto in a cohort: what a unit reports to the others, and the population that follows from the reports."""

import math
from typing import Any

import numpy as np
import pytest

import larl
from larl._core.compile import kernel
from larl._core.states import Memory
from larl.policies._pooling import pooled_state
from larl.policies.auto.layout import CONTINUOUS, STATIONARY_AR, ModelKind, coordinate_count
from larl.policies.auto.pooled_state import SAME_SIGN, SPREAD_SHARE, PooledAutoState
from larl.policies.auto.population_layer import add_report, estimate_population, same_sign_odds, set_report
from larl.policies.auto.replay import RewardHistory
from larl.policies.auto.unit_information import unit_information
from larl.policies.auto.unit_likelihood import unit_log_likelihood
from larl.simulation.engine import Simulation
from larl.worlds import Population
from tests.stepping import learn, units_of

KIND = ModelKind(2, 2, STATIONARY_AR, CONTINUOUS)
SIZE = coordinate_count(KIND)
SIGNS, LEVEL = np.array([1.0, -1.0]), np.array([0.0, 0.3])


def cohort(units: int) -> Memory:
    """Units of CohortAuto, for which the State of Auto in a cohort is compiled anyway; it is the field `alone`."""
    policy = larl.CohortAuto()
    return units_of(pooled_state(policy, policy.init(2), "partial"), units)


@kernel
def information_of(
    kind: ModelKind, history: RewardHistory, end: int, point: Any, signs: Any, level: Any, g: Any, info: Any, flip: Any
) -> bool:
    return unit_information(kind, history, 0, end, point, signs, level, g, info, flip)


@kernel
def report_information(state: PooledAutoState) -> None:
    set_report(state)
    add_report(state.layer.sums, state.report, 1.0)


@kernel
def estimate(state: PooledAutoState, covariance: Any) -> float:
    return estimate_population(state, covariance)


@kernel
def sign_odds(state: PooledAutoState, arm: int) -> float:
    return same_sign_odds(state, arm)


def history_of(arm: Any, reward: Any) -> RewardHistory:
    count = len(arm)
    return RewardHistory(np.asarray(arm), np.asarray(reward), np.ones(count), np.zeros(count), np.zeros((count, 0)))


def expand(history: RewardHistory, point: Any) -> tuple[Any, Any, Any]:
    gradient, information, flip = np.zeros(SIZE), np.zeros((SIZE, SIZE)), np.zeros(2)
    end = len(history.arm)
    assert information_of(KIND, history, end, point, SIGNS, LEVEL, gradient, information, flip)
    return gradient, information, flip


def log_likelihood(history: RewardHistory, points: Any, signs: Any) -> Any:
    value, scale = np.zeros(len(points)), np.zeros(len(points))
    unit_log_likelihood(KIND, history, np.ascontiguousarray(points), np.ascontiguousarray(signs), LEVEL, value, scale)
    return value


def test_gradient_and_sign_equal_differences_of_the_likelihood() -> None:
    draws = np.random.default_rng(0)
    arm = draws.integers(2, size=40)
    arm[[7, 8, 20]] = -1  # without a reward
    history = history_of(arm, np.where(arm < 0, 0.0, draws.normal(size=40)))
    point = np.array([0.6, -0.3, 0.9, 1.2, 0.2, 0.5, 0.1, -1.0])
    gradient, _, flip = expand(history, point)
    step = 1e-4 * np.eye(SIZE)
    values = log_likelihood(history, np.vstack([point + step, point - step]), np.tile(SIGNS, (2 * SIZE, 1)))
    np.testing.assert_allclose(gradient, (values[:SIZE] - values[SIZE:]) / 2e-4, rtol=2e-3, atol=2e-3)
    patterns = np.array([SIGNS, SIGNS * [-1, 1], SIGNS * [1, -1]])
    values = log_likelihood(history, np.tile(point, (3, 1)), patterns)
    np.testing.assert_allclose(flip, values[1:] - values[0], rtol=1e-6, atol=1e-9)


def simulate(point: Any, steps: int, draws: Any) -> RewardHistory:
    """Return rewards of the model in units of the latent shock, computed here."""
    first, second = np.tanh(point[:2])
    phi = np.array([first * (1.0 - second), second])
    variance = 1.0 / ((1.0 - first**2) * (1.0 - second**2)) * math.exp(2.0 * point[6])
    z = [math.sqrt(variance) * draws.normal()]
    z.append(first * z[0] + math.sqrt(variance * (1.0 - first**2)) * draws.normal())
    while len(z) < steps:
        z.append(float(phi @ z[:-3:-1]) + draws.normal())
    beta, share = SIGNS * point[2:4], 1.0 / (1.0 + math.exp(-point[5]))
    noise_sd = np.sqrt(math.exp(point[4]) * (share * beta**2 + 1.0 - share))
    level = LEVEL + math.exp(point[7]) * draws.normal(size=2)
    arm = draws.integers(2, size=steps)
    reward = level[arm] + beta[arm] * np.array(z) + noise_sd[arm] * draws.normal(size=steps)
    return history_of(arm, reward - reward[0])


def test_information_is_the_covariance_of_the_gradient() -> None:
    """600 units of 60 rewards at the true parameters: the gradient has mean 0, and its variance is the information."""
    draws, point = np.random.default_rng(1), np.array([0.8, -0.4, 1.0, 0.8, 0.0, 0.5, 0.0, -0.5])
    gradients, informations = zip(*(expand(simulate(point, 60, draws), point)[:2] for _ in range(600)), strict=True)
    gradient, information = np.array(gradients), np.array(informations)
    error = gradient.std(axis=0) / math.sqrt(600)
    assert (np.abs(gradient.mean(axis=0)) < 4.0 * error).all()
    products = np.einsum("ni,nj->nij", gradient, gradient) - information
    scale = np.sqrt(np.outer(*2 * [np.diag(information.mean(axis=0))]))
    difference, error = products.mean(axis=0) / scale, products.std(axis=0) / scale / math.sqrt(600)
    assert (np.abs(difference) < 4.0 * error + 0.1).all()


def joint_posterior(first: Any, precision: Any, spread: Any, information: Any, estimates: Any) -> tuple[Any, Any]:
    """Return mean and covariance of m, then θ of each unit, from the dense precision of all."""
    units, d = estimates.shape
    joint, right = np.zeros(2 * [(1 + units) * d]), np.zeros((1 + units) * d)
    joint[:d, :d], right[:d] = np.diag(precision + units / spread), precision * first
    for unit in range(units):
        own = slice((1 + unit) * d, (2 + unit) * d)
        joint[own, own], right[own] = np.diag(1.0 / spread) + information[unit], estimates[unit]
        joint[:d, own] = joint[own, :d] = -np.diag(1.0 / spread)
    covariance = np.linalg.inv(joint)
    return covariance @ right, covariance


def test_population_equals_that_of_the_joint_distribution() -> None:
    """m, V and S, given the other units' reports, against dense matrices."""
    units, draws = 4, np.random.default_rng(2)
    memory = cohort(units)
    states = memory.stacked().alone
    layer, prior = states.layer, states.auto.smc.priors
    d = layer.centre.size
    factors = draws.normal(size=(units, d, 6))
    information = 3.0 * factors @ factors.transpose(0, 2, 1)
    first, precision = prior.mean[CONTINUOUS, -1], np.diag(prior.precision[CONTINUOUS, -1]) / (1.0 - SPREAD_SHARE)
    spread = layer.spread.copy()
    thetas = first + np.sqrt(spread) * draws.normal(size=(units, d))
    estimates = np.einsum("nij,nj->ni", information, thetas)
    squares = []
    for unit in range(units):
        states.information[unit], states.estimate[unit] = information[unit], estimates[unit]
        report_information(memory.state(unit).alone)
        given = slice(unit + 1)  # the units that have reported, and itself
        mean, cov = joint_posterior(first, precision, spread, information[given], estimates[given])
        own = slice(-d, None)
        variance = np.diag(cov[own, own]) + np.diag(cov[:d, :d]) - 2.0 * np.diag(cov[:d, own])
        squares.append((mean[own] - mean[:d]) ** 2 + variance)
        np.testing.assert_allclose(states.report.square[unit], squares[unit], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(states.mode[unit], mean[own], rtol=1e-6, atol=1e-8)
    covariance = np.zeros((d, d))
    assert estimate(memory.state(0).alone, covariance) == units - 1
    mean, cov = joint_posterior(first, precision, spread, information[1:], estimates[1:])
    np.testing.assert_allclose(layer.centre_covariance, cov[:d, :d], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(layer.centre, mean[:d], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(layer.spread, (2.0 * spread + np.sum(squares[1:], axis=0)) / (units + 1), rtol=1e-6)
    np.testing.assert_allclose(covariance, cov[:d, :d] + np.diag(layer.spread), rtol=1e-6, atol=1e-9)


def test_one_odd_unit_does_not_set_the_spread() -> None:
    """A unit a million standard deviations away counts as one three away, in each coordinate."""
    units = 6
    memory = cohort(units)
    states = memory.stacked().alone
    layer, spread = states.layer, states.layer.spread.copy()
    for unit in range(units):
        far = 1e6 * np.sqrt(spread) if unit == 1 else 0.0
        states.information[unit] = np.diag(1e6 / spread)
        states.estimate[unit] = states.information[unit] @ (layer.centre + far)
        report_information(memory.state(unit).alone)
    estimate(memory.state(0).alone, np.zeros(2 * [layer.centre.size]))
    assert (layer.spread < 10.0 * spread).all()


@pytest.mark.parametrize("others", [1, 2])
def test_unit_that_turns_continuous_starts_from_the_present_prior(others: int) -> None:
    """It starts as a unit does that reports with this reward, although another unit was the last to set the prior."""
    memory, draws = cohort(3), np.random.default_rng(3)
    for t in range(42):
        learn(memory.state(0), t % 2, float(draws.random() < 0.5))
    for other in range(1, 1 + others):
        for t in range(20):
            learn(memory.state(other), t % 2, float(draws.normal()))
    copied = memory.copy()
    reporting = copied.state(0).alone
    reporting.next_report[0] = reporting.auto.smc.seen[0] + 1
    assert memory.state(0).alone.next_report[0] > reporting.next_report[0]
    for each in (memory, copied):
        learn(each.state(0), 0, 1.7)
    one, other = (each.state(0).alone.auto.smc.populations.evidence for each in (memory, copied))
    assert np.array_equal(one, other)
    assert memory.state(0).alone.log_share[0] == pytest.approx(math.log(others / (others + 1.0)))


def test_odds_of_signs_average_the_candidates() -> None:
    memory = cohort(4)
    units = memory.stacked().alone
    gains = [0.0, 1.5, -0.4, 2.0]
    for unit, gain in enumerate(gains):
        units.sign_gain[unit, 1] = gain
        report_information(memory.state(unit).alone)
    likelihood = np.prod([SAME_SIGN * math.exp(gain) + 1.0 - SAME_SIGN for gain in gains[1:]], axis=0)
    same = float(likelihood @ SAME_SIGN / likelihood.sum())
    assert sign_odds(memory.state(0).alone, 1) == pytest.approx(math.log(same / (1.0 - same)), rel=1e-9)


def test_without_other_units_the_population_has_no_influence() -> None:
    unit, draws = cohort(1).state(), np.random.default_rng(3)
    for t in range(60):
        learn(unit, t % 2, float(draws.normal()))
    state = unit.alone
    evidence = state.auto.smc.populations.evidence
    assert evidence[-1] < evidence[:-1].max() - 30.0
    np.testing.assert_allclose(state.layer.centre, state.auto.smc.priors.mean[CONTINUOUS, -1], rtol=1e-12, atol=1e-12)


def partial_autocorrelations(gammas: Any) -> Any:
    """Return the partial autocorrelations of an AR process, by the reverse of the Durbin–Levinson recursion."""
    found, left = [], list(gammas)
    while left:
        last = left[-1]
        found.append(last)
        left = [(left[i] + last * left[-2 - i]) / (1.0 - last * last) for i in range(len(left) - 1)]
    return np.array(found[::-1])


def test_units_find_the_dynamics_of_their_population() -> None:
    """30 units of 60 steps with the same parameters: the partial autocorrelations are within four standard errors."""
    world = Population([larl.worlds.LatentAR(gammas=larl.worlds.paper(5).gammas, beta=(-1, 1), mu=(0, 0))])
    policy, count = larl.CohortAuto(), 30
    simulation = Simulation(world.latent(), pooled_state(policy, policy.init(2), "partial"), units=count)
    simulation.run_cohort(5, 0, 60)
    states = simulation.stacked()
    layer = states.alone.layer
    truth = np.arctanh(partial_autocorrelations(world.members[0].gammas))
    error = np.sqrt(np.diag(layer.centre_covariance)[:5])
    assert (np.abs(layer.centre[:5] - truth) < 4.0 * error).all()
    assert (np.abs(layer.centre[:5]) > 2.0 * error).sum() >= 3
    share = states.alone.auto.smc.populations.evidence
    assert (share[:, -1] > share[:, :-1].max(axis=1)).mean() > 0.5
