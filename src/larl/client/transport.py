"""Requests over connections that are kept, repeated until they are answered."""

import http.client
import json
import random
import time
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from larl._core.validation import InvalidValue, integer, number

AGAIN = (429, 502, 503, 504)  # statuses after which the same request may do
SHORTEST, LONGEST = 0.1, 5.0  # seconds of the first pause before a repetition, and of any
PATIENT = 60.0  # seconds that a service may ask to be left alone
Broken = (OSError, http.client.HTTPException)


class RequestRefused(Exception):
    """A request that the service refuses; nothing was changed."""

    def __init__(
        self, status: int, detail: str, field: str | None = None, value: Any = None, accepted: str | None = None
    ) -> None:
        given = "" if field is None or value is None or field in detail else f" ({field} = {value!r})"
        super().__init__(f"{status}: {detail}{given}")
        self.status, self.detail, self.field, self.value, self.accepted = status, detail, field, value, accepted


class ServiceUnreachable(ConnectionError):
    """A request that was not answered, however often it was repeated. It may have been done: its `key` will tell."""

    def __init__(self, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: bytes
    retry_after: float  # seconds that the service asks to wait

    def problem(self) -> RequestRefused:
        """Why a request is refused."""
        try:
            words = json.loads(self.body)
            known = {name: words.get(name) for name in ("field", "value", "accepted")}
            return RequestRefused(self.status, str(words["detail"]), **known)
        except (ValueError, KeyError, TypeError, AttributeError):
            return RequestRefused(self.status, http.client.responses.get(self.status, "refused"))


class Wire:
    """The way to a service. Threads may share it: each request has a connection for itself, and leaves it to others."""

    def __init__(self, url: str, token: str | None, timeout: float, retries: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidValue("Client", "url", url, "the address of a service, such as http://127.0.0.1:8080")
        if token is not None:
            token = token.strip()  # a file or a shell's variable often ends with a newline
            if not token or not (token.isascii() and token.isprintable()):
                shown = "…" if token else token
                raise InvalidValue("Client", "token", shown, "a token as `larl token create` prints it, or None")
        self.url, self._host, self._port = url.rstrip("/"), parts.hostname, parts.port
        self._prefix, self._secure = parts.path.rstrip("/"), parts.scheme == "https"
        self._timeout = number(above=0.0)("Client", "timeout", timeout)
        self._retries = integer(0)("Client", "retries", retries)
        self._token = token
        self._idle: list[http.client.HTTPConnection] = []

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The response as JSON types, or RequestRefused or ServiceUnreachable. Every attempt sends the same bytes."""
        sent = None if body is None else _encoded(body)
        last, key = "", body.get("key") if isinstance(body, dict) else None
        for tried in range(self._retries + 1):
            pause = random.uniform(0.5, 1.0) * min(SHORTEST * 2.0**tried, LONGEST)
            try:
                answer = self.send(method, path, sent)
                if answer.status < 300:
                    return json.loads(answer.body)
                last, pause = str(answer.problem()), max(pause, answer.retry_after)
                if answer.status not in AGAIN:
                    raise answer.problem()
            except (*Broken, ValueError) as error:  # ValueError: an answer that is not the service's
                last = f"{type(error).__name__}: {error}"
            if tried == self._retries or pause > PATIENT:
                break
            time.sleep(pause)
        raise ServiceUnreachable(f"{self.url} did not do {method} {path} in {tried + 1} tries; the last: {last}", key)

    def send(self, method: str, path: str, body: bytes | None = None, token: str | None = None) -> Answer:
        """Send a request once; `token` instead of the usual one. Whatever comes back is an answer."""
        while self._idle:
            try:  # a connection that was idle may have been closed at the other end
                return self._through(self._idle.pop(), method, path, body, token)
            except TimeoutError:
                raise
            except (ConnectionError, http.client.BadStatusLine):
                continue
            except IndexError:  # another thread took the last one
                break
        return self._through(self.connect(), method, path, body, token)

    def connect(self) -> http.client.HTTPConnection:
        """A new connection."""
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout)

    def ask(
        self, line: http.client.HTTPConnection, method: str, path: str, body: bytes | None, token: str | None = None
    ) -> None:
        """Write a request, and do not wait for its answer."""
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if token or self._token:
            headers["Authorization"] = f"Bearer {token or self._token}"
        line.request(method, self._prefix + path, body, headers)

    def _through(
        self, line: http.client.HTTPConnection, method: str, path: str, body: bytes | None, token: str | None
    ) -> Answer:
        try:
            self.ask(line, method, path, body, token)
            response = line.getresponse()
            answer = Answer(response.status, response.read(), _seconds(response.getheader("Retry-After")))
        except BaseException:
            line.close()
            raise
        self._idle.append(line)  # if the service closed it, the next request opens it again
        return answer

    def close(self) -> None:
        """Close the connections that are kept."""
        while self._idle:
            self._idle.pop().close()


def _encoded(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, default=_plain).encode()
    except (ValueError, TypeError) as error:
        raise InvalidValue("Client", "request", body, f"finite numbers, texts and lists of them ({error})") from error


def _plain(value: Any) -> Any:
    """A number or array of numpy as one of Python's numbers, or a list of them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _seconds(text: str | None) -> float:
    """What Retry-After asks for: seconds, or until when."""
    if text is None:
        return 0.0
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except ValueError:
        return 0.0
