"""Files that an earlier version wrote stay readable."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import larl
from larl.simulation.study import read_study

FOLDER = Path(__file__).parent / "old"


def test_result_of_an_earlier_version_has_the_same_totals():
    expected = json.loads((FOLDER / "result-1.json").read_text())
    result = larl.load(FOLDER / "result-1.nc")
    assert (result.policies, result.worlds) == (expected["policies"], expected["worlds"])
    assert np.array_equal(result.total().values, expected["total"])


def test_result_of_an_earlier_version_has_statistics_and_figures(tmp_path):
    result = larl.load(FOLDER / "result-1.nc")
    assert np.allclose(result.summary()["mean"].unstack().loc[result.worlds], result.total().mean("trial"))
    assert larl.load(result.save(tmp_path / "again.nc")).data.identical(result.data)
    assert len(result.plot_regret().axes) == len(result.worlds)


def test_store_of_other_kernels_is_refused_and_its_blocks_stay_readable(tmp_path):
    # A block's key has a digest of the kernels' source, so other code neither reads nor overwrites its blocks.
    store = shutil.copytree(FOLDER / "store-1", tmp_path / "store")
    study = read_study(store / "study.toml")
    with pytest.raises(larl.InvalidValue, match=r"study\.code\.kernels = .* accepted: '5b5936e82a25430a'"):
        study.run(store=store, progress=False)
    result = study.run(progress=False)
    blocks = sorted((store / "blocks").iterdir())
    assert len(blocks) == 2
    for path in blocks:
        with np.load(path) as file:
            first, stop = json.loads(str(file["about"]))["trials"]
            for name in ("regret", "arm", "reward"):
                assert np.array_equal(file[name], result.data[name].values.reshape(2, 4)[first:stop])
