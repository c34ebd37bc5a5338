"""The log-likelihood of a unit against the dense normal distribution of its rewards."""

import math

import numpy as np
import pytest
import scipy.linalg

from larl.policies.auto.layout import BINARY, CONTINUOUS
from larl.priors.population import default_prior
from larl.priors.summaries import ar_process
from larl.priors.units import evaluate, make_unit, model_kind, reward_model, sign_patterns

STEPS = 40


def dense_log_likelihood(theta, signs, level, arm, reward, inflation, p):
    """Log density of the rewards' differences to the first, with σ² integrated out under the prior 1/σ²."""
    arms, seen = len(signs), np.flatnonzero(arm >= 0)
    gammas, _ = ar_process(theta[:p])
    beta, q, w = signs * theta[p : p + arms], np.exp(theta[p + arms]), 1.0 / (1.0 + np.exp(-theta[p + arms + 1]))
    noise = q * (w * beta**2 + 1.0 - w)
    companion = np.vstack([gammas, np.eye(p)[:-1]])
    cov = np.exp(2.0 * theta[p + arms + 2]) * scipy.linalg.solve_discrete_lyapunov(
        companion, np.outer(np.eye(p)[0], np.eye(p)[0])
    )
    states = np.zeros((arm.size, arm.size))
    for t in range(arm.size):
        if t > 0:
            cov = companion @ cov @ companion.T
            cov[0, 0] += 1.0
        later = cov.copy()
        for u in range(t, arm.size):
            states[t, u] = states[u, t] = later[0, 0]
            later = companion @ later
    played = arm[seen]
    joint = np.outer(beta[played], beta[played]) * states[np.ix_(seen, seen)] + np.diag((inflation * noise[arm])[seen])
    joint += np.exp(2.0 * theta[p + arms + 3]) * (played[:, None] == played)
    to_first = np.hstack([-np.ones((seen.size - 1, 1)), np.eye(seen.size - 1)])
    joint, errors = to_first @ joint @ to_first.T, to_first @ (reward[seen] - level[played])
    n, square = errors.size, errors @ np.linalg.solve(joint, errors)
    log_det = np.linalg.slogdet(joint)[1]
    return math.lgamma(n / 2) - n / 2 * math.log(math.pi) - log_det / 2 - n / 2 * math.log(square), square / n


@pytest.mark.parametrize("p", [1, 3, 6])
def test_log_likelihood_and_scale_equal_those_of_the_dense_distribution(p):
    rng, kind = np.random.default_rng(4), model_kind(3, p, CONTINUOUS)
    arm, reward = rng.integers(0, 3, STEPS), rng.normal(5.0, 2.0, STEPS)
    arm[[4, 5, 20]] = -1
    unit = make_unit("one", arm, reward, 3, CONTINUOUS)
    assert unit is not None
    unit.history.inflation[[9, 30]] = 25.0, 4.0
    mean, sd = default_prior(kind)
    points = mean + sd * rng.standard_normal((20, mean.size))  # more than one block
    signs, level = rng.choice([-1.0, 1.0], (20, 3)), np.array([0.0, 0.7, -0.4])
    found = evaluate(kind, unit, points, signs, level)
    for i in (0, 7, 19):
        value, scale = dense_log_likelihood(points[i], signs[i], level, arm, reward, unit.history.inflation, p)
        assert found.value[i] == pytest.approx(value, rel=1e-9)
        assert found.shock_variance[i] == pytest.approx(scale, rel=1e-9)


def test_likelihood_of_one_binary_reward_is_a_probit_probability():
    kind = model_kind(2, 1, BINARY)
    mean, _ = default_prior(kind)
    level = np.array([0.0, 0.3])
    both = [
        evaluate(
            kind, make_unit("one", np.array([1, 1]), np.array(pair), 2, BINARY), mean[None], np.ones((1, 2)), level
        )
        for pair in ([0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0])
    ]
    assert sum(math.exp(each.value[0]) for each in both) == pytest.approx(1.0, abs=2e-3)  # tables of 64 steps


def test_steps_before_the_first_and_after_the_last_reward_are_dropped():
    unit = make_unit("one", np.array([-1, 0, 1, 0, 1]), np.array([9.0, 1.0, np.nan, 3.0, np.nan]), 2, CONTINUOUS)
    assert unit is not None
    assert unit.history.arm.tolist() == [0, -1, 0]
    assert unit.history.reward.tolist() == [0.0, 0.0, 2.0]
    assert unit.rewards == 2
    assert make_unit("two", np.array([0, 1]), np.array([1.0, np.nan]), 2, CONTINUOUS) is None


def test_outliers_are_marked_as_auto_marks_them():
    rng = np.random.default_rng(1)
    arm, reward = rng.integers(0, 2, 80), rng.normal(size=80)
    reward[60] = 200.0
    unit = make_unit("one", arm, reward, 2, CONTINUOUS)
    assert unit is not None
    assert np.flatnonzero(unit.history.inflation > 1.0).tolist() == [60]


def test_rewards_are_binary_if_all_are_0_or_1():
    assert reward_model([np.array([0.0, 1.0, np.nan])]) == BINARY
    assert reward_model([np.array([0.0, 1.0]), np.array([2.0])]) == CONTINUOUS


def test_sign_patterns_are_relative_to_the_first_arm():
    assert sign_patterns(2).tolist() == [[1.0, 1.0], [1.0, -1.0]]
    assert len({tuple(row) for row in sign_patterns(4).tolist()}) == 8
    assert len(sign_patterns(7)) == 7
