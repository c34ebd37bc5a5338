"""The fitted latent AR bandit: likelihood and smoother against independent implementations, coordinates, evidence."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import toeplitz

import larl
from larl.diagnosis.build import make_log
from larl.diagnosis.drift import find_drift
from larl.diagnosis.estimates import forecast_variances, order_weights, shortest_range
from larl.diagnosis.fit import fisher_scoring, fit_orders
from larl.diagnosis.log import Log
from larl.diagnosis.model import Model
from larl.diagnosis.subsample import subsample
from larl.statespace.durbin_levinson import ar_from_partial_autocorrelations
from larl.statespace.smoother import ARParameters, innovations, smooth
from tests.diagnosis.logs import simulate_logs, stationary

THREE = larl.LatentAR(gammas=(0.5, 0.2, -0.3), beta=(1.0, -0.5, 0.2), mu=(3.0, 4.0, 5.0), noise="common", sigma_r=0.5)


def log_with_gaps(units: int = 1, steps: int = 40, seed: int = 0) -> Log:
    """Return a log in which about a third of the rewards is missing."""
    generator = np.random.default_rng(seed)
    frames = [each.assign(u=i) for i, each in enumerate(simulate_logs(THREE, steps, units, seed))]
    frame = pd.concat(frames)
    frame.loc[generator.random(len(frame)) < 0.3, "r"] = np.nan
    return make_log(frame)


def random_theta(model: Model, seed: int = 1) -> np.ndarray:
    """Return random coordinates near the prior mean."""
    mean, sd = model.prior
    return mean + 0.5 * sd * np.random.default_rng(seed).normal(size=mean.size)


def joint_gaussian(log: Log, parameters: ARParameters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return cov of rewards, cov of z with rewards, and mean of rewards, for one unit with a stationary start."""
    k, steps = parameters.gammas.shape[1], int(log.step.max()) + 1
    gammas, acf = parameters.gammas[0], list(parameters.acf[0])
    while len(acf) < steps:
        acf.append(float(gammas @ np.array(acf[-1 : -k - 1 : -1])))
    apart = toeplitz(acf[:steps])[np.ix_(log.step, log.step)]
    beta = parameters.beta[0][log.arm]
    cov = apart * np.outer(beta, beta) + np.diag(parameters.variance[0][log.arm]) + parameters.level[0]
    return cov, apart * beta, parameters.mu[0][log.arm]


@pytest.mark.parametrize("order", [0, 1, 3, 6])
def test_likelihood_equals_joint_gaussian(order):
    model = Model(log_with_gaps(), order)
    theta = random_theta(model)
    theta[model.slices["start"]] = 0.0
    cov, _, mean = joint_gaussian(model.log, model.parameters(theta[None]))
    deviation = model.log.reward - mean
    expected = -0.5 * (
        deviation.size * math.log(2 * math.pi) + np.linalg.slogdet(cov)[1] + deviation @ np.linalg.solve(cov, deviation)
    )
    assert model.log_likelihood(theta) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("order", [1, 3])
def test_likelihood_equals_statsmodels(order):
    from statsmodels.tsa.statespace.mlemodel import MLEModel

    model = Model(log_with_gaps(seed=4), order)
    log, theta = model.log, random_theta(model)
    parameters = model.parameters(theta[None])
    steps = int(log.step.max()) + 1
    reward, arm = np.full(steps, np.nan), np.zeros(steps, dtype=int)
    reward[log.step], arm[log.step] = log.reward, log.arm
    theirs = MLEModel(reward, k_states=order, k_posdef=1)
    design = np.zeros((1, order, steps))
    design[0, 0] = parameters.beta[0][arm]
    transition = np.eye(order, k=-1)
    transition[0] = parameters.gammas[0]
    theirs["design"], theirs["transition"], theirs["selection"] = design, transition, np.eye(order, 1)
    theirs["state_cov"], theirs["obs_cov"] = parameters.shock[:, None], parameters.variance[0][arm][None, None]
    theirs["obs_intercept"] = parameters.mu[0][arm][None]
    start = parameters.start[0] * toeplitz(parameters.acf[0][:order])
    theirs.initialize_known(np.zeros(order), start)
    assert model.log_likelihood(theta) == pytest.approx(theirs.loglike([]), rel=1e-10)


def test_likelihood_of_units_is_a_product():
    both = log_with_gaps(units=2)
    model = Model(both, 2)
    theta = random_theta(model)
    parts = []
    for unit in range(2):
        rows = both.unit == unit
        one = Log(
            arm=both.arm[rows],
            gap=both.gap[rows],
            reward=both.reward[rows],
            unit=np.zeros(rows.sum(), dtype=np.int64),
            step=both.step[rows],
            labels=both.labels,
            units=2,
            missing=0,
            notes=(),
        )
        error, size = np.empty((1, one.rows)), np.empty((1, one.rows))
        innovations(one.arm, one.gap, one.reward, model.parameters(theta[None]), error, size)
        parts.append(-0.5 * np.sum(np.log(2 * math.pi * size) + error**2 / size))
    assert model.log_likelihood(theta) == pytest.approx(sum(parts), rel=1e-12)


