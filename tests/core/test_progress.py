"""Progress is shown as a bar and a table on a terminal, and as lines elsewhere."""

import os
import pty
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from larl._core import progress
from larl._core.progress import Progress
from larl.simulation.tasks import BlockResult
from tests.simulation.test_tasks import BLOCK


def test_line_has_blocks_speed_and_time_left(capsys, monkeypatch):
    clock = iter([0.0, *[10.0] * 9])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    bar = Progress(10 * BLOCK.steps, True, 10)
    bar.finish_block(BLOCK, BlockResult(np.ones(5), 0.1, None))
    assert capsys.readouterr().err == " 10%  1/10 blocks  15 steps/s  1:30 left  w · p\n"


def test_loaded_blocks_do_not_count_as_speed(monkeypatch):
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 0.0))
    bar = Progress(10 * BLOCK.steps, False, 10)
    for _ in range(8):
        bar.skip_block(BLOCK)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 10.0))
    assert bar.line() == " 80%  8/10 blocks"
    bar.finish_block(BLOCK, BlockResult(np.ones(5), 0.1, None))
    assert bar.line() == " 90%  9/10 blocks  15 steps/s  0:10 left"


def test_table_rows_are_means_and_squared_deviations():
    bar, sample = Progress(1, False), np.random.default_rng(0).normal(5.0, 2.0, 20)
    for part in (sample[:3], sample[3:4], sample[4:]):
        bar.finish_block(BLOCK, BlockResult(part, 0.1, None))
    count, mean, squares = bar._rows["w · p"]
    assert (count, mean) == (20, pytest.approx(sample.mean(), rel=1e-12))
    assert squares == pytest.approx(((sample - sample.mean()) ** 2).sum(), rel=1e-12)


def test_table_shows_rows_that_changed_last():
    bar = Progress(1, False)
    for number in range(30):
        bar.finish_block(replace(BLOCK, policy_name=f"p{number}"), BlockResult(np.ones(2), 0.1, None))
    bar.finish_block(BLOCK, BlockResult(np.ones(2), 0.1, None))
    shown = list(bar._rows)[-progress.MAX_TABLE_ROWS :]
    assert shown[-1] == "w · p"
    assert "w · p0" not in shown


@pytest.mark.parametrize(("seconds", "text"), [(5.4, "0:05"), (65, "1:05"), (3600, "1:00:00"), (90061, "25:01:01")])
def test_seconds_as_clock_time(seconds, text):
    assert progress._format_duration(seconds) == text


@pytest.mark.timing
def test_terminal_shows_bar_and_table():
    code = (
        "import larl; from larl import worlds;"
        "larl.compare({'LARL': larl.LARL(5)}, {'drift': worlds.paper(1)}, horizon=1000, trials=4000, keep='summary')"
    )
    master, slave = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen([sys.executable, "-c", code], stderr=slave, env=environment) as process:
        os.close(slave)
        output = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the process closed its end
                break
            if not part:
                break
            output += part
    os.close(master)
    assert process.returncode == 0
    text = output.decode(errors="replace")
    for text_part in ("drift · LARL", "mean regret", "steps/s", "blocks", "left"):
        assert text_part in text
