"""Reading study.toml: tables of worlds and policies, and errors with file and line."""

import math
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from larl import worlds
from larl._core.toml import MAX_DEPTH, line_of, lines, too_deep_line
from larl._core.validation import InvalidValue, path_like
from larl.policies import Policy, from_dict
from larl.policies.auto.prior import Prior
from larl.policies.deployed import deployed_from
from larl.worlds import variants
from larl.worlds.base import World

PATH_PART = re.compile(r"\[\d+\]|[^.\[\]]+")
MAX_CANDIDATES = 10_000  # policies of a study
RENAMED_WORLDS = {"Varied": "HeterogeneousUnits"}  # old name: new name


def read_toml(path: str | Path) -> tuple[dict[str, Any], "TomlSource"]:
    """Return the values of a TOML file, and the positions of its keys."""
    file = path_like("study", "file", path)
    try:
        text = file.read_text(encoding="utf-8")
        if (line := too_deep_line(text)) is not None:
            accepted = f"lists, tables and dotted keys nested at most {MAX_DEPTH} deep"
            raise InvalidValue(f"{file}:{line}", "TOML", "nested too deeply", accepted)
        values = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue("study", "file", str(file), f"a readable TOML file ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue(str(file), "TOML", str(error), "a file in TOML syntax") from error
    return values, TomlSource(str(file), lines(text))


class TomlSource(NamedTuple):
    """A TOML file and the line of each of its tables and keys."""

    file: str
    lines: dict[tuple[str, ...], int]

    @contextmanager
    def locate_errors(self, *table: str) -> Iterator[None]:
        """Add file, line and table to every InvalidValue that is raised in the block."""
        try:
            yield
        except InvalidValue as error:
            raise self._located(error, *table) from error

    def _located(self, error: InvalidValue, *table: str) -> InvalidValue:
        owner = ".".join(table)
        in_table = not owner or error.owner == owner or error.owner.startswith((f"{owner}.", f"{owner}["))
        inner = PATH_PART.findall(error.owner.removeprefix(owner)) if in_table and table else []
        line = self._line([*table, *inner], PATH_PART.findall(error.name), error.value is None)
        parts = [f"{self.file}:{line}", ".".join([*table, *inner]), "" if in_table else error.owner]
        return InvalidValue(": ".join(part for part in parts if part), error.name, error.value, error.accepted)

    def _line(self, table: list[str], name: list[str], is_absent: bool) -> int:
        """Return the line of the key, else of a nested key with this name, else of the only key, else of the table."""
        below = [path for path in self.lines if path[: len(table)] == tuple(table) and len(path) > len(table)]
        nested = [path for path in below if name and path[-1] == name[0]]
        if (*table, *name[:1]) not in self.lines and (nested or (len(below) == 1 and not is_absent)):
            return self.lines[(nested or below)[0]]
        return line_of(self.lines, [*table, *name])


def check_tables(section: str, tables: object) -> None:
    """Raise InvalidValue unless a section consists of one or more named tables."""
    if not isinstance(tables, Mapping) or not tables:
        raise InvalidValue(section, "table", tables, "one or more tables, each under its name")
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise InvalidValue(section, name, table, "a table")


def read_world(values: Mapping[str, Any], owner: str, folder: Path) -> World:
    """Return the world of a table: one of the paper's, a random one, or one of any class by its fields.

    The path of recorded rewards is relative to `folder`.
    """
    if "paper" not in values and "random" not in values:
        _check_world_names(values, owner)
        if values.get("world") == "Recorded":
            files = {key: values[key] for key in ("path", "table") if isinstance(values.get(key), str)}
            values = dict(values) | {key: str(folder / file) for key, file in files.items()}
        return variants.from_dict(values, owner)
    if len(values) > 1:
        raise InvalidValue(owner, "keys", sorted(values), "no other key beside paper = … or random = {…}")
    if "paper" in values:
        return worlds.paper(values["paper"])
    return _read_random_world(values["random"], owner)


def _read_random_world(values: Any, owner: str) -> World:
    """Return a random world; its keys decide the class."""
    given = set(values) if isinstance(values, Mapping) else set()
    is_markov = "states" in given
    if not ({"states", "arms", "seed"} if is_markov else {"k", "arms", "seed"}) <= given:
        accepted = "{k = …, arms = …, seed = …} and optionally radius = …, m = …; or {states = …, arms = …, seed = …}"
        raise InvalidValue(owner, "random", values, accepted)
    known = ("states", "arms", "seed", "persistence", "sigma_r") if is_markov else ("m", "k", "arms", "seed", "radius")
    for name in given - set(known):
        raise InvalidValue(owner, f"random.{name}", values[name], f"only {', '.join(known[:-1])} and {known[-1]}")
    if is_markov:
        return worlds.random_markov(**values)
    return (worlds.random_vector if "m" in given else worlds.random)(**values)


def _check_world_names(values: Mapping[str, Any], owner: str) -> None:
    """Raise InvalidValue if the class of a world, or of one inside it, has an earlier name or is given as `kind`."""
    name = values.get("world")
    if name is None and "kind" in values:
        raise InvalidValue(
            owner, "kind", values["kind"], 'no key of this name: the class is world = "…", such as world = "Recorded"'
        )
    if isinstance(name, str) and name in RENAMED_WORLDS:
        raise InvalidValue(owner, "world", name, f"its new name {RENAMED_WORLDS[name]!r}")
    if isinstance(values.get("base"), Mapping):
        _check_world_names(values["base"], f"{owner}.base")
    members = values.get("members")
    for i, member in enumerate(members if isinstance(members, list) else []):
        if isinstance(member, Mapping):
            _check_world_names(member, f"{owner}.members[{i}]")


def read_policy(values: Mapping[str, Any], owner: str, folder: Path) -> Policy:
    """Return the policy of a table: a registered one by its name, any other by `module:Class`.

    The module is imported from the installed packages, from `folder` or from the working directory. The path of a
    prior is relative to `folder`.
    """
    name = values.get("policy")
    if name == "Auto" and isinstance(values.get("prior"), str):
        values = dict(values) | {"prior": Prior.load(folder / values["prior"])}
    if not isinstance(name, str) or ":" not in name:
        return from_dict(values, owner)
    kind = _import_policy(name, owner, folder)
    return deployed_from(kind, values, owner)


def _import_policy(name: str, owner: str, folder: Path) -> type[Policy]:
    module, _, class_name = name.partition(":")
    for path in (str(folder.resolve()), str(Path.cwd())):
        if path not in sys.path:
            sys.path.append(path)
    try:
        kind = getattr(import_module(module), class_name, None)
    except Exception as error:  # a user's module can raise anything
        accepted = f"module:Class of a module that can be imported; {module!r} cannot ({type(error).__name__}: {error})"
        raise InvalidValue(owner, "policy", name, accepted) from error
    if not isinstance(kind, type) or not issubclass(kind, Policy):
        accepted = f"module:Class where Class is a larl.Policy; {module!r} has {_policy_names(module)}"
        raise InvalidValue(owner, "policy", name, accepted)
    return kind


def _policy_names(module: str) -> str:
    kinds = [kind for kind in vars(sys.modules[module]).values() if isinstance(kind, type) and issubclass(kind, Policy)]
    return ", ".join(kind.__name__ for kind in kinds if kind is not Policy) or "none"


def expand_grid(name: str, table: Mapping[str, Any], others: int = 0) -> list[dict[str, Any]]:
    """Return every combination of the values of a policy's grid; one empty combination if there is no grid.

    `others` is the number of other policies of the study.
    """
    grid = table.get("grid", {})
    if not isinstance(grid, Mapping) or ("grid" in table and not grid):
        raise InvalidValue(f"policies.{name}", "grid", grid, "a table with a list of values for each hyper-parameter")
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise InvalidValue(f"policies.{name}.grid", key, values, "a list of one or more different values")
    count = math.prod(map(len, grid.values()))
    if others + count > MAX_CANDIDATES:
        accepted = f"at most {MAX_CANDIDATES:,} policies in a study; there are {others:,} others"
        raise InvalidValue(f"policies.{name}", "grid", f"{count:,} combinations", accepted)
    for key, values in grid.items():
        if _has_repeats(values):
            raise InvalidValue(f"policies.{name}.grid", key, values, "a list of one or more different values")
        if key in table:
            raise InvalidValue(f"policies.{name}", key, table[key], f"{key} either here or in the grid")
    return [dict(zip(grid, point, strict=True)) for point in product(*grid.values())]


def _has_repeats(values: list[Any]) -> bool:
    try:
        return len(set(values)) < len(values)
    except TypeError:  # lists and tables
        return len(set(map(repr, values))) < len(values)


def candidate_name(name: str, point: Mapping[str, Any]) -> str:
    """Return the name of a candidate: `LARL s=1 alpha=0.5`."""
    return " ".join([name, *(f"{key}={value}" for key, value in point.items())])
