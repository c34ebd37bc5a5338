"""A study: a comparison that is written in a TOML file and checked completely before it runs.

horizon = 200
trials = 1000
seed = 0                    # optional, like keep = "all" or "summary"
units = 70                  # optional: a trial is a cohort of 70 units
pooling = "partial"         # optional: what the units share, "none", "full" or "partial"

[worlds."k = 1"]
paper = 1                   # or random = {k = 2, arms = 3, seed = 0} (with m = 2: a vector state), or the fields of
                            # larl.LatentAR, or world = "Seasonal" (any class of larl.worlds) and its fields;
                            # world = "Recorded", path = "table.csv", window = 100: the path is relative to this file

[policies."LARL, s = 1"]
policy = "LARL"             # a registered name, or "module:Class" for a policy of your own, and its parameters
s = 1

[policies.LARL]
policy = "LARL"
[policies.LARL.grid]        # every combination is a candidate: `LARL s=1 alpha=0.5`, `LARL s=1 alpha=1.0`, …
s = [1, 5]
alpha = [0.5, 1.0]
"""

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple

from larl._core.progress import Progress
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
from larl.policies import Policy
from larl.simulation.compare import MAX_COUNT, MAX_SEED, check_cohort, check_states, compare
from larl.simulation.executors import DaskExecutor, Executor, ThreadExecutor
from larl.simulation.result import Result
from larl.simulation.store import Store
from larl.simulation.study_file import (
    TomlSource,
    candidate_name,
    check_tables,
    expand_grid,
    read_policy,
    read_toml,
    read_world,
)
from larl.simulation.tasks import code_versions, digest, task_block_size
from larl.worlds.base import World

KEYS = ("worlds", "policies", "horizon", "trials", "seed", "keep", "units", "pooling")


class Candidate(NamedTuple):
    """A point of a grid: the name of the grid's policy, and the values of the hyper-parameters."""

    grid: str
    parameters: dict[str, Any]


