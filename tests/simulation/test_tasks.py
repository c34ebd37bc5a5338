"""Blocks: pure functions of their keys."""

from dataclasses import replace

import numpy as np
import pytest

import larl
from larl import worlds
from larl.simulation.tasks import Block, code_versions, make_blocks, run_block, task_block_size, trial_totals
from tests.simulation.failing_policies import FailsOncePerLine

BLOCK = Block(
    world_name="w",
    policy_name="p",
    world=worlds.paper(1),
    policy=larl.LARL(1),
    horizon=30,
    seed=5,
    keep="all",
    first=4,
    stop=9,
)


@pytest.mark.parametrize("keep", ["all", "summary"])
def test_block_equals_its_part_of_the_comparison(keep):
    result = larl.compare({"p": BLOCK.policy}, BLOCK.world, horizon=30, trials=12, seed=5)
    regret = result.regret.sel(policy="p").values[4:9]
    arrays = run_block(replace(BLOCK, keep=keep)).arrays
    if keep == "all":
        assert np.array_equal(trial_totals(arrays), regret.sum(axis=1))
        assert np.array_equal(arrays["regret"], regret)
        assert np.array_equal(arrays["arm"], result.arm.sel(policy="p").values[4:9])
    else:
        assert np.allclose(arrays["sums"], regret.cumsum(axis=1), rtol=1e-12)


def test_key_depends_on_every_setting_but_the_names():
    changes = [
        {"world": worlds.paper(5)},
        {"policy": larl.LARL(2)},
        {"horizon": 31},
        {"seed": 6},
        {"keep": "summary"},
        {"first": 3},
        {"stop": 10},
    ]
    keys = {BLOCK.key(), *(replace(BLOCK, **change).key() for change in changes)}
    assert len(keys) == 1 + len(changes)
    assert replace(BLOCK, world_name="elsewhere", policy_name="other").key() == BLOCK.key()
    assert BLOCK.to_dict()["code"] == code_versions()


def test_key_depends_on_the_source_of_external_policies(tmp_path):
    block = replace(BLOCK, policy=FailsOncePerLine(str(tmp_path)))
    assert set(block.to_dict()["code"]) == {*code_versions(), "source of tests.simulation.failing_policies"}


def test_code_versions_include_numpy_and_numba():
    assert {"larl", "kernels", "numpy", "numba", "llvmlite", "machine"} == set(code_versions())


@pytest.mark.parametrize(
    ("horizon", "trials", "size"), [(200, 1000, 250), (200, 10**6, 1000), (10**7, 50, 1), (5, 1, 1)]
)
def test_size_of_blocks_for_clusters_and_stores(horizon, trials, size):
    assert task_block_size(horizon, trials) == size


def test_blocks_cover_every_trial_once():
    worlds_ = {"a": BLOCK.world, "b": BLOCK.world}
    blocks = list(make_blocks(worlds_, {"p": BLOCK.policy}, horizon=5, trials=10, seed=0, keep="all", size=4))
    assert [(block.world_name, block.first, block.stop) for block in blocks] == [
        (name, first, min(first + 4, 10)) for name in "ab" for first in (0, 4, 8)
    ]


def test_worker_with_other_code_versions_is_refused():
    with pytest.raises(larl.InvalidValue, match=r"worker: numba = .* accepted: 0\.0, as where the study was started"):
        run_block(BLOCK, None, {"numba": "0.0"})
