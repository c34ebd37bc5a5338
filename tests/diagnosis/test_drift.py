"""The test of drift: right by construction, right on simulated logs, and blind to units and to who is who."""

import numpy as np
import pandas as pd
import pytest

import larl
from larl.diagnosis.build import make_log
from larl.diagnosis.drift import FEWEST, LEVEL, cells_of, find_drift, p_value, residuals
from larl.diagnosis.kernels import pair_sums
from tests.diagnosis.logs import logs, stationary, still

LOGS = 120


def share_of_drift(frames) -> float:
    return float(np.mean([find_drift(make_log(frame)).verdict == "drift" for frame in frames]))


@pytest.mark.parametrize(
    ("world", "policy"),
    [
        (still(0.0, 1.0), None),
        (still(0.0, 0.5, 1.0), None),
        (still(0.0, 0.2), larl.UCB()),
        (still(0.0, 0.5, 1.0), larl.UCB()),
    ],
    ids=["2 arms at random", "3 arms at random", "2 arms by UCB", "3 arms by UCB"],
)
def test_arms_that_stand_still_seldom_seem_to_drift(world, policy):
    # 120 logs: a rate of LEVEL = 2.5% has a standard error of 1.4%; three of them are allowed. benchmarks/diagnose.py
    # has more logs.
    frames = [
        frame.assign(r=frame.r * np.array([1.0, 3.0, 0.5])[frame.a]) for frame in logs(world, 100, LOGS, 3, policy)
    ]
    assert share_of_drift(frames) <= LEVEL + 3 * 0.0143


@pytest.mark.parametrize("world", [larl.worlds.paper(1), stationary(1)], ids=["the paper's start", "stationary"])
def test_the_papers_drift_is_found(world):
    # 40 logs of 200 steps, of which 95% must be found; were it 85%, so many would be found once in 20 tries.
    assert share_of_drift(logs(world, 200, 40, 4)) >= 0.95


def test_the_p_value_is_uniform_by_construction():
    # Any of exchangeable logs may be the first: over all of them p ≤ x for at most a share x.
    found = np.random.default_rng(0).normal(size=(200, 7))
    p = np.array([p_value(np.roll(found, -shift, axis=0)) for shift in range(200)])
    for level in (0.025, 0.05, 0.5):
        assert np.mean(p <= level) <= level + 1e-12
    assert np.mean(p <= 0.5) > 0.45


def test_units_with_levels_of_their_own_do_not_drift():
    # 40 logs of 40 units × 10 rows, levels far apart. At a rate of LEVEL more than 4 drift with probability 0.003.
    generator = np.random.default_rng(1)
    frames = [
        pd.concat(
            [
                each.assign(u=u, r=each.r + 5 * generator.normal())
                for u, each in enumerate(logs(still(0.0, 1.0), 10, 40, seed))
            ]
        )
        for seed in range(40)
    ]
    assert share_of_drift(frames) <= 4 / 40


def test_pairs_are_counted_across_gaps_and_never_across_units():
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


def test_residuals_have_no_mean_in_any_cell_and_no_unit():
    frame = pd.concat([each.assign(u=u) for u, each in enumerate(logs(stationary(1), 50, 3, 0))])
    log = make_log(frame)
    away, free = residuals(log)
    order, first = cells_of(log)
    np.testing.assert_allclose(np.add.reduceat(away[order], first[:-1]), 0.0, atol=1e-9)
    assert free == 150 - 6
    other, _ = residuals(make_log(frame.assign(r=1000.0 - 7.0 * frame.r)))
    np.testing.assert_allclose(other, -away, atol=1e-9)


def test_too_little_is_unknown_and_not_none():
    frame = next(logs(stationary(1), FEWEST + 1, 1, 0))
    assert find_drift(make_log(frame)).verdict == "unknown"
    assert (
        find_drift(make_log(pd.DataFrame({"t": range(60), "a": [0, 1] * 30, "r": [1.0, 2.0] * 30}))).verdict
        == "unknown"
    )


def test_a_weak_drift_says_how_long_a_log_would_have_to_be():
    weak = larl.LatentAR(gammas=[0.8], beta=[0.3, -0.3], mu=[0.0, 0.0], noise="common")
    found = find_drift(make_log(next(logs(weak, 60, 1, 3))))
    assert found.verdict == "none"
    assert found.needed > found.free
