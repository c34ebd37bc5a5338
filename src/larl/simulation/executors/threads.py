"""Blocks on threads of this process. Kernels release the GIL, so threads use all cores."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any

from larl._core.validation import integer
from larl.simulation.executors.base import result_or_error
from larl.simulation.store import Store
from larl.simulation.tasks import Block, BlockResult, default_threads, run_block

BlockRunner = Callable[[Block], BlockResult]
BLOCKS_PER_THREAD = 3  # submitted and unfinished, so that no thread waits for the next block


class ThreadExecutor:
    """Runs blocks on threads of this process.

    Parameters
    ----------
    threads : int, >= 1, optional
        Number of threads; all cores by default.
    store : Store, optional
        Folder that keeps finished blocks.
    runner : callable, optional
        Function from a block to its result; `run_block` by default.

    Examples
    --------
    >>> import larl
    >>> from larl.simulation.executors import ThreadExecutor
    >>> executor = ThreadExecutor(threads=2)
    >>> result = larl.compare(
    ...     {"UCB": larl.UCB()}, larl.worlds.paper(1), horizon=20, trials=5, executor=executor, progress=False
    ... )
    >>> result
    <larl.Result: 1 policy, 5 trials, 20 steps; keep='all'>
    """

    def __init__(
        self, threads: int | None = None, store: Store | None = None, runner: BlockRunner | None = None
    ) -> None:
        self._threads = default_threads() if threads is None else integer(1)("ThreadExecutor", "threads", threads)
        self.store = store
        self._runner = runner or partial(run_block, store=store)

    def __enter__(self) -> "ThreadExecutor":
        self._pool = ThreadPoolExecutor(self._threads, "larl")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def capacity(self) -> int:
        return BLOCKS_PER_THREAD * self._threads

    def submit(self, blocks: list[Block]) -> list[Any]:
        return [self._pool.submit(self._runner, block) for block in blocks]

    def collect(self, futures: list[Any]) -> list[BlockResult | Exception]:
        return [result_or_error(future) for future in futures]
