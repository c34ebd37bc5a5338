"""A complete diagnosis: verdicts, invariance to units of the reward, the page, error messages, the command."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import larl
from larl.diagnosis import replay as replays
from larl.diagnosis.build import make_log
from larl.logs.table import read_table
from tests.cli.running import run_here
from tests.diagnosis.logs import constant_means, simulate_logs, stationary

SCALES = [(1e-3, 0.0), (1e3, 0.0), (1.0, 1000.0), (-1.0, -1000.0)]


def diagnose_only(frame: pd.DataFrame) -> larl.Diagnosis:
    """Return the diagnosis without replays."""
    return larl.diagnose(frame, replay=False, progress=False)


@pytest.fixture(scope="module")
def drifting() -> pd.DataFrame:
    return next(simulate_logs(stationary(1), 200, 1, seed=8))


@pytest.fixture(scope="module")
def diagnosis(drifting) -> larl.Diagnosis:
    return diagnose_only(drifting)


def test_answers_for_the_first_paper_world(diagnosis):
    assert list(diagnosis.table.verdict)[:2] == ["yes", "yes"]
    low, high = diagnosis.estimates.orders
    assert low <= 1 <= high
    # Random choices have a long-run regret of 1.83 per step in this world; the interval contains it.
    regret = diagnosis.table.iloc[4]
    assert regret.low < 1.83 < regret.high
    assert (diagnosis.table.low <= diagnosis.table.value).all()
    assert (diagnosis.table.value <= diagnosis.table.high).all()
    assert str(diagnosis).count("\n\n") == 6  # size of the log, five answers, notes


@pytest.mark.parametrize(("factor", "shift"), SCALES)
def test_verdicts_are_invariant_to_unit_and_offset(drifting, diagnosis, factor, shift):
    for frame, verdicts in (
        (drifting, list(diagnosis.table.verdict)),
        (next(simulate_logs(constant_means(0.0, 1.0), 100, 1, 2)), None),
    ):
        before = verdicts or list(diagnose_only(frame).table.verdict)
        other = diagnose_only(frame.assign(r=factor * frame.r + shift))
        assert list(other.table.verdict)[:4] == before[:4] or factor < 0  # the best arm becomes the worst
        assert other.table.verdict[0] == before[0]
        if verdicts and factor > 0:
            assert other.estimates.orders == diagnosis.estimates.orders
            assert other.table.value[4] == pytest.approx(factor * diagnosis.table.value[4], rel=1e-2)


def test_same_log_and_seed_give_the_same_diagnosis(drifting, diagnosis):
    assert diagnose_only(drifting).to_dict() == diagnosis.to_dict()
    shuffled = drifting.rename(columns={"t": "Step", "a": "Arm", "r": "Reward"}).assign(extra="x")
    assert diagnose_only(shuffled).to_dict() == diagnosis.to_dict()


def test_verdicts_do_not_depend_on_names_of_actions(drifting, diagnosis):
    named = drifting.assign(a=np.where(drifting.a == 0, "rest", "walk"))
    assert list(diagnose_only(named).table.verdict) == list(diagnosis.table.verdict)
    assert list(diagnose_only(named).arms().arm) == ["rest", "walk"]
    assert make_log(drifting.assign(a=drifting.a == 1)).labels == ("0", "1")


def test_missing_rewards_equal_missing_rows(drifting):
    some = np.random.default_rng(0).random(200) < 0.3
    missing = make_log(drifting.assign(r=drifting.r.where(~some)))
    absent = make_log(drifting[~some])
    np.testing.assert_array_equal(missing.gap, absent.gap)
    assert missing.missing == some.sum()
    assert missing.gap.max() > 1


def test_clock_grid_counts_steps_from_dates(drifting):
    days = pd.Timestamp("2026-03-01") + pd.to_timedelta(drifting.t * 12, unit="h")
    kept = drifting.t % 7 != 3
    expected = make_log(drifting[kept])
    for times in (days, days.dt.strftime("%Y-%m-%d %H:%M")):
        log = make_log(drifting.assign(t=times)[kept], clock_grid=True)
        np.testing.assert_array_equal(log.gap, expected.gap)
        assert log.step_name == "12 hours"
    uneven = np.cumsum(np.random.default_rng(0).exponential(size=200))
    log = make_log(drifting.assign(t=uneven))
    assert set(log.gap[1:]) == {1}
    assert "consecutive" in log.notes[0]
    with pytest.raises(larl.InvalidValue, match="clock_grid"):
        make_log(drifting.assign(t=uneven), clock_grid=True)


def test_rows_of_units_may_interleave(drifting):
    other = next(simulate_logs(stationary(1), 200, 1, seed=9))
    both = pd.concat([drifting.assign(user="b"), other.assign(user="a")])
    mixed = both.sort_values("t", kind="stable")
    np.testing.assert_array_equal(make_log(both).reward, make_log(mixed).reward)
    assert make_log(mixed).units == 2


def test_short_constant_and_sparse_logs_say_what_is_missing():
    few = diagnose_only(next(simulate_logs(stationary(1), 12, 1, 0)))
    assert set(few.table.verdict) == {"too little data"}
    assert "at least 22 rewards" in few.table.answer[0]
    assert set(diagnose_only(pd.DataFrame({"t": range(50), "a": [0, 1] * 25, "r": [1.0, 2.0] * 25})).table.verdict) == {
        "nothing varies"
    }
    one = diagnose_only(next(simulate_logs(stationary(1), 100, 1, 0)).assign(a="only"))
    assert list(one.table.verdict[[1, 4]]) == ["no choice", "no choice"]
    apart = pd.DataFrame({"t": np.cumsum([11, 13] * 30), "a": 0, "r": np.arange(60.0) % 7})
    assert "within 10 steps" in larl.diagnose(apart, clock_grid=True, replay=False, progress=False).table.answer[0]


def test_an_answer_names_a_unit_column_that_differs_in_every_row(drifting):
    hint = "Every reward has its own unit in column 'user'"
    each_row = diagnose_only(drifting.assign(user=np.arange(200)))
    assert set(each_row.table.verdict) == {"too little data"}
    assert f"{hint}: if the log has one unit, use --no-unit (unit=False)" in each_row.table.answer[0]
    assert hint not in diagnose_only(drifting[:12].assign(user=np.arange(12) // 2)).table.answer[0]
    one = larl.diagnose(drifting.assign(user=np.arange(200)), unit=False, replay=False, progress=False)
    assert one.table.verdict[0] == "yes"


@pytest.mark.parametrize("kind", ["twice", "arms", "mostly missing", "units"])
def test_odd_logs_are_diagnosed(kind):
    frame = next(simulate_logs(stationary(1), 300, 1, 2))
    if kind == "twice":
        frame["a"] = np.isin(frame.t, (50, 120)).astype(int)
    elif kind == "arms":
        frame["a"] = np.arange(300) % 30  # ten rewards each, and more arms than are fitted
    elif kind == "mostly missing":
        frame.loc[frame.t % 10 != 0, "r"] = np.nan
    else:
        frame = frame.assign(u=frame.t // 10)
    result = diagnose_only(frame)
    assert len(result.table) == 5
    assert "nan" not in str(result)
    json.dumps(result.to_dict(), allow_nan=False)


def test_drift_shared_by_all_arms_does_not_matter():
    shared = larl.LatentAR(gammas=[0.9], beta=[1.0, 1.0], mu=[0.0, 0.5])
    result = diagnose_only(next(simulate_logs(shared, 300, 1, 1)))
    assert list(result.table.verdict)[:2] == ["yes", "not shown"]


class SourceParser(HTMLParser):
    """Collects the addresses that a page refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.sources += [value for name, value in attrs if name in ("src", "srcset", "href")]


