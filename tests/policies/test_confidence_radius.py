"""LARL's theoretical radius against a direct computation of Lemma 3, and the coverage of the confidence set."""

import math

import numpy as np
import pytest

import larl
from larl._core.compile import kernel
from larl.policies._confidence_radius import radius
from larl.policies._lags import dense_context
from larl.policies._linalg.packed_ridge import dense_inverse, dense_theta
from larl.theory import bias_row, context_bound, noise_scale, reward_parameters
from tests.conftest import THREE_ARMS
from tests.statespace.test_kalman import play
from tests.stepping import learn
from tests.theory.test_theory import steady_predictions


@kernel
def radius_of(state, arm):
    return radius(state, arm)


@pytest.mark.parametrize("s", [0, 1, 3])
@pytest.mark.parametrize("form", ["theory", "corrected"])
def test_radius_equals_lemma_3(s, form):
    steps, delta, ridge = 60, 0.1, 0.5
    arms, rewards = play(THREE_ARMS, 6, steps)
    state = larl.LARL(s, ridge=ridge, radius=form, delta=delta).init(3, horizon=steps, world=THREE_ARMS)
    rows: list[list[np.ndarray]] = [[], [], []]
    biases: list[list[float]] = [[], [], []]
    predictions = steady_predictions(THREE_ARMS, arms, rewards)
    for t in range(steps):
        if t >= s:
            rows[arms[t]].append(dense_context(state.lags, s, 3))
            biases[arms[t]].append(THREE_ARMS.beta[arms[t]] * bias_row(THREE_ARMS, s) @ predictions[t - s])
        learn(state, int(arms[t]), float(rewards[t]))
    d, bound = 6 * s + 1, context_bound(THREE_ARMS, s, delta / 2, steps)
    for arm in range(3):
        x = np.array(rows[arm])
        inverse = np.linalg.inv(x.T @ x + ridge * np.eye(d))
        forms = {  # square of the factor of R, factor of the bias
            "theory": (
                d * math.log((1 + len(x) * bound / ridge) / (delta / 2)),
                math.sqrt(sum(row @ inverse @ row for row in x)),
            ),
            "corrected": (d * math.log(1 + len(x) * bound / (ridge * d)) + 2 * math.log(2 * 3 / delta), 1.0),
        }
        expected = (
            noise_scale(THREE_ARMS)[arm] * math.sqrt(forms[form][0])
            + math.sqrt(ridge) * np.linalg.norm(reward_parameters(THREE_ARMS, s)[arm])
            + forms[form][1] * math.sqrt(np.sum(np.square(biases[arm])))
        )
        assert radius_of(state, arm) == pytest.approx(expected, rel=1e-9)


def test_confidence_set_covers_the_true_parameters():
    # 200 runs of 100 steps from a stationary start; by Lemma 3 all sets hold in at least a share 1 − δ of runs.
    s, steps, delta, runs, missed = 2, 100, 0.1, 200, np.zeros(3)
    theta = reward_parameters(THREE_ARMS, s).reshape(3, -1)
    order = np.zeros(13, dtype=int)  # index of the paper's entries in the order of the State
    for j in range(s):
        for arm in range(3):
            order[1 + 2 * (j * 3 + arm)], order[2 + 2 * (j * 3 + arm)] = (
                (s - 1 - j) * 3 + arm,
                (2 * s - 1 - j) * 3 + arm,
            )
    order[0] = 12
    for run in range(runs):
        arms, rewards = play(THREE_ARMS, run, steps)
        state = larl.LARL(s, radius="corrected", delta=delta).init(3, horizon=steps, world=THREE_ARMS)
        for t in range(steps):
            learn(state, int(arms[t]), float(rewards[t]))
        for arm in range(3):
            deviation = dense_theta(state.ridge, arm) - theta[arm, order]
            distance = math.sqrt(deviation @ np.linalg.solve(dense_inverse(state.ridge, arm), deviation))
            missed[arm] += distance > radius_of(state, arm)
            assert distance > 0.0
    assert missed.sum() / runs <= delta + 4 * math.sqrt(delta * (1 - delta) / runs)
