"""The command line as a user meets it: another process, its output, its files and its exit code."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pytest

import larl
from tests.waiting import HANGS, PATIENCE

STUDY = """
horizon = 20
trials = 5
[worlds.drift]
paper = 1
[policies.LARL]
policy = "LARL"
s = 1
[policies.UCB]
policy = "UCB"
"""
FILES = ["regret.png", "regret.svg", "result.nc", "summary.csv", "units.csv", "units.tex", "wins.png", "wins.svg"]


def command(*words: object, first: str = "") -> list[str]:
    """The command line of larl, after some code of a test."""
    return [sys.executable, "-c", f"{first}\nfrom larl.cli import main; main()", *map(str, words)]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, check=False, timeout=HANGS)


@contextmanager
def started(*words: object, first: str = "") -> Iterator[subprocess.Popen[str]]:
    """A command on its way, which hears Ctrl-C even where this process, started in the background, does not."""
    process = subprocess.Popen(
        command(*words, first=first),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def test_compare_writes_table_figures_and_data(study, tmp_path):
    done = run("compare", study, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    assert "drift" in done.stdout
    assert "LARL" in done.stdout
    result = larl.load(tmp_path / "out" / "result.nc")
    mean = result.total().mean("trial").sel(world="drift", policy="LARL").item()
    assert f"{mean:.1f}" in done.stdout
    assert f"drift,LARL,{mean}" in (tmp_path / "out" / "summary.csv").read_text()


def test_cohorts_by_option(study, tmp_path):
    done = run("compare", study, "--out", tmp_path / "out", "--units", 3, "--pooling", "full")
    assert done.returncode == 0, done.stderr
    assert "cohorts of 3, per unit" in done.stdout
    assert larl.load(tmp_path / "out" / "result.nc").units == 3
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    refused = run("compare", study, "--out", tmp_path / "out", "--pooling", "some")
    assert (refused.returncode, "'none' or 'full' or 'partial'" in refused.stderr) == (2, True)


def test_summary_studies_work_too(study, tmp_path):
    study.write_text("keep = 'summary'\n" + STUDY)
    done = run("compare", study, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES


def test_a_grid_a_store_and_a_heat_map(study, tmp_path):
    study.write_text(STUDY.replace("s = 1", "grid = {s = [0, 1], alpha = [0.5, 1.0]}"))
    words = ("compare", study, "--out", tmp_path / "out", "--store", tmp_path / "store", "--heatmap", "s,alpha")
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([*FILES, "heatmap.png", "heatmap.svg"])
    assert "LARL s=0 alpha=0.5" in done.stdout
    assert "reward: 25%" in done.stdout
    study.write_text(study.read_text().replace("trials = 5", "trials = 6"))
    again = run(*words)
    assert again.returncode == 2
    assert "study.trials = 6" in again.stderr
    assert "5, with which this store was begun" in again.stderr
    assert len(again.stderr.strip().splitlines()) == 1


def test_one_hyper_parameter_is_drawn_as_a_line_and_a_reference_can_be_chosen(study, tmp_path):
    study.write_text(STUDY.replace("s = 1", "grid = {s = [0, 1]}"))
    done = run("compare", study, "--out", tmp_path / "out", "--heatmap", "s", "--reference", "UCB")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "heatmap.png").exists()
    assert "minus UCB" in done.stdout
    assert "LARL: the best of 2 candidates" in done.stdout
    assert "minus UCB" in (tmp_path / "out" / "summary.csv").read_text()
    refused = run("compare", study, "--out", tmp_path / "other", "--reference", "UBC")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "reference = 'UBC'" in refused.stderr
    assert not (tmp_path / "other").exists()


GREEDY = """
from dataclasses import dataclass
from typing import Any, NamedTuple
import numpy as np
from larl.policies import Policy, register

class GreedyState(NamedTuple):
    total: Any

def act(state, word):
    return np.argmax(state.total)

def update(state, arm, reward):
    state.total[arm] += reward

@register(GreedyState, act, update)
@dataclass(frozen=True)
class Greedy(Policy):
    start: float = 0.0

    def init(self, arms: int, **_: Any) -> GreedyState:
        return GreedyState(np.full(arms, self.start))
