"""Progress of long runs: a bar and a table on a terminal, one updated line in a notebook, lines elsewhere."""

import math
import sys
import time
from types import TracebackType
from typing import Any

import numpy as np

from larl._core.validation import boolean, optional

SECONDS_TO_FIRST_LINE, SECONDS_BETWEEN_LINES = 2.0, 10.0
SECONDS_BETWEEN_UPDATES = 0.25  # in a notebook
MAX_TABLE_ROWS = 12  # the table shows the rows that changed last


class Progress:
    """Progress over a known number of steps, and of blocks if given.

    `shown`: True: always, None: only on a terminal, False: never.
    """

    def __init__(self, total: int, shown: bool | None, blocks: int = 0) -> None:
        terminal = sys.stderr.isatty()
        self._total, self._done, self._skipped = total, 0, 0
        self._blocks, self._blocks_done = blocks, 0
        self._label, self._shared = "", False
        self.title = ""  # prefix of the labels of following blocks
        self._rows: dict[str, list[float]] = {}  # label: trials, mean total regret, sum of squared deviations
        self._prints_lines, self._has_printed = bool(shown) and not terminal, False
        self._notebook: Any = None  # the notebook's display handle, after the first line
        self._in_notebook = self._prints_lines and in_notebook()
        self._start = time.monotonic()
        self._next_line = self._start + (0.0 if self._in_notebook else SECONDS_TO_FIRST_LINE)
        self._screen = self._make_screen() if terminal and shown is not False else None

    @classmethod
    def from_argument(cls, progress: "bool | Progress | None", total: int, blocks: int) -> "Progress":
        """Return a new Progress, or the given one, which stays open when the comparison ends."""
        if not isinstance(progress, Progress):
            return cls(total, optional(boolean())("compare", "progress", progress), blocks)
        progress._shared = True
        return progress

    def _make_screen(self) -> Any:
        """Return the live display of a terminal."""
        from rich.console import Console
        from rich.live import Live

        return Live(console=Console(stderr=True), get_renderable=self._render, refresh_per_second=4, transient=True)

    def _render(self) -> Any:
        """Return the bar, below the table if it has rows, for the live display."""
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
        for label, (count, mean, squares) in list(self._rows.items())[-MAX_TABLE_ROWS:]:
            error = f"{math.sqrt(squares / (count - 1) / count):.2f}" if count > 1 else ""
            table.add_row(Text(label), f"{count:,.0f}", f"{mean:.2f}", error)
        return Group(table, bar)

    def line(self) -> str:
        """Return the line of text: percentage, blocks, steps per second, time left."""
        elapsed = time.monotonic() - self._start
        rate = (self._done - self._skipped) / elapsed if elapsed > 0 else 0.0
        parts = [f"{100 * self._done / self._total:3.0f}%"]
        if self._blocks:
            parts.append(f"{self._blocks_done:,}/{self._blocks:,} blocks")
        if rate > 0:
            is_done, left = self._done >= self._total, (self._total - self._done) / rate
            duration = f"in {_format_duration(elapsed)}" if is_done else f"{_format_duration(left)} left"
            parts += [f"{_format_rate(rate)} steps/s", duration]
        return "  ".join(parts)

    def __enter__(self) -> "Progress":
        if self._screen and not self._screen.is_started:
            self._screen.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shared:  # the comparison has ended, the run that contains it has not
            self._shared = False
        elif self._screen:
            self._screen.stop()
        elif self._has_printed and error is None:
            self._print_line()

    def advance_untimed(self, steps: int) -> None:
        """Count steps that do not count as speed: quick ones, and results of an earlier run."""
        self._done += steps
        self._skipped += steps
        self.tick()

    def finish_steps(self, steps: int = 1) -> None:
        """Count finished steps."""
        self._done += steps
        self.tick()

    def skip_block(self, block: Any) -> None:
        """Count a block whose result was loaded from the store."""
        self._blocks_done += 1
        self.advance_untimed(block.steps)

    def finish_block(self, block: Any, result: Any) -> None:
        """Count a block that was run, and add its totals to the table."""
        self._done += block.steps
        self._blocks_done += 1
        self._label = " · ".join(part for part in (self.title, block.world_name, block.policy_name) if part)
        self._add(self._label, result.totals)
        self.tick()

    def _add(self, label: str, totals: Any) -> None:
        """Merge totals into a row of the table (Chan et al. 1979) and move the row to the end."""
        count, mean, squares = self._rows.pop(label, [0.0, 0.0, 0.0])
        added, shift = len(totals), float(np.mean(totals)) - mean
        total = count + added
        squares += float(np.var(totals)) * added + shift**2 * count * added / total
        self._rows[label] = [total, mean + shift * added / total, squares]

    def tick(self) -> None:
        """Print a line if it is due. (A terminal refreshes itself.)"""
        if self._prints_lines and time.monotonic() > self._next_line:
            pause = SECONDS_BETWEEN_UPDATES if self._in_notebook else SECONDS_BETWEEN_LINES
            self._next_line = time.monotonic() + pause
            self._print_line()

    def _print_line(self) -> None:
        """Print the line, or update it in a notebook."""
        self._has_printed = True
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
    """Return whether this is the process of a Jupyter notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")


def _format_rate(rate: float) -> str:
    """Return a rate with one of the units G, M and k, such as "1.5 M"."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.1f} {unit}"
    return f"{rate:.0f}"


def _format_duration(seconds: float) -> str:
    """Return a duration as h:mm:ss or m:ss."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
