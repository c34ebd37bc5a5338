"""The structure of a result's dataset and its checksum, verified when a file is read."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

STEPS = {"regret": "f", "arm": "i", "reward": "f"}
STATISTICS = {"total": "f", "mean": "f", "variance": "f", "quantile": "f"}
COORDINATES = {"world": "UO", "k": "i", "policy": "UO", "time": "i", "level": "f"}


def checksum(data: xr.Dataset) -> str:
    """Return the SHA-256 of all variables and attributes, in an order that does not depend on the file."""
    digest = hashlib.sha256()
    for name in sorted(map(str, data.variables)):
        values = data[name].values
        is_text = values.dtype.kind in "UO"
        plain = b"" if is_text else np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
        kind, text = ("text", values.tolist()) if is_text else (f"{values.dtype.kind}{values.dtype.itemsize}", None)
        digest.update(json.dumps([name, data[name].dims, values.shape, kind, text]).encode() + plain)
    attributes = {str(name): str(value) for name, value in data.attrs.items()}
    digest.update(json.dumps(attributes, sort_keys=True).encode())
    return digest.hexdigest()


def check_structure(data: xr.Dataset) -> None:
    """Raise ValueError unless a dataset has the variables, coordinates and attributes of a result."""
    attributes = data.attrs
    if attributes.get("keep") not in ("all", "summary"):
        raise ValueError(f"keep is {attributes.get('keep')!r}")
    expected, axes = _expected("totals" if list(data.data_vars) == ["total"] else attributes["keep"])
    kinds = expected | {name: kind for name, kind in COORDINATES.items() if name in data.coords}
    if set(map(str, data.data_vars)) != set(expected) or set(map(str, data.coords)) != set(kinds) - set(expected):
        raise ValueError(f"its variables are {sorted(map(str, data.variables))}")
    for name, kind in kinds.items():
        dims = axes.get(name, ("world",) if name == "k" else (name,))
        if data[name].dtype.kind not in kind or data[name].dims != tuple(dim for dim in dims if dim in data.dims):
            raise ValueError(f"{name} is {data[name].dtype} by {', '.join(map(str, data[name].dims)) or 'nothing'}")
    if min(data.sizes.values()) < 1:
        raise ValueError("an axis is empty")
    for name in ("policy", "world"):
        if name in data.coords:
            _check_names(name, np.atleast_1d(data[name].values).tolist())
    times = data["time"].values if "time" in data.coords else np.arange(1)
    if np.any(np.diff(times) <= 0) or times[0] < 0:
        raise ValueError("its times do not rise")
    _check_attributes(data)


def _expected(keep: str) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """The kind of number and the axes of every variable; a result need not have a world or a unit axis."""
    lead = ("world", "policy", "trial", "unit")
    if keep == "all":
        return STEPS, dict.fromkeys(STEPS, (*lead, "time"))
    if keep == "totals":  # cached studies of a report, without single steps
        return {"total": "f"}, {"total": lead}
    curve = ("world", "policy", "time")
    return STATISTICS, {
        "total": lead,
        "mean": curve,
        "variance": curve,
        "quantile": ("world", "policy", "level", "time"),
    }


def _check_names(name: str, values: list[Any]) -> None:
    if not all(isinstance(value, str) and value for value in values) or len(set(values)) < len(values):
        raise ValueError(f"the names of {name} are not different strings")


def _check_attributes(data: xr.Dataset) -> None:
    """Raise ValueError unless the seed is a number and the specifications are those of the worlds and policies."""
    texts = {name: data.attrs.get(name) for name in ("seed", "policies", "worlds")}
    texts |= {name: data.attrs[name] for name in ("grid", "pooling") if name in data.attrs}
    for name, text in texts.items():
        if not isinstance(text, str) or (name == "seed" and not text.isdecimal()):
            raise ValueError(f"{name} is {text!r}")
    specs = {name: _mappings(name, texts[name]) for name in ("policies", "worlds", "grid") if name in texts}
    names = np.atleast_1d(data["world"].values).tolist()
    if set(specs["worlds"]) != set(names) or set(specs["policies"]) != set(names):
        raise ValueError("it does not have the specifications of its worlds")
    for policies in specs["policies"].values():
        if set(policies) != set(data["policy"].values.tolist()) or not all(map(_is_mapping, policies.values())):
            raise ValueError("it does not have the specifications of its policies")
    for point in specs.get("grid", {}).values():
        if not isinstance(point.get("grid"), str) or not _is_mapping(point.get("parameters")):
            raise ValueError("its grid has a point without parameters")


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _mappings(name: str, text: Any) -> dict[str, Any]:
    values = json.loads(text)
    if not _is_mapping(values) or not all(map(_is_mapping, values.values())):
        raise ValueError(f"{name} is not a table of tables")
    return dict(values)
