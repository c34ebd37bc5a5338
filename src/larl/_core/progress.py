"""What a person sees while a long run goes on: a bar and a table on a terminal, one line that changes in a notebook, a
line now and then elsewhere."""

import math
import sys
import time
from types import TracebackType
from typing import Any

import numpy as np

from larl._core.validation import boolean, optional

FIRST_LINE, SECONDS_BETWEEN_LINES = 2.0, 10.0
SECONDS_BETWEEN_UPDATES = 0.25  # of the line in a notebook
ROWS = 12  # of the table: those that changed last


class Progress:
    """Progress over a known number of steps, and of blocks if given. `shown`: True always, None only on a terminal,
    False never."""

    def __init__(self, total: int, shown: bool | None, blocks: int = 0) -> None:
        terminal = sys.stderr.isatty()
        self._total, self._done, self._found = total, 0, 0
        self._blocks, self._blocks_done = blocks, 0
        self._label, self._shared = "", False
        self.title = ""  # what the labels that follow belong to
        self._rows: dict[str, list[float]] = {}  # trials so far, their mean total regret, squared deviations
        self._lines, self._spoken = bool(shown) and not terminal, False
        self._notebook: Any = None  # the display of a notebook, once there is one
        self._in_notebook = self._lines and in_notebook()
        self._began = time.monotonic()
        self._speak_at = self._began + (0.0 if self._in_notebook else FIRST_LINE)
        self._screen = self._make_screen() if terminal and shown is not False else None

    @classmethod
    def given(cls, progress: "bool | Progress | None", total: int, blocks: int) -> "Progress":
        """A Progress that others share, as it is and left open; else a new one."""
        if not isinstance(progress, Progress):
            return cls(total, optional(boolean())("compare", "progress", progress), blocks)
        progress._shared = True
        return progress

    def _make_screen(self) -> Any:
        from rich.console import Console
        from rich.live import Live

        return Live(console=Console(stderr=True), get_renderable=self._picture, refresh_per_second=4, transient=True)

    def _picture(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        bar = Table.grid(padding=(0, 1))
        bar.add_row(Text(self._label), ProgressBar(self._total, self._done, width=30), Text(self.line()))
        if not self._rows:
            return bar
        table = Table("", "trials", "mean regret", "± se", box=None, header_style="bold")
        for column in table.columns[1:]:
            column.justify = "right"
        for label, (count, mean, squares) in list(self._rows.items())[-ROWS:]:
            error = f"{math.sqrt(squares / (count - 1) / count):.2f}" if count > 1 else ""
            table.add_row(Text(label), f"{count:,.0f}", f"{mean:.2f}", error)
        return Group(table, bar)

    def line(self) -> str:
        """How far it is: share, blocks, steps a second, time left."""
        passed = time.monotonic() - self._began
        rate = (self._done - self._found) / passed if passed > 0 else 0.0
        parts = [f"{100 * self._done / self._total:3.0f}%"]
        if self._blocks:
            parts.append(f"{self._blocks_done:,}/{self._blocks:,} blocks")
        if rate > 0:
            done = self._done >= self._total
            time_ = f"in {_clock(passed)}" if done else f"{_clock((self._total - self._done) / rate)} left"
            parts += [f"{_short(rate)} steps/s", time_]
        return "  ".join(parts)

    def __enter__(self) -> "Progress":
        if self._screen and not self._screen.is_started:
            self._screen.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shared:  # the comparison is over, what it is part of is not
            self._shared = False
        elif self._screen:
            self._screen.stop()
        elif self._spoken and error is None:
            self._speak()

    def advance(self, steps: int) -> None:
        """So many more steps need not be played: they were done before."""
        self._done += steps
        self._found += steps
        self.tick()

    def worked(self, steps: int = 1) -> None:
        """So many more steps are done."""
        self._done += steps
        self.tick()

    def found(self, block: Any) -> None:
        """A block was played in an earlier run."""
        self._blocks_done += 1
        self.advance(block.steps)

    def played(self, block: Any, played: Any) -> None:
        """A block was played."""
        self._done += block.steps
        self._blocks_done += 1
        self._label = " · ".join(part for part in (self.title, block.world_name, block.policy_name) if part)
        self._add(self._label, played.totals)
        self.tick()

    def _add(self, label: str, totals: Any) -> None:
        """Merge totals into a row of the table (Chan et al. 1979), and move it to the end."""
        count, mean, squares = self._rows.pop(label, [0.0, 0.0, 0.0])
        more, away = len(totals), float(np.mean(totals)) - mean
        both = count + more
        squares += float(np.var(totals)) * more + away**2 * count * more / both
        self._rows[label] = [both, mean + away * more / both, squares]

    def tick(self) -> None:
        """Speak, if it is time to. (A terminal is drawn anew by itself.)"""
        if self._lines and time.monotonic() > self._speak_at:
            pause = SECONDS_BETWEEN_UPDATES if self._in_notebook else SECONDS_BETWEEN_LINES
            self._speak_at = time.monotonic() + pause
            self._speak()

    def _speak(self) -> None:
        self._spoken = True
        line = f"{self.line()}  {self._label}".rstrip()
        if not self._in_notebook:
            print(line, file=sys.stderr, flush=True)
        elif self._notebook is None:
            from IPython import display

            show: Any = display.display
            self._notebook = show({"text/plain": line}, raw=True, display_id=True)
        else:
            self._notebook.update({"text/plain": line}, raw=True)


def in_notebook() -> bool:
    """Whether this is the process of a Jupyter notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")


def _short(rate: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.1f} {unit}"
    return f"{rate:.0f}"


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
