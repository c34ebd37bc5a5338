"""Policies that fail while they are played, but not while a study is checked; workers import them from here."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import larl
from larl.policies import Policy

MEGABYTE = 2**20


def played() -> bool:
    """Blocks are played on threads of their own, here and on workers."""
    return threading.current_thread() is not threading.main_thread()


@dataclass(frozen=True)
class Moody(Policy):
    """UCB that fails once for each line of a file, and takes the line away."""

    file: str

    def init(self, arms: int, **_: Any) -> Any:
        path = Path(self.file)
        if played() and path.exists() and (rest := path.read_text().splitlines()):
            path.write_text("\n".join(rest[1:]))
            raise ArithmeticError("not today")
        return larl.UCB().init(arms)


@dataclass(frozen=True)
class Hungry(Policy):
    """UCB that takes more and more memory for as long as a file exists."""

    file: str

    def init(self, arms: int, **_: Any) -> Any:
        taken = []
        while played() and Path(self.file).exists():
            taken.append(np.ones(20 * MEGABYTE // 8))
            time.sleep(0.02)  # slowly enough for a watcher that has to wait for a processor
        return larl.UCB().init(arms)


@dataclass(frozen=True)
class Held(Policy):
    """UCB that is not played for as long as a file exists."""

    file: str

    def init(self, arms: int, **_: Any) -> Any:
        while played() and Path(self.file).exists():
            time.sleep(0.01)
        return larl.UCB().init(arms)
