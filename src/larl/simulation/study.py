"""A comparison written down: worlds × policies in a TOML file, checked as a whole before anything runs.

horizon = 200
trials = 1000
seed = 0                    # optional, as is keep = "all" or "summary"
units = 70                  # optional: a trial is a cohort of so many units, which share what they learn as
pooling = "partial"         # pooling says: "none", "full" or "partial"

[worlds."k = 1"]
paper = 1                   # or random = {k = 2, arms = 3, seed = 0} (with m = 2: a vector state), or the fields of
                            # larl.LatentAR, or world = "Seasonal" (LatentVAR, any of larl.variants) and its fields

[policies."LARL, s = 1"]
policy = "LARL"             # any registered name, or "module:Class" for an own policy, and the fields of its spec
s = 1

[policies.LARL]
policy = "LARL"
[policies.LARL.grid]        # candidates `LARL s=1 alpha=0.5`, `LARL s=1 alpha=1.0`, …: every combination
s = [1, 5]
alpha = [0.5, 1.0]
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from larl import worlds
from larl._core.progress import Progress
from larl._core.toml import line_of, lines
from larl._core.validation import (
    InvalidValue,
    check_fields,
    checked,
    instance,
    integer,
    known_fields,
    one_of,
    optional,
    path_like,
    required,
    spec,
)
from larl.policies import Policy, from_dict
from larl.simulation.compare import MOST, SEED_MAX, check_built, check_cohort, compare
from larl.simulation.executors import Scale
from larl.simulation.result import Result
from larl.simulation.store import Store
from larl.simulation.tasks import code_of, default_threads, task_size
from larl.worlds import variants
from larl.worlds.base import World

KEYS = ("worlds", "policies", "horizon", "trials", "seed", "keep", "units", "pooling")
PART = re.compile(r"\[\d+\]|[^.\[\]]+")


class Candidate(NamedTuple):
    """A point of a grid: the policy that it was written under, and its hyper-parameters."""

    grid: str
    parameters: dict[str, Any]


@spec
class Study:
    """Worlds × policies, and how long, how often and from which seed to play."""

    worlds: Mapping[str, World]
    policies: Mapping[str, Policy]
    horizon: int = required(integer(1, MOST))
    trials: int = required(integer(1, MOST))
    seed: int = checked(integer(0, SEED_MAX), 0)
    keep: str = checked(one_of("all", "summary"), "all")
    candidates: Mapping[str, Candidate] = field(default_factory=dict)  # the policies that are points of a grid
    units: int | None = None  # of a cohort, if trials are cohorts
    pooling: str = "none"

    def __post_init__(self) -> None:
        check_fields(self)
        check_cohort("Study", self.units, self.pooling)

    def run(
        self,
        *,
        threads: int | None = None,
        progress: bool | Progress | None = None,
        cluster: str | None = None,
        store: str | Path | None = None,
        block: int | None = None,
    ) -> Result:
        """Compare. Where it is played changes no byte of the result.

        `cluster`: the address of a Dask scheduler, or "local:2" for 2 processes here. `store`: a folder that keeps
        finished blocks, so that a run that was stopped goes on from there. `block`: trials of a block.
        """
        threads = optional(integer(1))("Study.run", "threads", threads) or default_threads()
        block = optional(integer(1))("Study.run", "block", block)
        cluster = optional(instance(str, "tcp://HOST:PORT or local:N"))("Study.run", "cluster", cluster)
        store = optional(path_like)("Study.run", "store", store)
        if cluster or store is not None:
            block = block or task_size(self.horizon * (self.units or 1), self.trials)
        kept = Store.open(Path(store), self.to_dict() | {"block": block}) if store is not None else None
        result = compare(
            self.policies,
            self.worlds,
            horizon=self.horizon,
            trials=self.trials,
            seed=self.seed,
            keep=self.keep,
            units=self.units,
            pooling=self.pooling,
            threads=threads,
            block=block,
            progress=progress,
            source=Scale(threads, cluster, kept),
        )
        if self.candidates:
            result.data.attrs["grid"] = json.dumps({name: one._asdict() for name, one in self.candidates.items()})
        return result

    def to_dict(self) -> dict[str, Any]:
        """All that its result depends on, the code included, as JSON types."""
        return {
            "worlds": {name: world.to_dict() for name, world in self.worlds.items()},
            "policies": {name: policy.to_dict() for name, policy in self.policies.items()},
            "horizon": self.horizon,
            "trials": self.trials,
            "seed": self.seed,
            "keep": self.keep,
            "units": self.units,
            "pooling": self.pooling,
            "code": code_of(*self.worlds.values(), *self.policies.values()),
        }


def read_study(path: str | Path, **instead: Any) -> Study:
    """The study in a TOML file, or a refusal that names the file, the line, the table and the key.

    `instead`: keys whose values, unless they are None, are taken in place of the file's.
    """
    values, places = read_toml(path)
    given = {name: value for name, value in instead.items() if value is not None}
    return _study(values | given, places)


def read_toml(path: str | Path) -> tuple[dict[str, Any], "Places"]:
    """What is in a TOML file, and where."""
    file = path_like("study", "file", path)
    try:
        text = file.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue("study", "file", str(file), f"a readable TOML file ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue(str(file), "TOML", str(error), "a file in TOML syntax") from error
    return values, Places(str(file), lines(text))


class Places(NamedTuple):
    """Where the tables and keys of a file are."""

    file: str
    found: dict[tuple[str, ...], int]

    @contextmanager
    def naming(self, *table: str) -> Iterator[None]:
        """Refusals from within get their place."""
        try:
            yield
        except InvalidValue as error:
            raise self.refusal(error, *table) from error

    def refusal(self, error: InvalidValue, *table: str) -> InvalidValue:
        """The same refusal, with the file, the line and the table."""
        owner = ".".join(table)
        ours = not owner or error.owner == owner or error.owner.startswith((f"{owner}.", f"{owner}["))
        inner = PART.findall(error.owner.removeprefix(owner)) if ours and table else []
        line = self._line([*table, *inner], PART.findall(error.name), error.value is None)
        words = [f"{self.file}:{line}", ".".join([*table, *inner]), "" if ours else error.owner]
        return InvalidValue(": ".join(word for word in words if word), error.name, error.value, error.accepted)

    def _line(self, table: list[str], name: list[str], absent: bool) -> int:
        """Of the key, else of one so called further in, else of the table's only key, else of the table."""
        below = [path for path in self.found if path[: len(table)] == tuple(table) and len(path) > len(table)]
        further = [path for path in below if name and path[-1] == name[0]]
        if (*table, *name[:1]) not in self.found and (further or (len(below) == 1 and not absent)):
            return self.found[(further or below)[0]]
        return line_of(self.found, [*table, *name])


