"""Requests whose key was used before: repetitions, and conflicts with another payload."""

import json
from typing import Any

from larl._core.validation import InvalidValue
from larl.policies import from_dict
from larl.service.core.commands import Command
from larl.service.core.problems import Problem, conflict, invalid
from larl.service.schemas.requests import Request
from larl.service.storage.events import Event, EventKind, canonical_json


def is_repetition(command: Command[Request], stored: Event) -> bool:
    """Return whether a command has the payload of the stored event with its key."""
    request = command.request()
    if stored.request_json == canonical_json(request):
        return True
    return not _differences(stored.request, request)


def key_conflict(command: Command[Request], stored: Event) -> Problem:
    """Return the refusal of a command whose key was used with another payload."""
    if command.kind == EventKind.STUDY:
        differences = _differences(stored.request, command.request())
        shown = [f"{name} = {_json(old)}, not {_json(new)}" for name, old, new in differences]
        accepted = "another name, or the settings that it was created with"
        detail = f"there is a study {command.study} with other settings: {'; '.join(shown)}; accepted: {accepted}"
        return conflict(detail, "study", command.study, accepted)
    if command.kind == EventKind.CLOSED:
        detail = f"the study was closed at {stored.at} with another reason: {_json(stored.request['reason'])}"
        return conflict(detail, "study", command.study)
    if command.kind == EventKind.RESOLVED:
        detail = f"issue {command.key} was resolved at {stored.at} with another note: {_json(stored.request['note'])}"
        return conflict(detail, "issue", command.key)
    return invalid("key", command.key, "a new key: this one was used for a request with another payload")


def _differences(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return the fields that differ, with both values. A spec may leave out fields that have a default."""
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [(name, old.get(name), new.get(name)) for name in names if name != "policy" or not _same_policy(old, new)]


def _same_policy(old: dict[str, Any], new: dict[str, Any]) -> bool:
    try:
        return from_dict(old["policy"]) == from_dict(new["policy"])
    except (InvalidValue, TypeError):
        return False


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
