"""Names in files of earlier versions, and their current names."""

from collections.abc import Mapping
from typing import Any

KEYS = {"floor": "min_probability", "patience": "max_delay"}
WORLDS = {"Varied": "HeterogeneousUnits"}
# LARL's and UCB's State, alone, standardised and with partial pooling.
LARL_FIELDS = {
    "lags.place": "lags.indices",
    "whole": "dense",
    "whole.place": "dense.indices",
    "inner.lags.place": "inner.lags.indices",
    "inner.whole": "inner.dense",
    "inner.whole.place": "inner.dense.indices",
}
# Policy: path of an array, or of a NamedTuple with arrays, in its State: old, new.
STATE_FIELDS: dict[str, dict[str, str]] = {
    "AdaptiveLARL": {
        "loose": "untied",
        "cell": "context_index",
        "spread": "reward_moments",
        "first": "first_reward",
        "past": "past_reward",
        "played": "past_arm",
        "factor": "arm_scale",
        "constant": "log_constant",
        "shape": "sign_pattern",
        "level": "penalty_row",
        "levels": "penalties",
    },
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
    "LARL": LARL_FIELDS,
    "LARLBIC": {"lags.place": "lags.indices"},
    "SlidingWindowLinUCB": {"lags.place": "lags.indices", "places": "context_indices", "values": "context_values"},
    "UCB": LARL_FIELDS,
    "SharedLARL": {
        "rows": "window",
        "rows.seat": "window.slot",
        "prior.level": "prior.log_scale",
        "modes.left_at": "modes.marginal_centre",
        "modes.left_slope": "modes.marginal_gradient",
        "modes.left_curve": "modes.marginal_curvature",
        "modes.left_value": "modes.marginal_loss",
        "work.slope": "work.gradient",
        "work.trial": "work.candidate",
        "seat": "arm_slot",
        "left": "marginalised",
        "unit": "offset_scale",
    },
}


def upgrade_names(packed: Mapping[str, Any]) -> dict[str, Any]:
    """The output of `Agent.pack` or `Cohort.pack` of this or an earlier version, with current names."""
    values = {KEYS.get(key, key): value for key, value in packed.items()}
    values.setdefault("trial", 0)  # schema 1 had only trial 0
    if isinstance(values.get("world"), dict):
        name = values["world"].get("world")
        values["world"] = values["world"] | {"world": WORLDS.get(name, name)}
    renamed = STATE_FIELDS.get(values["policy"]["policy"], {}) if isinstance(values.get("policy"), dict) else {}
    for part in [values, *values.get("each", ())] if renamed else ():
        if "base" in part:
            state = {_rename_path(path, renamed): array for path, array in part["base"]["state"].items()}
            part["base"] = part["base"] | {"state": state}
    return values


def _rename_path(path: str, names: Mapping[str, str]) -> str:
    """The path with its longest known prefix replaced."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        old = ".".join(parts[:count])
        if old in names:
            return ".".join([names[old], *parts[count:]])
    return path
