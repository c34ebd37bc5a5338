"""Blocks: the tasks of a comparison. A block is some trials of one policy in one world.

A block is a pure function of its settings and of the code. Its arrays do not depend on where, when or in which order
`larl.simulation.executors` runs it.
"""

import hashlib
import inspect
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import llvmlite
import numba
import numpy as np
from numpy.typing import NDArray

from larl import __version__
from larl._core.kernel_cache import source_digest
from larl._core.validation import InvalidValue
from larl.policies import Deployed, Policy
from larl.policies._pooling import pooled_state
from larl.simulation.engine import Floats, Simulation, Trace, empty_trace
from larl.worlds.base import World

if TYPE_CHECKING:
    from larl.simulation.store import Store

Arrays = dict[str, NDArray[Any]]
MAX_SUMMARY_TIMES = 500  # times at which keep="summary" records cumulative regret
THREAD_BLOCK_STEPS = 50_000  # steps of a block on a thread: some hundredths of a second, so Ctrl-C acts quickly
TASK_BLOCK_STEPS = 200_000  # steps of a block on a cluster or in a store: the overhead of a task is small in comparison


@dataclass(frozen=True)
class Block:
    """Trials first … stop − 1 of one policy in one world."""

    world_name: str  # names are for messages; they are not part of the key
    policy_name: str
    world: World
    policy: Policy
    horizon: int
    seed: int
    keep: str
    first: int
    stop: int
    units: int | None = None  # units of each trial, if trials are cohorts
    pooling: str = "none"

    @property
    def label(self) -> str:
        """World, policy and trials, for messages."""
        return f"world {self.world_name!r}, policy {self.policy_name!r}, trials {self.first}–{self.stop - 1}"

    @property
    def steps(self) -> int:
        """Number of simulated steps."""
        return (self.stop - self.first) * self.horizon * (self.units or 1)

    def to_dict(self) -> dict[str, Any]:
        """Return all settings and code versions that determine the arrays, as JSON types."""
        cohort = {"units": self.units, "pooling": self.pooling} if self.units else {}
        return {
            "world": self.world.digest_fields(),
            "policy": self.policy.to_dict(),
            "horizon": self.horizon,
            "seed": self.seed,
            "keep": self.keep,
            "trials": [self.first, self.stop],
            "code": code_versions(self.policy, self.world),
        } | cohort

    def key(self) -> str:
        """Return the digest of `to_dict`, the block's name in a store."""
        return digest(self.to_dict())


class BlockResult(NamedTuple):
    """Each trial's total regret, the run time in seconds, and the arrays (None if they were written to a store)."""

    totals: Floats
    seconds: float
    arrays: Arrays | None


