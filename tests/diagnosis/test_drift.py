"""The test of drift: exact by construction, correct on simulated logs, invariant to units of the reward."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import larl
from larl.diagnosis.build import make_log
from larl.diagnosis.drift import (
    LAGS,
    MIN_DEGREES_OF_FREEDOM,
    PERMUTATIONS,
    SIGNIFICANCE_LEVEL,
    cells_of,
    find_drift,
    has_frequent_value,
    min_p_value,
    residuals,
    residuals_of_frequent_values,
    statistics,
    studentise,
)
from larl.diagnosis.kernels import pair_sums, permuted_pair_sums
from tests.diagnosis.logs import constant_means, simulate_binary, simulate_logs, stationary

LOGS = 120


def drift_rate(frames) -> float:
    """Return the share of logs in which drift is reported."""
    return float(np.mean([find_drift(make_log(frame)).verdict == "drift" for frame in frames]))


@pytest.mark.parametrize(
    ("world", "policy"),
    [
        (constant_means(0.0, 1.0), None),
        (constant_means(0.0, 0.5, 1.0), None),
        (constant_means(0.0, 0.2), larl.UCB()),
        (constant_means(0.0, 0.5, 1.0), larl.UCB()),
    ],
    ids=["2 arms at random", "3 arms at random", "2 arms by UCB", "3 arms by UCB"],
)
def test_false_positive_rate_is_at_most_the_level(world, policy):
    # 120 logs: a rate of 2.5% has a standard error of 1.4%; three are allowed. benchmarks/diagnose.py has more logs.
    frames = [
        frame.assign(r=frame.r * np.array([1.0, 3.0, 0.5])[frame.a])
        for frame in simulate_logs(world, 100, LOGS, 3, policy)
    ]
    assert drift_rate(frames) <= SIGNIFICANCE_LEVEL + 3 * 0.0143


@pytest.mark.parametrize("world", [larl.worlds.paper(1), stationary(1)], ids=["the paper's start", "stationary"])
def test_drift_of_paper_worlds_is_detected(world):
    # 40 logs of 200 steps, of which 95% must be detected. With a power of 85% the test fails in 19 of 20 cases.
    assert drift_rate(simulate_logs(world, 200, 40, 4)) >= 0.95


def test_p_value_is_uniform_under_exchangeability():
    # Each of several exchangeable logs may be the first: p ≤ x for at most a share x of them.
    values = np.random.default_rng(0).normal(size=(200, 7))
    p = np.array([min_p_value(np.roll(values, -shift, axis=0)) for shift in range(200)])
    for level in (0.025, 0.05, 0.5):
        assert np.mean(p <= level) <= level + 1e-12
    assert np.mean(p <= 0.5) > 0.45


def test_different_levels_of_units_are_not_drift():
    # 40 logs of 40 units × 10 rows with different levels. At 2.5% more than 4 are reported with probability 0.003.
    generator = np.random.default_rng(1)
    frames = [
        pd.concat(
            [
                each.assign(u=u, r=each.r + 5 * generator.normal())
                for u, each in enumerate(simulate_logs(constant_means(0.0, 1.0), 10, 40, seed))
            ]
        )
        for seed in range(40)
    ]
    assert drift_rate(frames) <= 4 / 40


def test_pair_sums_span_gaps_but_not_units():
    frame = pd.DataFrame(
        {"u": [0, 0, 0, 1, 1], "t": [0, 2, 3, 4, 5], "a": [0, 1, 0, 1, 1], "r": [1.0, 2.0, 3.0, 4.0, 5.0]}
    )
    log = make_log(frame)
    sums = np.zeros((3, 2, 2))
    pair_sums(log.arm, log.gap, 3, log.reward, sums)
    expected = np.zeros((3, 2, 2))
    expected[0, 0, 1] = 3 * 2  # t = 3 with t = 2
    expected[0, 1, 1] = 5 * 4
    expected[1, 1, 0] = 2 * 1
    expected[2, 0, 0] = 3 * 1
    np.testing.assert_array_equal(sums, expected)


def test_residuals_have_mean_zero_in_every_cell_and_are_scale_invariant():
    frame = pd.concat([each.assign(u=u) for u, each in enumerate(simulate_logs(stationary(1), 50, 3, 0))])
    log = make_log(frame)
    residual, degrees_of_freedom = residuals(log)
    order, first = cells_of(log)
    np.testing.assert_allclose(np.add.reduceat(residual[order], first[:-1]), 0.0, atol=1e-9)
    assert degrees_of_freedom == 150 - 6
    other, _ = residuals(make_log(frame.assign(r=1000.0 - 7.0 * frame.r)))
    np.testing.assert_allclose(other, -residual, atol=1e-9)


def test_verdict_of_too_little_data_is_unknown():
    frame = next(simulate_logs(stationary(1), MIN_DEGREES_OF_FREEDOM + 1, 1, 0))
    assert find_drift(make_log(frame)).verdict == "unknown"
    assert (
        find_drift(make_log(pd.DataFrame({"t": range(60), "a": [0, 1] * 30, "r": [1.0, 2.0] * 30}))).verdict
        == "unknown"
    )


def test_undetected_weak_drift_reports_rewards_needed():
    weak = larl.LatentAR(gammas=[0.8], beta=[0.3, -0.3], mu=[0.0, 0.0], noise="common")
    drift = find_drift(make_log(next(simulate_logs(weak, 60, 1, 3))))
    assert drift.verdict == "none"
    assert drift.rewards_needed > drift.degrees_of_freedom


def win_stay_log(seed: int, units: int = 30, steps: int = 20, rate: float = 0.1) -> pd.DataFrame:
    """Return a log without drift of a policy that repeats an arm after a success and changes it after a failure."""
    generator = np.random.default_rng(seed)
    arms, rewards = np.empty((units, steps), int), (generator.random((units, steps)) < rate).astype(float)
    arms[:, 0] = generator.integers(2, size=units)
    for t in range(1, steps):
        arms[:, t] = np.where(rewards[:, t - 1] == 1.0, arms[:, t - 1], 1 - arms[:, t - 1])
    unit, step = np.repeat(np.arange(units), steps), np.tile(np.arange(steps), units)
    return pd.DataFrame({"u": unit, "t": step, "a": arms.ravel(), "r": rewards.ravel()})


def test_win_stay_on_rare_rewards_is_not_drift():
    # 120 logs: at the level of 2.5%, more than 7 are reported with probability 0.01.
    assert drift_rate(win_stay_log(seed) for seed in range(120)) <= 7 / 120


def test_p_value_of_frequent_values_is_that_of_studentised_sums():
    log = make_log(simulate_binary(0.9, 2, 40, 2))
    residual, (order, first) = residuals_of_frequent_values(log), cells_of(log)
    shape = (1 + PERMUTATIONS, LAGS, 2, 2)
    sums, squares, counts = np.zeros(shape), np.zeros(shape), np.zeros(shape[1:])
    for t in range(log.rows):
        for lag in range(1, min(LAGS, log.step[t]) + 1):  # every step of a unit has a reward
            pair, product = (lag - 1, log.arm[t], log.arm[t - lag]), residual[t] * residual[t - lag]
            sums[0][pair] += product
            squares[0][pair] += product**2
            counts[pair] += 1
    permuted_pair_sums(log.arm, log.gap, order, first, LAGS, residual, 0, sums[1:])
    permuted_pair_sums(log.arm, log.gap, order, first, LAGS, residual**2, 0, squares[1:])
    expected = min_p_value(statistics(studentise(sums, squares, counts), log.plays))
    assert find_drift(log).p_value == expected
    assert min_p_value(statistics(sums, log.plays)) != expected


@pytest.mark.parametrize(("mu", "bound"), [(0.0, 0.7), (-2.2, 0.4)])
def test_drift_of_binary_rewards_is_detected(mu, bound):
    # 40 logs of 200 steps. The powers are about 90% and 70%: more than three standard errors above the bounds.
    assert drift_rate(simulate_binary(0.9, 1, 200, seed, mu=mu) for seed in range(40)) >= bound


def test_frequent_values_are_those_of_the_log():
    assert has_frequent_value(make_log(simulate_binary(0.9, 1, 60, 0)))
    assert has_frequent_value(make_log(simulate_binary(0.9, 1, 60, 0).assign(x=np.arange(60)), context="x"))
    assert not has_frequent_value(make_log(next(simulate_logs(stationary(1), 60, 1, 0))))


def test_shrunk_residuals_permute_with_their_rewards_and_are_scale_invariant():
    # This makes the test exact: a permutation of a cell's rewards is one of its residuals.
    frame = simulate_binary(0.9, 4, 30, 2)
    log = make_log(frame)
    order, first = cells_of(log)
    reward = log.reward.copy()
    for start, end in pairwise(first):
        reward[order[start:end]] = reward[order[start:end]][::-1]
    expected = residuals_of_frequent_values(log)
    for start, end in pairwise(first):
        expected[order[start:end]] = expected[order[start:end]][::-1]
    np.testing.assert_allclose(residuals_of_frequent_values(replace(log, reward=reward)), expected, atol=1e-12)
    scaled = residuals_of_frequent_values(make_log(frame.assign(r=1e20 * frame.r)))
    np.testing.assert_allclose(scaled, residuals_of_frequent_values(log), atol=1e-9)


def test_studentised_sums_do_not_depend_on_the_size_of_their_products():
    generator = np.random.default_rng(0)
    products = generator.normal(size=(50, 1, 1, 1)) * np.array([1.0, 3.0])
    sums, squares = products.sum(axis=0), (products**2).sum(axis=0)
    result = studentise(sums, squares, np.full(sums.shape, 50.0))
    np.testing.assert_allclose(result, sums / np.sqrt(squares / 50.0))
    np.testing.assert_allclose(
        result[..., 0], studentise(9.0 * sums, 81.0 * squares, np.full(sums.shape, 50.0))[..., 0]
    )
    assert (studentise(np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1))) == 0.0).all()


@pytest.mark.parametrize("values", ["normal", "rounded"])
def test_large_offset_does_not_make_rewards_constant(values):
    """Variation of a billionth of the offset is variation; the verdict is that of the rewards without the offset."""
    frame = next(simulate_logs(stationary(1), 200, 1, 0))
    if values == "rounded":  # with values that are frequent
        frame["r"] = frame.r.round()
    shifted = frame.assign(r=1e9 + frame.r)
    verdicts = [find_drift(make_log(each)).verdict for each in (frame, shifted)]
    assert verdicts == ["drift", "drift"]
