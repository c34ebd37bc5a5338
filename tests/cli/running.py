"""Run the command line: in another process, as a user does, or in this one, which is faster."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from typer.testing import CliRunner

from larl.cli import app
from tests.waiting import HANGS


def command(*arguments: object, setup: str = "") -> list[str]:
    """Return the command line of larl, after some code of a test."""
    return [sys.executable, "-c", f"{setup}\nfrom larl.cli import main; main()", *map(str, arguments)]


def run(*arguments: object, setup: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(command(*arguments, setup=setup), capture_output=True, text=True, check=False, timeout=HANGS)


def run_here(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in this process, which has imported most of larl. Exceptions are not caught."""
    done = CliRunner().invoke(app, [str(each) for each in arguments], prog_name="larl", catch_exceptions=False)
    return subprocess.CompletedProcess(list(arguments), done.exit_code, done.stdout, done.stderr)


@contextmanager
def started(*arguments: object, setup: str = "") -> Iterator[subprocess.Popen[str]]:
    """Start a command. It receives SIGINT even if this process was started in the background."""
    process = subprocess.Popen(
        command(*arguments, setup=setup),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


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
