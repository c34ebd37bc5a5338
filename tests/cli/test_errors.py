"""Errors of the command line: one line on standard error and an exit code; no partial files."""

import resource
import signal

import pytest

from larl.policies import REGISTRY
from tests.cli.running import STUDY, run_here, started
from tests.simulation.failing_policies import FailsOncePerLine
from tests.waiting import PATIENCE


def test_failed_blocks_are_named_with_exit_code_3(study, tmp_path, monkeypatch):
    monkeypatch.setitem(REGISTRY, "FailsOncePerLine", FailsOncePerLine)
    study.write_text(STUDY.replace('policy = "UCB"', f'policy = "FailsOncePerLine"\nfile = "{tmp_path / "failures"}"'))
    (tmp_path / "failures").write_text("fail")
    for expected in (3, 0):
        done = run_here("compare", study, "--out", tmp_path / "out", "--store", tmp_path / "store")
        assert done.returncode == expected, done.stderr
        if expected:
            assert "world 'drift', policy 'UCB', trials " in done.stderr
            assert ": ArithmeticError: this policy fails" in done.stderr
            assert "only what failed" in done.stderr
            assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("horizon = 0\n" + STUDY.replace("horizon = 20", ""), "horizon = 0"),
        (STUDY.replace("paper = 1", 'world = "Varied"'), "its new name 'HeterogeneousUnits'"),
        ("[", "TOML"),
    ],
)
def test_invalid_study_is_one_line_and_exit_code_2(study, tmp_path, text, message):
    study.write_text(text)
    done = run_here("compare", study, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [("compare",), ("paper", "--trials", "x"), ("paper", "--trials", 1), ("dance",)])
def test_invalid_usage_is_exit_code_2_without_traceback(arguments):
    done = run_here(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "new"),
    [
        (("auto",), "larl report auto"),
        (("auto", "--trials", 20, "--out", "x"), "larl report auto"),
        (("warm", "LARL"), "larl precompile"),
    ],
)
def test_renamed_command_names_the_new_one(arguments, new):
    done = run_here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: `larl {arguments[0]}` is now `{new}`\n"


def test_renamed_commands_are_not_in_the_help():
    commands = [line.split()[0] for line in run_here("--help").stdout.splitlines() if line.startswith("  ")]
    assert "report" in commands
    assert not {"auto", "warm"} & set(commands)


def test_unwritable_folder_is_one_line_and_exit_code_1(study, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    done = run_here("compare", study, "--out", tmp_path / "file" / "out")
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


@pytest.fixture
def small_files():
    """Let writes fail that would make a file larger than 100 kB. Python ignores the signal."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_full_disk_is_one_line_and_leaves_no_partial_file(study, tmp_path, small_files):
    study.write_text(STUDY.replace("trials = 5", "trials = 2000"))
    assert run_here("compare", study, "--out", tmp_path / "fine").returncode == 0  # also fills the compiler's cache
    small_files()
    done = run_here("compare", study, "--out", tmp_path / "full")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "full").exists()


@pytest.mark.timing
def test_control_c_exits_with_130_and_leaves_no_files(study, tmp_path):
    study.write_text(
        STUDY.replace("trials = 5", "trials = 100_000_000").replace("horizon", "keep = 'summary'\nhorizon")
    )
    with started("compare", study, "--out", tmp_path / "out") as process:
        assert process.stderr is not None
        assert "blocks" in process.stderr.readline()  # the first line of progress: it is running
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "interrupted" in rest
    assert "Traceback" not in rest
    assert not (tmp_path / "out").exists()
