"""Who plays a study's blocks: threads here or a Dask cluster, with or without a store that keeps what is done."""

import logging
import time
from asyncio import CancelledError
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from larl._core.progress import Progress
from larl._core.validation import InvalidValue
from larl.simulation.store import Store
from larl.simulation.tasks import Arrays, Block, Played, Step, Threads, code_of, outcome, perform, stream

SHOWN = 5  # failed blocks that a message names
AHEAD = 4  # blocks under way for each core of a cluster
LOOK_AGAIN = 2.0  # seconds after which the cores of a cluster are counted again
CONNECT = 10.0  # seconds that a scheduler has to answer
# Of a cluster here: one block at a time on a worker, so that no other is blamed when it dies; on the loopback device
# only; no dashboard.
SETTINGS = {"distributed.scheduler.worker-saturation": 1.0}
LOCAL: dict[str, Any] = {
    "threads_per_worker": 1,
    "processes": True,
    "host": "127.0.0.1",
    "dashboard_address": "127.0.0.1:0",
    "scheduler_kwargs": {"dashboard": False},
    "silence_logs": logging.CRITICAL,
}
ACCEPTED = "tcp://HOST:PORT, the address of a Dask scheduler that answers, or local:N for N processes here"


class BlocksFailed(RuntimeError):
    """Some blocks could not be played; the others were."""

    def __init__(self, failures: list[tuple[Block, Exception]], kept: bool) -> None:
        self.failures = failures
        named = [f"  {block.label}: {_reason(error)}" for block, error in failures[:SHOWN]]
        more = [f"  and {len(failures) - SHOWN} more"] if len(failures) > SHOWN else []
        end = "the others are in the store: the same command runs only what failed" if kept else "nothing was kept"
        super().__init__("\n".join([f"{len(failures)} block(s) failed", *named, *more, end]))


def _reason(error: Exception) -> str:
    if type(error).__name__ == "KilledWorker":
        return "every worker that played it died (out of memory?)"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ModuleNotFoundError):
            return f"the scheduler or a worker cannot import {cause.name!r}: install it there, or start them beside it"
        cause = cause.__cause__ or cause.__context__
    return f"{type(error).__name__}: {error}".splitlines()[0]


@dataclass(frozen=True)
class Scale:
    """Where blocks are played and kept: a `Source` for `compare`."""

    threads: int
    cluster: str | None = None
    store: Store | None = None

    def __call__(self, blocks: Iterator[Block], bar: Progress) -> Iterator[tuple[Block, Arrays]]:
        """Every block's arrays, in order. If any failed, the others are played first, then all failures are raised."""
        failures: list[tuple[Block, Exception]] = []
        if self.store is None:
            for block, played in self._play(blocks, bar):
                if isinstance(played, Exception):
                    failures.append((block, played))
                elif not failures:
                    yield block, played.arrays or {}
        else:
            everything = list(blocks)
            missing = self._missing(everything, bar)
            for block, played in self._play(missing, bar) if missing else ():
                if isinstance(played, Exception):
                    failures.append((block, played))
                elif played.arrays is not None:  # its worker does not see the store
                    self.store.put(block, played.arrays)
            if not failures:
                yield from _stored(everything, self.store)
        if failures:
            raise BlocksFailed(failures, self.store is not None)

    def _missing(self, blocks: list[Block], bar: Progress) -> list[Block]:
        missing = []
        for block in blocks:
            if self.store is None or self.store.get(block) is None:
                missing.append(block)
            else:
                bar.found(block)
        return missing

    def _play(self, blocks: Iterable[Block], bar: Progress) -> Iterator[Step]:
        ordered = self.store is None
        if self.cluster is None:
            players: Any = closing(Threads(self.threads, partial(play_here, store=self.store)))
        else:
            players = on_cluster(self.cluster, self.store)
        with players as they:
            for block, played in stream(they, blocks, ordered=ordered, wait=bar.tick):
                if isinstance(played, Played):
                    bar.played(block, played)
                yield block, played


def _stored(blocks: list[Block], store: Store) -> Iterator[tuple[Block, Arrays]]:
    for block in blocks:
        arrays = store.get(block)
        if arrays is None:
            raise OSError(f"{store.path(block)} was taken away or altered during the run; run the same command again")
        yield block, arrays


def play_here(block: Block, store: Store | None = None) -> Played:
    """Play a block, and keep it if a store is given and this machine sees it."""
    played = perform(block)
    if store is None or not store.is_here():
        return played
    assert played.arrays is not None
    store.put(block, played.arrays)
    return played._replace(arrays=None)


def play_there(block: Block, store: Store | None, code: dict[str, str]) -> Played:
    """A worker's task: `play_here`, if the worker would compute the same bytes."""
    here = code_of(block.policy, block.world)
    for name in code:
        if here.get(name) != code[name]:
            raise InvalidValue("worker", name, here.get(name), f"{code[name]}, as where the study was started")
    return play_here(block, store)


class Cluster:
    """The workers of a Dask cluster play the blocks."""

    def __init__(self, client: Any, store: Store | None) -> None:
        self._client, self._store = client, store
        self._cores, self._looked = 0, float("-inf")

    def room(self) -> int:
        if time.monotonic() > self._looked + LOOK_AGAIN:  # workers come and go
            with _answering():
                self._cores, self._looked = sum(self._client.nthreads().values()), time.monotonic()
        return AHEAD * max(2, self._cores)

    def submit(self, blocks: list[Block]) -> list[Any]:
        token = self._store.token if self._store else "here"
        codes = [code_of(block.policy, block.world) for block in blocks]
        keys = [f"larl-{block.key()}-{token}" for block in blocks]
        with _answering():
            return list(self._client.map(play_there, blocks, [self._store] * len(blocks), codes, key=keys))

    def collect(self, futures: list[Any]) -> list[Played | Exception]:
        if all(future.status == "finished" for future in futures):
            try:
                return list(self._client.gather(futures))  # one request for all of them
            except (Exception, CancelledError):  # someone died just now: one by one shows which blocks are lost
                pass
        return [outcome(future) for future in futures]


@contextmanager
def _answering() -> Iterator[None]:
    """One line for what Dask raises when its scheduler is gone."""
    try:
        yield
    except (OSError, RuntimeError, CancelledError) as error:
        text = "the Dask scheduler was lost; what is in the store is kept, and the same command goes on from there"
        raise ConnectionError(f"{text} ({error})") from error


@contextmanager
def on_cluster(address: str, store: Store | None) -> Iterator[Cluster]:
    """The workers of the cluster at an address."""
    with connected(address) as client:
        yield Cluster(client, store)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the Dask scheduler at an address; local:N starts one with N worker processes, and ends it."""
    try:
        import dask
        import distributed
    except ImportError as error:
        raise InvalidValue(
            "cluster", "address", address, "a larl with its extra: pip install 'larl[cluster]'"
        ) from error
    start: Any = distributed.Client
    kind, _, count = address.partition(":")
    if kind != "local":
        try:
            client = start(address, timeout=CONNECT, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise InvalidValue("cluster", "address", address, f"{ACCEPTED} ({error})") from error
        with client:
            yield client
        return
    if not count.isascii() or not count.isdecimal() or int(count) < 1:
        raise InvalidValue("cluster", "address", address, ACCEPTED)
    local: Any = distributed.LocalCluster
    with (
        dask.config.set(SETTINGS),
        local(n_workers=int(count), **LOCAL) as cluster,
        start(cluster, set_as_default=False) as client,
    ):
        yield client
