"""Tables over units: means, percentiles, standard errors, LaTeX, and regret over hyper-parameters."""

import numpy as np
import pytest

import larl
from larl import worlds
from larl.simulation import plots
from larl.simulation.study import Candidate, Study
from larl.simulation.tables import (
    best_candidates,
    candidates_note,
    check_axes,
    heatmap,
    latex,
    line,
    percentile_error,
    units,
)

GRID = {(s, alpha): f"LARL s={s} alpha={alpha}" for s in (0, 1) for alpha in (0.5, 1.0)}
STUDY = Study(
    worlds={"slow_drift & co": worlds.paper(1), "k = 5": worlds.paper(5)},
    policies={name: larl.LARL(*point) for point, name in GRID.items()} | {"UCB": larl.UCB()},
    horizon=40,
    trials=60,
    seed=1,
    candidates={name: Candidate("LARL", {"s": s, "alpha": alpha}) for (s, alpha), name in GRID.items()},
)


@pytest.fixture(scope="module")
def result():
    return STUDY.run()


def test_statistics_agree_with_numpy(result):
    table = units(result).set_index(["world", "policy", "measure"])
    assert len(table) == 2 * 5 * 2
    for measure, values in (("regret", result.regret), ("reward", result.reward)):
        sample = values.sel(world="k = 5", policy="UCB").sum("time").values
        row = table.loc[("k = 5", "UCB", measure)]
        assert row["mean"] == pytest.approx(sample.mean(), rel=1e-12)
        assert row["mean_se"] == pytest.approx(sample.std(ddof=1) / np.sqrt(60), rel=1e-12)
        assert row["p25"] == pytest.approx(np.quantile(sample, 0.25), rel=1e-12)
        assert row["p75_se"] == percentile_error(sample, 0.75)
        assert row["units"] == 60


def test_hyper_parameters_have_columns_and_stay_integers(result):
    table = units(result)
    point = table[table["policy"] == "LARL s=1 alpha=0.5"].iloc[0]
    assert (point["grid"], point["s"], point["alpha"]) == ("LARL", 1, 0.5)
    assert isinstance(point["s"], int)
    assert table[table["policy"] == "UCB"]["s"].isna().all()


def test_keep_summary_has_regret_only_and_one_world_has_no_title():
    study = Study({"w": worlds.paper(1)}, {"UCB": larl.UCB()}, 20, 7, keep="summary")
    table = units(study.run())
    assert table["measure"].tolist() == ["regret"]
    assert "total reward" not in latex(table)
    alone = larl.compare({"UCB": larl.UCB()}, worlds.paper(1), horizon=20, trials=7)
    assert units(alone)["mean"].iloc[0] == pytest.approx(table["mean"].iloc[0], rel=1e-12)
    assert r"\textit" not in latex(units(alone))


@pytest.mark.parametrize("level", [0.25, 0.75])
def test_percentile_error_equals_the_sd_over_samples(level):
    # 4,000 samples of 200: the sd of the percentile is known to about 1/√(2·4000) ≈ 1.1%; Woodruff's has a bias of
    # order 1/√200 ≈ 7% at most. Bound: 10%.
    sample = np.random.default_rng(5).exponential(size=(4000, 200))
    truth = np.quantile(sample, level, axis=1).std()
    estimated = np.mean([percentile_error(row, level) for row in sample])
    assert estimated == pytest.approx(truth, rel=0.10)


def test_one_unit_has_no_standard_error():
    assert np.isnan(percentile_error(np.ones(1), 0.25))
    one = units(larl.compare({"UCB": larl.UCB()}, worlds.paper(1), horizon=5, trials=1))
    assert one["mean_se"].isna().all()
    assert "(" not in latex(one).split(r"\midrule")[1]


def test_latex_has_a_row_for_every_candidate(result):
    text = latex(units(result))
    lines = text.splitlines()
    assert lines[0] == r"\begin{tabular}{lrrrrrrrr}"
    assert lines[-1] == r"\end{tabular}"
    assert [line for line in lines if "rule" in line and "cmid" not in line] == [
        r"\toprule",
        r"\midrule",
        r"\midrule",
        r"\bottomrule",
    ]
    assert r"\textit{slow\_drift \& co}" in text
    rows = [line for line in lines if line.endswith(r"\\") and line.count("&") == 8 and "mean" not in line]
    assert len(rows) == 10
    row = units(result).query("world == 'k = 5' and policy == 'UCB' and measure == 'regret'").iloc[0]
    difference = f"{row['difference']:.1f} ({row['difference_se']:.1f})".replace("-", "$-$")
    assert f"UCB & {row['mean']:.1f} ({row['mean_se']:.1f}) & {difference} & {row['p25']:.1f}" in text
    assert r"mean & $-$ LARL s=0 alpha=0.5 & 25\,\%" in text


def test_heatmap_is_the_mean_at_each_point(result):
    squares = heatmap(result, "s", "alpha")
    assert list(squares) == [("LARL", "slow_drift & co"), ("LARL", "k = 5")]
    square = squares["LARL", "k = 5"]
    assert (square.index.tolist(), square.columns.tolist()) == (["0.5", "1.0"], ["0", "1"])
    total = result.total().sel(world="k = 5").mean("trial")
    for (s, alpha), name in GRID.items():
        assert square.loc[str(alpha), str(s)] == pytest.approx(total.sel(policy=name).item(), rel=1e-12)


