"""Policies that fail while blocks run, but not while a study is checked. Workers import this module."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

import larl
from larl.policies import Policy

MEGABYTE = 2**20


def in_worker() -> bool:
    """Whether this thread runs blocks: executors and workers never run them on the main thread."""
    return threading.current_thread() is not threading.main_thread()


@dataclass(frozen=True)
class FailsOncePerLine(Policy):
    """UCB that fails once for each line of a file, and removes the line."""

    file: str

    def init(self, arms: int, **_: Any) -> Any:
        if in_worker() and self._take_line():
            raise ArithmeticError("this policy fails")
        return larl.UCB().init(arms)

    def _take_line(self) -> bool:
        """Remove a line of the file; False if there is none. The rename makes sure that one worker takes it."""
        path = Path(self.file)
        taken = path.with_name(f"{path.name}.{uuid4().hex}")
        try:
            path.rename(taken)
        except FileNotFoundError:
            return False
        lines = taken.read_text().splitlines()
        if lines[1:]:
            taken.write_text("\n".join(lines[1:]))
            taken.rename(path)
        return bool(lines)


@dataclass(frozen=True)
class UsesAllMemory(Policy):
    """UCB that allocates more and more memory while a file exists."""

    file: str

    def init(self, arms: int, **_: Any) -> Any:
        allocated = []
        while in_worker() and Path(self.file).exists():
            allocated.append(np.ones(20 * MEGABYTE // 8))
            time.sleep(0.02)  # slowly, so that Dask's memory monitor gets processor time
        return larl.UCB().init(arms)


@dataclass(frozen=True)
class WaitsForFile(Policy):
    """UCB that waits while a file exists."""

    file: str

    def init(self, arms: int, **_: Any) -> Any:
        while in_worker() and Path(self.file).exists():
            time.sleep(0.01)
        return larl.UCB().init(arms)
