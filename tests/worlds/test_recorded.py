"""The world that plays back a table: its windows against slices of the table, its sources, its files and its use."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import larl
from larl._core.states import Memory, copy_state
from larl.simulation.gym import LatentAREnv
from larl.simulation.store import Store
from larl.simulation.study import Study
from larl.simulation.tasks import Block, fits_block, run_block
from larl.worlds import Recorded, Simulator

ROWS, WINDOW = 60, 20
TABLE = np.random.default_rng(0).normal(size=(ROWS, 3)).round(3)
HOLES = np.where(np.random.default_rng(1).random(TABLE.shape) < 0.2, np.nan, TABLE)
NAMES = ("tea", "coffee", "water")
POLICIES = {"UCB": larl.UCB(), "Random": larl.Random()}


def windows_of(result: larl.Result, world: Recorded, seed: int = 0) -> list[np.ndarray]:
    """The rows of each trial, from the first row by plain slicing."""
    firsts = [int(world.path(1, seed, trial)[0]) for trial in range(result.data.sizes["trial"])]
    return [world.table.values[first : first + result.data.sizes["time"]] for first in firsts]


@pytest.mark.parametrize("starts", ["random", "disjoint", (5, 0, 40)])
@pytest.mark.parametrize("table", [TABLE, HOLES], ids=["complete", "with holes"])
def test_a_trial_is_a_slice_of_the_table(starts: Any, table: np.ndarray) -> None:
    world = Recorded(table, WINDOW, starts=starts)
    result = larl.compare(POLICIES, world, horizon=WINDOW, trials=7, seed=3)
    for trial, window in enumerate(windows_of(result, world, seed=3)):
        for policy in range(2):
            arms = result.arm.values[policy, trial]
            cells = window[np.arange(WINDOW), arms]
            np.testing.assert_array_equal(result.reward.values[policy, trial], cells)
            best = np.array([max(x for x in row if not np.isnan(x)) for row in window])
            np.testing.assert_array_equal(
                result.regret.values[policy, trial], np.where(np.isnan(cells), 0.0, best - cells)
            )
    firsts = [int(world.path(1, 3, trial)[0]) for trial in range(7)]
    if starts == "disjoint":
        assert firsts == [0, 20, 40, 0, 20, 40, 0]
    elif starts == "random":
        assert len(set(firsts)) > 3
    else:
        assert firsts == [5, 0, 40, 5, 0, 40, 5]


def test_random_starts_are_uniform_and_follow_the_seed() -> None:
    # 4,100 starts of 41 possible rows: a chi-squared test at the level 0.001.
    world = Recorded(TABLE, WINDOW)
    firsts = [int(world.path(1, 5, trial)[0]) for trial in range(4100)]
    assert stats.chisquare(np.bincount(firsts, minlength=41)).pvalue > 1e-3
    assert max(firsts) == ROWS - WINDOW
    assert firsts[:20] != [int(world.path(1, 6, trial)[0]) for trial in range(20)]


def test_bootstrap_blocks_are_consecutive_and_every_row_is_equally_likely() -> None:
    # 900 trials of 5 blocks of 4 rows; the 4,500 first rows of blocks are uniform over all 60 rows, the seam included.
    world, firsts, shares = Recorded(TABLE, WINDOW, block=4), [], np.zeros(ROWS)
    for trial in range(900):
        blocks = world.path(WINDOW, 1, trial).reshape(5, 4)
        assert np.array_equal(blocks, (blocks[:, :1] + np.arange(4)) % ROWS)
        firsts += blocks[:, 0].tolist()
        shares += np.bincount(blocks.ravel(), minlength=ROWS)
    assert stats.chisquare(np.bincount(firsts, minlength=ROWS)).pvalue > 1e-3
    # The mean of an arm over 18,000 drawn cells; blocks of 4 rows at most quadruple its variance.
    drawn = shares @ TABLE / shares.sum()
    assert np.all(np.abs(drawn - TABLE.mean(axis=0)) < 4 * 2 * TABLE.std(axis=0) / np.sqrt(shares.sum()))


def test_horizon_shorter_than_the_window_uses_its_first_rows() -> None:
    world = Recorded(TABLE, WINDOW)
    np.testing.assert_array_equal(world.path(5, 2, 9), world.path(WINDOW, 2, 9)[:5])


def test_noise_is_added_to_the_recorded_reward() -> None:
    # 2,000 noises, mean and variance within 4 standard errors; regret has no noise.
    world = Recorded(TABLE, WINDOW, noise_sd=2.0)
    result = larl.compare({"UCB": larl.UCB()}, world, horizon=WINDOW, trials=100)
    noise = []
    for trial, window in enumerate(windows_of(result, world)):
        cells = window[np.arange(WINDOW), result.arm.values[0, trial]]
        noise += (result.reward.values[0, trial] - cells).tolist()
        np.testing.assert_array_equal(result.regret.values[0, trial], window.max(axis=1) - cells)
    assert abs(np.mean(noise)) < 4 * 2.0 / np.sqrt(2000)
    assert abs(np.var(noise) - 4.0) < 4 * 4.0 * np.sqrt(2 / 2000)


def test_result_does_not_depend_on_threads_or_blocks() -> None:
    results = [
        larl.compare(POLICIES, Recorded(HOLES, WINDOW), horizon=WINDOW, trials=9, threads=n, block=b)
        for n, b in ((1, None), (2, 2))
    ]
    assert results[0].data.identical(results[1].data)


def test_oracle_plays_the_best_recorded_arm() -> None:
    world = Recorded(HOLES, WINDOW, starts="disjoint")
    result = larl.compare({"best": larl.DynamicOracle()}, world, horizon=WINDOW, trials=3)
    np.testing.assert_array_equal(result.reward.values[0].ravel(), np.nanmax(HOLES, axis=1))
    assert not result.regret.values.any()


def test_agent_on_the_simulator_makes_the_decisions_of_compare() -> None:
    # LARL's next context depends on whether the last reward was missing, and on its arm.
    world = Recorded(HOLES, ROWS, columns=NAMES, starts=(0,))
    result = larl.compare({"LARL": larl.LARL(1)}, world, horizon=ROWS, trials=1, seed=4)
    agent, simulator, missing = larl.Agent(larl.LARL(1), arms=list(NAMES), seed=4), Simulator(world, 4, 0), 0
    for t in range(ROWS):
        decision = agent.decide()
        arm = world.columns.index(decision.arm)
        assert arm == result.arm.values[0, 0, t]
        reward = simulator.reward(arm)
        missing += np.isnan(reward)
        agent.observe(decision, None if np.isnan(reward) else reward)
        assert simulator.regret(arm) == result.regret.values[0, 0, t]
        assert simulator.z == t
        simulator.advance()
    assert missing > 3
    assert simulator.z == -1
    assert np.isnan(simulator.means).all()


def test_units_of_a_cohort_have_the_windows_of_trials() -> None:
    world = Recorded(HOLES, WINDOW)
    cohorts = larl.compare(POLICIES, world, horizon=WINDOW, trials=2, units=3)
    plain = larl.compare(POLICIES, world, horizon=WINDOW, trials=6)
    np.testing.assert_array_equal(cohorts.reward.values.reshape(2, 6, WINDOW), plain.reward.values)
    pooled = larl.compare({"UCB": larl.UCB()}, world, horizon=WINDOW, trials=2, units=3, pooling="full")
    for unit in range(6):
        rows = world.path(WINDOW, 0, unit)
        arms = pooled.arm.values.reshape(6, WINDOW)[unit]
        np.testing.assert_array_equal(pooled.reward.values.reshape(6, WINDOW)[unit], HOLES[rows, arms])


def test_trials_and_units_share_one_table() -> None:
    latent = Recorded(TABLE, WINDOW).latent()
    assert copy_state(latent).table is latent.table
    assert copy_state(latent).row is not latent.row
    units = Memory(latent, 4)
    assert units.stacked().table is units.state(2).table is latent.table
    assert units.stacked().row.shape == (4, 1)


def test_gymnasium_episode_is_a_window() -> None:
    env = LatentAREnv(Recorded(HOLES, WINDOW))
    result = larl.compare({"UCB": larl.UCB()}, env.world, horizon=WINDOW, trials=1, seed=3)
    _, info = env.reset(seed=3)
    for t in range(WINDOW):
        arm = result.arm.values[0, 0, t]
        _, reward, _, truncated, info = env.step(arm)
        np.testing.assert_array_equal(reward, result.reward.values[0, 0, t])
        assert info["regret"] == result.regret.values[0, 0, t]
        assert truncated == (t == WINDOW - 1)
    assert info["optimal_action"] == np.nanargmax(HOLES[env.world.path(WINDOW, 3, 0)[-1]])
    with pytest.raises(larl.InvalidValue, match=r"LatentAREnv: horizon = 21 .*at most 20, the window"):
        LatentAREnv(env.world, horizon=21)


def test_store_keeps_missing_rewards_and_refuses_others(tmp_path: Path) -> None:
    block = Block("w", "p", Recorded(HOLES, WINDOW), larl.UCB(), WINDOW, 0, "all", 0, 4)
    arrays = run_block(block).arrays
    assert arrays is not None
    assert np.isnan(arrays["reward"]).any()
    store = Store.open(tmp_path, {})
    store.put(block, arrays)
    found = store.get(block)
    assert found is not None
    np.testing.assert_array_equal(found["reward"], arrays["reward"])
    infinite = np.where(np.isnan(arrays["reward"]), np.inf, arrays["reward"])
    assert not fits_block(block, arrays | {"reward": infinite})
    complete = Block("w", "p", Recorded(TABLE, WINDOW), larl.UCB(), WINDOW, 0, "all", 0, 4)
    assert not fits_block(complete, arrays)


@pytest.mark.timing
def test_dask_workers_read_the_table(tmp_path: Path) -> None:
    pd.DataFrame(HOLES).to_csv(tmp_path / "t.csv", index=False)
    worlds = {"file": Recorded(tmp_path / "t.csv", WINDOW), "memory": Recorded(HOLES, WINDOW)}
    study = Study(worlds, {"UCB": larl.UCB()}, horizon=WINDOW, trials=4)
    assert study.run(cluster="local:1").data.identical(study.run(threads=1).data)


def test_horizon_beyond_the_window_is_refused_before_anything_runs(tmp_path: Path) -> None:
    world = Recorded(TABLE, WINDOW)
    with pytest.raises(larl.InvalidValue, match=r"compare: horizon = 21 .*at most 20, the window of Recorded"):
        larl.compare(POLICIES, world, horizon=21, trials=2)
    study = Study({"it": world}, POLICIES, horizon=21, trials=2)
    with pytest.raises(larl.InvalidValue, match="compare, world 'it': horizon = 21"):
        study.run()
    with pytest.raises(larl.InvalidValue, match="path: horizon = 21"):
        world.path(21)


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e30], ids=str)
def test_constant_tiny_and_huge_tables_give_finite_results(scale: float) -> None:
    table = np.where(np.arange(ROWS)[:, None] % 7 == 3, np.nan, scale * np.eye(3)[np.arange(ROWS) % 3])
    result = larl.compare(POLICIES, Recorded(table, WINDOW), horizon=WINDOW, trials=3)
    assert np.isfinite(result.regret.values).all()
    assert np.isnan(result.reward.values).any()  # rows without any reward
    share = result.recorded_summary()["share"]
    assert np.isnan(share).all() if scale == 0.0 else np.isfinite(share).all()
