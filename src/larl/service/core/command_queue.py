"""Queues of commands, one for each study, and threads that execute them.

Commands of a study that arrive while it works form its next batch. Studies do not wait for each other: a thread works
on one batch of one study, and at most one thread works on a study.
"""

import asyncio
import logging
import queue
import threading
from collections import deque
from collections.abc import Sequence

from sqlalchemy.exc import IntegrityError

from larl.service.core.batch import CommandBatch, Reply, Resources
from larl.service.core.commands import Command
from larl.service.core.problems import Problem, damaged_row
from larl.service.schemas.requests import Request
from larl.service.storage.database import StorageError
from larl.service.storage.events import DamagedRow

LOG = logging.getLogger("larl.service")
THREADS = 8  # studies that are executed at once
BATCH_SIZE = 256
CAPACITY = 10_000  # commands of a study that may wait

Item = tuple[Command[Request], asyncio.AbstractEventLoop, "asyncio.Future[Reply]"]


class StudyQueue:
    """Commands of one study that wait, and the batch that executes them."""

    def __init__(self, name: str, resources: Resources) -> None:
        self.name, self.batch = name, CommandBatch(resources)
        self.waiting: deque[Item] = deque()
        self.is_scheduled = False  # a thread works on it, or will


class CommandQueue:
    """Passes commands from the event loop to the batches of their studies, and replies back."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self.failure: StorageError | None = None  # why the last batch could not be stored; None if it could
        self._studies: dict[str, StudyQueue] = {}
        self._ready: queue.SimpleQueue[StudyQueue | None] = queue.SimpleQueue()
        self._changed = threading.Condition(threading.Lock())
        self._threads = [threading.Thread(target=self._work, name=f"commands-{i}") for i in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def batch(self, study: str) -> CommandBatch:
        """Return the batch of a study that has executed a command."""
        return self._studies[study].batch

    async def execute(self, command: Command[Request]) -> bytes:
        """Return the response to a command; raise Problem."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Reply] = loop.create_future()
        self._put((command, loop, future))
        reply = await future
        if isinstance(reply, Problem):
            try:
                raise reply
            finally:
                del reply  # its traceback refers to this frame: a cycle that would keep everything alive
        return reply

    def close(self) -> None:
        """Execute what is waiting, save snapshots, and stop."""
        with self._changed:
            self._changed.wait_for(lambda: not any(study.is_scheduled for study in self._studies.values()))
        for _ in self._threads:
            self._ready.put(None)
        for thread in self._threads:
            thread.join()
        for study in self._studies.values():
            study.batch.close()
        self._resources.close()

    def _put(self, item: Item) -> None:
        name = item[0].study
        with self._changed:
            study = self._studies.get(name)
            if study is None:
                study = self._studies[name] = StudyQueue(name, self._resources)
            if len(study.waiting) > CAPACITY:
                raise Problem(503, "too many requests are waiting; repeat the request with the same key")
            study.waiting.append(item)
            if not study.is_scheduled:
                study.is_scheduled = True
                self._ready.put(study)

    def _work(self) -> None:
        while (study := self._ready.get()) is not None:
            items = [study.waiting.popleft() for _ in range(min(len(study.waiting), BATCH_SIZE))]
            replies = self._replies(study.batch, [command for command, _, _ in items])
            done = [(future, reply) for (_, _, future), reply in zip(items, replies, strict=True)]
            items[0][1].call_soon_threadsafe(_set_results, done)
            try:
                study.batch.save_due()
            except Exception:  # a snapshot is never needed, and the thread must go on
                LOG.exception("snapshots of study %s were not saved", study.name)
            self._finish(study)

    def _finish(self, study: StudyQueue) -> None:
        """Let a study wait for its next turn, after others that are ready; forget one that does not exist."""
        with self._changed:
            if study.waiting:
                self._ready.put(study)
                return
            study.is_scheduled = False
            if study.batch.studies.find(study.name) is None:
                del self._studies[study.name]
            self._changed.notify_all()

    def _replies(self, batch: CommandBatch, commands: Sequence[Command[Request]], retries: int = 1) -> list[Reply]:
        """Execute commands; one by one, each at most twice, if another process used a key or a study is damaged."""
        try:
            replies = batch.execute(commands)
            self.failure = None
            return replies
        except Exception as error:
            if isinstance(error, StorageError) and not isinstance(error, DamagedRow):
                self.failure = error
            is_repeatable = isinstance(error.__cause__, IntegrityError) or isinstance(error, DamagedRow)
            if not is_repeatable or (len(commands) == 1 and not retries):
                return [_refusal(error)] * len(commands)
        left = 1 if len(commands) > 1 else 0
        return [reply for command in commands for reply in self._replies(batch, [command], left)]


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
