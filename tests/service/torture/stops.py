"""Frozen processes (SIGSTOP) under load: the service, one of two services, and the database.

    python -m tests.service.torture.stops [--stops 5] [--seconds 8] [--seed 0] [--json FILE]

The outage is the longest time without an acknowledged response, as seen by clients of a process that is not frozen.
"""

import argparse
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Thread

import sqlalchemy as sql

from tests.optional import POSTGRES
from tests.service.processes import Connection, Server, fresh_postgres
from tests.service.retrying_client import RetryingClient
from tests.service.torture.checks import Findings, Table, check_clients, progress
from tests.service.torture.load import create_studies, loading, longest_gap, wait_for

SERVICE, PEER = "the service", "one of two services"
BACKEND, DATABASE = "a connection of the database", "the database"
CLIENTS = 3  # of each process
RESPONSES = 30  # between two stops
OUTAGE = 5.0  # seconds without a response that a frozen peer may cause, or that follow another frozen process
ANSWER = 3.0  # seconds in which the service must answer, while the database is silent
SLACK = 1.0  # seconds that a busy machine may add


@dataclass(kw_only=True)
class Summary(Findings):
    """Results of the stops of one kind of process."""

    what: str
    storage: str
    stops: int = 0
    outage: float = 0.0  # the longest, seconds
    slowest: float = 0.0  # longest time of a request while a process is frozen, seconds
    noticed: int = 0  # stops during which health said so


def freeze(processes: Sequence[int], seconds: float) -> None:
    """Stop processes for some time."""
    try:
        for process in processes:
            _send(process, signal.SIGSTOP)
        time.sleep(seconds)
    finally:
        for process in processes:
            _send(process, signal.SIGCONT)