def _study(values: Mapping[str, Any], places: Places) -> Study:
    with places.naming():
        for name in [name for name in values if name not in KEYS]:
            raise InvalidValue("", name, values[name], f"only the keys {', '.join(KEYS)}")
        given = known_fields(Study, values, "")
    for section in ("worlds", "policies"):
        with places.naming(section):
            _check_tables(section, given[section])
    found, policies, candidates = {}, {}, {}
    for name, table in given["worlds"].items():
        with places.naming("worlds", name):
            found[name] = read_world(table, f"worlds.{name}")
    for name, table in given["policies"].items():
        with places.naming("policies", name):
            for point in _expanded(name, table):
                title = _title(name, point)
                if title in policies or (title != name and title in given["policies"]):
                    raise InvalidValue(f"policies.{name}", "grid", title, "candidates of different names")
                plain = {key: value for key, value in table.items() if key != "grid"}
                policies[title] = read_policy(plain | point, f"policies.{name}", Path(places.file).parent)
                if point:
                    candidates[title] = Candidate(name, point)
    with places.naming():
        study = Study(**given | {"worlds": found, "policies": policies}, candidates=candidates)
    for name, policy in policies.items():
        with places.naming("policies", candidates[name].grid if name in candidates else name):
            check_built({name: policy}, found, study.horizon, study.pooling)
    return study


