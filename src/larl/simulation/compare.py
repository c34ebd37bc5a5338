"""`compare`: every policy in every world on the same random numbers."""

import json
import math
from collections.abc import Mapping
from contextlib import closing
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from larl._core.progress import Progress
from larl._core.validation import Check, InvalidValue, instance, integer, one_of, optional
from larl.policies import Policy
from larl.policies._pooling import POOLINGS, pooled_state
from larl.policies._state_memory import checked_init, machine_memory
from larl.simulation.engine import Trace
from larl.simulation.executors import Executor, ThreadExecutor, run_blocks
from larl.simulation.memory import memory_error
from larl.simulation.moments import LEVELS, add_curves, empty_moments, quantiles, variance
from larl.simulation.tasks import Arrays, Block, default_threads, make_blocks, summary_times, thread_block_size
from larl.worlds.base import World, validate_world

if TYPE_CHECKING:
    from larl.simulation.result import Result

Variables = dict[str, tuple[tuple[str, ...], Any]]
MAX_SEED = 2**63 - 1
MAX_ARMS = 2**15 - 1  # arms are stored as 16-bit integers
MAX_COUNT = 2**40  # of steps or trials; a larger value is a mistake
MAX_UNITS = 2**20
STEP_BYTES = 18  # memory of a step with keep="all": regret and reward as 64-bit floats, the arm as a 16-bit integer


