"""Blocks on a Dask cluster: a running one, or one that is started on this machine for a single comparison."""

import logging
import time
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any

from larl._core.validation import InvalidValue
from larl.simulation.executors.base import result_or_error
from larl.simulation.store import Store
from larl.simulation.tasks import Block, BlockResult, code_versions, run_block

BLOCKS_PER_CORE = 4  # submitted and unfinished, so that no core waits for the next block
SECONDS_BETWEEN_COUNTS = 2.0  # the number of cores is counted again after this time
CONNECT_TIMEOUT = 10.0  # seconds
# One block at a time on each worker: if a worker dies, Dask counts the death against that block only.
SETTINGS = {"distributed.scheduler.worker-saturation": 1.0}
# A local cluster listens on the loopback device only, and has no dashboard.
LOCAL_CLUSTER: dict[str, Any] = {
    "threads_per_worker": 1,
    "processes": True,
    "host": "127.0.0.1",
    "dashboard_address": "127.0.0.1:0",
    "scheduler_kwargs": {"dashboard": False},
    "silence_logs": logging.CRITICAL,
}
ACCEPTED = "tcp://HOST:PORT, the address of a Dask scheduler that answers, or local:N for N processes here"


class DaskExecutor:
    """Runs blocks on the workers of a Dask cluster.

    Parameters
    ----------
    address : str
        Address of a Dask scheduler, such as ``tcp://10.0.0.5:8786``, or ``local:N`` to start N worker processes here.
    store : Store, optional
        Folder that keeps finished blocks. Workers that reach the folder write to it; others send their arrays.
    """

    def __init__(self, address: str, store: Store | None = None) -> None:
        self._address, self.store = address, store

    def __enter__(self) -> "DaskExecutor":
        self._stack = ExitStack()
        self._client = self._stack.enter_context(connect(self._address))
        self._cores, self._counted_at = 0, float("-inf")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def capacity(self) -> int:
        if time.monotonic() > self._counted_at + SECONDS_BETWEEN_COUNTS:  # workers join and leave
            with _connection_errors():
                self._cores, self._counted_at = sum(self._client.nthreads().values()), time.monotonic()
        return BLOCKS_PER_CORE * max(2, self._cores)

    def submit(self, blocks: list[Block]) -> list[Any]:
        token = self.store.token if self.store else "here"
        versions = [code_versions(block.policy, block.world) for block in blocks]
        keys = [f"larl-{block.key()}-{token}" for block in blocks]
        with _connection_errors():
            return list(self._client.map(run_block, blocks, [self.store] * len(blocks), versions, key=keys))

    def collect(self, futures: list[Any]) -> list[BlockResult | Exception]:
        if all(future.status == "finished" for future in futures):
            try:
                return list(self._client.gather(futures))  # one request for all of them
            except (Exception, CancelledError):  # a worker died just now: ask for each, to see which blocks are lost
                pass
        return [result_or_error(future) for future in futures]


@contextmanager
def _connection_errors() -> Iterator[None]:
    """Raise a ConnectionError with one line for the errors that Dask raises when the scheduler is lost."""
    try:
        yield
    except (OSError, RuntimeError, CancelledError, AttributeError) as error:  # a client that gave up has no scheduler
        text = "the connection to the Dask scheduler was lost; blocks in the store are kept, run the same command again"
        raise ConnectionError(f"{text} ({error})") from error


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Yield a client of the Dask scheduler at an address; local:N starts and stops one with N worker processes."""
    try:
        import dask
        import distributed
    except ImportError as error:
        accepted = "an address if Dask is installed: pip install 'larl[cluster]'"
        raise InvalidValue("cluster", "address", address, accepted) from error
    make_client: Any = distributed.Client
    kind, _, count = address.partition(":")
    if kind != "local":
        try:
            client = make_client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise InvalidValue("cluster", "address", address, f"{ACCEPTED} ({error})") from error
        with client:
            yield client
        return
    if not count.isascii() or not count.isdecimal() or int(count) < 1:
        raise InvalidValue("cluster", "address", address, ACCEPTED)
    make_cluster: Any = distributed.LocalCluster
    with (
        dask.config.set(SETTINGS),
        make_cluster(n_workers=int(count), **LOCAL_CLUSTER) as cluster,
        make_client(cluster, set_as_default=False) as client,
    ):
        yield client
