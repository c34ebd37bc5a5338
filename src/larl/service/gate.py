"""What every request passes on its way in and out: a limit on its body, headers that browsers heed, one line of log."""

import asyncio
import itertools
import logging
import secrets
import time
from typing import Any

from larl.service.clock import now
from larl.service.problems import Problem

LOG = logging.getLogger("larl.service")
REQUESTS = logging.getLogger("larl.service.requests")
SOON = 0.1  # seconds until lines are written
PAGE_RULES = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
HEADERS = [
    (b"content-security-policy", (PAGE_RULES + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'").encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


class Lines:
    """Lines of the log, some of them in one record: to write one takes about as long as to answer a request."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, line: str) -> None:
        """Have a line written soon."""
        if not self._lines:
            asyncio.get_running_loop().call_later(SOON, self.write)
        self._lines.append(line)

    def write(self) -> None:
        """Write what there is."""
        if self._lines:
            REQUESTS.info("\n".join(self._lines))
            self._lines.clear()


class Gate:
    """An ASGI application around another."""

    def __init__(self, app: Any, largest: int) -> None:
        self.app, self.largest = app, largest
        self._name, self._count, self._lines = secrets.token_hex(4), itertools.count(), Lines()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass one request."""
        if scope["type"] != "http":
            try:
                await self.app(scope, receive, send)
            finally:
                self._lines.write()
            return
        began, status, name = time.perf_counter(), 0, f"{self._name}-{next(self._count)}"
        scope["larl.request"] = name

        async def headed(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *HEADERS, (b"x-request-id", name.encode())]}
            await send(message)

        try:
            await self._pass(scope, receive, headed)
        except Exception:
            LOG.exception("request %s failed", name)
            if not status:
                await _refuse(failure(scope), headed)
        finally:
            route = getattr(scope.get("route"), "path", "-")  # never the path itself: there may be a unit in it
            took = 1e3 * (time.perf_counter() - began)
            self._lines.add(f"{now()} INFO {name} {scope['method']} {route} {status} {took:.1f} ms")

    async def _pass(self, scope: Any, receive: Any, send: Any) -> None:
        """Read the body, as long as it is not too large, and hand the request on."""
        parts, more = [], True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
            if sum(map(len, parts)) > self.largest:
                accepted = f"{self.largest} bytes or fewer"
                await _refuse(
                    Problem(413, f"the body is too large; accepted: {accepted}", field="body", accepted=accepted), send
                )
                return
        body: list[Any] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

        async def given() -> Any:
            return body.pop() if body else await receive()

        await self.app(scope, given, send)


def failure(scope: Any) -> Problem:
    """An error of the service itself."""
    return Problem(500, f"internal error; see the service's log for request {scope['larl.request']}")


async def _refuse(problem: Problem, send: Any) -> None:
    headers = [(b"content-type", b"application/problem+json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": problem.body()})
