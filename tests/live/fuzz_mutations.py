"""Random changes of the parsed content of a file: values of every type, lengths, swapped and damaged arrays."""

import base64
import copy
from random import Random
from typing import Any

import numpy as np

BIG = (2**31, 2**63 - 1, 2**63, 2**64, 10**30, 10**400)
INTEGERS = (-1, 0, 1, 2, 3, 7, 100, 4097, 10**6, *BIG, *(-each for each in BIG))
FLOATS = (float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 1e101, 1e100, -1e100, 0.0, -1.0, 1e-320, 0.5, 3.0)
OTHERS = (None, True, False, "", "x", "1", [], [1], {}, {"a": 1}, [[[[]]]], -1, 1.5)
STORED = (-1, -2, 0, 1, 2, 3, 5, 17, 101, 2**31, 2**40, 2**48 + 1, 2**62, 2**63 - 1, -(2**63))  # in arrays


def mutate(document: Any, rng: Random) -> tuple[Any, str]:
    """A changed copy of a document, and what was changed."""
    changed = copy.deepcopy(document)
    arrays = [path for path, value in _walk(changed) if _is_array(value)]
    notes = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if arrays and rng.random() < 0.6:
            path, others = rng.choice(arrays), arrays
            notes.append(f"{path}: {_mutate_array(changed, path, others, rng)}")
        else:
            paths = [path for path, _ in _walk(changed) if path]
            path = rng.choice(paths)
            notes.append(f"{path}: {_mutate_value(changed, path, rng)}")
            arrays = [path for path, value in _walk(changed) if _is_array(value)]
    return changed, "; ".join(notes)


def _walk(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Every value of a document with its path; of a list, at most some elements."""
    found = [(path, value)]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _walk(inner, (*path, key))
    elif isinstance(value, list):
        for i in sorted({0, 1, len(value) // 2, len(value) - 2, len(value) - 1} & set(range(len(value)))):
            found += _walk(value[i], (*path, i))
    return found


def _is_array(value: Any) -> bool:
    return isinstance(value, dict) and {"type", "shape", "data"} <= set(value)


def _get(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def _set(document: Any, path: tuple[Any, ...], value: Any) -> str:
    _get(document, path[:-1])[path[-1]] = value
    return repr(value)[:60]


def _mutate_value(document: Any, path: tuple[Any, ...], rng: Random) -> str:
    value = _get(document, path)
    if isinstance(value, dict) and rng.random() < 0.8:
        return _mutate_table(document, path, value, rng)
    if isinstance(value, list) and rng.random() < 0.8:
        return _mutate_list(document, path, value, rng)
    if rng.random() < 0.3:
        return _set(document, path, rng.choice(OTHERS))
    if isinstance(value, int) and not isinstance(value, bool):
        return _set(document, path, rng.choice((value + 1, value - 1, -value, 2 * value, *INTEGERS)))
    if isinstance(value, float):
        return _set(document, path, rng.choice((-value, 2.0 * value, *FLOATS)))
    if isinstance(value, str):
        return _set(document, path, rng.choice((value + "x", value[:-1], value.upper(), value[::-1], "x" * 10_000)))
    return _set(document, path, rng.choice((*INTEGERS, *FLOATS, *OTHERS)))


def _mutate_table(document: Any, path: tuple[Any, ...], value: dict[str, Any], rng: Random) -> str:
    keys = list(value)
    if not keys or rng.random() < 0.2:
        value["unknown"] = rng.choice(OTHERS)
        return "another key"
    key, other = rng.choice(keys), rng.choice(keys)
    if rng.random() < 0.5:
        del value[key]
        return f"without {key}"
    value[key], value[other] = value[other], value[key]
    return f"{key} and {other} exchanged"


def _mutate_list(document: Any, path: tuple[Any, ...], value: list[Any], rng: Random) -> str:
    kind = rng.randrange(6)
    if kind == 0 or not value:
        value.append(copy.deepcopy(rng.choice(value)) if value else rng.choice(OTHERS))
        return "one element more"
    if kind == 1:
        del value[rng.randrange(len(value))]
        return "one element less"
    if kind == 2:
        value.reverse()
        return "reversed"
    if kind == 3:
        return _set(document, path, value * 3)
    if kind == 4:
        return _set(document, path, [value])
    i = rng.randrange(len(value))
    value[i] = rng.choice((*INTEGERS, *FLOATS, *OTHERS))
    return f"[{i}] = {value[i]!r}"[:60]


def _mutate_array(document: Any, path: tuple[Any, ...], others: list[Any], rng: Random) -> str:
    array = _get(document, path)
    if not _is_array(array):
        return "gone"
    if rng.random() < 0.1:
        key = rng.choice(("type", "shape", "data"))
        return f"{key} {_mutate_value(array, (key,), rng)}"
    if rng.random() < 0.1:
        other = _get(document, rng.choice(others))
        array["data"], other["data"] = other["data"], array["data"]
        return "exchanged with another array"
    try:
        content = np.frombuffer(base64.b64decode(array["data"]), dtype=array["type"]).copy()
    except (KeyError, TypeError, ValueError):
        return "unreadable"
    note = mutate_numbers(content, rng)
    array["data"] = base64.b64encode(content.tobytes()).decode()
    return note


def mutate_numbers(content: Any, rng: Random) -> str:
    """Change some numbers of an array in place."""
    if not content.size:
        return "empty"
    flat, kind = content.reshape(-1), content.dtype.kind
    if rng.random() < 0.1:
        flat.view(np.uint8)[rng.randrange(flat.nbytes)] ^= 1 << rng.randrange(8)
        return "one bit"
    if rng.random() < 0.1:
        flat[:] = flat[::-1].copy()
        return "reversed"
    count = rng.choice((1, 1, 1, 3, flat.size))
    places = range(flat.size) if count == flat.size else [rng.randrange(flat.size) for _ in range(count)]
    if kind == "f":
        value = rng.choice(FLOATS)
        for place in places:
            flat[place] = value if rng.random() < 0.7 else -3.0 * flat[place]
        return f"{count} × {value}"
    if kind == "b":
        value = rng.choice((0, 1, 2, 255))
        for place in places:
            flat.view(np.uint8)[place] = value
        return f"{count} × byte {value}"
    limits = np.iinfo(content.dtype)
    value = min(max(rng.choice(STORED), limits.min), limits.max)
    near = rng.random() < 0.4
    for place in places:
        flat[place] = min(max(int(flat[place]) + rng.choice((-1, 1, 2)), limits.min), limits.max) if near else value
    return f"{count} × {'a step' if near else value}"
