"""Agents and cohorts as JSON files, with a schema version, exact floats and a digest that detects damage and edits.

A file contains the State at the first checkpoint of the history and the steps since then; the current State follows
from them. Arrays are stored as base64 of their little-endian bytes. Their names, types and shapes must be those of the
policy's State.
"""

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from larl._core.files import write_atomically
from larl._core.states import Memory, copy_state
from larl._core.validation import InvalidValue, short
from larl.live.history import History
from larl.live.log_checks import STEP_COLUMNS, LogSizes, check_log, check_time
from larl.live.schedule import Schedule, Update
from larl.policies._bounds import check_state
from larl.policies._bounds import state_arrays as state_arrays

SCHEMA = 5  # the version of the files; others are refused
# What values of the wrong type or size raise where they are used.
USE_ERRORS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


class InvalidFile(ValueError):
    """Raised by ``Agent.load``, ``Cohort.load`` and ``save`` for a file that larl cannot use.

    The file is missing, incomplete, edited, of a newer version of larl, or not the file of an agent or cohort. The
    message names the file and the reason.

    Parameters
    ----------
    path : str or Path
        The file.
    reason : str
        What is wrong with it.

    Examples
    --------
    >>> import larl
    >>> try:
    ...     larl.Agent.load("missing.json")
    ... except larl.InvalidFile as error:
    ...     print(error)
    missing.json: cannot be read: No such file or directory
    """

    def __init__(self, path: str | Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


def pack_state(state: Any) -> dict[str, Any]:
    """A State's arrays as JSON types."""
    return {name: _pack_array(array) for name, array in state_arrays(state).items()}


def _pack_array(array: Any) -> dict[str, Any]:
    """An array as JSON types: type, shape, and base64 of its little-endian bytes."""
    plain = array.astype(array.dtype.newbyteorder("<"))
    return {"type": plain.dtype.str, "shape": list(array.shape), "data": base64.b64encode(plain.tobytes()).decode()}


def unpack_state(values: Mapping[str, Any], state: Any, initial: Any) -> None:
    """Write the output of `pack_state` into a State, of one unit or stacked; ValueError if a policy cannot use it.

    `initial` is the State of a new unit.
    """
    arrays = state_arrays(state)
    if set(values) != set(arrays):
        raise ValueError(f"unexpected or missing arrays in the state: {sorted(set(values) ^ set(arrays))}")
    for name, array in arrays.items():
        kind, shape, data = (values[name][key] for key in ("type", "shape", "data"))
        if kind != array.dtype.newbyteorder("<").str or shape != list(array.shape):
            raise ValueError(f"state {name} is {kind} of shape {shape}, not {array.dtype} of {list(array.shape)}")
        array[...] = _unpack_array(name, data, array)
    check_state(initial, state)


def _unpack_array(name: str, data: Any, like: Any) -> Any:
    """The array whose bytes `data` is base64 of, with the type and shape of `like`."""
    try:
        content = base64.b64decode(data, validate=True)
    except (TypeError, binascii.Error) as error:
        raise ValueError(f"state {name} is not base64: {error}") from error
    if len(content) != like.nbytes:
        raise ValueError(f"state {name} has {len(content)} bytes, not {like.nbytes}")
    if like.dtype.kind == "b" and content.strip(b"\0\1"):
        raise ValueError(f"state {name} has a byte that is neither true nor false")
    return np.frombuffer(content, dtype=like.dtype.newbyteorder("<")).reshape(like.shape)


def digest(values: dict[str, Any]) -> str:
    """SHA-256 of all values except the digest itself."""
    rest = {key: value for key, value in values.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write(path: str | Path, values: dict[str, Any], kind: str = "agent") -> Path:
    """Write the file of an agent or a cohort atomically."""
    document = {"format": f"larl.{kind}", "schema": SCHEMA, **values}
    document["digest"] = digest(document)
    return write_atomically(path, lambda temporary: temporary.write_text(json.dumps(document) + "\n", encoding="utf-8"))


def read(path: str | Path, kind: str = "agent") -> dict[str, Any]:
    """The values that `write` wrote; InvalidFile if the file is not usable."""
    form, wrong_kind = f"larl.{kind}", f"is not the file of {'an agent' if kind == 'agent' else 'a cohort'}"
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidFile(path, f"{wrong_kind}: it is not text") from error
    except OSError as error:
        raise InvalidFile(path, f"cannot be read: {error.strerror}") from error
    try:
        values = json.loads(text)
    except RecursionError as error:
        raise InvalidFile(path, f"{wrong_kind}: it is nested too deeply") from error
    except ValueError as error:
        is_truncated = text.startswith(f'{{"format": "{form}"')
        raise InvalidFile(path, "is incomplete" if is_truncated else f"{wrong_kind}: {error}") from error
    if not isinstance(values, dict) or values.get("format") != form:
        raise InvalidFile(path, f"{wrong_kind}: it has no format {form!r}")
    if type(values.get("schema")) is not int or values["schema"] != SCHEMA:
        raise InvalidFile(path, f"has schema {values.get('schema')!r}; this larl reads {SCHEMA}")
    if values.get("digest") != digest(values):
        raise InvalidFile(path, "was edited or damaged: its digest does not match")
    return values


def nan_to_none(values: Any) -> list[float | None]:
    """Numbers for JSON: None instead of nan."""
    return [None if math.isnan(value) else value for value in values.tolist()]


def refuse_other_file(path: str | Path, settings: dict[str, Any], kind: str = "agent") -> None:
    """Raise InvalidValue or InvalidFile if `path` exists and is not an older file of the same agent or cohort."""
    if Path(path).exists():
        existing = read(path, kind)
        for key, value in settings.items():
            if existing.get(key) != value:
                accepted = f"a new name, or the file of this {kind}; that file has {key} = {existing.get(key)!r}"
                raise InvalidValue(f"{kind.capitalize()}.save", "path", str(path), accepted)


@contextmanager
def errors_as_invalid_file(path: str | Path, values: Mapping[str, Any]) -> Iterator[None]:
    """Turn errors while a file's values are used into InvalidFile."""
    try:
        yield
    except USE_ERRORS as error:
        reason = str(error) or type(error).__name__
        raise InvalidFile(path, f"does not fit this larl ({short(values.get('larl'))} wrote it): {reason}") from error


def pack_history(history: History) -> dict[str, Any]:
    """A unit's first checkpoint and the steps since then, as JSON types."""
    rows = slice(0, history.row(history.end))
    return {
        "base": {
            "time": history.base.time,
            "state": pack_state(history.memory.state_in(history.base.block, history.memory.shared)),
        },
        "past": {
            "arm": history.arm[rows].tolist(),
            "reward": nan_to_none(history.reward[rows]),
            "pending": history.pending[rows].tolist(),
            "context": history.context[rows].tolist(),
        },
    }


def unpack_history(values: Mapping[str, Any], history: History, sizes: LogSizes) -> None:
    """The inverse of `pack_history`, into the history of a new unit; ValueError if it is not usable."""
    unpack_state(values["base"]["state"], history.state, copy_state(history.state))
    log, time = values["past"], check_time("base.time", values["base"]["time"])
    check_log(log, sizes)
    history.start_at(history.checkpoint()._replace(time=time))
    for arm, reward, pending, context in zip(*(log[name] for name in STEP_COLUMNS), strict=True):
        history.catch_up()
        history.add(arm, context, pending=pending)
        if reward is not None:
            history.set(history.end - 1, arm, reward)


def pack_updates(schedule: Schedule) -> dict[str, Any]:
    """The last updates of all units as JSON types; nothing without a schedule."""
    if schedule.every is None:
        return {}
    rows = schedule.updates.items()
    return {"updates": [{"unit": n, "number": each.number, "state": pack_state(each.state)} for n, each in rows]}


def unpack_updates(values: Mapping[str, Any], schedule: Schedule, initial: Memory, units: int) -> None:
    """Read the output of `pack_updates`; `initial` has the State of a new unit. ValueError if it is not usable."""
    for each in [] if schedule.every is None else values["updates"]:
        unit = check_time("updates.unit", each["unit"], 0, units - 1)
        memory = initial.copy()
        unpack_state(each["state"], memory.state(), initial.state())
        schedule.keep(unit, Update(check_time("updates.number", each["number"]), memory))
