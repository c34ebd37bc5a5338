"""A queue of commands and one thread that executes them: what arrives during a disk sync forms the next batch."""

import asyncio
import logging
import queue
import threading
from collections.abc import Sequence
from typing import Any

from sqlalchemy.exc import IntegrityError

from larl.service.core.batch import CommandBatch, Reply
from larl.service.core.commands import Command
from larl.service.core.problems import Problem, damaged_row
from larl.service.schemas.requests import Request
from larl.service.storage.database import StorageError
from larl.service.storage.events import DamagedRow

LOG = logging.getLogger("larl.service")
BATCH_SIZE = 256
CAPACITY = 10_000  # commands that may wait


class CommandQueue:
    """Passes commands from the event loop to a batch, and replies back."""

    def __init__(self, batch: CommandBatch) -> None:
        self.batch = batch
        self.failure: StorageError | None = None  # why the last batch could not be stored; None if it could
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="writer")
        self._thread.start()

    async def execute(self, command: Command[Request]) -> bytes:
        """Return the response to a command; raise Problem."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Reply] = loop.create_future()
        if self._queue.qsize() > CAPACITY:
            raise Problem(503, "too many requests are waiting; repeat the request with the same key")
        self._queue.put((command, loop, future))
        reply = await future
        if isinstance(reply, Problem):
            try:
                raise reply
            finally:
                del reply  # its traceback refers to this frame: a cycle that would keep everything alive
        return reply

    def close(self) -> None:
        """Execute what is waiting, save snapshots, and stop."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        is_running = True
        while is_running:
            items = [self._queue.get()]
            while len(items) < BATCH_SIZE and not self._queue.empty():
                items.append(self._queue.get())
            is_running = None not in items
            waiting = [item for item in items if item is not None]
            if waiting:
                replies = self._replies([command for command, _, _ in waiting])
                done = [(future, reply) for (_, _, future), reply in zip(waiting, replies, strict=True)]
                waiting[0][1].call_soon_threadsafe(_set_results, done)
        try:
            self.batch.close()
        except OSError as error:
            LOG.warning("snapshots were not saved: %s", error)

    def _replies(self, commands: Sequence[Command[Request]], retries: int = 1) -> list[Reply]:
        """Execute commands; one by one, each at most twice, if another process used a key or a study is damaged."""
        try:
            replies = self.batch.execute(commands)
            self.failure = None
            return replies
        except Exception as error:
            if isinstance(error, StorageError) and not isinstance(error, DamagedRow):
                self.failure = error
            is_repeatable = isinstance(error.__cause__, IntegrityError) or isinstance(error, DamagedRow)
            if not is_repeatable or (len(commands) == 1 and not retries):
                return [_refusal(error)] * len(commands)
        left = 1 if len(commands) > 1 else 0
        return [reply for command in commands for reply in self._replies([command], left)]


def _set_results(done: Sequence[tuple["asyncio.Future[Reply]", Reply]]) -> None:
    for future, reply in done:
        if not future.done():  # the client may have disconnected
            future.set_result(reply)


def _refusal(error: Exception) -> Problem:
    if isinstance(error, DamagedRow):
        LOG.error("a command failed: %s", error)
        return damaged_row(error)
    if isinstance(error, StorageError):
        LOG.error("the storage did not confirm a batch: %s", error)
        detail = (
            f"the storage did not confirm the request ({error.reason}); repeat it with the same key. If a decision "
            "cannot wait, choose an arm with the study's fallback probabilities and report it later"
        )
        return Problem(503, detail)
    LOG.error("a batch failed", exc_info=error)
    return Problem(500, "internal error; nothing was changed; see the service's log")
