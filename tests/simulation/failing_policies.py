"""Policies that fail while blocks run, but not while a study is checked. Workers import this module."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
        path = Path(self.file)
        if in_worker() and path.exists() and (lines := path.read_text().splitlines()):
            path.write_text("\n".join(lines[1:]))
            raise ArithmeticError("this policy fails")
        return larl.UCB().init(arms)


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
