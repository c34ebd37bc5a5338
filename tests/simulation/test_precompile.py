"""Kernels are compiled ahead of time and cached; a user at a terminal sees a message while they compile."""

import os
import pty
import subprocess
import sys

import pytest

import larl
from larl.policies import REGISTRY
from larl.simulation.precompile import example_world, precompile, specs
from tests.cli.running import command
from tests.waiting import HANGS

STEP = (
    "import larl;"
    "larl.compare({'it': larl.Random()}, larl.worlds.paper(1), horizon=4, trials=1, progress=False);"
    "larl.Agent(larl.Random(), 2)"
)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_each_policy_has_one_spec_for_each_type_of_state(name):
    states = [type(spec.init(2, horizon=60, world=example_world(spec))) for spec in specs(name)]
    assert len(states) == len(set(states))


def test_second_run_finds_everything_compiled(tmp_path):
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    lines = []
    for _ in range(2):
        done = subprocess.run(
            command("precompile", "Random"), capture_output=True, text=True, check=False, timeout=HANGS, env=settings
        )
        assert done.returncode == 0, done.stderr
        lines.append(done.stdout.splitlines())
    assert lines[0][0].startswith("1/1  Random: 3 kernels compiled in ")
    assert lines[0][1].endswith("and cached")
    assert lines[1] == ["1/1  Random: already compiled", "nothing to compile"]
    assert stderr_on_terminal(settings) == ""


@pytest.mark.timing
def test_terminal_shows_one_message_for_the_first_compilation(tmp_path):
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert stderr_on_terminal(settings).strip() == "compiling Random for the first time (cached afterwards)…"
    assert stderr_on_terminal(settings) == ""


def test_unknown_name_is_refused_before_compilation():
    messages = []
    with pytest.raises(larl.InvalidValue, match="name = 'Larl' is not usable; accepted: AR2"):
        precompile(["Random", "Larl"], messages.append)
    assert messages == []


def stderr_on_terminal(settings: dict[str, str]) -> str:
    """Return what a new process that simulates a few steps writes to standard error, a terminal."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as reader:
        try:
            subprocess.run([sys.executable, "-c", STEP], check=True, stderr=theirs, env=settings, timeout=HANGS)
            os.write(theirs, b"\0")  # so that there is something to read
            return reader.read(10_000).rstrip(b"\0").decode()
        finally:
            os.close(theirs)
