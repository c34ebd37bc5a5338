"""Names in files of earlier versions, and their names today."""

from collections.abc import Mapping
from typing import Any

KEYS = {"floor": "min_probability", "patience": "max_delay"}
WORLDS = {"Varied": "HeterogeneousUnits"}
# Name of the policy: {old path: new path} of an array, or of a nested NamedTuple, in its State.
STATE_FIELDS: dict[str, dict[str, str]] = {}


def upgraded(packed: Mapping[str, Any]) -> dict[str, Any]:
    """The output of `Agent.pack` or `Cohort.pack` of this or an earlier version, with today's names."""
    values = {KEYS.get(key, key): value for key, value in packed.items()}
    values.setdefault("trial", 0)  # schema 1 had only trial 0
    if isinstance(values.get("world"), dict):
        name = values["world"].get("world")
        values["world"] = values["world"] | {"world": WORLDS.get(name, name)}
    renamed = STATE_FIELDS.get(values["policy"]["policy"], {}) if isinstance(values.get("policy"), dict) else {}
    for part in [values, *values.get("each", ())] if renamed else ():
        if "base" in part:
            state = {_renamed(path, renamed): array for path, array in part["base"]["state"].items()}
            part["base"] = part["base"] | {"state": state}
    return values


def _renamed(path: str, names: Mapping[str, str]) -> str:
    """The path with its longest known prefix replaced."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        old = ".".join(parts[:count])
        if old in names:
            return ".".join([names[old], *parts[count:]])
    return path
