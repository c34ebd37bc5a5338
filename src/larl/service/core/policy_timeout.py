"""A time limit for policies.

Compiled code cannot be interrupted. So work runs on a thread that is abandoned if a policy exceeds the limit; the
caller goes on without it. The abandoned thread changes nothing when the policy returns, and ends.

A worker process could be killed instead, but every call of a policy would cross a pipe (`benchmarks/policy_calls.py`).
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")
MIN_WAIT = 1e-3  # seconds until the next look at a running policy


class PolicyTimeout(Exception):
    """A policy exceeded the time limit; it may still run."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the policy took longer than {seconds} s")


class CircuitOpen(Exception):
    """A policy is not called, because it failed repeatedly or has just exceeded the time limit."""


class _Abandoned(BaseException):
    """Ends an abandoned thread."""


class _Worker:
    """A thread that does work, one piece at a time. `since` is the start of the policy that runs on it."""

    def __init__(self) -> None:
        self.work: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self.lock = threading.Lock()
        self.since: float | None = None
        self.is_abandoned = False
        self.ident: int | None = None
        threading.Thread(target=self._serve, daemon=True, name="policy").start()

    def _serve(self) -> None:
        self.ident = threading.get_ident()
        while (work := self.work.get()) is not None:
            try:
                self.results.put((work(), None))
            except _Abandoned:
                return
            except BaseException as error:
                self.results.put((None, error))


class DirectRunner:
    """Calls policies on the caller's thread, without a time limit."""

    def __init__(self) -> None:
        self._failure: Exception | None = None

    def call(self, policy: Callable[..., Result], *arguments: Any) -> Result:
        """Return what a policy returns; raise what it raises."""
        if self._failure is not None:
            failure, self._failure = self._failure, CircuitOpen("it exceeded the time limit")
            raise failure
        return policy(*arguments)

    @contextmanager
    def without_policy(self, failure: Exception) -> Iterator[None]:
        """Call no policy within the block: the first call raises `failure`, later ones CircuitOpen."""
        self._failure = failure
        try:
            yield
        finally:
            self._failure = None


class PolicyThreads:
    """Threads for policies that wait for work; there are as many as policies have run at once."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._is_open = True

    def take(self) -> _Worker:
        """Return a thread without work."""
        try:
            return self._idle.pop()
        except IndexError:
            return _Worker()

    def give_back(self, worker: _Worker) -> None:
        """Return a thread that has done its work."""
        if self._is_open:
            self._idle.append(worker)
        else:
            worker.work.put(None)

    def close(self) -> None:
        """Let the threads end after their work."""
        self._is_open = False
        while self._idle:
            self._idle.pop().work.put(None)


class PolicyRunner(DirectRunner):
    """Calls policies with a time limit, one at a time.

    `call` is enough for a single call. Work with many calls goes through `run`, so that threads change once for all.
    """

    def __init__(self, seconds: float, threads: PolicyThreads | None = None) -> None:
        super().__init__()
        self.seconds, self._threads = seconds, threads or PolicyThreads()
        self._worker: _Worker | None = None  # the thread that works now

    def run(self, work: Callable[[], Result]) -> Result:
        """Do work that calls policies by `call`; raise PolicyTimeout if one of them exceeds the limit."""
        worker, wait = self._threads.take(), self.seconds
        self._worker = worker
        worker.work.put(work)
        while True:
            try:
                result, error = worker.results.get(timeout=wait)
                break
            except queue.Empty:
                wait = self._remaining(worker)
        self._worker = None
        self._threads.give_back(worker)
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def _remaining(self, worker: _Worker) -> float:
        """Return how long to wait on; raise PolicyTimeout after abandoning the thread."""
        with worker.lock:
            wait = self.seconds
            if worker.since is not None:
                wait -= time.monotonic() - worker.since
                worker.is_abandoned = wait <= 0.0
        if worker.is_abandoned:
            self._worker = None
            worker.work.put(None)
            raise PolicyTimeout(self.seconds)
        return max(wait, MIN_WAIT)

    def call(self, policy: Callable[..., Result], *arguments: Any) -> Result:
        """Return what a policy returns; raise what it raises, or PolicyTimeout."""
        worker = self._worker
        if self._failure is not None:
            return super().call(policy, *arguments)
        if worker is None or threading.get_ident() != worker.ident:
            return self.run(lambda: self.call(policy, *arguments))
        started = worker.since = time.monotonic()
        try:
            result = policy(*arguments)
        except Exception:
            raise
        except BaseException as error:  # SystemExit, for example, must not end the thread
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        finally:
            with worker.lock:
                worker.since = None
                if worker.is_abandoned:
                    raise _Abandoned
        if time.monotonic() - started > self.seconds:
            raise PolicyTimeout(self.seconds)
        return result

    def close(self) -> None:
        """Let the threads end after their work."""
        self._threads.close()
