"""What a person sees while a study runs: lines elsewhere, a bar and a table on a terminal."""

import os
import pty
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from larl._core import progress as _progress
from larl._core.progress import Progress
from larl.simulation.tasks import BlockResult
from tests.simulation.test_tasks import BLOCK


def test_lines_say_blocks_speed_and_time_left(capsys, monkeypatch):
    clock = iter([0.0, *[10.0] * 9])
    monkeypatch.setattr(_progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    bar = Progress(10 * BLOCK.steps, True, 10)
    bar.played(BLOCK, BlockResult(np.ones(5), 0.1, None))
    assert capsys.readouterr().err == " 10%  1/10 blocks  15 steps/s  1:30 left  w · p\n"


def test_blocks_found_do_not_count_as_speed(monkeypatch):
    monkeypatch.setattr(_progress, "time", SimpleNamespace(monotonic=lambda: 0.0))
    bar = Progress(10 * BLOCK.steps, False, 10)
    for _ in range(8):
        bar.found(BLOCK)
    monkeypatch.setattr(_progress, "time", SimpleNamespace(monotonic=lambda: 10.0))
    assert bar.line() == " 80%  8/10 blocks"
    bar.played(BLOCK, BlockResult(np.ones(5), 0.1, None))
    assert bar.line() == " 90%  9/10 blocks  15 steps/s  0:10 left"


def test_rows_of_the_table_are_means_and_errors():
    bar, sample = Progress(1, False), np.random.default_rng(0).normal(5.0, 2.0, 20)
    for part in (sample[:3], sample[3:4], sample[4:]):
        bar.played(BLOCK, BlockResult(part, 0.1, None))
    count, mean, squares = bar._rows["w · p"]
    assert (count, mean) == (20, pytest.approx(sample.mean(), rel=1e-12))
    assert squares == pytest.approx(((sample - sample.mean()) ** 2).sum(), rel=1e-12)


def test_the_table_keeps_the_rows_that_changed_last():
    bar = Progress(1, False)
    for number in range(30):
        bar.played(replace(BLOCK, policy_name=f"p{number}"), BlockResult(np.ones(2), 0.1, None))
    bar.played(BLOCK, BlockResult(np.ones(2), 0.1, None))
    shown = list(bar._rows)[-_progress.ROWS :]
    assert shown[-1] == "w · p"
    assert "w · p0" not in shown


@pytest.mark.parametrize(("seconds", "text"), [(5.4, "0:05"), (65, "1:05"), (3600, "1:00:00"), (90061, "25:01:01")])
def test_clocks(seconds, text):
    assert _progress._clock(seconds) == text


@pytest.mark.timing
def test_a_terminal_gets_a_bar_and_a_table():
    code = (
        "import larl; from larl import worlds;"
        "larl.compare({'LARL': larl.LARL(5)}, {'drift': worlds.paper(1)}, horizon=1000, trials=1000, keep='summary')"
    )
    mine, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen([sys.executable, "-c", code], stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(mine, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
    os.close(mine)
    assert process.returncode == 0
    text = seen.decode(errors="replace")
    for word in ("drift · LARL", "mean regret", "steps/s", "blocks", "left"):
        assert word in text
