"""The last line of a test run names missing requirements; the stress runner counts failures."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import optional, stress
from tests.waiting import HANGS, eventually

ROOT = Path(__file__).parents[1]
CONFTEST = """
from tests.optional import OPTIONAL, Requirement, pytest_runtest_setup, pytest_terminal_summary

OPTIONAL["unavailable"] = Requirement("feature A", "no program A", lambda: False)
OPTIONAL["available"] = Requirement("feature B", "no program B", lambda: True)
"""
TESTS = """
import pytest
from tests.optional import require

@pytest.fixture
def unavailable():
    require("unavailable")

def test_with_a_fixture(unavailable):
    raise AssertionError("it runs")
@pytest.mark.needs("available", "unavailable")
def test_with_a_marker():
    raise AssertionError("it runs")
@pytest.mark.needs("available")
def test_that_can_run(): pass
@pytest.mark.skip(reason="another reason")
def test_skipped_for_another_reason(): pass
"""


def run(folder: Path, *options: str, conftest: str = CONFTEST) -> list[str]:
    """The output lines of pytest in a separate folder."""
    (folder / "conftest.py").write_text(conftest)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -ra --strict-markers\nmarkers = needs\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANGS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip().splitlines()


@pytest.fixture(autouse=True)
def _few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inner runs load only the plugins that they name: loading all takes most of their time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2")], ids=["one process", "two workers"])
def test_one_line_names_missing_requirements(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    lines = run(tmp_path, *options)
    assert lines[-2] == "not tested here: feature A (no program A); see CONTRIBUTING.md"
    assert [line for line in lines if "SKIPPED" in line] == ["SKIPPED [1] test_it.py:16: another reason"]
    assert sum("program A" in line for line in lines) == 1
    assert "1 passed, 3 skipped" in lines[-1]


def test_no_line_without_missing_requirements(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS.replace("raise Assert", "pass  # Assert"))
    lines = run(tmp_path, conftest=CONFTEST.replace("lambda: False", "lambda: True"))
    assert not [line for line in lines if "not tested here" in line]
    assert "3 passed, 1 skipped" in lines[-1]


def test_requirements_are_named_in_order_of_table() -> None:
    assert optional.summary(["chromium", "postgres", "lifejacket"]) == (
        "not tested here: the page (no Chromium), PostgreSQL storage (no server), lifejacket's checks (not installed); "
        "see CONTRIBUTING.md"
    )
    assert optional.summary([]) == ""


def test_stress_counts_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\nimport pytest\n"
        "@pytest.mark.timing\ndef test_first_time():\n"
        "    there = Path('there').exists(); Path('there').touch(); assert there\n"
        "def test_of_something_else(): raise AssertionError('it runs')\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -ra\nmarkers = timing\n")
    monkeypatch.chdir(tmp_path)
    with stress.load(1):
        assert stress.stress(2, [], tmp_path / "out") == {"test_it.py::test_first_time": 1}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["run-1.log"]


def test_eventually_shows_last_value() -> None:
    values = iter([1, 2, 3])
    assert eventually(lambda: next(values), 3) == 3
    with pytest.raises(AssertionError, match=r"waited 0 s for 'b'; the last value was 'a'\. all of it"):
        eventually(lambda: "a", "b", seconds=0, details=lambda: "all of it")