"""


@pytest.mark.parametrize("where", ["beside the file", "working directory", "cluster"])
def test_own_policies_are_named_by_module_and_class(study, tmp_path, where):
    name = f"greedy_{where.split()[0]}"
    folder = tmp_path / "elsewhere" if where == "working directory" else tmp_path
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(GREEDY)
    study.write_text(STUDY.replace('policy = "UCB"', f'policy = "{name}:Greedy"\nstart = 1.0'))
    words = ["compare", study, "--out", tmp_path / "out", *(["--cluster", "local:1"] if where == "cluster" else [])]
    done = subprocess.run(command(*words), capture_output=True, text=True, check=False, timeout=300, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert '"policy": "Greedy", "start": 1.0' in larl.load(tmp_path / "out" / "result.nc").data.attrs["policies"]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("nowhere:Greedy", "'nowhere' cannot (ModuleNotFoundError: No module named 'nowhere')"),
        ("greedy_wrong:Gredy", "'greedy_wrong' has Greedy"),
        ("greedy_wrong:np", "'greedy_wrong' has Greedy"),
        ("greedy_broken:Greedy", "'greedy_broken' cannot (ZeroDivisionError: "),
    ],
)
def test_own_policies_that_are_not_there_are_one_line(study, tmp_path, policy, words):
    (tmp_path / "greedy_wrong.py").write_text(GREEDY)
    (tmp_path / "greedy_broken.py").write_text("1 / 0")
    study.write_text(STUDY.replace('policy = "UCB"', f'policy = "{policy}"'))
    done = run("compare", study, "--out", tmp_path / "out")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"policy = '{policy}'" in done.stderr
    assert words in done.stderr


def test_examples_are_installed_listed_and_written(tmp_path):
    listed = run("examples")
    assert [text.split()[0] for text in listed.stdout.splitlines()] == ["rehearsal", "study"]
    for name in ("rehearsal", "study"):
        text = files("larl.examples").joinpath(f"{name}.toml").read_text(encoding="utf-8")
        done = run("examples", name, "--to", tmp_path / "new")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "new" / f"{name}.toml").read_text(encoding="utf-8") == text
    again = run("examples", "study", "--to", tmp_path / "new")
    assert (again.returncode, "does not exist yet" in again.stderr) == (2, True)
    unknown = run("examples", "sudy")
    assert (unknown.returncode, "rehearsal or study" in unknown.stderr) == (2, True)
    assert "larl examples study" in " ".join(run("compare", "--help").stdout.split())


@pytest.mark.parametrize("axes", ["ridge", "s,ridge", "s,s", "s,alpha,ridge"])
def test_an_impossible_heat_map_is_refused_before_anything_runs(study, tmp_path, axes):
    study.write_text(STUDY.replace("s = 1", "grid = {s = [0, 1], alpha = [0.5, 1.0]}"))
    done = run("compare", study, "--out", tmp_path / "out", "--heatmap", axes)
    assert done.returncode == 2
    assert "s, alpha" in done.stderr
    assert not (tmp_path / "out").exists()


def test_blocks_that_fail_are_named_with_exit_code_3(study, tmp_path):
    study.write_text(STUDY.replace('policy = "UCB"', f'policy = "Moody"\nfile = "{tmp_path / "mood"}"'))
    (tmp_path / "mood").write_text("bad")
    known = "from larl.policies import REGISTRY; from tests.simulation.failing_policies import Moody\n"
    known += "REGISTRY['Moody'] = Moody;"
    words = ["compare", str(study), "--out", str(tmp_path / "out"), "--store", str(tmp_path / "store")]
    code = [sys.executable, "-c", known + "from larl.cli import main; main()", *words]
    for expected in (3, 0):
        done = subprocess.run(
            code, capture_output=True, text=True, check=False, timeout=HANGS, cwd=Path(__file__).parents[2]
        )
        assert done.returncode == expected, done.stderr
        if expected:
            assert "world 'drift', policy 'UCB', trials " in done.stderr
            assert ": ArithmeticError: not today" in done.stderr
            assert "only what failed" in done.stderr
            assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [("horizon = 0\n" + STUDY.replace("horizon = 20", ""), "horizon = 0"), ("[", "TOML")],
)
def test_a_bad_study_is_one_line_and_exit_code_2(study, tmp_path, text, words):
    study.write_text(text)
    done = run("compare", study, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [("compare",), ("paper", "--trials", "x"), ("paper", "--trials", 1), ("dance",)])
def test_bad_usage_is_exit_code_2_without_traceback(words):
    done = run(*words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_an_unwritable_folder_is_one_line_and_exit_code_1(study, tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = run("compare", study, "--out", tmp_path / "file" / "out")
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_full_disk_is_one_line_and_leaves_no_half_file(study, tmp_path):
    study.write_text(STUDY.replace("trials = 5", "trials = 2000"))
    assert run("compare", study, "--out", tmp_path / "fine").returncode == 0  # also fills the compiler's cache
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000));"
    words = ["compare", str(study), "--out", str(tmp_path / "full")]
    done = subprocess.run(
        [sys.executable, "-c", limit + "from larl.cli import main; main()", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS,
    )
    assert done.returncode == 1
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "full").exists()


STOPPED = """
import os, signal
from larl.simulation.result import Result
save = Result.save
def stopped(result, path):
    saved = save(result, path)
    os.kill(os.getpid(), signal.SIGINT)  # Ctrl-C as soon as the first study is finished
    return saved
Result.save = stopped
"""


def test_the_paper_goes_on_where_it_was_stopped(tmp_path):
    with started("paper", "--quick", "--trials", "4", "--out", tmp_path, first=STOPPED) as process:
        _, said = process.communicate(timeout=HANGS)
    assert process.returncode == 130, said
    assert [path.name for path in (tmp_path / "data").glob("*.nc")] == ["tuning-k1-0.nc"]
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").glob("*.nc")}
    assert not (tmp_path / "report.html").exists()
    done = run("paper", "--quick", "--trials", "4", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").exists()
    assert "report.html" in done.stdout
    assert "less regret than each baseline, baselines as the authors set them (k = 10)" in " ".join(done.stdout.split())
    assert all(path.stat().st_mtime_ns == moment for path, moment in kept.items())


@pytest.mark.timing
def test_control_c_stops_cleanly_with_130(study, tmp_path):
    study.write_text(
        STUDY.replace("trials = 5", "trials = 100_000_000").replace("horizon", "keep = 'summary'\nhorizon")
    )
    with started("compare", study, "--out", tmp_path / "out") as process:
        assert process.stderr is not None
        assert "LARL" in process.stderr.readline()  # the first line of progress: it is running
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "stopped" in rest
    assert "Traceback" not in rest
    assert not (tmp_path / "out").exists()


def test_help_and_version():
    assert f"larl {larl.__version__}" in run("--version").stdout
    text = run("--help").stdout
    for word in ("paper", "compare", "policies"):
        assert word in text
    assert "--trials" in run("paper", "--help").stdout


def test_policies_are_listed_and_described():
    assert "SlidingWindowThompson" in run("policies").stdout
    described = run("policies", "LARL").stdout
    assert "alpha: float, default 1.0" in described
    assert "s: int, required" in described
    assert run("policies", "Nobody").returncode == 2
