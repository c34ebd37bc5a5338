"""A comparison cut into blocks: some trials of one policy in one world, each a pure function of its key.

Blocks are played on threads of this process or anywhere else (`larl.cluster`); what they give does not depend on where,
when and in which order.
"""

import hashlib
import inspect
import json
import os
import platform
import sys
import time
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol

import llvmlite
import numba
import numpy as np
from numpy.typing import NDArray

from larl import __version__
from larl._core.compile import source_digest
from larl._core.interrupt import DeferInterrupt
from larl.policies import Policy
from larl.policies._pooling import pooled
from larl.simulation.cohort_engine import Rounds, empty_trace
from larl.simulation.engine import Floats, play
from larl.worlds.base import World

Arrays = dict[str, NDArray[Any]]
POINTS = 500  # times at which keep="summary" looks, at most
QUICK_STEPS = 50_000  # steps of a thread's block: some hundredths of a second, short enough to report and to stop
TASK_STEPS = 200_000  # steps of a block that is scheduled or stored: far longer than what scheduling it costs
TICK = 1.0  # seconds after which one who waits for blocks looks up


@dataclass(frozen=True)
class Block:
    """Trials first … stop − 1 of one policy in one world, and what to keep of them."""

    place: str  # the names of world and policy: for people, not part of the key
    name: str
    world: World
    policy: Policy
    horizon: int
    seed: int
    keep: str
    first: int
    stop: int
    units: int | None = None  # of each trial, if trials are cohorts
    pooling: str = "none"

    @property
    def label(self) -> str:
        """World, policy and trials, for people."""
        return f"world {self.place!r}, policy {self.name!r}, trials {self.first}–{self.stop - 1}"

    @property
    def steps(self) -> int:
        """How many steps it plays."""
        return (self.stop - self.first) * self.horizon * (self.units or 1)

    def about(self) -> dict[str, Any]:
        """Everything that its arrays depend on, as JSON types."""
        cohort = {"units": self.units, "pooling": self.pooling} if self.units else {}
        return {
            "world": self.world.to_dict(),
            "policy": self.policy.to_dict(),
            "horizon": self.horizon,
            "seed": self.seed,
            "keep": self.keep,
            "trials": [self.first, self.stop],
            "code": code_of(self.policy, self.world),
        } | cohort

    def key(self) -> str:
        """A digest of `about()`."""
        return hashlib.sha256(json.dumps(self.about(), sort_keys=True).encode()).hexdigest()[:32]

    def play(self) -> Arrays:
        """keep="all": regret, arm and reward of every step. keep="summary": regret summed up to each of `times`.

        Rows are trials; where trials are cohorts, a second axis is the unit.
        """
        latent, state = _start(self.world, self.policy, self.horizon, self.pooling)
        if self.units and self.pooling != "none":
            found = [self._cohort(latent, state, cohort) for cohort in range(self.first, self.stop)]
            return {name: np.stack([one[name] for one in found]) for name in found[0]}
        units, summary = self.units or 1, self.keep == "summary"
        trials, first = (self.stop - self.first) * units, self.first * units
        at = times(self.horizon) if summary else np.array([self.horizon - 1])
        sums = np.empty((trials, at.size))
        trace = empty_trace(1, int(np.diff(at, prepend=-1).max())) if summary else empty_trace(trials, self.horizon)
        play(latent, state, self.seed, first, at, sums, trace)
        return self._by_unit({"sums": sums} if summary else trace._asdict())

    def _cohort(self, latent: Any, state: Any, cohort: int) -> Arrays:
        rounds = Rounds(latent, state, self.units or 1, self.seed, cohort)
        if self.keep == "summary":
            return {"sums": rounds.sums(times(self.horizon))}
        return rounds.play(self.horizon)._asdict()

    def _by_unit(self, arrays: Arrays) -> Arrays:
        if self.units is None:
            return arrays
        return {name: values.reshape(-1, self.units, values.shape[1]) for name, values in arrays.items()}


class Played(NamedTuple):
    """A block that was played: each trial's total regret, the seconds it took, its arrays unless they are stored."""

    totals: Floats
    seconds: float
    arrays: Arrays | None


Step = tuple[Block, Played | Exception]
Source = Callable[[Iterator[Block], Any], Iterator[tuple[Block, Arrays]]]  # blocks and a Progress in; arrays, in order


@lru_cache(16)
def _start(world: World, policy: Policy, horizon: int, pooling: str) -> tuple[Any, Any]:
    return world.latent(), pooled(policy, policy.init(world.arms, horizon=horizon, world=world), pooling)


