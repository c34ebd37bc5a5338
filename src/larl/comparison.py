"""Policies × worlds → Result."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from larl._check import InvalidValue, one_of, optional, whole
from larl._moments import LEVELS, fold, moments_init, quantiles, variance
from larl._progress import Progress
from larl.engine import Job, Trace, cumulative, default_threads, play
from larl.policies import Policy
from larl.world import World

if TYPE_CHECKING:
    from larl.result import Result

Variables = dict[str, tuple[tuple[str, ...], Any]]
POINTS = 500  # times at which keep="summary" looks, at most
SEED_MAX = 2**63 - 1
MOST_ARMS = 2**15 - 1  # arms are kept as 16-bit numbers
MOST = 2**40  # steps or trials: a typing error, not a study


def compare(
    policies: Mapping[str, Policy],
    world: World | Mapping[str, World],
    *,
    horizon: int,
    trials: int,
    seed: int = 0,
    keep: str = "all",
    threads: int | None = None,
    block: int | None = None,
    progress: "bool | Progress | None" = None,
) -> "Result":
    """Play every policy in every world on the same luck and record its regret.

    `keep="all"` keeps regret, arm and reward of every step; `keep="summary"` keeps each trial's total and, over time,
    mean, variance and quantiles of cumulative regret, in memory that does not grow with the horizon. `threads` (all
    cores unless given) and `block` (trials a thread takes at a time) change the speed and nothing else. `progress`:
    a bar on the terminal if None, always if True, never if False; or a Progress that several comparisons share.
    """
    worlds = dict(world) if isinstance(world, Mapping) else {"world": world}
    horizon, trials = whole(1, MOST)("compare", "horizon", horizon), whole(1, MOST)("compare", "trials", trials)
    seed, keep = whole(0, SEED_MAX)("compare", "seed", seed), one_of("all", "summary")("compare", "keep", keep)
    threads = optional(whole(1))("compare", "threads", threads) or default_threads()
    block = optional(whole(1))("compare", "block", block)
    _check_names("policies", policies, Policy, "a larl policy, such as larl.LARL(s=5)")
    _check_names("world", worlds, World, "a larl.LatentAR or another world")
    jobs = [
        [Job(place, spec, horizon, trials, seed, threads, block) for spec in policies.values()]
        for place in worlds.values()
    ]
    for name, place in worlds.items():
        if place.arms > MOST_ARMS:
            raise InvalidValue("compare", f"arms of world {name!r}", place.arms, f"at most {MOST_ARMS:,} arms")
    for job in (job for row in jobs for job in row):
        job.state()  # what cannot be built is refused before anything runs
    labels = [[f"{place} · {name}" if len(worlds) > 1 else name for name in policies] for place in worlds]
    keeper = _keep_all if keep == "all" else _keep_summary
    if isinstance(progress, Progress):
        variables, times = keeper(jobs, labels, progress)
    else:
        with Progress(len(worlds) * len(policies) * trials * horizon, progress) as bar:
            variables, times = keeper(jobs, labels, bar)
    return _labelled(variables, times, policies, world, {"seed": str(seed), "keep": keep})


def _check_names(field: str, given: object, kind: type, accepted: str) -> None:
    if not isinstance(given, Mapping) or not given:
        raise InvalidValue("compare", field, given, f"a non-empty mapping from names to values, each {accepted}")
    for name, value in given.items():
        if not isinstance(name, str) or not name:
            raise InvalidValue("compare", f"{field} name", name, "a non-empty string")
        if not isinstance(value, kind):
            raise InvalidValue("compare", f"{field}[{name!r}]", value, accepted)


def _keep_all(jobs: list[list[Job]], labels: list[list[str]], bar: Progress) -> tuple[Variables, Any]:
    """Regret, arm and reward of every step."""
    some = jobs[0][0]
    shape, axes = (len(jobs), len(jobs[0]), some.trials, some.horizon), ("world", "policy", "trial", "time")
    whole = Trace(np.empty(shape), np.empty(shape, dtype=np.int16), np.empty(shape))
    for i, j in np.ndindex(shape[:2]):
        bar.begin(labels[i][j])
        part = Trace(whole.regret[i, j], whole.arm[i, j], whole.reward[i, j])
        play(jobs[i][j], part, lambda trials: bar.advance(trials * some.horizon))
    return {name: (axes, values) for name, values in whole._asdict().items()}, np.arange(some.horizon)


def _keep_summary(jobs: list[list[Job]], labels: list[list[str]], bar: Progress) -> tuple[Variables, Any]:
    """Each trial's total; mean, variance and quantiles of cumulative regret at no more than POINTS times."""
    some, lead, axes = jobs[0][0], (len(jobs), len(jobs[0])), ("world", "policy")
    times = np.unique(np.linspace(0, some.horizon - 1, min(some.horizon, POINTS)).round().astype(np.int64))
    total, mean, spread = (np.empty((*lead, size)) for size in (some.trials, times.size, times.size))
    levels = np.empty((*lead, len(LEVELS), times.size))
    for i, j in np.ndindex(lead):
        bar.begin(labels[i][j])
        moments, first = moments_init(times.size), 0
        for sums in cumulative(jobs[i][j], times):
            fold(moments, sums)
            total[i, j, first : first + len(sums)] = sums[:, -1]
            first += len(sums)
            bar.advance(len(sums) * some.horizon)
        mean[i, j], spread[i, j], levels[i, j] = moments.mean, variance(moments), quantiles(moments)
    return {
        "total": ((*axes, "trial"), total),
        "mean": ((*axes, "time"), mean),
        "variance": ((*axes, "time"), spread),
        "quantile": ((*axes, "level", "time"), levels),
    }, times


def _labelled(
    variables: Variables,
    times: Any,
    policies: Mapping[str, Policy],
    world: World | Mapping[str, World],
    about: dict[str, str],
) -> "Result":
    import xarray as xr

    from larl.result import Result

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
