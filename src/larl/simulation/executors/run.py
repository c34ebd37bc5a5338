"""Run the blocks of a comparison on an executor: results in order, failures, progress, and blocks that are stored."""

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from queue import Empty, SimpleQueue

from larl._core.interrupt import DeferInterrupt
from larl._core.progress import Progress
from larl.simulation.executors.base import Executor
from larl.simulation.store import Store
from larl.simulation.tasks import Arrays, Block, BlockResult

MAX_NAMED_FAILURES = 5  # failed blocks that an error message names
POLL_SECONDS = 1.0  # time without a finished block after which `on_idle` is called


class BlocksFailed(RuntimeError):
    """Some blocks of a comparison failed; all others were run."""

    def __init__(self, failures: list[tuple[Block, Exception]], stored: bool) -> None:
        self.failures = failures
        lines = [f"{len(failures)} block(s) failed"]
        lines += [f"  {block.label}: {_reason(error)}" for block, error in failures[:MAX_NAMED_FAILURES]]
        if len(failures) > MAX_NAMED_FAILURES:
            lines.append(f"  and {len(failures) - MAX_NAMED_FAILURES} more")
        end = "the others are in the store: the same command runs only what failed" if stored else "nothing was kept"
        super().__init__("\n".join([*lines, end]))


def _reason(error: Exception) -> str:
    if type(error).__name__ == "KilledWorker":
        return "every worker that ran it died (out of memory?)"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ModuleNotFoundError):
            return f"the scheduler or a worker cannot import {cause.name!r}: install it there, or start them beside it"
        cause = cause.__cause__ or cause.__context__
    return f"{type(error).__name__}: {error}".splitlines()[0]


def run_blocks(
    executor: Executor, blocks: Iterable[Block], progress: Progress, *, stop_on_failure: bool = False
) -> Generator[tuple[Block, Arrays], None, None]:
    """Yield each block with its arrays, in the order of `blocks`.

    If the executor has a store, stored blocks are not run again. If a block fails, the others still run, then
    BlocksFailed is raised; with `stop_on_failure` the first error is raised at once.
    """
    if executor.store is not None:
        yield from _run_stored(executor, executor.store, list(blocks), progress)
        return
    failures: list[tuple[Block, Exception]] = []
    for block, result in _run(executor, blocks, progress, ordered=True):
        if isinstance(result, BlockResult):
            if not failures:
                yield block, result.arrays or {}
        elif stop_on_failure:
            result.add_note(f"while running {block.label}")
            raise result
        else:
            failures.append((block, result))
    if failures:
        raise BlocksFailed(failures, stored=False)


def _run_stored(
    executor: Executor, store: Store, blocks: list[Block], progress: Progress
) -> Iterator[tuple[Block, Arrays]]:
    """Run the blocks that the store does not have, in any order; then yield all of them from the store."""
    missing = []
    for block in blocks:
        if store.get(block) is None:
            missing.append(block)
        else:
            progress.skip_block(block)
    failures: list[tuple[Block, Exception]] = []
    for block, result in _run(executor, missing, progress, ordered=False) if missing else ():
        if isinstance(result, Exception):
            failures.append((block, result))
        elif result.arrays is not None:  # the worker does not reach the store
            store.put(block, result.arrays)
    if failures:
        raise BlocksFailed(failures, stored=True)
    for block in blocks:
        arrays = store.get(block)
        if arrays is None:
            raise OSError(f"{store.path(block)} was removed or changed during the run; run the same command again")
        yield block, arrays


def _run(
    executor: Executor, blocks: Iterable[Block], progress: Progress, *, ordered: bool
) -> Iterator[tuple[Block, BlockResult | Exception]]:
    """Yield what `stream_results` yields, and report finished blocks to `progress`."""
    with executor:
        for block, result in stream_results(executor, blocks, ordered=ordered, on_idle=progress.tick):
            if isinstance(result, BlockResult):
                progress.finish_block(block, result)
            yield block, result


def stream_results(
    executor: Executor, blocks: Iterable[Block], *, ordered: bool, on_idle: Callable[[], None]
) -> Iterator[tuple[Block, BlockResult | Exception]]:
    """Yield each block with its result or error, in the order of `blocks` if `ordered`, else as they finish."""
    waiting, finished = iter(blocks), SimpleQueue[int]()
    submitted: dict[int, tuple[Block, object]] = {}  # number of the block: block and future
    results: dict[int, BlockResult | Exception] = {}
    count = next_number = 0
    while True:
        batch = list(islice(waiting, max(0, executor.capacity() - len(submitted))))
        with DeferInterrupt():
            for block, future in zip(batch, executor.submit(batch) if batch else [], strict=True):
                submitted[count] = block, future
                future.add_done_callback(lambda _, number=count: finished.put(number))
                count += 1
        if not submitted:
            return
        done = _take(finished)
        if not done:
            on_idle()
        with DeferInterrupt():
            results |= zip(done, executor.collect([submitted[number][1] for number in done]), strict=True)
        while (number := next_number if ordered else next(iter(results), -1)) in results:
            yield submitted.pop(number)[0], results.pop(number)
            next_number += 1


def _take(queue: "SimpleQueue[int]") -> list[int]:
    """Return all items of the queue; if it is empty, wait at most POLL_SECONDS for the first."""
    items = []
    try:
        items.append(queue.get(timeout=POLL_SECONDS))
        while True:
            items.append(queue.get_nowait())
    except Empty:
        return items
