"""Reading a log: columns, times and steps, dates, rewards, contexts, files."""

import gzip
import re

import numpy as np
import pandas as pd
import pytest

import larl
from larl.diagnosis.build import make_log
from larl.logs.table import read_table
from larl.logs.times import duration
from tests.diagnosis.logs import at_hours, constant_means, simulate_logs, stationary

ROWS = pd.DataFrame({"t": [0, 1, 2, 3], "a": [0, 1, 0, 1], "r": [1.0, 2.0, 3.0, 4.0]})


@pytest.fixture(scope="module")
def drifting() -> pd.DataFrame:
    return next(simulate_logs(stationary(1), 120, 1, seed=8))


def assert_same_rows(one, other) -> None:
    """Assert that two logs have the same rows."""
    for field in ("arm", "gap", "reward", "unit", "step"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


# Steps


def test_dated_decisions_are_consecutive_steps(drifting):
    both = pd.concat([drifting.assign(u="x"), drifting.assign(u="y", r=-drifting.r)])
    dated = pd.concat([at_hours(part) for _, part in both.groupby("u")])
    log = make_log(dated)
    assert_same_rows(log, make_log(both))
    assert log.step_name == "one decision of a unit"
    assert "median: 5 hours" in log.notes[0]
    for grid in (False, True):
        assert "3600" not in " ".join(make_log(dated, clock_grid=grid).notes)
    clock = make_log(dated, clock_grid=True)
    assert clock.step_name == "1 hour"
    assert set(clock.gap[1:120]) == {5, 14}


def test_dates_and_step_numbers_give_the_same_diagnosis(drifting):
    one, other = (larl.diagnose(frame, replay=False, progress=False) for frame in (drifting, at_hours(drifting)))
    assert list(one.table.answer) == list(other.table.answer)
    assert list(one.table.verdict) == list(other.table.verdict)
    assert "A step is one decision of a unit" in other.about


@pytest.mark.parametrize(
    ("times", "gaps"),
    [
        ([0, 1, 2, 5, 6], [1, 1, 3, 1]),  # step numbers, two of them missing
        ([9, 14, 19, 33, 38], [1, 1, 1, 1]),  # hours: rows are steps
        ([0.0, 0.5, 1.0, 2.0, 2.5], [1, 1, 1, 1]),
        ([1_760_000_400, 1_760_018_400, 1_760_036_400, 1_760_086_800, 1_760_104_800], [1, 1, 1, 1]),  # since 1970
    ],
)
def test_only_step_numbers_have_gaps(times, gaps):
    log = make_log(pd.DataFrame({"t": times, "a": 0, "r": np.arange(5.0)}))
    assert log.gap[1:].tolist() == gaps
    assert any("step numbers are missing" in note for note in log.notes) == (gaps != [1] * 4)
    assert (log.clock is not None) == (times[0] > 1e9)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3600, "1 hour"), (18_000, "5 hours"), (129_600, "1.5 days"), (60, "1 minute"), (0.25, "0.25 seconds")],
)
def test_duration_uses_the_largest_fitting_unit(seconds, text):
    assert duration(seconds) == text


def test_rows_are_sorted_and_a_note_says_so(drifting):
    mixed = drifting.sample(frac=1.0, random_state=0)
    log = make_log(mixed)
    assert_same_rows(log, make_log(drifting))
    assert any("were sorted" in note for note in log.notes)
    assert not any("were sorted" in note for note in make_log(drifting).notes)
    interleaved = pd.concat([drifting.assign(u="x"), drifting.assign(u="y")]).sort_values("t", kind="stable")
    assert not any("were sorted" in note for note in make_log(interleaved).notes)


def test_duplicate_time_within_a_unit_is_rejected():
    with pytest.raises(larl.InvalidValue) as rejected:
        make_log(ROWS.assign(t=[0, 3, 1, 0]))
    message = str(rejected.value)
    assert "row 4, column 't' = 0 is not usable" in message
    assert "row 1 has the same time" in message
    assert "--unit NAME" in message
    assert make_log(ROWS.assign(t=[0, 1, 0, 1], u=["x", "x", "y", "y"])).units == 2


