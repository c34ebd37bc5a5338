"""One thread that writes: what comes in while it is at the disk is done together in its next turn."""

import asyncio
import logging
import queue
import threading
from collections.abc import Sequence
from typing import Any

from sqlalchemy.exc import IntegrityError

from larl.service.clerk import Command
from larl.service.database import StorageError
from larl.service.desk import Desk, Reply
from larl.service.problems import Problem

LOG = logging.getLogger("larl.service")
MOST = 256  # commands of one turn
ROOM = 10_000  # commands that may wait


class Writer:
    """Passes commands from the event loop to the desk, and answers back."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="writer")
        self._thread.start()

    async def do(self, command: Command) -> bytes:
        """The answer to a command; raises Problem."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Reply] = loop.create_future()
        if self._queue.qsize() > ROOM:
            raise Problem(503, "too many requests are waiting to be stored; try again, with the same key")
        self._queue.put((command, loop, future))
        reply = await future
        if isinstance(reply, Problem):
            try:
                raise reply
            finally:
                del reply  # it knows this frame, and would keep all that hangs on it
        return reply

    def close(self) -> None:
        """Do what is waiting, keep snapshots, and stop."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        going = True
        while going:
            batch = [self._queue.get()]
            while len(batch) < MOST and not self._queue.empty():
                batch.append(self._queue.get())
            going = None not in batch
            waiting = [item for item in batch if item is not None]
            if waiting:
                self._answer(waiting, self._replies([command for command, _, _ in waiting]))
        try:
            self.desk.close()
        except OSError as error:
            LOG.warning("snapshots were not kept: %s", error)

    def _replies(self, commands: Sequence[Command]) -> list[Reply]:
        try:
            return self.desk.do(commands)
        except Exception as error:
            taken = isinstance(error.__cause__, IntegrityError)  # another process was first with a key
            if taken and len(commands) > 1:
                return [reply for command in commands for reply in self._replies([command])]
            if taken:
                return self._again(commands)
            return [_refusal(error)] * len(commands)

    def _again(self, commands: Sequence[Command]) -> list[Reply]:
        try:
            return self.desk.do(commands)
        except Exception as error:
            return [_refusal(error)] * len(commands)

    def _answer(self, waiting: Sequence[Any], replies: Sequence[Reply]) -> None:
        loop = waiting[0][1]
        done = [(future, reply) for (_, _, future), reply in zip(waiting, replies, strict=True)]
        loop.call_soon_threadsafe(_settle, done)


def _settle(done: Sequence[tuple["asyncio.Future[Reply]", Reply]]) -> None:
    for future, reply in done:
        if not future.done():  # the caller may have gone
            future.set_result(reply)


def _refusal(error: Exception) -> Problem:
    if isinstance(error, StorageError):
        LOG.error("nothing could be stored: %s", error)
        detail = (
            f"nothing could be stored ({error.reason}); try again, with the same key. A decision that cannot wait: "
            "choose an arm by the study's fallback probabilities, and ingest it later"
        )
        return Problem(503, detail)
    LOG.error("a turn failed", exc_info=error)
    return Problem(500, "internal error; nothing was changed; see the service's log")
