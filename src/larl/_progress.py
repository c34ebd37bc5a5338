"""What a person sees while a long run goes on: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from types import TracebackType
from typing import Any

FIRST_LINE, SECONDS_BETWEEN_LINES = 2.0, 10.0


class Progress:
    """Progress over a known number of steps. `shown`: True always, None only on a terminal, False never."""

    def __init__(self, total: int, shown: bool | None) -> None:
        terminal = sys.stderr.isatty()
        self._total, self._done, self._label = total, 0, ""
        self.title = ""  # what the labels that follow belong to
        self._lines = bool(shown) and not terminal
        self._speak_at = time.monotonic() + FIRST_LINE
        self._bar = self._make_bar() if terminal and shown is not False else None

    def _make_bar(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
        )
        bar = Progress(*columns, console=Console(stderr=True), transient=True)
        bar.add_task("", total=self._total)
        return bar

    def __enter__(self) -> "Progress":
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def begin(self, label: str) -> None:
        """Say what is being run now."""
        self._label = f"{self.title} · {label}" if self.title else label
        self.advance(0)

    def advance(self, steps: int) -> None:
        """So many more steps are done."""
        self._done += steps
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=self._done, description=self._label)
        elif self._lines and time.monotonic() > self._speak_at:
            self._speak_at = time.monotonic() + SECONDS_BETWEEN_LINES
            print(f"{100 * self._done / self._total:3.0f}%  {self._label}", file=sys.stderr, flush=True)
