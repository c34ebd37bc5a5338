"""Kernels compiled ahead of time: every policy can be, a second time finds them, and a person who waits is told why."""

import os
import pty
import subprocess
import sys

import pytest

import larl
from larl.policies import REGISTRY
from larl.simulation.precompile import precompile, specs
from tests.cli.running import command
from tests.waiting import HANGS

STEP = (
    "import larl;"
    "larl.compare({'it': larl.Random()}, larl.worlds.paper(1), horizon=4, trials=1, progress=False);"
    "larl.Agent(larl.Random(), 2)"
)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_policy_can_be_made(name):
    world = larl.worlds.paper(1)
    states = [type(spec.init(2, horizon=60, world=world)) for spec in specs(name)]
    assert len(states) == len(set(states))


def test_the_second_time_nothing_is_left_to_compile(tmp_path):
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    lines = []
    for _ in range(2):
        done = subprocess.run(
            command("precompile", "Random"), capture_output=True, text=True, check=False, timeout=HANGS, env=settings
        )
        assert done.returncode == 0, done.stderr
        lines.append(done.stdout.splitlines())
    assert lines[0][0].startswith("1/1  Random: 3 kernels compiled in ")
    assert lines[0][1].endswith("kept for the next process")
    assert lines[1] == ["1/1  Random: already compiled", "nothing to compile"]
    assert on_a_terminal(settings) == ""


@pytest.mark.timing
def test_a_person_at_a_terminal_is_told_once(tmp_path):
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert on_a_terminal(settings).strip() == "compiling Random for the first time (cached afterwards)…"
    assert on_a_terminal(settings) == ""


def test_an_unknown_name_is_refused_before_anything_is_compiled():
    said = []
    with pytest.raises(larl.InvalidValue, match="name = 'Larl' is not usable; accepted: AR2"):
        precompile(["Random", "Larl"], said.append)
    assert said == []


def on_a_terminal(settings: dict[str, str]) -> str:
    """What a new process that plays a few steps says on standard error, a terminal."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as reader:
        try:
            subprocess.run([sys.executable, "-c", STEP], check=True, stderr=theirs, env=settings, timeout=HANGS)
            os.write(theirs, b"\0")  # so that there is something to read
            return reader.read(10_000).rstrip(b"\0").decode()
        finally:
            os.close(theirs)
