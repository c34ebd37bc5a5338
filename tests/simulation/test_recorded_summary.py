"""Shares and mean rewards on recorded tables, against sums that are written out here."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import larl
from larl.worlds import Recorded
from tests.cli.running import run_here

ROWS, WINDOW, TRIALS = 60, 20, 6
TABLE = np.random.default_rng(0).normal(size=(ROWS, 3)).round(3)
HOLES = np.where(np.random.default_rng(1).random(TABLE.shape) < 0.2, np.nan, TABLE)
POLICIES = {"UCB": larl.UCB(), "Random": larl.Random(), "best": larl.DynamicOracle()}
BENCHMARKS = ["(random arm)", "(best fixed arm)", "(best arm at every step)"]


def played(world: Recorded, keep: str = "all", trials: int = TRIALS, **settings: object) -> larl.Result:
    return larl.compare(POLICIES, world, horizon=WINDOW, trials=trials, seed=2, keep=keep, **settings)


def sums_by_hand(table: np.ndarray, rows: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Reward, gain, scale and steps of one trial, by a loop over its steps."""
    total = np.zeros(4)
    for row, arm in zip(rows, arms, strict=True):
        values = [value for value in table[row] if not np.isnan(value)]
        if not np.isnan(table[row, arm]):
            mean = sum(values) / len(values)
            total += (table[row, arm], table[row, arm] - mean, max(values) - mean, 1)
    return total


@pytest.mark.parametrize("table", [TABLE, HOLES], ids=["complete", "with holes"])
@pytest.mark.parametrize("starts", ["random", "disjoint"])
def test_mean_reward_and_share_are_ratios_of_sums(table: np.ndarray, starts: str) -> None:
    world = Recorded(table, WINDOW, starts=starts)
    result = played(world)
    summary = result.recorded_summary()
    assert list(summary.index) == [*POLICIES, *BENCHMARKS]
    rows = [world.path(WINDOW, 2, trial) for trial in range(TRIALS)]
    for i, policy in enumerate(POLICIES):
        sums = sum(sums_by_hand(table, rows[trial], result.arm.values[i, trial]) for trial in range(TRIALS))
        assert summary.loc[policy, "mean reward"] == pytest.approx(sums[0] / sums[3], rel=1e-12)
        assert summary.loc[policy, "share"] == pytest.approx(100 * sums[1] / sums[2], rel=1e-12)
        assert summary.loc[policy, "missing"] == pytest.approx(100 - 100 * sums[3] / (TRIALS * WINDOW))
    fixed = []
    for each in rows:
        means = [np.nanmean(table[each, arm]) for arm in range(3)]
        fixed.append(sums_by_hand(table, each, np.full(WINDOW, np.argmax(means))))
    assert summary.loc["(best fixed arm)", "share"] == pytest.approx(100 * sum(fixed)[1] / sum(fixed)[2], rel=1e-12)
    assert summary.loc["(best fixed arm)", "mean reward"] == pytest.approx(sum(fixed)[0] / sum(fixed)[3], rel=1e-12)
    assert summary.loc[["best", "(best arm at every step)"], "share"].tolist() == [100.0, 100.0]
    assert summary.loc["(random arm)", "share"] == 0.0


def test_share_of_a_random_policy_is_zero_on_average() -> None:
    # 400 trials of 20 steps; the policy's own draws are independent between trials, so its error is that of 400.
    result = larl.compare({"Random": larl.Random()}, Recorded(HOLES, WINDOW), horizon=WINDOW, trials=400)
    row = result.recorded_summary().loc["Random"]
    assert abs(row["share"]) < 4 * row["se"] * np.sqrt(row["windows"] / 400)


def test_standard_errors_count_windows_that_share_no_row() -> None:
    for settings, independent in (
        ({"starts": "disjoint"}, 3),
        ({"starts": (0, 10, 20, 30)}, 2),
        ({"starts": (7,)}, 1),
        ({"block": 5}, 3),
    ):
        summary = played(Recorded(TABLE, WINDOW, **settings)).recorded_summary()
        assert summary["windows"].tolist() == [independent] * 6
        assert summary["se"].isna().all() == (independent == 1)
    world = Recorded(TABLE, WINDOW, starts="disjoint")
    result = played(world, trials=3)
    summary, rows = result.recorded_summary("Random"), [world.path(WINDOW, 2, trial) for trial in range(3)]
    sums = {
        policy: np.array([sums_by_hand(TABLE, rows[trial], result.arm.values[i, trial]) for trial in range(3)])
        for i, policy in enumerate(POLICIES)
    }
    difference = 100 * (sums["UCB"] - sums["Random"])[:, 1]  # without holes, all policies have one scale
    scale = sums["UCB"][:, 2]
    ratio = difference.sum() / scale.sum()
    error = (difference - ratio * scale).std(ddof=1) / scale.mean() / np.sqrt(3)
    row, reach = summary.loc["UCB"], stats.t(2).ppf(0.975) * error
    assert row["minus Random"] == pytest.approx(ratio)
    assert row["minus Random, se"] == pytest.approx(error)
    assert [row["minus Random, low"], row["minus Random, high"]] == pytest.approx([ratio - reach, ratio + reach])


