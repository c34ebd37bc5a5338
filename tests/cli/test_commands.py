"""Help, version, `larl examples` and `larl policies`."""

from importlib.resources import files

import larl
from tests.cli.running import run, run_here


def test_help_and_version():
    assert f"larl {larl.__version__}" in run("--version").stdout
    text = run_here("--help").stdout
    for name in ("paper", "report", "compare", "policies", "precompile", "examples", "diagnose"):
        assert name in text
    assert "--trials" in run_here("paper", "--help").stdout


def test_policies_are_listed_and_described():
    assert "SlidingWindowThompson" in run_here("policies").stdout
    described = run_here("policies", "LARL").stdout
    assert "alpha : float, >= 0, default 1.0" in described
    assert "s : int, >= 0\n" in described
    assert run_here("policies", "Nobody").returncode == 2
    assert run_here("policies", "sharedLarl").stderr.endswith("; did you mean SharedLARL?\n")


def test_examples_are_listed_and_written(tmp_path):
    listed = run_here("examples")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["rehearsal", "study"]
    for name in ("rehearsal", "study"):
        text = files("larl.examples").joinpath(f"{name}.toml").read_text(encoding="utf-8")
        done = run_here("examples", name, "--to", tmp_path / "new")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "new" / f"{name}.toml").read_text(encoding="utf-8") == text
    again = run_here("examples", "study", "--to", tmp_path / "new")
    assert (again.returncode, "does not exist yet" in again.stderr) == (2, True)
    unknown = run_here("examples", "sudy")
    assert (unknown.returncode, "rehearsal or study" in unknown.stderr) == (2, True)
    assert "larl examples study" in " ".join(run_here("compare", "--help").stdout.split())
