"""What is refused, as RFC 9457 has it: a status, what is wrong, and which value of which field would be accepted."""

import json
import math
from typing import Any

from larl._check import InvalidValue

TITLES = {
    400: "The request cannot be read",
    401: "A token is needed",
    403: "This token may not do that",
    404: "There is no such thing",
    405: "This address does not take that method",
    409: "It is too late for that",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "A value is not accepted",
    429: "Too many requests",
    500: "An error of the service itself",
    503: "The service cannot store anything now",
}
LONGEST = 200


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
    return Problem(422, f"{field} is not accepted: it must be {accepted}", field=field, value=value, accepted=accepted)


def of_value(error: InvalidValue) -> Problem:
    """What the library says of a value."""
    return invalid(error.name, error.value, error.accepted)


def missing(what: str, name: str) -> Problem:
    """Something that there is not."""
    return Problem(404, f"there is no such {what}", field=what, value=name)


def _shown(value: Any) -> Any:
    """A value as JSON has it, cut short if it is long."""
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