@pytest.mark.parametrize("order", [1, 4])
def test_smoother_equals_conditional_gaussian(order):
    model = Model(log_with_gaps(seed=2), order)
    theta = random_theta(model)
    theta[model.slices["start"]] = 0.0
    parameters, log = model.parameters(theta[None]), model.log
    cov, cross, mean = joint_gaussian(log, parameters)
    mean_z, variance, predicted_cov = np.empty(log.rows), np.empty(log.rows), np.zeros((order, order))
    smooth(
        log.arm, log.gap, log.reward, ARParameters(*(part[0] for part in parameters)), mean_z, variance, predicted_cov
    )
    np.testing.assert_allclose(mean_z, cross @ np.linalg.solve(cov, log.reward - mean), atol=1e-9)
    np.testing.assert_allclose(variance, 1.0 - np.diag(cross @ np.linalg.solve(cov, cross.T)), atol=1e-9)


def test_durbin_levinson_gives_the_stationary_covariance():
    partials = np.array([0.5, -0.3, 0.6, 0.1])
    gammas, acf = np.zeros(4), np.zeros(5)
    shock = ar_from_partial_autocorrelations(partials, gammas, acf)
    world = larl.LatentAR(gammas=gammas.tolist(), beta=(1.0, 1.0), mu=(0.0, 0.0), sigma_z=math.sqrt(shock))
    np.testing.assert_allclose(world.stationary_cov, toeplitz(acf[:4]), atol=1e-12)
    assert acf[4] == pytest.approx(gammas @ acf[3::-1])


def test_forecast_variance_converges_to_stationary_variance():
    gammas, acf = np.zeros(2), np.zeros(3)
    shock = ar_from_partial_autocorrelations(np.array([0.6, 0.2]), gammas, acf)
    variances = forecast_variances(gammas, shock, np.zeros((2, 2)))
    assert variances[0] == 0.0  # the state is known
    assert variances[1] == pytest.approx(shock)
    assert variances[-1] == pytest.approx(1.0, abs=1e-3)


def test_gradient_equals_numerical_gradient():
    model = Model(log_with_gaps(units=2), 2)
    theta, step = random_theta(model), 1e-6
    numeric = [
        (model.log_posterior(theta + step * row) - model.log_posterior(theta - step * row)) / (2 * step)
        for row in np.eye(theta.size)
    ]
    np.testing.assert_allclose(model.gradient_and_information(theta)[0], numeric, rtol=2e-3, atol=2e-2)


def test_fit_of_a_long_log_recovers_parameters():
    # 4,000 rewards: estimates have an error of a few percent; five posterior standard deviations are allowed.
    log = make_log(next(simulate_logs(stationary(1), 4000, 1, seed=5)))
    model = Model(log, 1)
    theta = model.prior[0].copy()
    theta[model.slices["beta"]] = -0.7, 0.7
    fit = fisher_scoring(model, theta)
    sample = model.parameters(fit.draws(60, np.random.default_rng(0)))
    scale = np.sqrt(sample.shock)
    for truth, draws in (
        (0.9, sample.gammas[:, 0]),
        (-1.0, sample.beta[:, 0] * scale),
        (1.0, sample.beta[:, 1] * scale),
        (1.0, np.sqrt(sample.variance[:, 0])),
        (0.0, sample.mu[:, 0]),
    ):
        assert abs(draws.mean() - truth) < 5 * draws.std()
    assert np.abs(sample.gammas[:, 0].mean() - 0.9) < 0.05


def test_subsample_keeps_rows_and_marks_segments():
    log = make_log(next(simulate_logs(stationary(1), 5000, 1, seed=1)))
    part = subsample(log, 1000)
    assert 500 <= part.rows <= 1000
    assert part.gap[0] == 0
    assert (part.gap[1:][np.diff(part.step) != 1] == -1).all()
    np.testing.assert_array_equal(part.reward, log.reward[part.step])
    assert subsample(log, 5000) is log


def test_shortest_range_contains_the_mass():
    assert shortest_range(np.array([0.0, 0.96, 0.04])) == (1, 1)
    assert shortest_range(np.array([0.3, 0.4, 0.3])) == (0, 2)
    assert shortest_range(np.array([0.5, 0.46, 0.02, 0.02])) == (0, 1)


@pytest.mark.parametrize(("k", "world"), [(1, larl.worlds.paper(1)), (5, larl.worlds.paper(5)), (5, stationary(5))])
def test_range_of_orders_covers_the_true_order(k, world):
    # 10 logs of 200 steps. With a coverage of 95% fewer than 7 ranges contain the order with probability 0.001.
    covered, widths = 0, []
    for frame in simulate_logs(world, 200, 10, seed=12):
        log = make_log(frame)
        weights = order_weights(fit_orders(log, find_drift(log).direction), has_drift=True)
        low, high = shortest_range(weights)
        covered += low <= k <= high
        widths.append(high - low + 1)
    assert covered >= 7
    assert np.mean(widths) < 8  # ranges are informative