@spec
class Study:
    """A comparison of policies in worlds, with its size and seed.

    Parameters
    ----------
    worlds : mapping from str to World
        The worlds and their names.
    policies : mapping from str to Policy
        The policies and their names.
    horizon, trials, seed, keep, units, pooling
        As in `larl.compare`.
    candidates : mapping from str to Candidate, optional
        The policies that are points of a grid.

    Examples
    --------
    >>> import larl
    >>> study = larl.study.Study({"k = 1": larl.worlds.paper(1)}, {"UCB": larl.UCB()}, horizon=20, trials=5)
    >>> study.run(progress=False)
    <larl.Result: 1 world, 1 policy, 5 trials, 20 steps; keep='all'>
    """

    worlds: Mapping[str, World]
    policies: Mapping[str, Policy]
    horizon: int = required(integer(1, MAX_COUNT))
    trials: int = required(integer(1, MAX_COUNT))
    seed: int = checked(integer(0, MAX_SEED), 0)
    keep: str = checked(one_of("all", "summary"), "all")
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    units: int | None = None
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
        """Run the comparison. Threads, cluster, store and block do not change the result.

        Parameters
        ----------
        threads : int, >= 1, optional
            Number of threads; all cores by default.
        progress : bool or Progress, optional
            As in `larl.compare`.
        cluster : str, optional
            Run on a Dask cluster: the address of its scheduler, or "local:2" for two processes on this machine.
        store : str or Path, optional
            Folder that keeps finished blocks. A run that was interrupted continues from there.
        block : int, >= 1, optional
            Trials of a block.

        Returns
        -------
        Result
            The result of the comparison.

        Raises
        ------
        InvalidValue
            An argument is not accepted, or the store belongs to another study.
        BlocksFailed
            Some blocks failed. The others ran, and are kept if there is a store.
        """
        threads = optional(integer(1))("Study.run", "threads", threads)
        block = optional(integer(1))("Study.run", "block", block)
        cluster = optional(instance(str, "tcp://HOST:PORT or local:N"))("Study.run", "cluster", cluster)
        store = optional(path_like)("Study.run", "store", store)
        if cluster or store is not None:
            block = block or task_block_size(self.horizon * (self.units or 1), self.trials)
        opened = Store.open(Path(store), self.to_dict() | {"block": block}) if store is not None else None
        executor: Executor = DaskExecutor(cluster, opened) if cluster else ThreadExecutor(threads, opened)
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
            executor=executor,
        )
        if self.candidates:
            result.data.attrs["grid"] = json.dumps({name: point._asdict() for name, point in self.candidates.items()})
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return all settings and code versions that determine the result, as JSON types."""
        return {
            "worlds": {name: world.digest_fields() for name, world in self.worlds.items()},
            "policies": {name: policy.to_dict() for name, policy in self.policies.items()},
            "horizon": self.horizon,
            "trials": self.trials,
            "seed": self.seed,
            "keep": self.keep,
            "units": self.units,
            "pooling": self.pooling,
            "code": code_versions(*self.worlds.values(), *self.policies.values()),
        }

    def digest(self) -> str:
        """Return 32 hex digits that change if a setting or a code version of `to_dict` changes."""
        return digest(self.to_dict())


def read_study(path: str | Path, **overrides: Any) -> Study:
    """Read a study from a TOML file and check all of it.

    Parameters
    ----------
    path : str or Path
        The file. `larl examples study` writes one that shows every key.
    **overrides
        Values of top-level keys, such as ``trials=10``, that replace the file's. None keeps the file's value.

    Returns
    -------
    Study
        The study; `Study.run` runs it.

    Raises
    ------
    InvalidValue
        The file cannot be read or a value is not accepted. The message names the file, line, table and key.

    Examples
    --------
    >>> import larl
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> text = "horizon = 20\\ntrials = 5\\nworlds.drift.paper = 1\\npolicies.UCB.policy = 'UCB'"
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "study.toml"
    ...     _ = path.write_text(text)
    ...     study = larl.study.read_study(path, trials=10)
    >>> study.trials, study.policies
    (10, {'UCB': UCB(alpha=1.0, ridge=1.0, standardise=False)})
    """
    values, source = read_toml(path)
    return _make_study(values | {name: value for name, value in overrides.items() if value is not None}, source)


def _make_study(values: Mapping[str, Any], source: TomlSource) -> Study:
    with source.locate_errors():
        for name in [name for name in values if name not in KEYS]:
            raise InvalidValue("", name, values[name], f"only the keys {', '.join(KEYS)}")
        fields = known_fields(Study, values, "")
    for section in ("worlds", "policies"):
        with source.locate_errors(section):
            check_tables(section, fields[section])
    worlds: dict[str, World] = {}
    policies: dict[str, Policy] = {}
    candidates: dict[str, Candidate] = {}
    for name, table in fields["worlds"].items():
        with source.locate_errors("worlds", name):
            worlds[name] = read_world(table, f"worlds.{name}", Path(source.file).parent)
    for name, table in fields["policies"].items():
        with source.locate_errors("policies", name):
            for point in expand_grid(name, table, len(policies)):
                candidate = candidate_name(name, point)
                if candidate in policies or (candidate != name and candidate in fields["policies"]):
                    raise InvalidValue(f"policies.{name}", "grid", candidate, "candidates of different names")
                common = {key: value for key, value in table.items() if key != "grid"}
                policies[candidate] = read_policy(common | point, f"policies.{name}", Path(source.file).parent)
                if point:
                    candidates[candidate] = Candidate(name, point)
    with source.locate_errors():
        study = Study(**fields | {"worlds": worlds, "policies": policies}, candidates=candidates)
    for name, world in worlds.items():
        with source.locate_errors("worlds", name):
            world.check_horizon(f"worlds.{name}", study.horizon)
    for name, policy in policies.items():
        with source.locate_errors("policies", candidates[name].grid if name in candidates else name):
            check_states({name: policy}, worlds, study.horizon, study.pooling)
    return study
