"""Names that files of earlier versions have, and what they are called now."""

from collections.abc import Mapping
from typing import Any

KEYS = {"floor": "min_probability", "patience": "max_delay"}
WORLDS = {"Varied": "HeterogeneousUnits"}
# Policy: path of an array, or of a NamedTuple with arrays, in its State: old, new.
STATE_FIELDS: dict[str, dict[str, str]] = {
    "Auto": {
        "swarm": "smc",
        "swarm.due": "smc.moves_due",
        "swarm.words": "smc.draws",
        "swarm.trial": "smc.candidate",
        "swarm.normal": "smc.proposal",
        "swarm.populations.stride": "smc.populations.step_size",
        "swarm.populations.later_mean": "smc.populations.next_mean",
        "swarm.populations.later_precision": "smc.populations.next_precision",
    },
}


def upgraded(packed: Mapping[str, Any]) -> dict[str, Any]:
    """What `Agent.pack` or `Cohort.pack` of this or an earlier version made, with today's names."""
    values = {KEYS.get(key, key): value for key, value in packed.items()}
    values.setdefault("trial", 0)  # the first version had no other trial
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
    """The path with its longest known beginning replaced."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        old = ".".join(parts[:count])
        if old in names:
            return ".".join([names[old], *parts[count:]])
    return path
