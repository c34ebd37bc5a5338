"""Pooling reduces regret where units are similar; partial pooling does no harm where they differ."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import larl
from larl.simulation import tables
from larl.simulation.study import read_study
from larl.worlds import Simulator, variants
from tests.live.cohorts import BASE, SPEC

compare_cohorts = partial(larl.compare, {"it": SPEC}, horizon=140, trials=12, seed=2, units=40, progress=False)


def regret_reduction(world: Any, better: str, worse: str) -> tuple[float, float]:
    """Mean reduction of a unit's regret and its standard error, over 12 cohorts with common random numbers."""
    reduction = compare_cohorts(world, pooling=worse).total() - compare_cohorts(world, pooling=better).total()
    return float(reduction.mean()), float(reduction.std(ddof=1)) / math.sqrt(reduction.size)


@pytest.mark.parametrize("pooling", ["full", "partial"])
def test_pooling_reduces_regret_of_similar_units(pooling: str) -> None:
    reduction, error = regret_reduction(BASE, pooling, "none")
    assert reduction > 5.0 * error


def test_partial_pooling_does_no_harm_for_different_units() -> None:
    """Units with different best arms: within 3 standard errors of no pooling, better than full pooling by 3."""
    world = variants.HeterogeneousUnits(BASE, mu=2.0, beta=1.0)
    reduction, error = regret_reduction(world, "partial", "none")
    assert reduction > -3.0 * error
    reduction, error = regret_reduction(world, "partial", "full")
    assert reduction > 3.0 * error


def test_unit_parameters_have_documented_distribution() -> None:
    """Over 4,000 units, mean and sd of μ and β are within 4 standard errors of the distribution."""
    world, count = variants.HeterogeneousUnits(BASE, mu=0.5, beta=0.2), 4000
    states: list[Any] = [Simulator(world, 1, trial)._latent for trial in range(count)]
    for values, centre, sd in (
        (np.array([each.base.mu for each in states]), (0.0, 0.0), 0.5),
        (np.array([each.base.beta[:, 0] for each in states]), (-1.0, 1.0), 0.2),
    ):
        assert np.all(np.abs(values.mean(axis=0) - centre) < 4.0 * sd / math.sqrt(count))
        assert np.all(np.abs(values.std(axis=0) - sd) < 4.0 * sd / math.sqrt(2 * count))
        assert abs(np.corrcoef(values.T)[0, 1]) < 4.0 / math.sqrt(count)
    assert np.array_equal([each.sd for each in states], np.abs([each.base.beta[:, 0] for each in states]))
    common = variants.HeterogeneousUnits(
        larl.LatentVAR([[[0.5, 0.0], [0.0, 0.5]]], [[1, 0], [0, 1]], [0, 0], noise="common"), beta=1.0
    )
    assert Simulator(common, 1, 0)._latent.sd.tolist() == [1.0, 1.0]


def test_units_without_differences_equal_base_world() -> None:
    one, other = (
        compare_cohorts(BASE, pooling="full", trials=2),
        compare_cohorts(variants.HeterogeneousUnits(BASE), pooling="full", trials=2),
    )
    assert np.array_equal(one.regret, other.regret)
    assert variants.from_dict(variants.HeterogeneousUnits(BASE, mu=1.0).to_dict()) == variants.HeterogeneousUnits(
        BASE, mu=1.0
    )
    with pytest.raises(larl.InvalidValue, match="HeterogeneousUnits: beta = -1"):
        variants.HeterogeneousUnits(BASE, beta=-1.0)


def test_quantiles_over_units_are_averaged_over_cohorts() -> None:
    result = compare_cohorts(BASE, pooling="full", trials=5)
    table = tables.units(result).set_index("measure")
    totals = result.regret[0].sum("time").values
    quarters = np.quantile(totals, 0.25, axis=1)
    assert table.loc["regret", "p25"] == pytest.approx(quarters.mean(), rel=1e-12)
    assert table.loc["regret", "p25_se"] == pytest.approx(quarters.std(ddof=1) / math.sqrt(5), rel=1e-12)
    assert table.loc["regret", "mean_se"] == pytest.approx(result.summary().loc["it", "se"], rel=1e-12)
    assert table.loc["reward", "units"] == 5 * 40


STUDY = """horizon = 6
trials = 3
units = 4
pooling = "partial"
[worlds.w]
world = "HeterogeneousUnits"
base = { gammas = [0.9], beta = [-1.0, 1.0], mu = [0.0, 0.0] }
mu = 0.5
[policies.LARL]
policy = "LARL"
s = 1
"""


def test_study_file_with_cohorts(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    study = read_study(file)
    assert (study.units, study.pooling) == (4, "partial")
    here, kept = study.run(), study.run(store=tmp_path / "store", block=2)
    assert here.data.identical(kept.data)
    assert here.regret.sizes == {"world": 1, "policy": 1, "trial": 3, "unit": 4, "time": 6}
    assert larl.load(here.save(tmp_path / "it.nc")).data.identical(here.data)
    assert read_study(file, units=2, pooling="full").units == 2
    file.write_text(STUDY.replace('"LARL"\ns = 1', '"Random"'))
    with pytest.raises(larl.InvalidValue, match=r"study.toml:10: .*LARL, UCB"):
        read_study(file)
    file.write_text(STUDY.replace("units = 4\n", ""))
    with pytest.raises(larl.InvalidValue, match=r"study.toml:3: pooling = 'partial'"):
        read_study(file)
