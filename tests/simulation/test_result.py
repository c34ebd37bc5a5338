"""Results: totals, intervals, win rates, files."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import larl
from larl import worlds
from larl.simulation.result_files import join
from tests.conftest import THREE_ARMS

POLICIES = {"LARL": larl.LARL(1), "UCB": larl.UCB(), "same": larl.UCB()}


@pytest.fixture(scope="module")
def result() -> larl.Result:
    return larl.compare(POLICIES, THREE_ARMS, horizon=30, trials=40, seed=1)


def test_arrays_are_labelled_by_policy_trial_and_time(result):
    assert result.regret.dims == ("policy", "trial", "time")
    assert result.policies == ["LARL", "UCB", "same"]
    assert result.regret.shape == (3, 40, 30)
    assert "3 policies, 40 trials, 30 steps" in repr(result)


@pytest.mark.parametrize("skip", [0, 7, 30])
def test_skip_leaves_out_the_first_steps(result, skip):
    assert np.allclose(result.total(skip=skip), result.regret.values[:, :, skip:].sum(-1))
    assert np.allclose(result.curves(skip)["mean"].isel(time=-1), result.total(skip).mean("trial"))


def test_skip_k_uses_the_order_of_each_world():
    named_worlds = {"one": worlds.paper(1), "five": worlds.paper(5)}
    both = larl.compare({"it": larl.LARL(1)}, named_worlds, horizon=20, trials=3)
    for name, k in (("one", 1), ("five", 5)):
        assert np.allclose(both.total("k").sel(world=name), both.total(k).sel(world=name))


def test_summary_agrees_with_numpy_and_scipy(result):
    total, table = result.total().values, result.summary()
    assert table.index.tolist() == ["LARL", "UCB", "same"]
    assert np.allclose(table["mean"], total.mean(1))
    assert np.allclose(table["sd"], total.std(1, ddof=1))
    assert np.allclose(table["se"], stats.sem(total, axis=1))
    low, high = stats.norm.interval(0.95, total.mean(1), stats.sem(total, axis=1))
    assert np.allclose(table[["low", "high"]].T, [low, high])
    assert np.isclose(table.loc["LARL", "beats UCB"], np.mean(total[0] < total[1]))
    assert np.isclose(table.loc["LARL", "duels won"], np.mean([np.mean(total[0] < total[i]) for i in (1, 2)]))


@pytest.mark.parametrize(("keep", "units"), [("all", None), ("summary", None), ("summary", 3)])
@pytest.mark.parametrize("reference", [None, "UCB"])
def test_differences_are_paired_by_trial(keep, units, reference):
    named_worlds = {"three": THREE_ARMS, "two": worlds.paper(1)}
    result = larl.compare(POLICIES, named_worlds, horizon=30, trials=40, seed=1, keep=keep, units=units)
    name = reference or "LARL"
    table = result.summary(reference=reference)
    for world in named_worlds:
        total = result.total().sel(world=world)
        for policy in POLICIES:
            difference = (total.sel(policy=policy) - total.sel(policy=name)).values
            row = table.loc[world].loc[policy]
            assert row[f"minus {name}"] == pytest.approx(difference.mean(), abs=1e-12)
            half = row[f"minus {name}, high"] - row[f"minus {name}"]
            assert half == pytest.approx(stats.norm.ppf(0.975) * stats.sem(difference), abs=1e-12)
    # The interval of an unpaired difference would add the variances of both policies.
    difference, alone = result.differences(reference=reference), result.total().std("trial", ddof=1) / np.sqrt(40)
    unpaired = np.hypot(alone.sel(policy="same"), alone.sel(policy=name)).sel(world="two")
    assert float(difference["se"].sel(world="two", policy="same")) < 0.95 * float(unpaired)


def test_difference_of_one_trial_has_no_interval():
    one = larl.compare(POLICIES, THREE_ARMS, horizon=5, trials=1).summary()
    assert one["minus LARL, low"].isna().all()
    assert one.loc["LARL", "minus LARL"] == 0.0


def test_win_rates_have_wilson_intervals(result):
    wins = result.wins()
    count = int(np.sum(result.total().values[0] < result.total().values[1]))
    low, high = stats.binomtest(count, 40).proportion_ci(method="wilson")
    cell = wins.sel(policy="LARL", versus="UCB")
    assert np.allclose([cell["rate"], cell["low"], cell["high"]], [count / 40, low, high])
    rate = wins["rate"].values
    assert np.allclose((rate + rate.T)[~np.eye(3, dtype=bool)], 1.0)
    assert np.isnan(np.diag(rate)).all()
    assert wins["rate"].sel(policy="UCB", versus="same") == 0.5  # ties count half


def test_summary_of_one_policy_and_one_trial():
    one = larl.compare({"it": larl.UCB()}, THREE_ARMS, horizon=5, trials=1)
    table = one.summary()
    assert table.columns.tolist() == ["mean", "sd", "se", "low", "high"]
    assert table["sd"].isna().all()


def test_to_dataframe_has_one_row_for_each_policy_and_trial(result):
    frame = result.to_dataframe()
    assert frame.columns.tolist() == ["policy", "trial", "total"]
    assert len(frame) == 120


@pytest.mark.parametrize("keep", ["all", "summary"])
@pytest.mark.parametrize("world", [THREE_ARMS, {"α": worlds.paper(1), "β": worlds.paper(5)}], ids=["one", "two"])
def test_loaded_result_equals_the_saved_one(tmp_path, keep, world):
    before = larl.compare(POLICIES, world, horizon=30, trials=6, keep=keep)
    path = before.save(tmp_path / "deep" / "run.nc")
    after = larl.load(path)
    assert after.data.identical(before.data)
    assert after.summary().equals(before.summary())
    assert [file.name for file in path.parent.iterdir()] == ["run.nc"]
    second = before.save(tmp_path / "again.nc")
    assert second.read_bytes() == path.read_bytes()


def test_damaged_file_is_refused(tmp_path, result):
    path = result.save(tmp_path / "run.nc")
    content = path.read_bytes()
    for length in (0, 3, 100, 2000, len(content) // 2, len(content) - 8):
        path.write_bytes(content[:length])
        with pytest.raises(larl.InvalidValue, match=r"run\.nc"):
            larl.load(path)
    path.write_text("not a result")
    with pytest.raises(larl.InvalidValue, match=r"a complete file that Result\.save wrote"):
        larl.load(path)
    xr.Dataset({"x": ("t", [1.0])}).to_netcdf(path, engine="scipy")
    with pytest.raises(larl.InvalidValue, match="larl result 1"):
        larl.load(path)
    with pytest.raises(larl.InvalidValue, match="no such file"):
        larl.load(tmp_path / "nothing.nc")


def test_changed_value_or_attribute_is_found_by_the_checksum(tmp_path, result):
    path = result.save(tmp_path / "run.nc")
    saved = xr.load_dataset(path, engine="scipy")
    regret = saved["regret"].copy()
    regret[0, 0, 0] += 1.0
    encoding = {name: {"dtype": np.int32} for name in saved.variables if saved[name].dtype == np.int32}
    for changed in (saved.assign(regret=regret), saved.assign_attrs(seed="77"), saved.isel(trial=slice(1, None))):
        changed.to_netcdf(path, engine="scipy", format="NETCDF3_64BIT", encoding=encoding)
        with pytest.raises(larl.InvalidValue, match=r"run\.nc.*checksum does not match"):
            larl.load(path)


def test_file_without_checksum_is_read_and_its_structure_checked(tmp_path, result):
    path = result.save(tmp_path / "run.nc")
    saved = xr.load_dataset(path, engine="scipy")
    del saved.attrs["sha256"]
    saved.to_netcdf(path, engine="scipy", format="NETCDF3_64BIT")
    assert larl.load(path).data.identical(result.data)
    for changed in (saved.drop_vars("reward"), saved.assign_attrs(policies="[]"), saved.assign_attrs(keep="some")):
        changed.to_netcdf(path, engine="scipy", format="NETCDF3_64BIT")
        with pytest.raises(larl.InvalidValue, match=r"run\.nc.*this one is not"):
            larl.load(path)


def test_failed_save_keeps_the_old_file(tmp_path, result, monkeypatch):
    path = result.save(tmp_path / "run.nc")
    before = path.read_bytes()

    def broken(self, store, **options):
        store.set_attribute("format", "half")
        store.sync()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(xr.Dataset, "dump_to_store", broken)
    with pytest.raises(OSError, match="No space left"):
        result.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.nc"]


def test_keep_summary_refuses_single_steps():
    summary = larl.compare({"it": larl.UCB()}, THREE_ARMS, horizon=5, trials=2, keep="summary")
    with pytest.raises(larl.InvalidValue, match="keep='all'"):
        _ = summary.regret
    with pytest.raises(larl.InvalidValue, match="skip = 3"):
        summary.total(skip=3)
    with pytest.raises(larl.InvalidValue, match=r"reference = 'UBC'.*'it'"):
        summary.summary(reference="UBC")


def test_join_has_the_worlds_of_all_results():
    parts = [larl.compare({"it": larl.ARUCB(k)}, {f"k={k}": worlds.paper(k)}, horizon=20, trials=3) for k in (1, 5)]
    both = join(parts)
    assert both.worlds == ["k=1", "k=5"]
    assert np.array_equal(both.regret.sel(world="k=5"), parts[1].regret.sel(world="k=5"))
    assert '"order": 5' in both.data.attrs["policies"]
    assert both.total("k").shape == (2, 1, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"seed": 1}, "seed"), ({"trials": 4}, "trials"), ({"keep": "summary"}, "keep"), ({"horizon": 21}, "times")],
)
def test_join_refuses_results_that_do_not_agree(change, message):
    options = {"horizon": 20, "trials": 3}
    one = larl.compare({"it": larl.UCB()}, {"a": worlds.paper(1)}, **options)
    other = larl.compare({"it": larl.UCB()}, {"b": worlds.paper(5)}, **options | change)
    with pytest.raises(larl.InvalidValue, match=f"join: {message}"):
        join([one, other])
    with pytest.raises(larl.InvalidValue, match="worlds of different names"):
        join([one, one])


def test_special_characters_in_names_are_shown_as_written(tmp_path):
    policies = {r"$\alpha_{$": larl.UCB(), "_hidden": larl.Random(), "[bold]x[/y]": larl.RoundRobin()}
    result = larl.compare(policies, {"w [/x]": worlds.paper(1)}, horizon=1, trials=1)
    figure = result.plot_regret()
    figure.savefig(tmp_path / "policies.png")
    result.plot_wins().savefig(tmp_path / "wins.png")
    assert len(figure.legends[0].get_texts()) == 3
    assert larl.load(result.save(tmp_path / "policies.nc")).policies == list(policies)


def test_figures_show_every_policy_and_world():
    named_worlds = {"one": worlds.paper(1), "two": worlds.paper(5)}
    both = larl.compare(POLICIES, named_worlds, horizon=30, trials=6)
    regret, wins = both.plot_regret(skip="k"), both.plot_wins()
    assert [axis.get_title() for axis in regret.axes] == ["one", "two"]
    assert {text.get_text() for text in regret.legends[0].get_texts()} == set(POLICIES)
    assert [label.get_text() for label in wins.axes[0].get_yticklabels()] == list(POLICIES)
    many = larl.compare({str(s): larl.LARL(s) for s in range(6)}, named_worlds, horizon=10, trials=2).plot_wins()
    assert many.axes[0].get_position().x0 == pytest.approx(many.axes[1].get_position().x0)  # one below another
    line = next(line for line in regret.axes[1].lines if line.get_label() == "LARL")
    assert line.get_ydata()[-1] == pytest.approx(float(both.total("k").sel(world="two", policy="LARL").mean()))
    for band in ("sd", "quartiles", "se", "none"):
        both.plot_regret(band=band)
    with pytest.raises(larl.InvalidValue, match="band = 'wide'"):
        both.plot_regret(band="wide")
