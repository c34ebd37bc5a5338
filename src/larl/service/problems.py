"""What is refused, as RFC 9457 has it: a status, what is wrong, and which value of which field would be accepted."""

import json
import math
from typing import Any

from larl._core.validation import InvalidValue

TITLES = {
    400: "The request cannot be read",
    401: "A token is required",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "The body is too large",
    415: "Unsupported content type",
    422: "A value is not accepted",
    429: "Too many requests",
    500: "Internal error",
    503: "The storage is not available",
}
LONGEST = 200  # characters of a value
SECRET = ("token",)  # fields whose value is not repeated


class Problem(Exception):
    """A request that is refused; nothing was changed."""

    def __init__(self, status: int, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.more = status, detail, more

    def body(self) -> bytes:
        """As application/problem+json."""
        words = {"type": "about:blank", "title": TITLES[self.status], "status": self.status, "detail": self.detail}
        return json.dumps(words | {name: _shown(value) for name, value in self.more.items()}).encode()


def invalid(field: str, value: Any, accepted: str) -> Problem:
    """A field whose value is not accepted."""
    if field in SECRET:
        return Problem(422, f"{field} is not accepted; accepted: {accepted}", field=field, accepted=accepted)
    detail = f"{field} = {_cut(_written(value))} is not accepted; accepted: {accepted}"
    return Problem(422, detail, field=field, value=value, accepted=accepted)


def conflict(detail: str, field: str, value: Any, accepted: str | None = None) -> Problem:
    """A request that does not fit what was asked before."""
    return Problem(409, detail, field=field, value=value, accepted=accepted)


def of_value(error: InvalidValue) -> Problem:
    """What the library says of a value."""
    return invalid(error.name, error.value, error.accepted)


def missing(what: str, name: str) -> Problem:
    """A study, unit, decision or issue that does not exist."""
    return Problem(404, f"there is no such {what}: {_cut(name)}", field=what, value=name)


def _shown(value: Any) -> Any:
    """A value as JSON has it, cut short if it is long."""
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return _cut(value if isinstance(value, str) else _written(value))


def _written(value: Any) -> str:
    """A value as JSON has it, or as Python has it if JSON cannot."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
