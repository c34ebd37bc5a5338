"""Requests that are refused, as RFC 9457 describes: a status, a detail, and the accepted values of a field."""

import json
import math
from http import HTTPStatus
from typing import Any

from larl._core.validation import InvalidValue
from larl.service.storage.events import DamagedRow

MAX_LENGTH = 200  # characters of a value
SECRET = ("token",)  # fields whose value is not repeated


class Problem(Exception):
    """A request that is refused; nothing was changed."""

    def __init__(self, status: int, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.more = status, detail, more

    def body(self) -> bytes:
        """Return the problem as application/problem+json."""
        title = HTTPStatus(self.status).phrase
        values = {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail}
        return json.dumps(values | {name: _json_value(value) for name, value in self.more.items()}).encode()


def invalid(field: str, value: Any, accepted: str) -> Problem:
    """Return the refusal of a value."""
    if field in SECRET:
        return Problem(422, f"{field} is not accepted; accepted: {accepted}", field=field, accepted=accepted)
    detail = f"{field} = {_cut(_written(value))} is not accepted; accepted: {accepted}"
    return Problem(422, detail, field=field, value=value, accepted=accepted)


def from_invalid_value(error: InvalidValue) -> Problem:
    """Return the refusal of a value by the library."""
    return invalid(error.name, error.value, error.accepted)


def conflict(detail: str, field: str, value: Any, accepted: str | None = None) -> Problem:
    """Return the refusal of a request that contradicts an earlier one."""
    return Problem(409, detail, field=field, value=value, accepted=accepted)


def not_found(what: str, name: str) -> Problem:
    """Return the refusal of a request about a study, unit, decision or issue that does not exist."""
    return Problem(404, f"there is no such {what}: {_cut(name)}", field=what, value=name)


def damaged_row(error: DamagedRow) -> Problem:
    """Return the refusal of a request for which a damaged row is needed; to repeat it does not help."""
    return Problem(500, f"{error.reason}; nothing was changed. `larl restore` writes a backup to a new storage")


def _json_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return _cut(value if isinstance(value, str) else _written(value))


def _written(value: Any) -> str:
    """Return a value as JSON, or as Python writes it if JSON cannot."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else text[:MAX_LENGTH] + "…"
