"""Periodic components and drift that units share: found where they are, seldom where they are not."""

import numpy as np
import pandas as pd
import pytest

import larl
from larl.diagnosis.build import make_log
from larl.diagnosis.drift import LEVEL, find_drift
from larl.diagnosis.periodic import find_periodic, without_periods
from larl.diagnosis.together import find_together
from tests.diagnosis.logs import at_hours, logs, stationary, still

TWO_HOURLY = range(0, 24, 2)
OF_HOUR = np.array([1.2, -0.3, -0.9])  # of decisions at 9, 14 and 19 o'clock


def with_hours(frame: pd.DataFrame, effect: np.ndarray) -> pd.DataFrame:
    return frame.assign(r=frame.r + effect[np.arange(len(frame)) % effect.size])


@pytest.mark.parametrize("world", [still(0.0, 1.0), stationary(1), stationary(5)], ids=["still", "k = 1", "k = 5"])
@pytest.mark.parametrize("times", ["steps", "dates"])
def test_a_drift_without_a_period_seldom_seems_to_have_one(world, times):
    # 40 logs: at a rate of LEVEL = 2.5% more than 4 have one with probability 0.003.
    frames = list(logs(world, 120, 40, 5))
    found = [find_periodic(make_log(at_hours(each) if times == "dates" else each)).found for each in frames]
    assert np.sum(found) <= 4


def test_the_time_of_day_is_found_and_without_it_there_is_no_drift():
    # Noise and a time of day, no drift: 10 logs. Drift is then seen in none but a share LEVEL of them.
    drifting = []
    for frame in logs(still(0.0, 1.0), 180, 10, 2):
        log = make_log(at_hours(with_hours(frame, OF_HOUR)))
        rest, periods = without_periods(log)
        assert (periods[0].period, periods[0].found) == ("day", True)
        assert find_drift(log).verdict == "drift"  # as long as the time of day is not taken off
        drifting.append(find_drift(rest).verdict == "drift")
    assert sum(drifting) <= 2  # with probability 0.998 at a rate of LEVEL


def test_the_time_of_day_is_found_beside_a_drift_and_in_one_arm_only():
    for number, frame in enumerate(logs(stationary(1), 240, 4, 3)):
        wave = 2.5 * np.sin(2 * np.pi * np.arange(240) / 12)
        one_arm = frame.assign(r=frame.r + wave * (frame.a == 1))
        found = find_periodic(make_log(at_hours(one_arm, TWO_HOURLY)))
        assert found.found, number
        assert (found.period, found.context) == ("day", "the hour of the day")
        rest, _ = without_periods(make_log(at_hours(one_arm, TWO_HOURLY)))
        assert find_drift(rest).verdict == "drift"


def test_weekends_are_found_and_steps_without_dates_too():
    frame = next(logs(still(0.0, 1.0), 140, 1, 2))
    weekend = frame.assign(r=frame.r + 1.5 * (np.arange(140) % 7 >= 5))
    assert find_periodic(make_log(at_hours(weekend, (12,)))).period == "week"
    found = find_periodic(make_log(weekend))
    assert (found.period, found.found, found.context) == ("7 steps", True, "the step number modulo 7")


def test_a_short_log_is_not_tested():
    log = make_log(next(logs(still(0.0, 1.0), 30, 1, 2)))
    assert np.isnan(find_periodic(log).p_value)
    assert without_periods(log)[0] is log


def test_the_page_says_periodic_and_a_context_takes_it_off():
    frame = at_hours(with_hours(next(logs(still(0.0, 1.0), 180, 1, 4)), OF_HOUR))
    found = larl.diagnose(frame, replay=False, progress=False)
    assert found.answers[0].verdict == "periodic: use it as a context"
    assert "use the hour of the day as a context" in found.answers[0].answer
    assert "adjusted for the hour of the day" in str(found)
    again = larl.diagnose(frame, context="hour", replay=False, progress=False)
    assert again.answers[0].verdict == "not shown"
    assert not again.periods[0].found
    assert "adjusted for the context 'hour'" in str(again)
    assert found.to_dict()["periods"][0]["period"] == "day"


def units(count: int, steps: int, seed: int, shared: np.ndarray | float = 0.0, own: float = 1.0) -> pd.DataFrame:
    """Units that drift each by itself, and by a path that all share."""
    world = larl.LatentAR(gammas=[0.9], beta=[-own, own], mu=[0.0, 0.0], noise="common")
    return pd.concat([each.assign(u=u, r=each.r + shared) for u, each in enumerate(logs(world, steps, count, seed))])


def path(steps: int, seed: int, size: float) -> np.ndarray:
    """A random path with memory."""
    generator, found = np.random.default_rng(seed), np.zeros(steps)
    for t in range(1, steps):
        found[t] = 0.9 * found[t - 1] + 0.44 * generator.normal()
    return size * found


def test_units_that_drift_each_by_itself_do_not_seem_to_drift_together():
    # 30 logs: at a rate of LEVEL = 2.5% more than 3 do with probability 0.006.
    found = [find_together(make_log(units(6, 40, seed)), seed).found for seed in range(30)]
    assert np.sum(found) <= 3


def test_a_drift_that_all_units_share_is_found_and_said():
    # The state of a unit has variance 5.3, what all share 4, noise 1: five logs, of which four have to be found.
    found = [find_together(make_log(units(8, 60, seed, path(60, seed, 2.0)))) for seed in range(5)]
    assert sum(each.found for each in found) >= 4
    assert all(each.correlation > 0.0 for each in found)
    frame = units(8, 60, 1, path(60, 1, 2.0))
    said = larl.diagnose(frame, replay=False, progress=False)
    assert "Units drift together" in said.answers[0].answer
    assert said.to_dict()["units_together"]["found"]


def test_the_same_time_is_that_of_the_clock():
    # Units enter three days after one another, and what they share is a matter of the date.
    shared = path(200, 7, 1.5)
    frames = []
    for u, each in enumerate(logs(still(0.0, 0.0), 60, 8, 3)):
        day = np.arange(60) + 3 * u
        frames.append(
            each.assign(u=u, r=each.r + shared[day], at=pd.Timestamp("2026-03-02") + pd.to_timedelta(day, "D"))
        )
    frame = pd.concat(frames)
    by_date, by_step = find_together(make_log(frame)), find_together(make_log(frame.drop(columns="at")))
    assert by_date.found
    assert by_date.correlation > 2 * by_step.correlation


def test_one_unit_cannot_drift_together():
    assert np.isnan(find_together(make_log(next(logs(stationary(1), 50, 1, 0)))).p_value)
    assert LEVEL == 0.025  # the counts above rest on it
