"""A comparison written down: worlds × policies in a TOML file, checked as a whole before anything runs.

horizon = 200
trials = 1000
seed = 0                    # optional, as is keep = "all" or "summary"

[worlds."k = 1"]
paper = 1                   # or random = {k = 2, arms = 3, seed = 0} (with m = 2: a vector state), or the fields of
                            # larl.LatentAR, or world = "Seasonal" (LatentVAR, any of larl.variants) and its fields

[policies."LARL, s = 1"]
policy = "LARL"             # any registered name, and the fields of its spec
s = 1
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from larl import variants, worlds
from larl._check import InvalidValue, check_fields, checked, known_fields, one_of, whole
from larl._progress import Progress
from larl.comparison import MOST, SEED_MAX, compare
from larl.policies import Policy, from_dict
from larl.result import Result
from larl.world import World


@dataclass(frozen=True)
class Study:
    """Worlds × policies, and how long, how often and from which seed to play."""

    worlds: Mapping[str, World]
    policies: Mapping[str, Policy]
    horizon: int = checked(whole(1, MOST))
    trials: int = checked(whole(1, MOST))
    seed: int = checked(whole(0, SEED_MAX), 0)
    keep: str = checked(one_of("all", "summary"), "all")

    def __post_init__(self) -> None:
        check_fields(self)

    def run(self, *, threads: int | None = None, progress: bool | Progress | None = None) -> Result:
        """Compare."""
        return compare(
            self.policies, self.worlds, horizon=self.horizon, trials=self.trials, seed=self.seed, keep=self.keep,
            threads=threads, progress=progress,
        )  # fmt: skip


def read_study(path: str | Path) -> Study:
    """The study in a TOML file, or a refusal that names the file, the table and the key."""
    file = Path(path)
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue("study", "file", str(file), f"a readable TOML file ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue(str(file), "TOML", str(error), "a file in TOML syntax") from error
    given = known_fields(Study, values, str(file))
    given["worlds"] = _tables(f"{file}: worlds", given["worlds"], _world)
    given["policies"] = _tables(f"{file}: policies", given["policies"], from_dict)
    return Study(**given)


def _tables(owner: str, given: object, read: Callable[[Mapping[str, Any], str], Any]) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not given:
        raise InvalidValue(owner, "table", given, "one or more tables, each under its name")
    for name, values in given.items():
        if not isinstance(values, Mapping):
            raise InvalidValue(owner, name, values, "a table")
    found = {}
    for name, values in given.items():
        try:
            found[name] = read(values, f"{owner}.{name}")
        except InvalidValue as error:
            place = error.owner if error.owner.startswith(owner) else f"{owner}.{name}: {error.owner}"
            raise InvalidValue(place, error.name, error.value, error.accepted) from error
    return found


def _world(values: Mapping[str, Any], owner: str) -> World:
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
