"""The load under which faults are injected: studies, and clients that repeat what fails."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from tests.service.processes import Connection
from tests.service.retrying_client import STUDIES, RetryingClient
from tests.waiting import eventually

LAST = 60.0  # seconds that clients have at the end to get responses to their last requests


def create_studies(port: int) -> None:
    """Create the studies of the clients."""
    with Connection(port, timeout=300.0) as connection:
        for name, settings in STUDIES.items():
            response = connection.post("/v1/studies", study=name, arms=["nothing", "prompt"], seed=7, **settings)
            assert response.status == 200, response.content


@contextmanager
def loading(clients: Sequence[RetryingClient]) -> Iterator[None]:
    """Run clients for the duration of a block; then let them finish their last requests."""
    try:
        for client in clients:
            client.start()
        yield
    finally:
        for client in clients:
            client.stop.set()
        until = time.monotonic() + LAST
        for wait in (lambda client: client.join(max(until - time.monotonic(), 0.0)), _abandon):
            for client in clients:
                if client.ident:
                    wait(client)


def _abandon(client: RetryingClient) -> None:
    client.abandon.set()
    client.join()


def wait_for(clients: Iterable[RetryingClient], more: int, check: Callable[[], None] = lambda: None) -> None:
    """Wait until clients have so many more acknowledged responses."""
    clients = list(clients)

    def count() -> int:
        check()
        return sum(len(client.acknowledged) for client in clients)

    target = count() + more
    eventually(lambda: count() >= target)


def longest_gap(clients: Iterable[RetryingClient], start: float, end: float) -> float:
    """Return the longest time without an acknowledged response of these clients between two times."""
    times = sorted(time for client in clients for time in client.noted.values() if start <= time <= end)
    return max(after - before for before, after in zip([start, *times], [*times, end], strict=True))
