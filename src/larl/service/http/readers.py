"""Reads: on threads and connections of their own, in short slices between commands.

Python runs one thread at a time, and a thread that computes delays every step of a decision. So queries read a few rows
at once, and wait before that until no command is being executed, for a limited time.
"""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from fastapi import Response

from larl.service.core.problems import Problem
from larl.service.http.rate_limit import TokenBucket, refuse
from larl.service.queries.journal_queries import Items, JournalQueries
from larl.service.queries.overview import Overviews
from larl.service.storage.database import Database
from larl.service.storage.events import Event, canonical_json
from larl.service.storage.journal import Journal

Result = TypeVar("Result")
THREADS = 2  # a long read does not stop the others
MAX_WAITING = 256  # reads that wait for a thread
MAX_PAUSE = 0.02  # seconds that a slice waits for commands
SLICE = 50  # rows that are read at once
COST = 20  # rows that every read counts for, in addition to those that it may return


class ReadJournal(Journal):
    """A journal that is read between commands."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._commands, self._is_idle = 0, threading.Event()
        self._is_idle.set()

    def begin_command(self) -> None:
        """Let reads wait; called on the event loop."""
        self._commands += 1
        self._is_idle.clear()

    def end_command(self) -> None:
        """Let reads go on after the last command."""
        self._commands -= 1
        if not self._commands:
            self._is_idle.set()

    def select(self, *where: Any, limit: int | None = None, newest: bool = False) -> list[Event]:
        """Return events, oldest first unless the `newest` are wanted; wait for commands first."""
        self._is_idle.wait(MAX_PAUSE)
        return super().select(*where, limit=limit, newest=newest)


class Readers:
    """Runs queries of a storage and returns their results as JSON."""

    def __init__(self, database: Database, rate: float) -> None:
        self.journal = ReadJournal(database)
        self.queries = JournalQueries(self.journal)
        self.overviews = Overviews(self.queries)
        self._rate = TokenBucket(rate, "a token may read", "rows")
        self._limiter = anyio.CapacityLimiter(THREADS)

    def close(self) -> None:
        """Stop, and close the connections."""
        self.overviews.close()
        self.journal.database.close()

    async def admit(self, name: str, rows: int) -> None:
        """Let a read pass that returns at most so many rows; raise 429 or 503. `name` is that of the token."""
        await self._rate.take(name, COST + rows)
        if self._limiter.statistics().tasks_waiting >= MAX_WAITING:
            await refuse(Problem(503, "too many reads are waiting; repeat the request"))

    async def run(self, work: Callable[[], Result]) -> Result:
        """Return what work returns; it runs on a thread of the readers."""
        return await to_thread.run_sync(work, limiter=self._limiter)

    async def json(self, name: str, rows: int, query: Callable[[], Any]) -> Response:
        """Return what a query returns as a response; 204 for None."""
        await self.admit(name, rows)
        result = await self.run(lambda: None if (found := query()) is None else canonical_json(found).encode())
        return Response(status_code=204) if result is None else Response(result, media_type="application/json")

    async def page(self, name: str, after: int, limit: int, query: Callable[[int, int], Items]) -> Response:
        """Return a page of a list, for which a query is called with cursors and smaller limits."""
        await self.admit(name, limit)
        return Response(await self.run(lambda: _page(after, limit, query)), media_type="application/json")

    async def chunks(self, lines: Iterator[str]) -> AsyncIterator[str]:
        """Yield the lines of an export, several at once; other reads come between."""
        while chunk := await self.run(lambda: "".join(islice(lines, 10 * SLICE))):
            yield chunk


def _page(after: int, limit: int, query: Callable[[int, int], Items]) -> bytes:
    """Return a page as JSON, from smaller ones."""
    items: list[str] = []
    cursor: int | None = after
    while cursor is not None and len(items) < limit:
        part = query(cursor, min(SLICE, limit - len(items)))
        items += map(canonical_json, part["items"])
        cursor = part["next"]
    return f'{{"items":[{",".join(items)}],"next":{canonical_json(cursor)}}}'.encode()
