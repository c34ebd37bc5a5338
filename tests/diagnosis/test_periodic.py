"""Tests for periodic components and shared drift: power, and false positive rates."""

import numpy as np
import pandas as pd
import pytest

import larl
from larl.diagnosis.build import make_log
from larl.diagnosis.drift import SIGNIFICANCE_LEVEL, find_drift
from larl.diagnosis.periodic import find_period, remove_periods
from larl.diagnosis.shared_drift import find_shared_drift
from tests.diagnosis.logs import at_hours, constant_means, simulate_logs, stationary

TWO_HOURLY = range(0, 24, 2)
HOUR_EFFECT = np.array([1.2, -0.3, -0.9])  # of decisions at 9, 14 and 19 o'clock


def add_hour_effect(frame: pd.DataFrame, effect: np.ndarray) -> pd.DataFrame:
    """Return the log with an effect that depends on the time of day."""
    return frame.assign(r=frame.r + effect[np.arange(len(frame)) % effect.size])


@pytest.mark.parametrize(
    "world", [constant_means(0.0, 1.0), stationary(1), stationary(5)], ids=["still", "k = 1", "k = 5"]
)
@pytest.mark.parametrize("times", ["steps", "dates"])
def test_false_positive_rate_of_periods_with_drift(world, times):
    # 40 logs: at a rate of 2.5% more than 4 are reported with probability 0.003.
    frames = list(simulate_logs(world, 120, 40, 5))
    detected = [find_period(make_log(at_hours(each) if times == "dates" else each)).is_detected for each in frames]
    assert np.sum(detected) <= 4


def test_time_of_day_is_detected_and_removed():
    # 10 logs with noise and an effect of the time of day, without drift.
    drifting = []
    for frame in simulate_logs(constant_means(0.0, 1.0), 180, 10, 2):
        log = make_log(at_hours(add_hour_effect(frame, HOUR_EFFECT)))
        rest, periods = remove_periods(log)
        assert (periods[0].period, periods[0].is_detected) == ("day", True)
        assert find_drift(log).verdict == "drift"  # unless the time of day is removed
        drifting.append(find_drift(rest).verdict == "drift")
    assert sum(drifting) <= 2  # with probability 0.998 at a rate of 2.5%


def test_time_of_day_of_one_arm_is_detected_with_drift():
    for number, frame in enumerate(simulate_logs(stationary(1), 240, 4, 3)):
        wave = 2.5 * np.sin(2 * np.pi * np.arange(240) / 12)
        one_arm = frame.assign(r=frame.r + wave * (frame.a == 1))
        period = find_period(make_log(at_hours(one_arm, TWO_HOURLY)))
        assert period.is_detected, number
        assert (period.period, period.context) == ("day", "the hour of the day")
        rest, _ = remove_periods(make_log(at_hours(one_arm, TWO_HOURLY)))
        assert find_drift(rest).verdict == "drift"


def test_weekends_are_detected_with_and_without_dates():
    frame = next(simulate_logs(constant_means(0.0, 1.0), 140, 1, 2))
    weekend = frame.assign(r=frame.r + 1.5 * (np.arange(140) % 7 >= 5))
    assert find_period(make_log(at_hours(weekend, (12,)))).period == "week"
    period = find_period(make_log(weekend))
    assert (period.period, period.is_detected, period.context) == ("7 steps", True, "the step number modulo 7")


def test_short_log_is_not_tested_for_periods():
    log = make_log(next(simulate_logs(constant_means(0.0, 1.0), 30, 1, 2)))
    assert np.isnan(find_period(log).p_value)
    assert remove_periods(log)[0] is log


def test_diagnosis_reports_period_and_context_removes_it():
    frame = at_hours(add_hour_effect(next(simulate_logs(constant_means(0.0, 1.0), 180, 1, 4)), HOUR_EFFECT))
    diagnosis = larl.diagnose(frame, replay=False, progress=False)
    assert diagnosis.answers[0].verdict == "periodic: use it as a context"
    assert "use the hour of the day as a context" in diagnosis.answers[0].answer
    assert "adjusted for the hour of the day" in str(diagnosis)
    with_context = larl.diagnose(frame, context="hour", replay=False, progress=False)
    assert with_context.answers[0].verdict == "not shown"
    assert not with_context.periods[0].is_detected
    assert "adjusted for the context 'hour'" in str(with_context)
    assert diagnosis.to_dict()["periods"][0]["period"] == "day"


def units(count: int, steps: int, seed: int, shared: np.ndarray | float = 0.0, own: float = 1.0) -> pd.DataFrame:
    """Return a log of units with drift of their own and a shared path."""
    world = larl.LatentAR(gammas=[0.9], beta=[-own, own], mu=[0.0, 0.0], noise="common")
    return pd.concat(
        [each.assign(u=u, r=each.r + shared) for u, each in enumerate(simulate_logs(world, steps, count, seed))]
    )


def path(steps: int, seed: int, size: float) -> np.ndarray:
    """Return a random AR(1) path."""
    generator, z = np.random.default_rng(seed), np.zeros(steps)
    for t in range(1, steps):
        z[t] = 0.9 * z[t - 1] + 0.44 * generator.normal()
    return size * z


def test_false_positive_rate_of_shared_drift():
    # 30 logs: at a rate of 2.5% more than 3 are reported with probability 0.006.
    detected = [find_shared_drift(make_log(units(6, 40, seed)), seed).is_detected for seed in range(30)]
    assert np.sum(detected) <= 3


def test_shared_drift_is_detected_and_reported():
    # Variances: 5.3 of a unit's state, 4 of the shared path, 1 of the noise. Four of five logs must be detected.
    results = [find_shared_drift(make_log(units(8, 60, seed, path(60, seed, 2.0)))) for seed in range(5)]
    assert sum(each.is_detected for each in results) >= 4
    assert all(each.correlation > 0.0 for each in results)
    frame = units(8, 60, 1, path(60, 1, 2.0))
    diagnosis = larl.diagnose(frame, replay=False, progress=False)
    assert "Units drift together" in diagnosis.answers[0].answer
    assert diagnosis.to_dict()["units_together"]["found"]


def test_shared_drift_uses_dates_if_there_are_any():
    # Units start three days apart, and the shared path depends on the date.
    shared = path(200, 7, 1.5)
    frames = []
    for u, each in enumerate(simulate_logs(constant_means(0.0, 0.0), 60, 8, 3)):
        day = np.arange(60) + 3 * u
        frames.append(
            each.assign(u=u, r=each.r + shared[day], at=pd.Timestamp("2026-03-02") + pd.to_timedelta(day, "D"))
        )
    frame = pd.concat(frames)
    by_date, by_step = find_shared_drift(make_log(frame)), find_shared_drift(make_log(frame.drop(columns="at")))
    assert by_date.is_detected
    assert by_date.correlation > 2 * by_step.correlation


def test_one_unit_is_not_tested_for_shared_drift():
    assert np.isnan(find_shared_drift(make_log(next(simulate_logs(stationary(1), 50, 1, 0)))).p_value)
    assert SIGNIFICANCE_LEVEL == 0.025  # the counts above assume it