def test_messages_show_plain_python_values():
    for frame in (
        ROWS.assign(a=[0.5, 1.0, 0.0, 1.0]),
        ROWS.assign(t=np.array([0, 0, 1, 2])),
        ROWS.assign(t=pd.to_datetime(["2026-03-01"] * 2 + ["2026-03-02", "2026-03-03"])),
        ROWS.assign(r=[np.inf, 1.0, 2.0, 3.0]),
    ):
        with pytest.raises(larl.InvalidValue) as rejected:
            make_log(frame)
        assert not re.search(r"np\.|Timestamp", str(rejected.value))
    with pytest.raises(larl.InvalidValue, match=r"seed = -1 is not usable"):
        larl.diagnose(ROWS, seed=np.int64(-1))
    with pytest.raises(larl.InvalidValue, match=r"s = -1 is not usable"):
        larl.LARL(s=np.int64(-1))


# Dates


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["31/03/2026", "01/04/2026", "02/04/2026"], [0, 1, 2]),  # 31 can only be a day
        (["3/31/2026 9:30 PM", "04/01/2026 9:30 PM", "4/2/2026 9:30 PM"], [0, 1, 2]),  # month first
        (["01.02.2026", "02.02.2026", "01.03.2026"], [0, 1, 28]),  # with dots the day is always first
        (["2026-03-01T09:00:00+01:00", "2026-03-01T12:00:00Z", "2026-03-02 09:00"], None),
    ],
)
def test_common_date_notations(cells, days):
    log = make_log(pd.DataFrame({"time": cells, "a": 0, "r": [1.0, 2.0, 3.0]}))
    if days is None:
        assert (log.clock / 3600 % 24).tolist() == [9.0, 12.0, 9.0]  # local time, not universal time
        assert np.diff(log.time).tolist() == [4 * 3600.0, 21 * 3600.0]
    else:
        assert ((log.time - log.time[0]) / 86_400).tolist() == days


def test_ambiguous_and_contradictory_dates_are_rejected():
    frame = pd.DataFrame({"t": ["03/04/2026", "04/04/2026"], "a": 0, "r": [1.0, 2.0]})
    with pytest.raises(larl.InvalidValue, match="--day-first or --month-first"):
        make_log(frame)
    for day_first, days in ((True, 1), (False, 31)):  # 3 and 4 April, or 4 March and 4 April
        assert np.diff(make_log(frame, day_first=day_first).time) == days * 86_400.0
    for cells in (["13/01/2026", "01/13/2026"], ["2026-13-01", "2026-01-01"], ["31/31/2026", "01/01/2026"]):
        with pytest.raises(larl.InvalidValue, match=r"row [12]"):
            make_log(frame.assign(t=cells))
    with pytest.raises(larl.InvalidValue, match="day first"):
        make_log(frame.assign(t=["01/13/2026", "01/14/2026"]), day_first=True)


# Columns


