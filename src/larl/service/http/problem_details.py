"""Refusals as responses (RFC 9457), and messages about requests that do not fit the interface."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, get_args, get_type_hints

from fastapi import Response
from pydantic import BaseModel

from larl._core.validation import InvalidValue
from larl.service.core.problems import Problem, damaged_row, from_invalid_value, invalid
from larl.service.schemas.alternatives import ALTERNATIVES
from larl.service.schemas.requests import PATTERNS
from larl.service.storage.database import StorageError
from larl.service.storage.events import RENAMED, DamagedRow

ACCEPTED = {  # by pydantic's type of error; {…} is filled in from its context
    "string_type": "text",
    "string_unicode": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "a JSON object",
    "model_type": "a JSON object",
    "model_attributes_type": "a JSON object",
    "greater_than_equal": "a number ≥ {ge}",
    "greater_than": "a number > {gt}",
    "less_than_equal": "a number ≤ {le}",
    "less_than": "a number < {lt}",
    "string_too_short": "text of {min_length} or more characters",
    "string_too_long": "text of {max_length} or fewer characters",
    "too_short": "a list of {min_length} or more items",
    "too_long": "a list of {max_length} or fewer items",
    "literal_error": "{expected}",
    "value_error": "{error}",
}


USUAL_ERRORS = (400, 401, 403, 408, 413, 415, 421, 422, 429, 431, 500, 503)
HEADERS = {429: {"retry-after": "1"}, 503: {"retry-after": "1"}, 401: {"www-authenticate": "Bearer"}}


def problem_response(
    error: Problem | InvalidValue | StorageError, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the response for a refused request."""
    if isinstance(error, InvalidValue):
        error = from_invalid_value(error)
    elif isinstance(error, DamagedRow):
        error = damaged_row(error)
    elif isinstance(error, StorageError):
        error = storage_problem(error)
    added = dict(headers or {}) | HEADERS.get(error.status, {})
    return Response(error.body(), error.status, added, "application/problem+json")


def storage_problem(error: StorageError) -> Problem:
    """Return the refusal of a request that needs the storage."""
    return Problem(503, f"the storage cannot be used: {error.reason}")


def error_responses(*more: int) -> dict[int | str, dict[str, Any]]:
    """Return the refusals of a route, for OpenAPI."""
    schema = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
    codes = sorted({*USUAL_ERRORS, *more})
    return {code: {"description": HTTPStatus(code).phrase, "content": schema} for code in codes}


def internal_error(scope: Any) -> Problem:
    """Return the refusal for an error of the service itself."""
    return Problem(500, f"internal error; see the service's log for request {scope['larl.request']}")


def validation_problem(error: Mapping[str, Any], content_type: str | None, endpoint: Any) -> Problem:
    """Return the refusal of a request that pydantic rejected; `error` is the first of its errors."""
    kind, place, value = error["type"], error["loc"], error["input"]
    if kind == "json_invalid":
        at = f" at character {place[1]}" if len(place) > 1 else ""
        reason = error.get("ctx", {}).get("error", error["msg"])
        return Problem(400, f"the body is not JSON: {reason}{at}", field="body", accepted="a JSON object")
    if isinstance(value, bytes):  # it was not read: only JSON is
        return content_type_problem(content_type)
    if place == ("body",) and kind == "missing":
        return Problem(422, "the body is missing; accepted: a JSON object", field="body", accepted="a JSON object")
    field = field_name(place)
    if kind == "missing":
        return Problem(422, f"{field} is missing: it is required", field=field, accepted="a value")
    if kind == "extra_forbidden":
        names = RENAMED.get(field) or f"only the fields {', '.join(fields_of(endpoint, place))}"
        return Problem(422, f"{field} is not a field of this request; accepted: {names}", field=field, accepted=names)
    return invalid(field, value, accepted_by(error))


def content_type_problem(content_type: str | None) -> Problem:
    """Return the refusal of a body that is not JSON."""
    accepted = "application/json"
    if content_type is None:
        detail = f"the header content-type is missing; accepted: {accepted}"
    else:
        detail = f"content-type = {json.dumps(content_type)} is not accepted; accepted: {accepted}"
    return Problem(415, detail, field="content-type", value=content_type, accepted=accepted)


def field_name(place: Sequence[Any]) -> str:
    """Return the place of an error as users write it: ("body", "context", 0) is context[0]."""
    name = str(place[0])
    for depth, part in enumerate(place[1:]):
        if part == "[key]" or part == "" or part in ALTERNATIVES:  # the key of an object, which is its own name
            continue
        if isinstance(part, int):
            name += f"[{part}]"
        else:
            name = f"{name}.{part}" if depth else str(part)
    return name


def accepted_by(error: Mapping[str, Any]) -> str:
    """Describe what is accepted instead of a value."""
    context = error.get("ctx", {})
    if error["type"] == "string_pattern_mismatch":
        return PATTERNS[context["pattern"]]
    if error["type"] not in ACCEPTED:  # no type of the interface gives another one
        return f"another value ({error['msg']})"
    numbers = {name: f"{value:g}" if isinstance(value, float) else value for name, value in context.items()}
    return ACCEPTED[error["type"]].format(**numbers)


def fields_of(endpoint: Any, place: Sequence[Any] = ()) -> list[str]:
    """Return the fields of the body or query of a route, or of the object in it that contains a place."""
    hints = {name: kind for name, kind in get_type_hints(endpoint).items() if name != "return"}
    models = [kind for kind in hints.values() if isinstance(kind, type) and issubclass(kind, BaseModel)]
    for part in place[1:-1]:
        inner = [model.model_fields[part].annotation for model in models if part in model.model_fields]
        models = [each for kind in inner for each in get_args(kind)] or models
    return [name for model in models for name in model.model_fields]