def test_kept_summary_gives_the_same_table_and_noise_does_not_count() -> None:
    for world in (Recorded(TABLE, WINDOW), Recorded(TABLE, WINDOW, noise_sd=0.7)):
        steps, summary = played(world).recorded_summary(), played(world, keep="summary").recorded_summary()
        pd.testing.assert_frame_equal(steps, summary, rtol=1e-9)
    with pytest.raises(larl.InvalidValue, match=r"keep = 'summary' .*'all': with missing rewards"):
        played(Recorded(HOLES, WINDOW), keep="summary").recorded_summary()


def test_cohorts_add_up_their_units_and_worlds_have_their_rows() -> None:
    world = Recorded(HOLES, WINDOW)
    plain, cohorts = played(world).recorded_summary(), played(world, trials=3, units=2).recorded_summary()
    columns = ["mean reward", "share", "missing"]
    pd.testing.assert_frame_equal(plain[columns], cohorts[columns], rtol=1e-12)
    several = {"mine": world, "paper": larl.worlds.random(1, 3, 0)}
    result = larl.compare({"UCB": larl.UCB()}, several, horizon=WINDOW, trials=TRIALS, seed=2)
    assert result.recorded_worlds == ["mine"]
    found = result.recorded_summary()
    assert found.index.names == ["world", "policy"]
    assert found.loc[("mine", "UCB"), "share"] == plain.loc["UCB", "share"]


def test_saved_result_has_its_table_and_checks_a_file(tmp_path: Path) -> None:
    pd.DataFrame(TABLE, columns=["a", "b", "c"]).to_csv(tmp_path / "t.csv", index=False)
    for world in (Recorded(HOLES, WINDOW), Recorded(tmp_path / "t.csv", WINDOW)):
        result = played(world)
        loaded = larl.load(result.save(tmp_path / "result.nc"))
        pd.testing.assert_frame_equal(loaded.recorded_summary(), result.recorded_summary())
    (tmp_path / "t.csv").write_text("a,b,c\n" + "1,2,3\n4,4,4\n" * 10, encoding="utf-8")
    with pytest.raises(larl.InvalidValue, match=r"checksum = .*the table has changed"):
        loaded.recorded_summary()


def test_result_without_recorded_worlds_is_refused() -> None:
    result = larl.compare({"UCB": larl.UCB()}, larl.worlds.paper(1), horizon=2, trials=1)
    with pytest.raises(larl.InvalidValue, match=r"recorded_summary: worlds = .*larl\.worlds\.Recorded"):
        result.recorded_summary()


def test_command_prints_and_writes_the_shares(tmp_path: Path) -> None:
    pd.DataFrame(HOLES, columns=["a", "b", "c"]).to_csv(tmp_path / "t.csv", index=False)
    text = (
        f'horizon = {WINDOW}\ntrials = 3\n[worlds.mine]\nworld = "Recorded"\npath = "t.csv"\nwindow = {WINDOW}\n'
        'starts = "disjoint"\n[policies.UCB]\npolicy = "UCB"\n[policies.Random]\npolicy = "Random"\n'
    )
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    done = run_here("compare", tmp_path / "study.toml", "--out", tmp_path / "results")
    assert done.returncode == 0
    assert "mine (3 windows that share no row)" in done.stdout
    assert "(best fixed arm)" in done.stdout
    written = pd.read_csv(tmp_path / "results" / "recorded.csv", index_col=["world", "policy"])
    world = Recorded(HOLES, WINDOW, columns=("a", "b", "c"), starts="disjoint")
    policies = {"UCB": larl.UCB(), "Random": larl.Random()}
    expected = larl.compare(policies, {"mine": world}, horizon=WINDOW, trials=3).recorded_summary()
    pd.testing.assert_frame_equal(written, expected)
