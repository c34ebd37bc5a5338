"""Files that an earlier version wrote stay readable."""

import json
from pathlib import Path

import numpy as np

import larl

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