def test_page_is_complete_and_loads_nothing_else(drifting, tmp_path, monkeypatch):
    for name, value in {"WORLDS": 2, "MAX_TRIALS": 4, "AUTO_STEP_BUDGET": 100, "MAX_HORIZON": 40}.items():
        monkeypatch.setattr(replays, name, value)
    result = larl.diagnose(drifting, progress=False)
    page = result.save(tmp_path / "out")
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == [
        "answers.csv",
        "diagnosis.html",
        "diagnosis.json",
    ]
    text = page.read_text(encoding="utf-8")
    assert "nan" not in re.sub(r'"data:[^"]*"', "", text)
    sources = SourceParser(text).sources
    assert len(sources) == 10  # five figures, light and dark
    assert all(each.startswith("data:image/png;base64,") for each in sources)
    assert "http" not in re.sub(r'"data:[^"]*"', "", text)
    saved = json.loads((tmp_path / "out" / "diagnosis.json").read_text(encoding="utf-8"))
    names = {"larl.UCB(standardise=True)", "larl.AdaptiveLARL()", "larl.SharedLARL()", "larl.Auto()", replays.KALMAN}
    assert saved["saved_a_step"].keys() >= names
    # Random choices with strong drift: a policy that knows the parameters saves reward in every fitted world.
    assert saved["saved_a_step"][replays.KALMAN][1] > 0
    # The same best policy in the summary, in both answers, and first in the table.
    plain = re.sub(r"<[^>]*>", " ", re.sub(r'"data:[^"]*"', "", text))
    assert result.answers[3].verdict.startswith(result.replay.best)
    assert f"{result.replay.best} would have saved" in plain
    rows = re.findall(r"<tr><td>(larl\.[^<]*)</td>", text)
    assert rows == result.replay.ranked
    assert rows[0] == result.replay.best


