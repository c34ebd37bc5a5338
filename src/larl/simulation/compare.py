"""Policies × worlds → Result."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from larl._core.progress import Progress
from larl._core.validation import Check, InvalidValue, instance, integer, one_of, optional
from larl.policies import Policy
from larl.policies._pooling import POOLINGS, pooled
from larl.simulation.engine import Trace
from larl.simulation.memory import machine_memory, not_enough, safe_init
from larl.simulation.moments import LEVELS, fold, moments_init, quantiles, variance
from larl.simulation.tasks import Arrays, Block, Source, cut, default_threads, on_threads, quick_size, times
from larl.worlds.base import World, validate_world

if TYPE_CHECKING:
    from larl.simulation.result import Result

Variables = dict[str, tuple[tuple[str, ...], Any]]
SEED_MAX = 2**63 - 1
MOST_ARMS = 2**15 - 1  # arms are kept as 16-bit numbers
MOST = 2**40  # steps or trials: a typing error, not a study
MOST_UNITS = 2**20
STEP_BYTES = 18  # of a step of keep="all": regret and reward as 64-bit numbers, the arm as a 16-bit one


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
    source: Source | None = None,
) -> "Result":
    """Play every policy in every world on the same random numbers and record its regret.

    `keep="all"` keeps regret, arm and reward of every step; `keep="summary"` keeps each trial's total and, over time,
    mean, variance and quantiles of cumulative regret, in memory that does not grow with the horizon. With `units` a
    trial is a cohort of so many, each in a world with its own noise: at each step all decide and learn, one after
    another, and share what they learn as `pooling` says ("none", "full" or "partial"; see `larl.Cohort`).

    `threads` (all cores unless given) and `block` (trials a thread takes at a time) change the speed and nothing else.
    `progress`: a bar on the terminal if None, always if True, never if False; or a Progress that several comparisons
    share. `source` says who plays the blocks; threads of this process unless given.
    """
    _check_policies(policies)
    worlds = _named_worlds(world)
    horizon, trials = integer(1, MOST)("compare", "horizon", horizon), integer(1, MOST)("compare", "trials", trials)
    seed, keep = integer(0, SEED_MAX)("compare", "seed", seed), one_of("all", "summary")("compare", "keep", keep)
    threads = optional(integer(1))("compare", "threads", threads) or default_threads()
    block = optional(integer(1))("compare", "block", block)
    units, pooling = check_cohort("compare", units, pooling)
    if source is not None and not callable(source):
        raise InvalidValue(
            "compare", "source", source, "a function of blocks and a Progress, as larl.simulation.executors.Scale is"
        )
    check_built(policies, worlds, horizon, pooling, threads)
    size, rows = block or quick_size(horizon * (units or 1), trials, threads), (trials, units) if units else (trials,)
    blocks = cut(worlds, policies, horizon, trials, seed, keep, size, units, pooling)
    cells = {(place, name): (i, j) for i, place in enumerate(worlds) for j, name in enumerate(policies)}
    count, steps = len(cells) * -(-trials // size), len(cells) * trials * horizon * (units or 1)
    try:
        if keep == "all" and steps * STEP_BYTES > (machine_memory() or math.inf):
            raise not_enough(needed=steps * STEP_BYTES)
        keeper: _Keeper = (_Everything if keep == "all" else _Summary)((len(worlds), len(policies)), rows, horizon)
        with Progress.given(progress, steps, count) as bar:
            for each, arrays in (source or _from_threads(threads))(blocks, bar):
                keeper.take(cells[each.place, each.name], each, arrays)
    except MemoryError as error:
        raise not_enough(error) from error
    variables, at = keeper.variables()
    about = {"seed": str(seed), "keep": keep} | ({"pooling": pooling} if units else {})
    return _labelled(variables, at, policies, world, about)


def check_cohort(owner: str, units: Any, pooling: Any) -> tuple[int | None, str]:
    """How many units, and what they share."""
    units, pooling = (
        optional(integer(1, MOST_UNITS))(owner, "units", units),
        one_of(*POOLINGS)(owner, "pooling", pooling),
    )
    if units is None and pooling != "none":
        raise InvalidValue(owner, "pooling", pooling, "'none', or as many units as a cohort has: units = 70")
    return units, pooling


def check_built(
    policies: Mapping[str, Policy], worlds: Mapping[str, World], horizon: int, pooling: str = "none", threads: int = 1
) -> None:
    """Refuse what cannot be built, before anything runs."""
    for name, place in worlds.items():
        if place.arms > MOST_ARMS:
            raise InvalidValue("compare", f"arms of world {name!r}", place.arms, f"at most {MOST_ARMS:,} arms")
        for policy in policies.values():
            state = safe_init(policy, place.arms, horizon=horizon, world=place, copies=1 + threads)
            pooled(policy, state, pooling)


def _from_threads(threads: int) -> Source:
    """Blocks played here; the first that fails ends it."""

    def source(blocks: Iterator[Block], bar: Progress) -> Iterator[tuple[Block, Arrays]]:
        for block, played in on_threads(blocks, threads, wait=bar.tick):
            if isinstance(played, Exception):
                played.add_note(f"while playing {block.label}")
                raise played
            bar.played(block, played)
            yield block, played.arrays or {}

    return source


def _check_policies(given: object) -> None:
    if not isinstance(given, Mapping) or not given:
        accepted = "a non-empty mapping from names to policies, such as {'LARL': larl.LARL(s=5), 'UCB': larl.UCB()}"
        raise InvalidValue("compare", "policies", given, accepted)
    _check_names("policies", given, instance(Policy, "a policy, such as larl.LARL(s=5)"))


def _named_worlds(given: Any) -> dict[str, World]:
    if isinstance(given, Mapping) and given:
        _check_names("world", given, validate_world)
        return dict(given)
    several = "or a mapping from names to worlds, such as {'k = 1': larl.worlds.paper(1)}"
    return {"world": instance(World, f"a world, such as larl.worlds.paper(1), {several}")("compare", "world", given)}


def _check_names(field: str, given: Mapping[Any, Any], check: Check) -> None:
    for name, value in given.items():
        if not isinstance(name, str) or not name:
            raise InvalidValue("compare", f"{field} name", name, "a non-empty string")
        check("compare", f"{field}[{name!r}]", value)


class _Keeper(Protocol):
    """What is kept of a comparison, one block after another."""

    def take(self, cell: tuple[int, int], block: Block, arrays: Arrays) -> None:
        """One more block of a cell (world, policy)."""

    def variables(self) -> tuple[Variables, Any]:
        """What was kept, and at which times."""


ROWS = ("trial", "unit")


class _Everything:
    """Regret, arm and reward of every step."""

    def __init__(self, cells: tuple[int, int], rows: tuple[int, ...], horizon: int) -> None:
        shape = (*cells, *rows, horizon)
        self._whole = Trace(np.empty(shape), np.empty(shape, dtype=np.int16), np.empty(shape))

    def take(self, cell: tuple[int, int], block: Block, arrays: Arrays) -> None:
        for name, values in self._whole._asdict().items():
            values[(*cell, slice(block.first, block.stop))] = arrays[name]

    def variables(self) -> tuple[Variables, Any]:
        axes, horizon = ("world", "policy", *ROWS[: self._whole.arm.ndim - 3], "time"), self._whole.arm.shape[-1]
        return {name: (axes, values) for name, values in self._whole._asdict().items()}, np.arange(horizon)


class _Summary:
    """Each trial's total; mean, variance and quantiles of cumulative regret at no more than POINTS times.

    Of a cohort the total of every unit, and over time the mean over its units.
    """

    def __init__(self, cells: tuple[int, int], rows: tuple[int, ...], horizon: int) -> None:
        self._times, self._trials, self._moments = times(horizon), rows[0], moments_init(0)
        size = self._times.size
        self._total = np.empty((*cells, *rows))
        self._mean, self._spread = (np.empty((*cells, size)) for _ in range(2))
        self._levels = np.empty((*cells, len(LEVELS), size))

    def take(self, cell: tuple[int, int], block: Block, arrays: Arrays) -> None:
        if block.first == 0:
            self._moments = moments_init(self._times.size)
        sums = arrays["sums"]
        fold(self._moments, sums if sums.ndim == 2 else sums.mean(axis=1))
        self._total[(*cell, slice(block.first, block.stop))] = sums[..., -1]
        if block.stop == self._trials:
            self._mean[cell], self._spread[cell] = self._moments.mean, variance(self._moments)
            self._levels[cell] = quantiles(self._moments)

    def variables(self) -> tuple[Variables, Any]:
        axes = ("world", "policy")
        return {
            "total": ((*axes, *ROWS[: self._total.ndim - 2]), self._total),
            "mean": ((*axes, "time"), self._mean),
            "variance": ((*axes, "time"), self._spread),
            "quantile": ((*axes, "level", "time"), self._levels),
        }, self._times


def _labelled(
    variables: Variables,
    times: Any,
    policies: Mapping[str, Policy],
    world: World | Mapping[str, World],
    about: dict[str, str],
) -> "Result":
    import xarray as xr

    from larl.simulation.result import Result

    worlds = world if isinstance(world, Mapping) else {"world": world}
    specs = {
        "policies": json.dumps({place: {name: spec.to_dict() for name, spec in policies.items()} for place in worlds}),
        "worlds": json.dumps({name: spec.to_dict() for name, spec in worlds.items()}),
    }
    coords = {"world": list(worlds), "k": ("world", [each.k for each in worlds.values()]), "policy": list(policies)}
    data = xr.Dataset(variables, coords | {"time": times}, about | specs)
    if "level" in data.dims:
        data = data.assign_coords(level=list(LEVELS))
    return Result(data if world is worlds else data.isel(world=0))
