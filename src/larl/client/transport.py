"""HTTP requests over kept-alive connections, with retries."""

import http.client
import json
import random
import time
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from larl._core.validation import InvalidValue, integer, number

RETRY_STATUSES = (429, 502, 503, 504)
MIN_PAUSE, MAX_PAUSE = 0.1, 5.0  # seconds before the first retry, and before any retry
MAX_RETRY_AFTER = 60.0  # seconds; the client gives up if the service asks for a longer pause
CONNECTION_ERRORS = (OSError, http.client.HTTPException)


class RequestRefused(Exception):
    """The service refused a request. Nothing was changed.

    Attributes
    ----------
    status : int
        HTTP status, 400 to 500.
    detail : str
        The reason.
    field : str or None
        Field of the request that is not accepted.
    value : object
        Its value.
    accepted : str or None
        Description of accepted values.

    Examples
    --------
    >>> from larl.client import RequestRefused
    >>> print(RequestRefused(404, "study 'sleep' was not found"))
    404: study 'sleep' was not found
    """

    def __init__(
        self, status: int, detail: str, field: str | None = None, value: Any = None, accepted: str | None = None
    ) -> None:
        given = "" if field is None or value is None or field in detail else f" ({field} = {value!r})"
        super().__init__(f"{status}: {detail}{given}")
        self.status, self.detail, self.field, self.value, self.accepted = status, detail, field, value, accepted


class ServiceUnreachable(ConnectionError):
    """The service did not answer a request, or only with status 429, 502, 503 or 504, after all retries.

    The service may have executed the request: repeat it with the same ``key`` to find out.

    Attributes
    ----------
    key : str or None
        Key of the request, if it has one.

    Examples
    --------
    >>> from larl.client import ServiceUnreachable
    >>> ServiceUnreachable("no answer", key="unit-17-morning").key
    'unit-17-morning'
    """

    def __init__(self, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key


class Response(NamedTuple):
    """The response to one request."""

    status: int
    body: bytes
    retry_after: float  # seconds that the service asks to wait

    def refusal(self) -> RequestRefused:
        """Return the response as an exception."""
        try:
            problem = json.loads(self.body)
            known = {name: problem.get(name) for name in ("field", "value", "accepted")}
            return RequestRefused(self.status, str(problem["detail"]), **known)
        except (ValueError, KeyError, TypeError, AttributeError):
            return RequestRefused(self.status, http.client.responses.get(self.status, "refused"))


class Transport:
    """A pool of connections to one service. Threads can share it: each request uses one connection exclusively."""

    def __init__(self, url: str, token: str | None, timeout: float, retries: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidValue("Client", "url", url, "the address of a service, such as http://127.0.0.1:8080")
        if token is not None:
            token = token.strip()  # a token from a file or a shell variable often ends with a newline
            if not token or not (token.isascii() and token.isprintable()):
                shown = "…" if token else token
                raise InvalidValue("Client", "token", shown, "a token as `larl token create` prints it, or None")
        self.url, self._host, self._port = url.rstrip("/"), parts.hostname, parts.port
        self._prefix, self._is_https = parts.path.rstrip("/"), parts.scheme == "https"
        self._timeout = number(above=0.0)("Client", "timeout", timeout)
        self._retries = integer(0)("Client", "retries", retries)
        self._token = token
        self._idle: list[http.client.HTTPConnection] = []

    def __repr__(self) -> str:
        """The address without a password, and whether there is a token."""
        address = urlsplit(self.url)
        shown = address._replace(netloc=address.netloc.rpartition("@")[2]).geturl()
        return f"{shown!r}, token=…" if self._token else repr(shown)

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Return the response as JSON types; raise RequestRefused or ServiceUnreachable. Retries send equal bytes."""
        encoded = None if body is None else encode(body)
        last, key = "", body.get("key") if isinstance(body, dict) else None
        for attempt in range(self._retries + 1):
            pause = random.uniform(0.5, 1.0) * min(MIN_PAUSE * 2.0**attempt, MAX_PAUSE)
            try:
                response = self.send(method, path, encoded)
                if response.status < 300:
                    return json.loads(response.body)
                last, pause = str(response.refusal()), max(pause, response.retry_after)
                if response.status not in RETRY_STATUSES:
                    raise response.refusal()
            except (*CONNECTION_ERRORS, ValueError) as error:  # ValueError: the response is not JSON
                last = f"{type(error).__name__}: {error}"
            if attempt == self._retries or pause > MAX_RETRY_AFTER:
                break
            time.sleep(pause)
        text = f"{self.url} did not answer {method} {path} in {attempt + 1} tries; the last: {last}"
        raise ServiceUnreachable(text, key)

    def send(self, method: str, path: str, body: bytes | None = None, token: str | None = None) -> Response:
        """Send a request once and return the response, whatever its status; `token` replaces the usual one."""
        while self._idle:
            try:  # the service may have closed an idle connection
                return self._exchange(self._idle.pop(), method, path, body, token)
            except TimeoutError:
                raise
            except (ConnectionError, http.client.BadStatusLine):
                continue
            except IndexError:  # another thread took the last one
                break
        return self._exchange(self.connect(), method, path, body, token)

    def connect(self) -> http.client.HTTPConnection:
        """Return a new connection."""
        kind = http.client.HTTPSConnection if self._is_https else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout)

    def write_request(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        token: str | None = None,
    ) -> None:
        """Write a request to a connection without reading the response."""
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if token or self._token:
            headers["Authorization"] = f"Bearer {token or self._token}"
        connection.request(method, self._prefix + path, body, headers)

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None, token: str | None
    ) -> Response:
        try:
            self.write_request(connection, method, path, body, token)
            raw = connection.getresponse()
            response = Response(raw.status, raw.read(), _retry_after(raw.getheader("Retry-After")))
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)  # if the service closed it, the next request opens it again
        return response

    def close(self) -> None:
        """Close all idle connections."""
        while self._idle:
            self._idle.pop().close()


def encode(body: Any) -> bytes:
    """Return a body as JSON; raise InvalidValue."""
    try:
        return json.dumps(body, allow_nan=False, default=_from_numpy).encode()
    except (ValueError, TypeError) as error:
        raise InvalidValue("Client", "request", body, f"finite numbers, texts and lists of them ({error})") from error


def _from_numpy(value: Any) -> Any:
    """Return a NumPy number or array as JSON types."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _retry_after(header: str | None) -> float:
    """Return the seconds to wait, from a Retry-After header with seconds or a date."""
    if header is None:
        return 0.0
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except ValueError:
        return 0.0
