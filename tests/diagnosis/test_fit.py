"""The fitted latent AR bandit: its likelihood and smoother against independent ones, its coordinates, its evidence."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import toeplitz

import larl
from larl.diagnosis.build import make_log
from larl.diagnosis.drift import find_drift
from larl.diagnosis.estimates import forecast_variances, order_weights, shortest_range
from larl.diagnosis.fit import Model, Setting, climb, fit_orders
from larl.diagnosis.kernels import from_partials, innovations, smooth
from larl.diagnosis.log import Log
from larl.diagnosis.subsample import pieces
from tests.diagnosis.logs import logs, stationary

THREE = larl.LatentAR(gammas=(0.5, 0.2, -0.3), beta=(1.0, -0.5, 0.2), mu=(3.0, 4.0, 5.0), noise="common", sigma_r=0.5)


def some_log(units: int = 1, steps: int = 40, seed: int = 0) -> Log:
    """A log with gaps: about a third of its rewards is missing."""
    generator = np.random.default_rng(seed)
    frames = [each.assign(u=i) for i, each in enumerate(logs(THREE, steps, units, seed))]
    frame = pd.concat(frames)
    frame.loc[generator.random(len(frame)) < 0.3, "r"] = np.nan
    return make_log(frame)


def some_theta(model: Model, seed: int = 1) -> np.ndarray:
    mean, sd = model.prior
    return mean + 0.5 * sd * np.random.default_rng(seed).normal(size=mean.size)


def joint(log: Log, setting: Setting) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of one unit that begins in the long run's law: cov of rewards, cov of z with rewards, mean of rewards."""
    k, steps = setting.gammas.shape[1], int(log.step.max()) + 1
    gammas, acf = setting.gammas[0], list(setting.acf[0])
    while len(acf) < steps:
        acf.append(float(gammas @ np.array(acf[-1 : -k - 1 : -1])))
    apart = toeplitz(acf[:steps])[np.ix_(log.step, log.step)]
    beta = setting.beta[0][log.arm]
    cov = apart * np.outer(beta, beta) + np.diag(setting.variance[0][log.arm]) + setting.level[0]
    return cov, apart * beta, setting.mu[0][log.arm]


@pytest.mark.parametrize("order", [0, 1, 3, 6])
def test_the_likelihood_is_that_of_one_large_normal_vector(order):
    model = Model(some_log(), order)
    theta = some_theta(model)
    theta[model.places["start"]] = 0.0
    cov, _, mean = joint(model.log, model.setting(theta[None]))
    away = model.log.reward - mean
    expected = -0.5 * (
        away.size * math.log(2 * math.pi) + np.linalg.slogdet(cov)[1] + away @ np.linalg.solve(cov, away)
    )
    assert model.log_likelihood(theta) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("order", [1, 3])
def test_the_likelihood_is_statsmodels(order):
    from statsmodels.tsa.statespace.mlemodel import MLEModel

    model = Model(some_log(seed=4), order)
    log, theta = model.log, some_theta(model)
    setting = model.setting(theta[None])
    steps = int(log.step.max()) + 1
    reward, arm = np.full(steps, np.nan), np.zeros(steps, dtype=int)
    reward[log.step], arm[log.step] = log.reward, log.arm
    theirs = MLEModel(reward, k_states=order, k_posdef=1)
    design = np.zeros((1, order, steps))
    design[0, 0] = setting.beta[0][arm]
    transition = np.eye(order, k=-1)
    transition[0] = setting.gammas[0]
    theirs["design"], theirs["transition"], theirs["selection"] = design, transition, np.eye(order, 1)
    theirs["state_cov"], theirs["obs_cov"] = setting.shock[:, None], setting.variance[0][arm][None, None]
    theirs["obs_intercept"] = setting.mu[0][arm][None]
    start = setting.start[0] * toeplitz(setting.acf[0][:order])
    theirs.initialize_known(np.zeros(order), start)
    assert model.log_likelihood(theta) == pytest.approx(theirs.loglike([]), rel=1e-10)


def test_units_share_parameters_and_nothing_else():
    both = some_log(units=2)
    model = Model(both, 2)
    theta = some_theta(model)
    parts = []
    for unit in range(2):
        mine = both.unit == unit
        one = Log(
            both.arm[mine],
            both.gap[mine],
            both.reward[mine],
            np.zeros(mine.sum(), dtype=np.int64),
            both.step[mine],
            both.labels,
            2,
            0,
            (),
        )
        error, size = np.empty((1, one.rows)), np.empty((1, one.rows))
        innovations(one.arm, one.gap, one.reward, *model.setting(theta[None]), error, size)
        parts.append(-0.5 * np.sum(np.log(2 * math.pi * size) + error**2 / size))
    assert model.log_likelihood(theta) == pytest.approx(sum(parts), rel=1e-12)