def _send(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # a process of the database may have ended by itself
        os.kill(process, number)


def run(
    what: str, storage: str, servers: Sequence[Server], frozen: Callable[[], Sequence[int]], stops: int, seconds: float
) -> Summary:
    """Freeze processes several times under load; measure at the first server."""
    summary = Summary(what=what, storage=storage.partition(":")[0].partition("+")[0])
    create_studies(servers[0].port)
    clients = [
        RetryingClient(f"c{number}{i}", [server.port], seed=number, timeout=60.0)
        for number, server in enumerate(servers)
        for i in range(CLIENTS)
    ]
    measured = clients[:CLIENTS]
    generator = random.Random(0)
    with loading(clients):
        for number in range(stops):
            wait_for(clients, RESPONSES)
            time.sleep(generator.random() * 0.2)  # at any moment of a transaction
            started = time.monotonic()
            with _probing(servers[0].port) as probes:
                freeze(frozen(), seconds)
                ended = time.monotonic()
            wait_for(measured, RESPONSES)
            summary.stops += 1
            summary.outage = max(summary.outage, longest_gap(measured, started, time.monotonic()))
            summary.slowest = max([summary.slowest, *(took for at, took, _ in probes if at < ended)])
            summary.noticed += any(not healthy for at, _, healthy in probes if at < ended)
            progress(f"{what}, {summary.storage}: {number + 1} of {stops} stops, outage {summary.outage:.1f} s")
    check_clients(storage, clients, summary)
    return summary


@contextmanager
def _probing(port: int) -> Iterator[list[tuple[float, float, bool]]]:
    """Ask for the health again and again; yield the times, durations, and whether it was well."""
    probes: list[tuple[float, float, bool]] = []
    stop = Event()

    def probe() -> None:
        while not stop.wait(0.1):
            started = time.monotonic()
            try:
                with Connection(port, timeout=60.0) as connection:
                    response = connection.get("/v1/health")
                    healthy = response.status == 200 and response.json()["status"] == "ok"
            except OSError:
                healthy = False
            probes.append((started, time.monotonic() - started, healthy))

    thread = Thread(target=probe, daemon=True)
    thread.start()
    yield probes
    stop.set()
    thread.join()


def backends(storage: str) -> list[int]:
    """Return the processes of a local PostgreSQL that serve connections to a database."""
    return [pid for (pid,) in _query(storage, "SELECT pid FROM pg_stat_activity WHERE datname = current_database()")]


def server_processes(storage: str) -> list[int]:
    """Return all processes of a local PostgreSQL, the first one first."""
    [[child]] = _query(storage, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
    stat = Path(f"/proc/{child}/stat").read_text()
    first = int(stat.rpartition(")")[2].split()[1])
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    return [first, *map(int, children)]


def _query(storage: str, query: str) -> list[tuple[int, ...]]:
    """Return processes, without the one that answers."""
    engine = sql.create_engine(storage, poolclass=sql.NullPool)
    with engine.connect() as connection:
        own = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
        return [tuple(row) for row in connection.exec_driver_sql(query) if row[0] != own]


def _one_of_backends(storage: str, generator: random.Random) -> list[int]:
    return [generator.choice(backends(storage))]


def _of(server: Server) -> Callable[[], Sequence[int]]:
    return lambda: [server.process.pid] if server.process else []


def run_all(stops: int, seconds: float, seed: int, folder: Path, kinds: Sequence[str]) -> Iterator[Summary]:
    """Freeze processes of these kinds."""
    generator = random.Random(seed)
    if SERVICE in kinds:
        with Server(f"sqlite:///{folder}/study.db", folder / "log", "--no-auth") as server:
            yield run(SERVICE, server.storage, [server], _of(server), stops, seconds)
    for what in (PEER, BACKEND, DATABASE):
        if what in kinds:
            with fresh_postgres() as storage, ExitStack() as stack:
                logs = [folder / f"{what}{i}.log" for i in range(2 if what == PEER else 1)]
                servers = [stack.enter_context(Server(storage, log, "--no-auth")) for log in logs]
                frozen = {
                    PEER: _of(servers[-1]),
                    BACKEND: partial(_one_of_backends, storage, generator),
                    DATABASE: partial(server_processes, storage),
                }
                yield run(what, storage, servers, frozen[what], stops, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stops", type=int, default=5, help="of each kind of process")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    columns = ("frozen", "storage", "stops", "longest outage", "slowest health", "health said so")
    table = Table(
        f"Frozen processes, {options.seconds:g} s each", (*columns, "acknowledged", "lost", "changed", "not replayed")
    )
    with tempfile.TemporaryDirectory() as folder:
        for found in run_all(
            options.stops,
            options.seconds,
            options.seed,
            Path(folder),
            (SERVICE, PEER, BACKEND, DATABASE) if POSTGRES else (SERVICE,),
        ):
            times = (f"{found.outage:.1f} s", f"{found.slowest:.1f} s", f"{found.noticed} of {found.stops}")
            counts = (found.acknowledged, found.lost, found.changed, found.not_replayed)
            table.rows.append((found.what, found.storage, found.stops, *times, *counts))
            if not found.is_correct:
                table.failures.append(f"{found.what}: {found.wrong} wrong: {found.examples[:3]}")
            table.failures += _limits(found, options.seconds)
    table.finish(options.json)


def _limits(found: Summary, seconds: float) -> Iterator[str]:
    """Yield the limits that were exceeded."""
    is_down = found.what != PEER  # a frozen connection may hold a lock, which nothing can release
    limit = (seconds if is_down else 0.0) + OUTAGE + SLACK
    if found.outage > limit:
        yield f"{found.what}: an outage of {found.outage:.1f} s; at most {limit:.1f} s"
    if found.what != SERVICE and found.slowest > ANSWER + SLACK:
        yield f"{found.what}: health took {found.slowest:.1f} s; at most {ANSWER + SLACK:.1f} s"
    if found.what == DATABASE and found.noticed < found.stops:
        yield f"{found.what}: health said ok during {found.stops - found.noticed} stops"


if __name__ == "__main__":
    main()