def compare(
    policies: Mapping[str, Policy],
    world: World | Mapping[str, World],
    *,
    horizon: int,
    trials: int,
    seed: int = 0,
    keep: str = "all",
    units: int | None = None,
    pooling: str = "none",
    threads: int | None = None,
    block: int | None = None,
    progress: "bool | Progress | None" = None,
    executor: Executor | None = None,
) -> "Result":
    """Simulate every policy in every world on the same random numbers and record the regret.

    The result is a deterministic function of policies, worlds, horizon, trials and seed. A policy's result does not
    depend on the other policies.

    Parameters
    ----------
    policies : mapping from str to Policy
        The policies and their names.
    world : World or mapping from str to World
        One world, or several worlds and their names.
    horizon : int, >= 1
        Steps of each trial.
    trials : int, >= 1
        Trials of each policy in each world.
    seed : int, >= 0, default 0
        Seed of all randomness.
    keep : {"all", "summary"}, default "all"
        "all" keeps regret, arm and reward of every step. "summary" keeps each trial's total regret and, for at most 500
        times, the mean, variance and quantiles of cumulative regret; its memory does not grow with the horizon.
    units : int, >= 1, optional
        If given, a trial is a cohort of this many units, each in a world with its own noise. At each step the units
        decide and learn one after another.
    pooling : {"none", "full", "partial"}, default "none"
        What the units of a cohort share; see `larl.Cohort`.
    threads : int, >= 1, optional
        Number of threads; all cores by default. It does not change the result.
    block : int, >= 1, optional
        Trials of a block, which one thread or worker simulates at a time. It does not change the result.
    progress : bool or Progress, optional
        Progress bar: on a terminal only (None), always (True), never (False), or one that several comparisons share.
    executor : Executor, optional
        Where blocks of trials run; by default, threads of this process (see `larl.simulation.executors`). With an
        executor, a failing block does not stop the others, and all failures are raised together.

    Returns
    -------
    Result
        Regret, labelled by policy, trial and time, and by world if `world` is a mapping.

    Raises
    ------
    InvalidValue
        An argument is not accepted, or a policy cannot be used in a world. It is raised before the simulation starts.
    MemoryError
        The result does not fit into memory.
    BlocksFailed
        Blocks failed on `executor`. Without an executor, the first error of a block is raised as it is.

    Examples
    --------
    >>> import larl
    >>> result = larl.compare(
    ...     {"LARL": larl.LARL(s=1), "UCB": larl.UCB()}, larl.worlds.paper(1), horizon=200, trials=100, progress=False
    ... )
    >>> result
    <larl.Result: 2 policies, 100 trials, 200 steps; keep='all'>
    >>> result.summary()["mean"].round(1).to_dict()
    {'LARL': 89.9, 'UCB': 283.8}
    """
    _check_policies(policies)
    worlds = _named_worlds(world)
    horizon = integer(1, MAX_COUNT)("compare", "horizon", horizon)
    trials = integer(1, MAX_COUNT)("compare", "trials", trials)
    seed = integer(0, MAX_SEED)("compare", "seed", seed)
    keep = one_of("all", "summary")("compare", "keep", keep)
    threads = optional(integer(1))("compare", "threads", threads) or default_threads()
    block = optional(integer(1))("compare", "block", block)
    units, pooling = check_cohort("compare", units, pooling)
    if executor is not None and not isinstance(executor, Executor):
        accepted = "an Executor, such as larl.simulation.executors.ThreadExecutor(4)"
        raise InvalidValue("compare", "executor", executor, accepted)
    for name, each in worlds.items():
        each.check_horizon(f"compare, world {name!r}" if isinstance(world, Mapping) else "compare", horizon)
    check_states(policies, worlds, horizon, pooling, threads)

    size = block or thread_block_size(horizon * (units or 1), trials, threads)
    blocks = make_blocks(
        worlds,
        policies,
        horizon=horizon,
        trials=trials,
        seed=seed,
        keep=keep,
        size=size,
        units=units,
        pooling=pooling,
    )
    cells = dict(zip(product(worlds, policies), np.ndindex(len(worlds), len(policies)), strict=True))
    block_count, steps = len(cells) * -(-trials // size), len(cells) * trials * horizon * (units or 1)
    shape = (len(worlds), len(policies), trials, *([units] if units else []))
    try:
        if keep == "all" and steps * STEP_BYTES > (machine_memory() or math.inf):
            raise memory_error(needed=steps * STEP_BYTES)
        recorder: _Recorder = (_StepRecorder if keep == "all" else _SummaryRecorder)(shape, horizon)
        with Progress.from_argument(progress, steps, block_count) as bar:
            stream = run_blocks(executor or ThreadExecutor(threads), blocks, bar, stop_on_failure=executor is None)
            with closing(stream):  # if the loop is interrupted, stop the workers now
                for finished, arrays in stream:
                    recorder.add(cells[finished.world_name, finished.policy_name], finished, arrays)
    except MemoryError as error:
        raise memory_error(error) from error
    settings = {"seed": str(seed), "keep": keep} | ({"pooling": pooling} if units else {})
    return _make_result(*recorder.variables(), policies, world, settings)


def check_cohort(owner: str, units: Any, pooling: Any) -> tuple[int | None, str]:
    """Return `units` and `pooling`, or raise InvalidValue."""
    units = optional(integer(1, MAX_UNITS))(owner, "units", units)
    pooling = one_of(*POOLINGS)(owner, "pooling", pooling)
    if units is None and pooling != "none":
        raise InvalidValue(owner, "pooling", pooling, "'none', or a number of units: units = 70")
    return units, pooling


def check_states(
    policies: Mapping[str, Policy], worlds: Mapping[str, World], horizon: int, pooling: str = "none", threads: int = 1
) -> None:
    """Raise InvalidValue if the State of a policy cannot be made for a world, pooled, or held in memory."""
    for name, world in worlds.items():
        if world.arms > MAX_ARMS:
            raise InvalidValue("compare", f"arms of world {name!r}", world.arms, f"at most {MAX_ARMS:,} arms")
        for policy in policies.values():
            state = checked_init(policy, world.arms, horizon=horizon, world=world, copies=1 + threads)
            pooled_state(policy, state, pooling)


def _check_policies(policies: object) -> None:
    if not isinstance(policies, Mapping) or not policies:
        accepted = "a non-empty mapping from names to policies, such as {'LARL': larl.LARL(s=5), 'UCB': larl.UCB()}"
        raise InvalidValue("compare", "policies", policies, accepted)
    _check_names("policies", policies, instance(Policy, "a policy, such as larl.LARL(s=5)"))


def _named_worlds(world: Any) -> dict[str, World]:
    if isinstance(world, Mapping) and world:
        _check_names("world", world, validate_world)
        return dict(world)
    several = "or a mapping from names to worlds, such as {'k = 1': larl.worlds.paper(1)}"
    return {"world": instance(World, f"a world, such as larl.worlds.paper(1), {several}")("compare", "world", world)}


def _check_names(field: str, items: Mapping[Any, Any], check: Check) -> None:
    for name, value in items.items():
        if not isinstance(name, str) or not name:
            raise InvalidValue("compare", f"{field} name", name, "a non-empty string")
        check("compare", f"{field}[{name!r}]", value)


class _Recorder(Protocol):
    """Collects the arrays of blocks into the variables of a Result."""

    def add(self, cell: tuple[int, int], block: Block, arrays: Arrays) -> None:
        """Add a block of a (world, policy); the blocks of one cell arrive in order of trials."""

    def variables(self) -> tuple[Variables, Any]:
        """Return the variables and their times."""


AXES = ("world", "policy", "trial", "unit")  # leading axes; `unit` only for cohorts


class _StepRecorder:
    """Records regret, arm and reward of every step."""

    def __init__(self, shape: tuple[int, ...], horizon: int) -> None:
        self._axes, shape = (*AXES[: len(shape)], "time"), (*shape, horizon)
        self._trace = Trace(np.empty(shape), np.empty(shape, dtype=np.int16), np.empty(shape))

    def add(self, cell: tuple[int, int], block: Block, arrays: Arrays) -> None:
        for name, values in self._trace._asdict().items():
            values[(*cell, slice(block.first, block.stop))] = arrays[name]

    def variables(self) -> tuple[Variables, Any]:
        times = np.arange(self._trace.arm.shape[-1])
        return {name: (self._axes, values) for name, values in self._trace._asdict().items()}, times


class _SummaryRecorder:
    """Records each trial's total, and mean, variance and quantiles of cumulative regret at `summary_times`.

    For cohorts, totals are of each unit; statistics over time are of the mean over a cohort's units.
    """

    def __init__(self, shape: tuple[int, ...], horizon: int) -> None:
        worlds, policies, self._trials, *_ = shape
        self._times = summary_times(horizon)
        self._moments = empty_moments(0)
        self._axes, self._total = AXES[: len(shape)], np.empty(shape)
        self._mean = np.empty((worlds, policies, self._times.size))
        self._variance = np.empty((worlds, policies, self._times.size))
        self._quantile = np.empty((worlds, policies, len(LEVELS), self._times.size))

    def add(self, cell: tuple[int, int], block: Block, arrays: Arrays) -> None:
        if block.first == 0:
            self._moments = empty_moments(self._times.size)
        sums = arrays["sums"]
        add_curves(self._moments, sums if sums.ndim == 2 else sums.mean(axis=1))
        self._total[(*cell, slice(block.first, block.stop))] = sums[..., -1]
        if block.stop == self._trials:
            self._mean[cell], self._variance[cell] = self._moments.mean, variance(self._moments)
            self._quantile[cell] = quantiles(self._moments)

    def variables(self) -> tuple[Variables, Any]:
        return {
            "total": (self._axes, self._total),
            "mean": ((*AXES[:2], "time"), self._mean),
            "variance": ((*AXES[:2], "time"), self._variance),
            "quantile": ((*AXES[:2], "level", "time"), self._quantile),
        }, self._times


def _make_result(
    variables: Variables,
    times: Any,
    policies: Mapping[str, Policy],
    world: World | Mapping[str, World],
    settings: dict[str, str],
) -> "Result":
    import xarray as xr

    from larl.simulation.result import Result

    worlds = world if isinstance(world, Mapping) else {"world": world}
    policy_specs = {name: policy.to_dict() for name, policy in policies.items()}
    specs = {
        "policies": json.dumps(dict.fromkeys(worlds, policy_specs)),
        "worlds": json.dumps({name: each.to_dict() for name, each in worlds.items()}),
    }
    coords = {"world": list(worlds), "k": ("world", [each.k for each in worlds.values()]), "policy": list(policies)}
    data = xr.Dataset(variables, coords | {"time": times}, settings | specs)
    if "level" in data.dims:
        data = data.assign_coords(level=list(LEVELS))
    return Result(data if world is worlds else data.isel(world=0))
