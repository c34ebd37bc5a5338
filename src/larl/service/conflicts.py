"""Requests that clash with an earlier one: the same key, study or issue, with another payload."""

import json
from typing import Any

from larl._core.validation import InvalidValue
from larl.policies import from_dict
from larl.service.clerk import Command
from larl.service.journal import Row, text
from larl.service.problems import Problem, conflict, invalid


def repeats(command: Command, found: Row) -> bool:
    """Whether a command asks for what an earlier one with its key asked for."""
    if found.request == text(command.words):
        return True
    return command.kind == "study" and not _differences(found.asked, command.words)


def clash(command: Command, found: Row) -> Problem:
    """The refusal of a command whose key an earlier one had with another payload."""
    if command.kind == "study":
        shown = [
            f"{name} = {_shown(old)}, not {_shown(new)}" for name, old, new in _differences(found.asked, command.words)
        ]
        accepted = "another name, or the terms that it was created with"
        detail = f"there is a study {command.study} with other terms: {'; '.join(shown)}; accepted: {accepted}"
        return conflict(detail, "study", command.study, accepted)
    if command.kind == "closed":
        detail = f"the study was closed at {found.at} with another reason: {_shown(found.asked['reason'])}"
        return conflict(detail, "study", command.study)
    if command.kind == "resolved":
        detail = f"issue {command.key} was resolved at {found.at} with another note: {_shown(found.asked['note'])}"
        return conflict(detail, "issue", command.key)
    return invalid("key", command.key, "a new key: this one was used for a request with another payload")


def _differences(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Terms of a study that differ: their names, and both values. A spec may leave out fields that have a default."""
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [(name, old.get(name), new.get(name)) for name in names if name != "policy" or not _same(old, new)]


def _same(old: dict[str, Any], new: dict[str, Any]) -> bool:
    try:
        return from_dict(old["policy"]) == from_dict(new["policy"])
    except (InvalidValue, TypeError):
        return False


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
