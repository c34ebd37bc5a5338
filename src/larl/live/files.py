"""An agent or a cohort as a JSON file: a schema version, exact floats, a digest that tells when it was cut or edited.

What is kept is the State at the base of the past (_past.py) and what happened since: the State now follows from them.
Arrays are kept as base64 of their bytes, little end first; their names, types and shapes must be those that the policy
makes.
"""

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from larl._core.compile import fields_nan
from larl._core.files import write_whole
from larl._core.validation import InvalidValue
from larl.live.history import Past
from larl.live.renamed import upgraded
from larl.policies import from_dict

SCHEMA = 3
SCALARS = (bool, int, float)


class InvalidFile(ValueError):
    """A file that is not an agent's or a cohort's, or not a whole one: which, and what is wrong with it."""

    def __init__(self, path: str | Path, wrong: str) -> None:
        super().__init__(f"{path}: {wrong}")


def arrays_of(state: Any, prefix: str = "") -> dict[str, Any]:
    """Every array of a State, by the path of its field."""
    found: dict[str, Any] = {}
    for name, field in zip(state._fields, state, strict=True):
        if isinstance(field, np.ndarray):
            found[prefix + name] = field
        elif not isinstance(field, SCALARS):
            found |= arrays_of(field, f"{prefix}{name}.")
    return found


def pack(state: Any) -> dict[str, Any]:
    """A State's arrays as JSON types."""
    return {name: _packed(array) for name, array in arrays_of(state).items()}


def _packed(array: Any) -> dict[str, Any]:
    plain = array.astype(array.dtype.newbyteorder("<"))
    return {"type": plain.dtype.str, "shape": list(array.shape), "data": base64.b64encode(plain.tobytes()).decode()}


def unpack(values: dict[str, Any], state: Any) -> None:
    """Write what `pack` made into a State of the same policy. The message of a ValueError says what does not fit."""
    arrays = arrays_of(state)
    if set(values) != set(arrays):
        raise ValueError(f"the state has {sorted(set(values) ^ set(arrays))} too much or too little for its policy")
    for name, array in arrays.items():
        kind, shape, data = (values[name].get(key) for key in ("type", "shape", "data"))
        if kind != array.dtype.newbyteorder("<").str or shape != list(array.shape):
            raise ValueError(f"state {name} is {kind} of shape {shape}, not {array.dtype} of {list(array.shape)}")
        array[...] = np.frombuffer(base64.b64decode(data), dtype=kind).reshape(array.shape)
    if fields_nan(state):
        raise ValueError("the state has numbers that are nan: its policy had failed")


def digest(values: dict[str, Any]) -> str:
    """SHA-256 of everything but itself."""
    rest = {key: value for key, value in values.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write(path: str | Path, values: dict[str, Any], kind: str = "agent") -> Path:
    """Write an agent's or a cohort's file, whole or not at all."""
    whole = {"format": f"larl.{kind}", "schema": SCHEMA, **values}
    whole["digest"] = digest(whole)
    return write_whole(path, lambda draft: draft.write_text(json.dumps(whole) + "\n", encoding="utf-8"))


def read(path: str | Path, kind: str = "agent") -> dict[str, Any]:
    """What `write` wrote, or InvalidFile with what is wrong."""
    form, foreign = f"larl.{kind}", f"is not {'an agent' if kind == 'agent' else 'a cohort'}'s file"
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidFile(path, f"{foreign}: it is not text") from error
    except OSError as error:
        raise InvalidFile(path, f"cannot be read: {error.strerror}") from error
    try:
        values = json.loads(text)
    except ValueError as error:
        cut = text.startswith(f'{{"format": "{form}"')
        raise InvalidFile(path, "was cut short" if cut else f"{foreign}: {error}") from error
    if not isinstance(values, dict) or values.get("format") != form:
        raise InvalidFile(path, f"{foreign}: there is no format {form!r} in it")
    if values.get("schema") not in range(1, SCHEMA + 1):
        raise InvalidFile(path, f"has schema {values.get('schema')!r}; this larl reads 1 to {SCHEMA}")
    if values.get("digest") != digest(values):
        raise InvalidFile(path, "was edited or damaged: its digest is another")
    return upgraded(values)


def floats(values: Any) -> list[float | None]:
    """Numbers for JSON, None for nan."""
    return [None if math.isnan(value) else value for value in values.tolist()]


def refuse_foreign(path: str | Path, identity: dict[str, Any], kind: str = "agent") -> None:
    """Do not overwrite what is not an older file of the same agent or cohort."""
    if Path(path).exists():
        found = read(path, kind)
        for key, value in identity.items():
            there = from_dict(found[key]).to_dict() if key == "policy" else found.get(key)  # fields may be new
            if there != value:
                accepted = f"a new name, or the file of this {kind}; that one has {key} = {found.get(key)!r}"
                raise InvalidValue(f"{kind.capitalize()}.save", "path", str(path), accepted)


@contextmanager
def fitting(path: str | Path, values: Mapping[str, Any]) -> Iterator[None]:
    """What goes wrong within is the file's fault."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InvalidFile(path, f"does not fit this larl ({values.get('larl')} wrote it): {error}") from error


def pack_past(past: Past) -> dict[str, Any]:
    """What an agent has seen, as JSON types."""
    rows = slice(0, past.row(past.end))
    return {
        "base": {"time": past.base.time, "state": pack(past.base.state)},
        "past": {
            "arm": past.arm[rows].tolist(),
            "reward": floats(past.reward[rows]),
            "pending": past.pending[rows].tolist(),
            "context": past.context[rows].tolist(),
        },
    }


def unpack_past(values: Mapping[str, Any], state: Any, max_delay: int, width: int, like: Past | None = None) -> Past:
    """What `pack_past` wrote, into a State of the same policy: decisions and rewards again, as they are known now."""
    unpack(values["base"]["state"], state)
    past, kept = Past(state, max_delay, width, values["base"]["time"], like), values["past"]
    for arm, reward, pending, context in zip(
        *(kept[key] for key in ("arm", "reward", "pending", "context")), strict=True
    ):
        past.catch_up()
        past.add(arm, context, pending=pending)
        if reward is not None:
            past.set(past.end - 1, arm, reward)
    return past
