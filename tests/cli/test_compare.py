"""`larl compare`: its options, output and files."""

import pytest

import larl
from tests.cli.running import STUDY, run_here

FILES = ["regret.png", "regret.svg", "result.nc", "summary.csv", "units.csv", "units.tex", "wins.png", "wins.svg"]


def written(folder):
    return sorted(path.name for path in folder.iterdir())


def test_compare_writes_table_figures_and_data(study, tmp_path):
    done = run_here("compare", study, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert written(tmp_path / "out") == FILES
    assert "drift" in done.stdout
    assert "LARL" in done.stdout
    result = larl.load(tmp_path / "out" / "result.nc")
    mean = result.total().mean("trial").sel(world="drift", policy="LARL").item()
    assert f"{mean:.1f}" in done.stdout
    assert f"drift,LARL,{mean}" in (tmp_path / "out" / "summary.csv").read_text()


def test_options_units_and_pooling_simulate_cohorts(study, tmp_path):
    done = run_here("compare", study, "--out", tmp_path / "out", "--units", 3, "--pooling", "full")
    assert done.returncode == 0, done.stderr
    assert "cohorts of 3, per unit" in done.stdout
    assert larl.load(tmp_path / "out" / "result.nc").units == 3
    assert written(tmp_path / "out") == FILES
    refused = run_here("compare", study, "--out", tmp_path / "out", "--pooling", "some")
    assert (refused.returncode, "'none' or 'full' or 'partial'" in refused.stderr) == (2, True)


def test_keep_summary_writes_the_same_files(study, tmp_path):
    study.write_text("keep = 'summary'\n" + STUDY)
    done = run_here("compare", study, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert written(tmp_path / "out") == FILES


def test_grid_with_store_and_heatmap(study, tmp_path):
    study.write_text(STUDY.replace("s = 1", "grid = {s = [0, 1], alpha = [0.5, 1.0]}"))
    arguments = ("compare", study, "--out", tmp_path / "out", "--store", tmp_path / "store", "--heatmap", "s,alpha")
    done = run_here(*arguments)
    assert done.returncode == 0, done.stderr
    assert written(tmp_path / "out") == sorted([*FILES, "heatmap.png", "heatmap.svg"])
    assert "LARL s=0 alpha=0.5" in done.stdout
    assert "reward: 25%" in done.stdout
    study.write_text(study.read_text().replace("trials = 5", "trials = 6"))
    again = run_here(*arguments)
    assert again.returncode == 2
    assert "study.trials = 6" in again.stderr
    assert "5, with which this store was created" in again.stderr
    assert len(again.stderr.strip().splitlines()) == 1


def test_heatmap_of_one_hyper_parameter_and_reference(study, tmp_path):
    study.write_text(STUDY.replace("s = 1", "grid = {s = [0, 1]}"))
    done = run_here("compare", study, "--out", tmp_path / "out", "--heatmap", "s", "--reference", "UCB")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "heatmap.png").exists()
    assert "minus UCB" in done.stdout
    assert "LARL: the best of 2 candidates" in done.stdout
    assert "minus UCB" in (tmp_path / "out" / "summary.csv").read_text()
    refused = run_here("compare", study, "--out", tmp_path / "other", "--reference", "UBC")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "reference = 'UBC'" in refused.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("axes", ["ridge", "s,ridge", "s,s", "s,alpha,ridge"])
def test_impossible_heatmap_is_refused_before_the_run(study, tmp_path, axes):
    study.write_text(STUDY.replace("s = 1", "grid = {s = [0, 1], alpha = [0.5, 1.0]}"))
    done = run_here("compare", study, "--out", tmp_path / "out", "--heatmap", axes)
    assert done.returncode == 2
    assert "s, alpha" in done.stderr
    assert not (tmp_path / "out").exists()
