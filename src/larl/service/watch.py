"""Calls that may take only so long."""

import queue
import threading
from collections.abc import Callable
from typing import Any


class TookTooLong(Exception):
    """A call was not done in time; it may still be running, and nobody waits for it."""


class Watch:
    """Runs one call after another on a thread of its own; a call that takes too long is left behind with its thread."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._begin()

    def _begin(self) -> None:
        self._calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(self._calls, self._results), daemon=True, name="policy").start()

    def run(self, call: Callable[[], Any]) -> Any:
        """What the call returns or raises."""
        self._calls.put(call)
        try:
            value, error = self._results.get(timeout=self.seconds)
        except queue.Empty:
            self.close()
            self._begin()
            raise TookTooLong(f"the policy took longer than {self.seconds} s") from None
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """Let the thread end after its call."""
        self._calls.put(None)


def _serve(calls: Any, results: Any) -> None:
    while (call := calls.get()) is not None:
        try:
            results.put((call(), None))
        except BaseException as error:
            results.put((None, error))
