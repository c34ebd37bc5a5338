"""Kernels are compiled ahead of time and cached; a user at a terminal sees a message while they compile."""

import io
import logging
import os
import pty
import subprocess
import sys

import pytest

import larl
from larl._core.compile import Compilations
from larl.policies import REGISTRY
from larl.simulation.precompile import example_world, precompile, specs
from tests.cli.running import command, run_here
from tests.waiting import HANGS

AGENT = "import larl; larl.Agent(larl.{}(), 2)"
COMPARE = "larl.compare({'it': larl.Random()}, larl.worlds.paper(1), horizon=4, trials=1, progress=False)"


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_each_policy_has_one_spec_for_each_type_of_state(name):
    states = [type(spec.init(2, horizon=60, world=example_world(spec))) for spec in specs(name)]
    assert len(states) == len(set(states))


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """The environment of processes that share a cache: what all policies use is compiled once."""
    return os.environ | {"NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}


def test_what_is_compiled_is_found_later_and_new_policies_are_compiled_in_several_processes(settings):
    def lines(*names):
        done = subprocess.run(
            command("precompile", *names), capture_output=True, text=True, check=False, timeout=HANGS, env=settings
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    first, last = lines("Random")
    assert first.startswith("1/1  Random: compiled in ")
    assert last.startswith("1 policy compiled in ")
    assert stderr_on_terminal(f"{AGENT.format('Random')}; {COMPARE}", settings) == ""
    *each, last = lines("Random", "Exp3")
    assert [line.partition("  ")[2].partition(" in ")[0] for line in sorted(each, key=lambda line: line[5:])] == [
        "Exp3: compiled",
        "Random: already compiled",
    ]
    assert last.startswith("1 policy compiled in ")


def test_what_is_compiled_is_not_compiled_again():
    run_here("precompile", "Random")
    assert run_here("precompile", "Random").stdout.splitlines()[-1] == "nothing to compile"


@pytest.mark.timing
def test_terminal_shows_one_message_for_the_first_compilation(settings):
    message = "compiling KLUCB for the first time…"
    assert stderr_on_terminal(AGENT.format("KLUCB"), settings).strip() == message
    assert stderr_on_terminal(AGENT.format("KLUCB"), settings) == ""


def test_log_has_one_line_for_each_name(caplog, monkeypatch):
    known = Compilations()
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with caplog.at_level(logging.INFO, logger="larl"):
        assert [known.announce("UCB", lambda: 7) for _ in range(2)] == [7, 7]
    assert caplog.messages == ["compiling UCB for the first time"]


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
