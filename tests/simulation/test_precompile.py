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

AGENT = "import larl; larl.Agent(larl.Random(), 2)"
COMPARE = "larl.compare({'it': larl.Random()}, larl.worlds.paper(1), horizon=4, trials=1, progress=False)"


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
    assert lines[0][0].startswith("1/1  Random: 4 kernels compiled in ")
    assert lines[0][1].endswith("and cached")
    assert lines[1] == ["1/1  Random: already compiled", "nothing to compile"]
    assert stderr_on_terminal(f"{AGENT}; {COMPARE}", settings) == ""


@pytest.mark.timing
def test_terminal_shows_one_message_for_the_first_compilation(tmp_path):
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    message = "compiling Random for the first time (cached afterwards)…"  # one for the two kernels of an agent
    assert stderr_on_terminal(AGENT, settings).strip() == message
    assert stderr_on_terminal(AGENT, settings) == ""


def test_unknown_name_is_refused_before_compilation():
    messages = []
    with pytest.raises(larl.InvalidValue, match="name = 'Larl' is not usable; accepted: AR2"):
        precompile(["Random", "Larl"], messages.append)
    assert messages == []


def stderr_on_terminal(code: str, settings: dict[str, str]) -> str:
    """Return what a new process writes to standard error, a terminal."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as reader:
        try:
            subprocess.run([sys.executable, "-c", code], check=True, stderr=theirs, env=settings, timeout=HANGS)
            os.write(theirs, b"\0")  # so that there is something to read
            return reader.read(10_000).rstrip(b"\0").decode()
        finally:
            os.close(theirs)
