"""The interface of an executor."""

from asyncio import CancelledError
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from larl.simulation.store import Store
from larl.simulation.tasks import Block, BlockResult


@runtime_checkable
class Executor(Protocol):
    """Runs blocks. It is a context manager: workers start on entry, and stop on exit; it can be entered again.

    If it has a store, workers write their blocks to it.
    """

    store: Store | None

    def __enter__(self) -> Self:
        """Start the workers."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Start no further blocks, wait for the running ones, and stop the workers."""

    def capacity(self) -> int:
        """Return how many blocks may be submitted and unfinished at a time."""

    def submit(self, blocks: list[Block]) -> list[Any]:
        """Start blocks and return a future for each."""

    def collect(self, futures: list[Any]) -> list[BlockResult | Exception]:
        """Return the results, or the errors, of finished futures."""


def result_or_error(future: Any) -> BlockResult | Exception:
    """Return the result of a finished future, or the error that it raised."""
    try:
        result: BlockResult = future.result()
    except Exception as error:  # a policy, full memory or a lost worker can raise anything
        return error
    except CancelledError:  # Dask's CancelledError is not an Exception
        return ConnectionError("the connection to the Dask scheduler was lost")
    return result
