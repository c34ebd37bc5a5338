"""Run the command line in another process, as a user does."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.waiting import HANGS


def command(*arguments: object, setup: str = "") -> list[str]:
    """Return the command line of larl, after some code of a test."""
    return [sys.executable, "-c", f"{setup}\nfrom larl.cli import main; main()", *map(str, arguments)]


def run(*arguments: object, setup: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(command(*arguments, setup=setup), capture_output=True, text=True, check=False, timeout=HANGS)


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