def read_policy(values: Mapping[str, Any], owner: str, folder: Path) -> Policy:
    """The policy of a table: a registered one by its name, any other by `module:Class`.

    The module is looked for among installed ones, in `folder` and in the working directory.
    """
    name = values.get("policy")
    if not isinstance(name, str) or ":" not in name:
        return from_dict(values, owner)
    kind = _own_policy(name, owner, folder)
    return kind(**known_fields(kind, {key: value for key, value in values.items() if key != "policy"}, owner))


def _own_policy(name: str, owner: str, folder: Path) -> type[Policy]:
    module, _, title = name.partition(":")
    for place in (str(folder.resolve()), str(Path.cwd())):
        if place not in sys.path:
            sys.path.append(place)
    try:
        found = getattr(import_module(module), title, None)
    except Exception as error:  # whatever a user's module raises
        accepted = f"module:Class of a module that can be imported; {module!r} cannot ({type(error).__name__}: {error})"
        raise InvalidValue(owner, "policy", name, accepted) from error
    if not isinstance(found, type) or not issubclass(found, Policy):
        accepted = f"module:Class where Class is a larl.Policy; {module!r} has {_policies_of(module)}"
        raise InvalidValue(owner, "policy", name, accepted)
    return found


def _policies_of(module: str) -> str:
    kinds = [kind for kind in vars(sys.modules[module]).values() if isinstance(kind, type) and issubclass(kind, Policy)]
    return ", ".join(kind.__name__ for kind in kinds if kind is not Policy) or "none"


def _check_tables(section: str, given: object) -> None:
    if not isinstance(given, Mapping) or not given:
        raise InvalidValue(section, "table", given, "one or more tables, each under its name")
    for name, table in given.items():
        if not isinstance(table, Mapping):
            raise InvalidValue(section, name, table, "a table")


def _expanded(name: str, table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of a policy's grid; without a grid, one that sets nothing."""
    grid = table.get("grid", {})
    if not isinstance(grid, Mapping) or ("grid" in table and not grid):
        raise InvalidValue(f"policies.{name}", "grid", grid, "a table with a list of values for each hyper-parameter")
    for key, values in grid.items():
        if not isinstance(values, list) or not values or any(values.count(value) > 1 for value in values):
            raise InvalidValue(f"policies.{name}.grid", key, values, "a list of one or more different values")
        if key in table:
            raise InvalidValue(f"policies.{name}", key, table[key], f"{key} either here or in the grid")
    return [dict(zip(grid, point, strict=True)) for point in product(*grid.values())]


def _title(name: str, point: Mapping[str, Any]) -> str:
    """A candidate's name: `LARL s=1 alpha=0.5`."""
    return " ".join([name, *(f"{key}={value}" for key, value in point.items())])


def read_world(values: Mapping[str, Any], owner: str) -> World:
    """The world of a table: the paper's, a random one, or one of any kind by its fields."""
    if "paper" not in values and "random" not in values:
        return variants.from_dict(values, owner)
    if len(values) > 1:
        raise InvalidValue(owner, "keys", sorted(values), "nothing beside paper = … or random = {…}")
    if "paper" in values:
        return worlds.paper(values["paper"])
    if not isinstance(values["random"], Mapping) or not {"k", "arms", "seed"} <= set(values["random"]):
        raise InvalidValue(
            owner, "random", values["random"], "{k = …, arms = …, seed = …} and, if wanted, radius = …, m = …"
        )
    for name in set(values["random"]) - {"m", "k", "arms", "seed", "radius"}:
        raise InvalidValue(owner, f"random.{name}", values["random"][name], "only m, k, arms, seed and radius")
    return (worlds.random_vector if "m" in values["random"] else worlds.random)(**values["random"])