def digest(settings: Mapping[str, Any]) -> str:
    """Return 32 hex digits that identify settings given as JSON types, including their `code_versions`."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:32]


def code_versions(*specs: Policy | World) -> dict[str, str]:
    """Return the versions of everything that computes a result, and digests of the sources of external specs."""
    sources = [spec.policy if isinstance(spec, Deployed) else spec for spec in specs]
    modules = sorted({type(each).__module__ for each in sources if not type(each).__module__.startswith("larl.")})
    return _package_versions() | {f"source of {name}": _module_digest(name) for name in modules}


@cache
def _package_versions() -> dict[str, str]:
    return {
        "larl": __version__,
        "kernels": source_digest(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "machine": platform.machine(),
    }


@cache
def _module_digest(module: str) -> str:
    return hashlib.sha256(inspect.getsource(sys.modules[module]).encode()).hexdigest()[:16]


def make_blocks(
    worlds: Mapping[str, World],
    policies: Mapping[str, Policy],
    *,
    horizon: int,
    trials: int,
    seed: int,
    keep: str,
    size: int,
    units: int | None = None,
    pooling: str = "none",
) -> Iterator[Block]:
    """Yield every block of a comparison, of at most `size` trials each, by world, policy and trial."""
    for world_name, world in worlds.items():
        for policy_name, policy in policies.items():
            for first in range(0, trials, size):
                yield Block(
                    world_name=world_name,
                    policy_name=policy_name,
                    world=world,
                    policy=policy,
                    horizon=horizon,
                    seed=seed,
                    keep=keep,
                    first=first,
                    stop=min(first + size, trials),
                    units=units,
                    pooling=pooling,
                )


def thread_block_size(steps: int, trials: int, threads: int) -> int:
    """Return the trials of a block for threads, where each trial has `steps` steps."""
    return max(1, min(THREAD_BLOCK_STEPS // steps, -(-trials // (4 * threads))))


def task_block_size(steps: int, trials: int) -> int:
    """Return the trials of a block for a cluster or store; it depends on the study alone, so every run agrees."""
    return max(1, min(TASK_BLOCK_STEPS // steps, -(-trials // 4)))


def default_threads() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_block(block: Block, store: "Store | None" = None, required: Mapping[str, str] | None = None) -> BlockResult:
    """Simulate a block, and write its arrays to the store if this machine can reach it.

    `required` are the code versions of the process that started the study. A worker with other versions raises
    InvalidValue, because its results could differ.
    """
    if required:
        versions = code_versions(block.policy, block.world)
        for name, version in required.items():
            if versions.get(name) != version:
                raise InvalidValue("worker", name, versions.get(name), f"{version}, as where the study was started")
    started = time.perf_counter()
    arrays = _simulate(block)
    result = BlockResult(trial_totals(arrays), time.perf_counter() - started, arrays)
    if store is None or not store.is_reachable():
        return result
    store.put(block, arrays)
    return result._replace(arrays=None)


def fits_block(block: Block, arrays: Arrays) -> bool:
    """Return whether arrays have the names, types, shapes and range of numbers of the arrays of a block."""
    lead = (block.stop - block.first, *([block.units] if block.units else []))
    shape = (*lead, summary_times(block.horizon).size if block.keep == "summary" else block.horizon)
    names = {"sums"} if block.keep == "summary" else set(Trace._fields)
    return set(arrays) == names and all(
        values.shape == shape
        and values.dtype == (np.int16 if name == "arm" else np.float64)
        and _has_valid_numbers(name, values, block.world)
        for name, values in arrays.items()
    )


def _has_valid_numbers(name: str, values: NDArray[Any], world: World) -> bool:
    if name == "arm":
        return bool(((values >= 0) & (values < world.arms)).all())
    can_be_missing = name == "reward" and world.has_missing
    return bool((np.isfinite(values) | np.isnan(values) if can_be_missing else np.isfinite(values)).all())


def _simulate(block: Block) -> Arrays:
    """Return a block's arrays; their first axis is the trial, and for cohorts the second axis is the unit.

    keep="all": regret, arm and reward of every step. keep="summary": cumulative regret at `summary_times`.
    """
    latent, state = _initial_states(block.world, block.policy, block.horizon, block.pooling)
    if block.units and block.pooling != "none":
        cohorts = [_simulate_cohort(block, latent, state, cohort) for cohort in range(block.first, block.stop)]
        return {name: np.stack([arrays[name] for arrays in cohorts]) for name in cohorts[0]}
    units, is_summary = block.units or 1, block.keep == "summary"
    trials, first = (block.stop - block.first) * units, block.first * units
    times = summary_times(block.horizon) if is_summary else np.array([block.horizon - 1])
    sums = np.empty((trials, times.size))
    rows, steps = (1, int(np.diff(times, prepend=-1).max())) if is_summary else (trials, block.horizon)
    trace = empty_trace(rows, steps)
    Simulation(latent, state, block.policy).run_trials(block.seed, first, times, sums, trace)
    arrays = {"sums": sums} if is_summary else trace._asdict()
    if block.units is None:
        return arrays
    return {name: values.reshape(-1, block.units, values.shape[1]) for name, values in arrays.items()}


def _simulate_cohort(block: Block, latent: Any, state: Any, cohort: int) -> Arrays:
    simulation = Simulation(latent, state, block.policy, block.units or 1)
    if block.keep == "all":
        return simulation.run_cohort(block.seed, cohort, block.horizon)._asdict()
    intervals = np.diff(summary_times(block.horizon), prepend=-1).tolist()
    parts = [simulation.run_cohort(block.seed, cohort, steps).regret.sum(axis=1) for steps in intervals]
    return {"sums": np.cumsum(parts, axis=0).T}


@lru_cache(16)
def _initial_states(world: World, policy: Policy, horizon: int, pooling: str) -> tuple[Any, Any]:
    """Return the initial states of world and policy; the engine copies them for each trial."""
    return world.latent(), pooled_state(policy, policy.init(world.arms, horizon=horizon, world=world), pooling)


def summary_times(horizon: int) -> NDArray[np.int64]:
    """Return the steps at which keep="summary" records cumulative regret."""
    return np.unique(np.linspace(0, horizon - 1, min(horizon, MAX_SUMMARY_TIMES)).round().astype(np.int64))


def trial_totals(arrays: Arrays) -> Floats:
    """Return each trial's total regret; for a cohort, the mean over its units."""
    totals: Floats = arrays["sums"][..., -1] if "sums" in arrays else arrays["regret"].sum(axis=-1)
    return totals if totals.ndim == 1 else totals.mean(axis=1)
