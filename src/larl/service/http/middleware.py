"""Middleware for every request: its id, security headers, its host, a limit on its body, errors, and a line of log."""

import asyncio
import itertools
import logging
import secrets
import time
from typing import Any

from larl._core.validation import InvalidValue
from larl.service.clock import now
from larl.service.core.problems import Problem
from larl.service.http.hosts import require_loopback
from larl.service.http.problem_details import internal_error, problem_response
from larl.service.storage.database import StorageError

LOG = logging.getLogger("larl.service")
ACCESS_LOG = logging.getLogger("larl.service.requests")
LOG_DELAY = 0.1  # seconds for which lines are collected
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SECURITY_HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


class RequestMiddleware:
    """An ASGI application around another. `local`: requests must name this machine as their host."""

    def __init__(self, app: Any, max_body: int, local: bool) -> None:
        self.app, self.max_body, self.local = app, max_body, local
        self._prefix, self._count = secrets.token_hex(4), itertools.count()
        self._lines: list[str] = []  # a record of the log for each request would take as long as the request

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            try:
                await self.app(scope, receive, send)
            finally:
                self.write_log()
            return
        started, status, request_id = time.perf_counter(), 0, f"{self._prefix}-{next(self._count)}"
        scope["larl.request"], scope["larl.log"] = request_id, {}  # routes write their path to the log's entry

        async def send_with_headers(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                added = [*SECURITY_HEADERS, (b"x-request-id", request_id.encode())]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        try:
            if self.local:
                require_loopback(scope["headers"])
            await self._limit_body(scope, receive, send_with_headers)
        except (Problem, InvalidValue, StorageError) as error:
            await problem_response(error)(scope, receive, send_with_headers)
        except Exception:
            LOG.exception("request %s failed", request_id)
            if not status:
                await problem_response(internal_error(scope))(scope, receive, send_with_headers)
        finally:
            route = scope["larl.log"].get("route", "-")  # not the path: it may contain the name of a unit
            elapsed = 1e3 * (time.perf_counter() - started)
            self._log(f"{now()} INFO {request_id} {scope['method']} {route} {status} {elapsed:.1f} ms")

    def _log(self, line: str) -> None:
        """Write a line after LOG_DELAY, together with others."""
        if not self._lines:
            asyncio.get_running_loop().call_later(LOG_DELAY, self.write_log)
        self._lines.append(line)

    def write_log(self) -> None:
        """Write the collected lines."""
        if self._lines:
            ACCESS_LOG.info("\n".join(self._lines))
            self._lines.clear()

    async def _limit_body(self, scope: Any, receive: Any, send: Any) -> None:
        """Read the body and pass the request on, or refuse it with 413."""
        parts, size, has_more = [], 0, True
        while has_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            parts.append(message.get("body", b""))
            size, has_more = size + len(parts[-1]), message.get("more_body", False)
            if size > self.max_body:
                accepted = f"{self.max_body} bytes or fewer"
                detail = f"the body is too large; accepted: {accepted}"
                response = problem_response(Problem(413, detail, field="body", accepted=accepted))
                response.headers["connection"] = "close"
                await response(scope, receive, send)
                return
        body = scope["larl.body"] = b"".join(parts)
        messages: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_read_body() -> Any:
            return messages.pop() if messages else await receive()

        await self.app(scope, receive_read_body, send)