def test_heatmap_figure_shows_each_number_and_frames_the_least(result):
    figure = plots.plot_heatmap(heatmap(result, "s", "alpha"))
    for axis, square in zip(figure.axes, heatmap(result, "s", "alpha").values(), strict=True):
        assert [text.get_text() for text in axis.texts] == [f"{value:.1f}" for value in square.to_numpy().ravel()]
        assert axis.images[0].get_array().tolist() == square.to_numpy().tolist()
        (frame,) = axis.patches
        i, j = np.unravel_index(square.to_numpy().argmin(), square.shape)
        assert frame.get_xy() == (j - 0.5, i - 0.5)


def test_heatmap_averages_over_further_hyper_parameters(result):
    study = Study(
        {"w": worlds.paper(1)},
        {f"L{i}": larl.LARL(1, 1.0, ridge) for i, ridge in enumerate((0.1, 1.0))},
        20,
        9,
        candidates={f"L{i}": Candidate("L", {"s": 1, "alpha": 1.0, "ridge": r}) for i, r in enumerate((0.1, 1.0))},
    )
    averaged = study.run()
    square = heatmap(averaged, "s", "alpha")["L", "w"]
    assert square.loc["1.0", "1"] == pytest.approx(averaged.total().mean().item(), rel=1e-12)


def test_best_candidates_keeps_the_best_of_a_grid_and_all_others(result):
    mean = result.total().mean("trial").sel(policy=list(GRID.values()))
    best = {str(mean.sel(world=world).idxmin("policy").item()) for world in result.worlds}
    assert set(best_candidates(result).policies) == best | {"UCB"}
    plain = larl.compare({"UCB": larl.UCB()}, worlds.paper(1), horizon=5, trials=2)
    assert best_candidates(plain) is plain


@pytest.mark.parametrize("text", ["ridge", "s,ridge", "s,s", "", "s,alpha,s"])
def test_invalid_axes_are_refused(text):
    with pytest.raises(larl.InvalidValue, match="one or two of one grid"):
        check_axes(text, STUDY.candidates)
    with pytest.raises(larl.InvalidValue, match="no grid"):
        check_axes("s,alpha", {})


def test_axes_may_have_spaces():
    assert check_axes("s, alpha", STUDY.candidates) == ("s", "alpha")
    assert check_axes(" s ", STUDY.candidates) == ("s",)


@pytest.mark.parametrize("reference", [None, "UCB"])
def test_units_have_paired_differences(result, reference):
    table = units(result, reference).set_index(["world", "policy", "measure"])
    for measure, values in (("regret", result.regret), ("reward", result.reward)):
        sample = values.sel(world="k = 5").sum("time")
        difference = (sample.sel(policy=GRID[1, 1.0]) - sample.sel(policy=reference or GRID[0, 0.5])).values
        row = table.loc[("k = 5", GRID[1, 1.0], measure)]
        assert row["difference"] == pytest.approx(difference.mean(), rel=1e-12)
        assert row["difference_se"] == pytest.approx(difference.std(ddof=1) / np.sqrt(60), rel=1e-12)
        assert row["reference"] == (reference or GRID[0, 0.5])


def test_line_is_the_mean_over_further_hyper_parameters_with_its_interval(result):
    lines = line(result, "s")
    assert list(lines) == [("LARL", "slow_drift & co"), ("LARL", "k = 5")]
    table = lines["LARL", "k = 5"]
    assert table.index.tolist() == [0, 1]
    total = result.total().sel(world="k = 5")
    sample = (total.sel(policy=GRID[1, 0.5]) + total.sel(policy=GRID[1, 1.0])).values / 2
    assert table.loc[1, "mean"] == pytest.approx(sample.mean(), rel=1e-12)
    half = 1.959963984540054 * sample.std(ddof=1) / np.sqrt(60)
    assert table.loc[1, "high"] - table.loc[1, "mean"] == pytest.approx(half, rel=1e-9)
    figure = plots.plot_line(lines)
    assert [axis.get_xlabel() for axis in figure.axes] == ["s", "s"]
    assert figure.axes[1].lines[0].get_ydata() == pytest.approx(table["mean"].to_numpy())
    assert len(figure.axes[1].collections) == 1  # the bars of the intervals


def test_figures_have_the_note_on_shown_candidates(result):
    some = [name for name in best_candidates(result).policies if name != "UCB"]
    note = candidates_note(result)
    assert note.startswith("LARL: the best of 4 candidates" if len(some) == 1 else f"LARL: {len(some)} of 4")
    assert "chosen on these same trials" in note
    for figure in (best_candidates(result).plot_regret(note=note), best_candidates(result).plot_wins(note=note)):
        assert "chosen on these same trials" in figure._supxlabel.get_text().replace("\n", " ")
    plain = larl.compare({"UCB": larl.UCB()}, worlds.paper(1), horizon=5, trials=2)
    assert candidates_note(plain) == ""
