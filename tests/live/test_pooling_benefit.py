"""What pooling is worth: much where units are alike; partial pooling costs little where they are not."""

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

play = partial(larl.compare, {"it": SPEC}, horizon=140, trials=12, seed=2, units=40, progress=False)


def gap(world: Any, better: str, worse: str) -> tuple[float, float]:
    """How much less a unit regrets, and the standard error of that over 12 cohorts on the same random numbers."""
    less = play(world, pooling=worse).total() - play(world, pooling=better).total()
    return float(less.mean()), float(less.std(ddof=1)) / math.sqrt(less.size)


@pytest.mark.parametrize("pooling", ["full", "partial"])
def test_pooling_wins_where_units_are_alike(pooling: str) -> None:
    less, error = gap(BASE, pooling, "none")
    assert less > 5.0 * error


def test_partial_pooling_does_no_harm_where_units_differ_much() -> None:
    """Units whose best arm on average is another's: beside none within 3 standard errors, better than full by 3."""
    world = variants.HeterogeneousUnits(BASE, mu=2.0, beta=1.0)
    less, error = gap(world, "partial", "none")
    assert less > -3.0 * error
    less, error = gap(world, "partial", "full")
    assert less > 3.0 * error


def test_units_that_differ_have_the_law_that_is_said() -> None:
    """4,000 units: mean and sd of μ_a within 4 standard errors; β and noise likewise, and a trial has its own."""
    world, count = variants.HeterogeneousUnits(BASE, mu=0.5, beta=0.2), 4000
    latents: list[Any] = [Simulator(world, 1, trial)._latent for trial in range(count)]
    for values, centre, sd in (
        (np.array([each.base.mu for each in latents]), (0.0, 0.0), 0.5),
        (np.array([each.base.beta[:, 0] for each in latents]), (-1.0, 1.0), 0.2),
    ):
        assert np.all(np.abs(values.mean(axis=0) - centre) < 4.0 * sd / math.sqrt(count))
        assert np.all(np.abs(values.std(axis=0) - sd) < 4.0 * sd / math.sqrt(2 * count))
        assert abs(np.corrcoef(values.T)[0, 1]) < 4.0 / math.sqrt(count)
    assert np.array_equal([each.sd for each in latents], np.abs([each.base.beta[:, 0] for each in latents]))
    common = variants.HeterogeneousUnits(
        larl.LatentVAR([[[0.5, 0.0], [0.0, 0.5]]], [[1, 0], [0, 1]], [0, 0], noise="common"), beta=1.0
    )
    assert Simulator(common, 1, 0)._latent.sd.tolist() == [1.0, 1.0]


def test_units_that_do_not_differ_are_the_base() -> None:
    one, other = play(BASE, pooling="full", trials=2), play(variants.HeterogeneousUnits(BASE), pooling="full", trials=2)
    assert np.array_equal(one.regret, other.regret)
    assert variants.from_dict(variants.HeterogeneousUnits(BASE, mu=1.0).to_dict()) == variants.HeterogeneousUnits(
        BASE, mu=1.0
    )
    with pytest.raises(larl.InvalidValue, match="HeterogeneousUnits: beta = -1"):
        variants.HeterogeneousUnits(BASE, beta=-1.0)


def test_the_table_over_units_takes_each_cohorts_quarter() -> None:
    result = play(BASE, pooling="full", trials=5)
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


def test_a_study_of_cohorts(tmp_path: Path) -> None:
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
