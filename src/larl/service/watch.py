"""Policies may take only so long."""

import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

Found = TypeVar("Found")
SHORTEST = 1e-3  # seconds to wait before another look


class TookTooLong(Exception):
    """A policy was not done in time; it may still be at it, and nobody waits for it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the policy took longer than {seconds} s")


class _LeftBehind(BaseException):
    """Nobody waits for this thread any more: it ends, and touches nothing on its way."""


class _Place:
    """A thread, what it is given to do, and since when a policy has been busy on it."""

    def __init__(self) -> None:
        self.works: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.lock = threading.Lock()
        self.since: float | None = None
        self.left = False
        threading.Thread(target=self._serve, daemon=True, name="policy").start()

    def _serve(self) -> None:
        while (work := self.works.get()) is not None:
            try:
                self.results.put((work(), None))
            except _LeftBehind:
                return
            except BaseException as error:
                self.results.put((None, error))


class Watch:
    """Has work done on a thread of its own. A thread that a policy is stuck on is left behind.

    Work calls policies by `policy`; whoever hands out work (`run`) waits for as long as no policy takes too long.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._place = _Place()

    def run(self, work: Callable[[], Found]) -> Found:
        """What the work returns or raises; TookTooLong if a policy is stuck in it, and then none of it goes on."""
        place, wait = self._place, self.seconds
        place.works.put(work)
        while True:
            try:
                found, error = place.results.get(timeout=wait)
                break
            except queue.Empty:
                wait = self._wait(place)
        if error is not None:
            raise error
        return found  # type: ignore[no-any-return]

    def _wait(self, place: _Place) -> float:
        """For how long to wait on; raises TookTooLong."""
        with place.lock:
            wait = self.seconds
            if place.since is not None:
                wait -= time.monotonic() - place.since
                place.left = wait <= 0.0
        if place.left:
            self.close()
            self._place = _Place()
            raise TookTooLong(self.seconds)
        return max(wait, SHORTEST)

    def policy(self, call: Callable[[], Found]) -> Found:
        """What a policy returns or raises; for use by work. TookTooLong if it came back, but too late."""
        place, began = self._place, time.monotonic()
        place.since = began
        try:
            found = call()
        except Exception:
            raise
        except BaseException as error:  # a policy has no business to end a thread
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        finally:
            with place.lock:
                place.since = None
                if place.left:
                    raise _LeftBehind
        if time.monotonic() - began > self.seconds:
            raise TookTooLong(self.seconds)
        return found

    def call(self, call: Callable[[], Found]) -> Found:
        """Have a policy called, and nothing else."""
        return self.run(partial(self.policy, call))

    def close(self) -> None:
        """Let the thread end after its work."""
        self._place.works.put(None)