def test_labels_are_escaped_on_the_page(drifting, tmp_path):
    frame = drifting.assign(a=np.where(drifting.a == 0, "<script>$x_1", "_a&b"))
    text = diagnose_only(frame).save(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>" not in text
    assert "&lt;script&gt;$x_1" in text


BAD = {
    "not a number": ("t,a,r\n0,0,1.0\n1,1,oops\n", r"row 2 \(line 3\), column 'r' = 'oops'"),
    "infinite": ("t,a,r\n0,0,1.0\n1,1,inf\n", r"row 2 \(line 3\), column 'r' = 'inf'"),
    "time": ("t,a,r\n0,0,1.0\nsoon,1,2.0\n", r"row 2 \(line 3\), column 't' = 'soon'"),
    "time back": (
        "t,a,r\n0,0,1.0\n2,1,2.0\n2,1,3.0\n",
        r"row 3 \(line 4\), column 't' = '2'.*row 2 has the same time",
    ),
    "time missing": ("t,a,r\n0,0,1.0\n,1,2.0\n", r"row 2 \(line 3\), column 't'"),
    "half an action": ("t,a,r\n0,0,1.0\n1,0.37,2.0\n", r"row 2 \(line 3\), column 'a' = '0.37'"),
    "no action": ("t,a,r\n0,0,1.0\n1,,2.0\n", r"row 2 \(line 3\), column 'a'"),
    "no unit": ("t,a,r,u\n0,0,1.0,x\n1,0,2.0,\n", r"row 2 \(line 3\), column 'u'"),
    "column": ("t,a,points\n0,0,1.0\n", r"column of the reward.*--reward NAME \(there are: t, a, points\)"),
    "no rewards": ("t,a,r\n0,0,\n1,1,\n", r"all are missing"),
    "header only": ("t,a,r\n", r"0 rows"),
    "empty": ("", r"this file is empty"),
    "torn": ('t,a,r\n0,0,"1.0\n', r"this file is neither"),
    "binary": ("\0\1\2", r"zero bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_cell_is_reported_by_row_and_column(name, tmp_path):
    text, expected = BAD[name]
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(larl.InvalidValue, match=expected):
        larl.diagnose(tmp_path / "log.csv", progress=False)


def test_file_that_is_not_text_is_rejected(tmp_path):
    (tmp_path / "log.csv").write_bytes(b"t,a,r\n0,0,\xff\xfe\n")
    with pytest.raises(larl.InvalidValue, match="this file is neither"):
        larl.diagnose(tmp_path / "log.csv", progress=False)


def test_invalid_arguments_are_rejected(drifting, tmp_path):
    for frame, options, expected in (
        (drifting, {"reward": "score"}, "one of the log's columns: t, a, r"),
        (drifting.assign(a=np.arange(200)), {}, "200 different actions"),
        ([1, 2], {}, "a table of pandas, polars, pyarrow"),
        (drifting, {"seed": -1}, "seed"),
        (tmp_path / "nothing.csv", {}, "does not exist"),
    ):
        with pytest.raises(larl.InvalidValue, match=re.escape(expected)):
            larl.diagnose(frame, progress=False, **options)


def test_parquet_and_csv_give_the_same_log(tmp_path):
    frame = pd.DataFrame({"t": [0, 1, 2, 4], "a": ["x", "y", "x", "y"], "r": [1.0, 0.25, None, -2.0]})
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_csv(tmp_path / "log.csv", index=False)
    one, other = (make_log(read_table(tmp_path / name)) for name in ("log.parquet", "log.csv"))
    for field in ("arm", "reward", "gap", "step"):
        assert np.array_equal(getattr(one, field), getattr(other, field))
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "log.parquet").read_bytes()[:300])
    with pytest.raises(larl.InvalidValue, match=r"cut\.parquet"):
        read_table(tmp_path / "cut.parquet")


def test_parquet_without_engine_names_the_package_to_install(tmp_path, monkeypatch):
    def raise_import_error(path):
        raise ImportError("no engine")

    (tmp_path / "log.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(pd, "read_parquet", raise_import_error)
    with pytest.raises(larl.InvalidValue, match=re.escape("pip install 'larl[parquet]'")):
        read_table(tmp_path / "log.parquet")


def test_csv_with_semicolons_and_byte_order_mark(drifting, tmp_path):
    drifting.to_csv(tmp_path / "log.csv", sep=";", index=False, encoding="utf-8-sig")
    log = make_log(read_table(tmp_path / "log.csv"))
    np.testing.assert_allclose(log.reward, drifting.r)


def test_command_writes_page_and_rejects_missing_column(drifting, tmp_path):
    log = tmp_path / "log.csv"
    drifting.rename(columns={"r": "points"}).to_csv(log, index=False)
    rejected = run_here("diagnose", log, "--out", tmp_path / "no")
    assert rejected.returncode == 2
    assert len(rejected.stderr.strip().splitlines()) == 1
    assert "--reward NAME" in rejected.stderr
    done = run_here("diagnose", log, "--reward", "points", "--no-replay", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "drifting beyond noise? — yes" in done.stdout
    assert (tmp_path / "out" / "diagnosis.html").is_file()
    assert not (tmp_path / "no").exists()