@pytest.mark.parametrize("order", [1, 4])
def test_the_smoother_is_the_conditional_law_given_the_whole_log(order):
    model = Model(some_log(seed=2), order)
    theta = some_theta(model)
    theta[model.places["start"]] = 0.0
    setting, log = model.setting(theta[None]), model.log
    cov, cross, mean = joint(log, setting)
    found, spread, before = np.empty(log.rows), np.empty(log.rows), np.zeros((order, order))
    one = [part[0] for part in setting]
    smooth(log.arm, log.gap, log.reward, *one, found, spread, before)
    np.testing.assert_allclose(found, cross @ np.linalg.solve(cov, log.reward - mean), atol=1e-9)
    np.testing.assert_allclose(spread, 1.0 - np.diag(cross @ np.linalg.solve(cov, cross.T)), atol=1e-9)


def test_partial_autocorrelations_give_the_process_they_belong_to():
    partials = np.array([0.5, -0.3, 0.6, 0.1])
    gammas, acf = np.zeros(4), np.zeros(5)
    shock = from_partials(partials, gammas, acf)
    world = larl.LatentAR(gammas=gammas.tolist(), beta=(1.0, 1.0), mu=(0.0, 0.0), sigma_z=math.sqrt(shock))
    np.testing.assert_allclose(world.stationary_cov, toeplitz(acf[:4]), atol=1e-12)
    assert acf[4] == pytest.approx(gammas @ acf[3::-1])


def test_forecasts_end_at_the_long_run():
    gammas, acf = np.zeros(2), np.zeros(3)
    shock = from_partials(np.array([0.6, 0.2]), gammas, acf)
    found = forecast_variances(gammas, shock, np.zeros((2, 2)))
    assert found[0] == 0.0  # a state that is known
    assert found[1] == pytest.approx(shock)
    assert found[-1] == pytest.approx(1.0, abs=1e-3)


def test_the_gradient_is_that_of_the_log_posterior():
    model = Model(some_log(units=2), 2)
    theta, step = some_theta(model), 1e-6
    numeric = [
        (model.log_posterior(theta + step * row) - model.log_posterior(theta - step * row)) / (2 * step)
        for row in np.eye(theta.size)
    ]
    np.testing.assert_allclose(model.slope(theta)[0], numeric, rtol=2e-3, atol=2e-2)


def test_a_long_log_gives_its_parameters_back():
    # 4,000 rewards: estimates are off by some percent; five of their own standard errors are allowed.
    log = make_log(next(logs(stationary(1), 4000, 1, seed=5)))
    model = Model(log, 1)
    theta = model.prior[0].copy()
    theta[model.places["beta"]] = -0.7, 0.7
    fit = climb(model, theta)
    sample = model.setting(fit.draws(60, np.random.default_rng(0)))
    scale = np.sqrt(sample.shock)
    for truth, found in (
        (0.9, sample.gammas[:, 0]),
        (-1.0, sample.beta[:, 0] * scale),
        (1.0, sample.beta[:, 1] * scale),
        (1.0, np.sqrt(sample.variance[:, 0])),
        (0.0, sample.mu[:, 0]),
    ):
        assert abs(found.mean() - truth) < 5 * found.std()
    assert np.abs(sample.gammas[:, 0].mean() - 0.9) < 0.05


def test_pieces_are_rows_of_the_log_and_never_join_what_is_apart():
    log = make_log(next(logs(stationary(1), 5000, 1, seed=1)))
    part = pieces(log, 1000)
    assert 500 <= part.rows <= 1000
    assert part.gap[0] == 0
    assert (part.gap[1:][np.diff(part.step) != 1] == -1).all()
    np.testing.assert_array_equal(part.reward, log.reward[part.step])
    assert pieces(log, 5000) is log


def test_the_shortest_range_holds_the_mass():
    assert shortest_range(np.array([0.0, 0.96, 0.04])) == (1, 1)
    assert shortest_range(np.array([0.3, 0.4, 0.3])) == (0, 2)
    assert shortest_range(np.array([0.5, 0.46, 0.02, 0.02])) == (0, 1)


@pytest.mark.parametrize(("k", "world"), [(1, larl.worlds.paper(1)), (5, larl.worlds.paper(5)), (5, stationary(5))])
def test_the_order_is_within_its_range(k, world):
    # 10 logs of 200 steps. A range that holds the order in 95% of logs holds it in fewer than 7 once in 1,000 tries.
    held, widths = 0, []
    for frame in logs(world, 200, 10, seed=12):
        log = make_log(frame)
        weights = order_weights(fit_orders(log, find_drift(log).direction), drifting=True)
        low, high = shortest_range(weights)
        held += low <= k <= high
        widths.append(high - low + 1)
    assert held >= 7
    assert np.mean(widths) < 8  # it says something