def test_unique_id_is_not_the_unit(drifting):
    log = make_log(drifting.assign(id=np.arange(120) + 1000))
    assert log.units == 1
    assert_same_rows(log, make_log(drifting))
    assert "'id'" in log.notes[0]
    assert make_log(drifting.assign(id=np.arange(120) // 60)).units == 2
    assert make_log(drifting.assign(user=np.arange(120) % 2)).units == 2
    assert make_log(drifting.assign(user=np.arange(120) % 2), {"unit": False}).units == 1


def test_service_export_uses_column_played():
    from larl.service.export.table import COLUMNS

    frame = pd.DataFrame(
        {
            "seq": [5, 6, 9, 12],
            "unit": ["x", "y", "x", "y"],
            "t": [0, 0, 1, 1],
            "at": ["2026-03-01T09:00:00Z", "2026-03-01T09:10:00Z", "2026-03-01T14:00:00Z", "2026-03-01T14:10:00Z"],
            "id": ["d1", "d2", "d3", "d4"],
            "arm": ["rest", "walk", "rest", "walk"],
            "played": ["walk", "walk", "rest", None],
            "reward": [1.0, 2.0, 3.0, None],
        }
    )
    assert list(frame) == [name for name in COLUMNS if name in frame]  # columns of an export, in its order
    log = make_log(frame)
    assert log.labels == ("rest", "walk")
    assert log.arm.tolist() == [1, 0, 1]
    assert log.units == 2
    assert log.clock is not None
    assert any("'played'" in note for note in log.notes)
    songs = frame.assign(played=["yes", "no", "yes", "no"])  # a column of that name that holds no arms
    assert make_log(songs).arm.tolist() == [0, 0, 1]


@pytest.mark.parametrize("kind", ["csv", "frame", "objects", "nullable"])
def test_boolean_rewards_are_one_and_zero(kind, tmp_path):
    values = [True, False, None, True]
    frame = ROWS.assign(r=pd.Series(values, dtype="boolean" if kind == "nullable" else object))
    if kind == "csv":
        (tmp_path / "log.csv").write_text("t,a,r\n0,0,True\n1,1,false\n2,0,\n3,1,TRUE\n")
        frame = read_table(tmp_path / "log.csv")
    elif kind == "frame":
        frame = ROWS.assign(r=[True, False, True, True])
    log = make_log(frame)
    assert log.reward.tolist() == ([1.0, 0.0, 1.0, 1.0] if kind == "frame" else [1.0, 0.0, 1.0])


def test_boolean_actions_have_the_same_labels_in_files_and_frames(tmp_path):
    frame = ROWS.assign(a=[True, False, True, True])
    frame.to_csv(tmp_path / "log.csv", index=False)
    assert make_log(read_table(tmp_path / "log.csv")).labels == make_log(frame).labels == ("0", "1")


def test_gzip_file_is_read_and_damaged_one_rejected(drifting, tmp_path):
    drifting.to_csv(tmp_path / "log.csv.gz", index=False)
    np.testing.assert_allclose(make_log(read_table(tmp_path / "log.csv.gz")).reward, drifting.r)
    (tmp_path / "cut.csv.gz").write_bytes((tmp_path / "log.csv.gz").read_bytes()[:200])
    with pytest.raises(larl.InvalidValue, match="gzip"):
        read_table(tmp_path / "cut.csv.gz")
    (tmp_path / "empty.csv.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(larl.InvalidValue, match="empty"):
        read_table(tmp_path / "empty.csv.gz")


# Contexts


def test_context_effect_of_each_arm_is_removed():
    # 400 rewards, noise of sd 1: an effect has a standard error of 0.07 in each arm; four are allowed.
    frame = next(simulate_logs(constant_means(0.0, 1.0), 400, 1, seed=3))
    generator = np.random.default_rng(0)
    warm, place = generator.normal(size=400), generator.choice(["home", "park", "work"], size=400)
    effect = warm * np.where(frame.a == 1, 2.0, -1.0) + np.where(place == "park", 3.0, 0.0)
    log = make_log(frame.assign(r=frame.r + effect, warm=warm, place=place), context=["warm", "place"])
    kept = make_log(frame)
    for arm in (0, 1):
        rows = log.arm == arm
        rest, at_park = (log.reward - kept.reward)[rows], place[rows] == "park"
        assert abs(np.polyfit(warm[rows], rest, 1)[0]) < 4 * 0.07
        assert abs(rest[at_park].mean() - rest[~at_park].mean()) < 4 * 0.15
    assert log.adjusted == ("the context 'warm'", "the context 'place'")
    np.testing.assert_allclose(log.observed_rewards, frame.r + effect)
    assert "all answers are about the adjusted rewards" in log.notes[-1]


def test_context_constant_within_units_changes_nothing():
    frame = pd.concat(
        [
            each.assign(u=u, r=each.r + 50 * u)
            for u, each in enumerate(simulate_logs(constant_means(0.0, 1.0), 50, 4, 1))
        ]
    )
    log = make_log(frame.assign(x=np.repeat([0.0, 1.0, 2.0, 3.0], 50)), context="x")  # the same as the unit
    np.testing.assert_allclose(log.reward, make_log(frame).reward, atol=1e-6)


def test_hour_and_weekday_contexts_from_dates(drifting):
    frame = at_hours(drifting)
    assert make_log(frame, context=["hour", "weekday"]).adjusted == ("the context 'hour'", "the context 'weekday'")
    by_hand = frame.assign(clock=frame.t.dt.hour.astype(str) + "h")
    np.testing.assert_allclose(make_log(frame, context="hour").reward, make_log(by_hand, context="clock").reward)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("wind", "one of the log's columns"),
        ("hour", "hour needs dates, and the log has none"),
        (["x", "x"], "each once"),
        ("gap", "row 2, column 'gap'"),
        ("many", "at most 50 categories"),
    ],
)
def test_invalid_contexts_are_rejected(drifting, context, expected):
    frame = drifting.assign(x=1.0, gap=[1.0, None] * 60, many=[f"n{i}" for i in range(120)])
    with pytest.raises(larl.InvalidValue, match=expected):
        make_log(frame, context=context)