@cache
def code() -> dict[str, str]:
    """What decides a block's bytes beside its settings: our kernels, and what compiles and calls them."""
    return {
        "larl": __version__,
        "kernels": source_digest(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "machine": platform.machine(),
    }


def code_of(*specs: Policy | World) -> dict[str, str]:
    """`code()`, and the sources of specs that come from outside the package."""
    outside = sorted({type(spec).__module__ for spec in specs if not type(spec).__module__.startswith("larl.")})
    return code() | {f"source of {name}": _source(name) for name in outside}


@cache
def _source(module: str) -> str:
    return hashlib.sha256(inspect.getsource(sys.modules[module]).encode()).hexdigest()[:16]


def times(horizon: int) -> NDArray[np.int64]:
    """The steps at which keep="summary" looks."""
    return np.unique(np.linspace(0, horizon - 1, min(horizon, POINTS)).round().astype(np.int64))


def totals(arrays: Arrays) -> Floats:
    """Each trial's total regret, of a cohort the mean over its units."""
    found: Floats = arrays["sums"][..., -1] if "sums" in arrays else arrays["regret"].sum(axis=-1)
    return found if found.ndim == 1 else found.mean(axis=1)


def quick_size(steps: int, trials: int, threads: int) -> int:
    """Trials, of so many steps each, of a block for so many threads."""
    return max(1, min(QUICK_STEPS // steps, -(-trials // (4 * threads))))


def task_size(steps: int, trials: int) -> int:
    """Trials of a block that is scheduled or stored: it depends on the study alone, so that any run finds it again."""
    return max(1, min(TASK_STEPS // steps, -(-trials // 4)))


def cut(
    worlds: Mapping[str, World],
    policies: Mapping[str, Policy],
    horizon: int,
    trials: int,
    seed: int,
    keep: str,
    size: int,
    units: int | None = None,
    pooling: str = "none",
) -> Iterator[Block]:
    """Every block of a comparison: world by world, policy by policy, in order of trials."""
    for place, world in worlds.items():
        for name, policy in policies.items():
            for first in range(0, trials, size):
                stop = min(first + size, trials)
                yield Block(place, name, world, policy, horizon, seed, keep, first, stop, units, pooling)


def perform(block: Block) -> Played:
    """Play a block."""
    began = time.perf_counter()
    arrays = block.play()
    return Played(totals(arrays), time.perf_counter() - began, arrays)


def default_threads() -> int:
    """As many threads as this process may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Players(Protocol):
    """Who plays blocks: threads, or a cluster."""

    def room(self) -> int:
        """How many blocks may be under way."""

    def submit(self, blocks: list[Block]) -> list[Any]:
        """Begin; a future for each."""

    def collect(self, futures: list[Any]) -> list[Played | Exception]:
        """What became of futures that are done."""


def stream(players: Players, blocks: Iterable[Block], *, ordered: bool, wait: Callable[[], None]) -> Iterator[Step]:
    """Every block with what became of it.

    `ordered`: in the order of `blocks`, else as they are finished. `wait` is called now and then while nothing happens.
    """
    rest, finished = iter(blocks), SimpleQueue[int]()
    under_way: dict[int, tuple[Block, Any]] = {}
    ready: dict[int, Played | Exception] = {}
    begun = head = 0
    while True:
        more = list(islice(rest, max(0, players.room() - len(under_way))))
        with DeferInterrupt():
            for block, future in zip(more, players.submit(more) if more else [], strict=True):
                under_way[begun] = block, future
                future.add_done_callback(lambda _, mine=begun: finished.put(mine))
                begun += 1
        if not under_way:
            return
        done = _drained(finished)
        if not done:
            wait()
        with DeferInterrupt():
            ready |= zip(done, players.collect([under_way[place][1] for place in done]), strict=True)
        while (place := head if ordered else next(iter(ready), -1)) in ready:
            yield under_way.pop(place)[0], ready.pop(place)
            head += 1


def _drained(queue: "SimpleQueue[int]") -> list[int]:
    """What is in the queue; if it is empty, what comes within a TICK."""
    found = []
    try:
        found.append(queue.get(timeout=TICK))
        while True:
            found.append(queue.get_nowait())
    except Empty:
        return found


def outcome(future: Any) -> Played | Exception:
    """What became of a future that is done."""
    try:
        played: Played = future.result()
    except Exception as error:  # whatever a policy, a full memory or a lost worker raises
        return error
    except CancelledError:  # Dask's are no Exceptions
        return ConnectionError("its scheduler was lost")
    return played


class Threads:
    """Threads of this process play the blocks."""

    def __init__(self, count: int, perform: Callable[[Block], Played] = perform) -> None:
        self._pool, self._count, self._perform = ThreadPoolExecutor(count, "larl"), count, perform

    def room(self) -> int:
        return 3 * self._count

    def submit(self, blocks: list[Block]) -> list[Any]:
        return [self._pool.submit(self._perform, block) for block in blocks]

    def collect(self, futures: list[Any]) -> list[Played | Exception]:
        return [outcome(future) for future in futures]

    def close(self) -> None:
        """Begin no more blocks, and wait for those that are being played."""
        self._pool.shutdown(cancel_futures=True)


def on_threads(
    blocks: Iterable[Block],
    threads: int,
    perform: Callable[[Block], Played] = perform,
    *,
    ordered: bool = True,
    wait: Callable[[], None] = lambda: None,
) -> Iterator[Step]:
    """`stream` on threads of this process."""
    with closing(Threads(threads, perform)) as players:
        yield from stream(players, blocks, ordered=ordered, wait=wait)
