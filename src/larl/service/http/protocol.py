"""Connections: limits on their number, on the headers of a request, and on the time that a client takes.

Uvicorn with httptools limits neither headers nor times, except that it closes connections which are idle after a
response. Its `limit_concurrency` refuses requests; here, connections that wait for their client make room instead.
"""

from collections import OrderedDict
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from larl.service.core.problems import Problem
from larl.service.http.problem_details import problem_response

MAX_HEAD = 24 * 1024  # bytes of the first line and the headers of a request that are accepted in any case
PART = 8 * 1024  # bytes that are parsed at once: no head of more than MAX_HEAD + PART bytes is accepted
MAX_HEADERS = 100  # of a head that is longer than PART
CHUNKED = 8  # bytes that may be sent for a byte of a body: it may come in chunks of a byte


class WaitingConnections:
    """Connections whose client has to act: to send a request, or to read a response. The oldest is the first."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout  # seconds
        self._since: OrderedDict[LimitedProtocol, float] = OrderedDict()
        self._timer: Any = None

    def add(self, connection: "LimitedProtocol") -> None:
        """Let the time of a connection begin, or begin again."""
        self._since[connection] = connection.loop.time()
        self._since.move_to_end(connection)
        if self._timer is None:
            self._timer = connection.loop.call_later(self.timeout, self._expire)

    def remove(self, connection: "LimitedProtocol") -> None:
        """Let a connection take its time."""
        self._since.pop(connection, None)

    def pop_oldest(self) -> "LimitedProtocol | None":
        """Remove the connection that waits for the longest time."""
        return self._since.popitem(last=False)[0] if self._since else None

    def _expire(self) -> None:
        """Close connections whose time is over; come back when that of the next one is."""
        self._timer = None
        while self._since:
            connection, since = next(iter(self._since.items()))
            left = since + self.timeout - connection.loop.time()
            if left > 0.0:
                self._timer = connection.loop.call_later(left, self._expire)
                return
            self.remove(connection)
            connection.expire()


class LimitedProtocol(HttpToolsProtocol):
    """An HTTP connection. If there are too many, the one that waits for the longest time is closed."""

    waiting: WaitingConnections  # of all connections of a server: `limited_protocol` sets these
    max_connections: int
    max_request: int  # bytes

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._is_in_head = self._is_in_request = False
        self._received = 0  # bytes of the request
        self._unanswered = 0  # complete requests without a complete response
        self._unsent = 0  # bytes, when the client was last seen to read

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            oldest = self.waiting.pop_oldest()
            if oldest is None:
                self._refuse(Problem(503, "too many connections are open; try again later"))
                return
            oldest.drop()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.waiting.remove(self)

    def data_received(self, data: bytes) -> None:
        """Parse data; refuse a request that is too large before it is complete."""
        for start in range(0, len(data), PART):
            if self.transport.is_closing():
                return
            part = data[start : start + PART]
            super().data_received(part)
            if self._is_in_request:
                self._received += len(part)
                self._limit_request()

    def _limit_request(self) -> None:
        if self._is_in_head and (self._received > MAX_HEAD or len(self.headers) > MAX_HEADERS):
            accepted = f"{MAX_HEAD} bytes or fewer, {MAX_HEADERS} headers or fewer"
            detail = f"the headers are too large; accepted: {accepted}"
            self._refuse(Problem(431, detail, field="headers", accepted=accepted))
        elif self._received > self.max_request:  # with trailers, for example
            self._refuse(Problem(413, "the request is too large"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = self._is_in_request = True
        self._received = 0
        if self._unanswered <= 0:
            self._wait()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._is_in_head, self.headers = False, Trailers()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_in_request = False
        self._unanswered += 1
        self._stop_waiting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._unanswered -= 1
        if self._unanswered <= 0:
            self._wait()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_waiting()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed."""
        self._refuse(Problem(400, msg))

    def expire(self) -> None:
        """Close the connection, unless its client reads a response slowly."""
        if 0 < self.transport.get_write_buffer_size() < self._unsent:
            self._wait()
        else:
            self.drop()

    def drop(self) -> None:
        """Close the connection; a request that was begun is refused."""
        self.connections.discard(self)
        if self.transport.is_closing() or self.transport.get_write_buffer_size():
            self.transport.abort()
        elif self._is_in_request:
            seconds = f"{self.waiting.timeout:g} s"
            self._refuse(Problem(408, f"the request was not complete in time; accepted: {seconds} for a request"))
        else:
            self.transport.close()

    def _wait(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self.waiting.add(self)

    def _stop_waiting(self) -> None:
        """Let the service take its time, if it has a request to answer and can send the response."""
        if self._unanswered > 0 and not self.flow.write_paused:
            self.waiting.remove(self)

    def _refuse(self, problem: Problem) -> None:
        """Send a refusal and close the connection."""
        self.connections.discard(self)
        response, phrase = problem_response(problem), HTTPStatus(problem.status).phrase
        headers = [*self.server_state.default_headers, *response.raw_headers, (b"connection", b"close")]
        head = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(f"HTTP/1.1 {problem.status} {phrase}\r\n".encode() + head + b"\r\n" + bytes(response.body))
        self.transport.close()
        self._wait()  # the client may not read it


class Trailers(list[tuple[bytes, bytes]]):
    """Headers after the body. They are dropped: uvicorn would add them to those before it."""

    def append(self, _: tuple[bytes, bytes]) -> None:
        """Store nothing."""


def limited_protocol(connections: int, timeout: float, max_body: int) -> type[LimitedProtocol]:
    """Return the protocol of a server: its clients may take so many seconds for a request with such a body."""
    limits = {
        "waiting": WaitingConnections(timeout),
        "max_connections": connections,
        "max_request": MAX_HEAD + PART + CHUNKED * max_body,
    }
    return type("Protocol", (LimitedProtocol,), limits)
