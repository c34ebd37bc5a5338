"""Kill the service repeatedly at random times under load, and check the journal.

    python -m tests.service.crash_test [--kills 300] [--storage sqlite|postgresql] [--seed 0] [--minutes 60]

Several clients request decisions and send rewards over HTTP, and repeat unanswered requests with the same key.
Meanwhile the process is killed (SIGKILL) and started again. Every acknowledged response must be in the journal once,
byte for byte.
"""

import argparse
import json
import platform
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import larl
from larl._core.files import write_atomically
from larl.service.ops.integrity import Mismatch
from larl.service.ops.replay import Replay
from larl.service.storage.database import Database
from larl.service.storage.events import Event
from larl.service.storage.journal import Journal
from tests.service.processes import Connection, Server, fresh_postgres
from tests.service.retrying_client import STUDIES, RetryingClient

CLIENTS = 4
MAX_UPTIME = 1.0  # seconds from the first response to a kill
STARTING = 10  # one of this many kills comes before the first response
LAST = 60.0  # seconds that clients have at the end to get responses to their last requests


@dataclass
class Summary:
    """Results of a run. From `lost` on, all counts should be 0."""

    storage: str
    processes: int
    seed: int
    kills: int = 0
    events: int = 0
    acknowledged: int = 0
    retried: int = 0  # acknowledged after a failure, with the same key
    replayed: int = 0
    fallbacks: int = 0
    seconds: float = 0.0
    start_s: float = 0.0  # median time until a started process answers
    lost: int = 0
    changed: int = 0  # stored responses that differ from the acknowledged ones
    duplicated: int = 0
    unrequested: int = 0  # events in the journal without a request
    gaps: int = 0  # in the numbers of events, or of a unit's steps
    not_replayed: int = 0
    corrupt: int = 0
    refused: int = 0  # valid requests
    examples: list[str] = field(default_factory=list)

    @property
    def is_correct(self) -> bool:
        """Whether nothing went wrong."""
        stored = (self.lost, self.changed, self.duplicated, self.unrequested, self.gaps, self.not_replayed)
        return not any(stored) and not self.corrupt and not self.refused

    def line(self) -> str:
        """Return the results as text."""
        return (
            f"{self.storage}, {self.processes} process(es): {self.kills} kills, {self.acknowledged} acknowledged "
            f"({self.retried} by a retry), {self.lost} lost, {self.changed} changed, {self.duplicated} duplicated, "
            f"{self.unrequested} unrequested, {self.gaps} gaps, {self.replayed} events replayed, "
            f"{self.not_replayed} not, {self.corrupt} corrupt, {self.refused} refused, {self.fallbacks} fallbacks"
        )


def run(storage: str, folder: Path, kills: int, seed: int, processes: int = 1, minutes: float = 0.0) -> Summary:
    """Kill the service `kills` times under load, or until `minutes` have passed; then check the journal."""
    started = time.monotonic()
    summary = Summary(storage.partition(":")[0], processes, seed)
    servers = [Server(storage, folder / f"{i}.log", "--no-auth", "--timeout", "20") for i in range(processes)]
    clients = [RetryingClient(f"c{i}", [server.port for server in servers], seed) for i in range(CLIENTS)]
    try:
        starts = _start(servers)
        for client in clients:
            client.start()
        _kill(servers, kills, random.Random(seed), starts, summary, started + 60.0 * minutes if minutes else None)
    finally:
        _stop(clients)
        for server in servers:
            server.__exit__()
    summary.start_s = sorted(starts)[len(starts) // 2]
    summary.seconds = time.monotonic() - started
    _check(storage, clients, summary)
    return summary


def _start(servers: Sequence[Server]) -> list[float]:
    """Start the servers and create the studies; return start-up times."""
    for server in servers:
        server.start()
    starts = [server.ready() for server in servers]
    with Connection(servers[0].port, timeout=300.0) as connection:
        for name, settings in STUDIES.items():
            response = connection.post("/v1/studies", study=name, arms=["nothing", "prompt"], seed=7, **settings)
            assert response.status == 200, response.content
    return starts[1:]  # the first may have compiled


def _kill(
    servers: Sequence[Server],
    kills: int,
    generator: random.Random,
    starts: list[float],
    summary: Summary,
    until: float | None,
) -> None:
    """Repeat: kill one of the servers after a random time, and start it again."""
    printed = time.monotonic()
    for i in range(kills):
        server = generator.choice(servers)
        if i % STARTING == STARTING - 1:
            time.sleep(max(server.started + 3.0 * generator.random() - time.monotonic(), 0.0))
        else:
            starts.append(server.ready())
            time.sleep(MAX_UPTIME * generator.random())
        server.end()
        summary.kills += 1
        server.start()
        if until is not None and time.monotonic() > printed + 10.0:
            printed = time.monotonic()
            print(f"{summary.kills} of {kills} kills", file=sys.stderr, flush=True)
        if until is not None and time.monotonic() > until:
            break
    for server in servers:
        starts.append(server.ready())


def _stop(clients: Sequence[RetryingClient]) -> None:
    """Let clients finish their last requests."""
    for client in clients:
        client.stop.set()
    until = time.monotonic() + LAST
    for client in clients:
        if client.ident:
            client.join(max(until - time.monotonic(), 0.0))
    for client in clients:
        client.abandon.set()
        if client.ident:
            client.join()


@contextmanager
def _open(storage: str) -> Iterator[Database]:
    database = Database(storage)
    try:
        yield database
    finally:
        database.close()


def _check(storage: str, clients: Sequence[RetryingClient], summary: Summary) -> None:
    """Compare the acknowledged responses with the journal."""
    with _open(storage) as database:
        events = list(Journal(database).all())
        if database.is_sqlite:
            with database.reading() as connection:
                result = connection.exec_driver_sql("PRAGMA integrity_check").scalar()
            summary.corrupt += result != "ok"
        try:
            summary.replayed = Replay(Journal(database)).run().events
        except Mismatch as error:
            summary.not_replayed = 1
            summary.examples.append(str(error))
    summary.events = len(events)
    summary.refused = sum(client.refused for client in clients)
    summary.retried = sum(client.retried for client in clients)
    summary.changed = sum(client.changed for client in clients)
    _check_responses(events, clients, summary)
    _check_order(events, summary)


def _check_responses(events: Sequence[Event], clients: Sequence[RetryingClient], summary: Summary) -> None:
    """Count acknowledged responses that are lost or changed, and events that are duplicated or not requested."""
    places = [(event.study, event.kind, event.key or "") for event in events if event.kind in ("decision", "reward")]
    stored = {(event.study, event.kind, event.key or ""): event.response_json.encode() for event in events}
    summary.duplicated = sum(count - 1 for count in Counter(places).values())
    summary.unrequested = len(set(places) - {place for client in clients for place in client.sent})
    for client in clients:
        summary.acknowledged += len(client.acknowledged)
        for place, content in client.acknowledged.items():
            summary.lost += place not in stored
            summary.changed += stored.get(place, content) != content


def _check_order(events: Sequence[Event], summary: Summary) -> None:
    """Count gaps in the numbers of events and in the steps of every unit."""
    summary.gaps = sum(event.seq != number for number, event in enumerate(events, 1))
    steps: Counter[tuple[str, str]] = Counter()
    for event in events:
        if event.kind == "decision":
            place = (event.study, event.unit or "")
            summary.gaps += event.number != steps[place]
            steps[place] += 1
            summary.fallbacks += event.response["fallback"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--storage", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=120.0, help="stop killing after this time")
    parser.add_argument("--out", type=Path, default=Path("results/reliability"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.storage == "sqlite":
            summary = run(f"sqlite:///{folder}/study.db", Path(folder), options.kills, options.seed, 1, options.minutes)
        else:
            with fresh_postgres() as storage:
                summary = run(storage, Path(folder), options.kills, options.seed, 2, options.minutes)
    print(summary.line())
    results = asdict(summary) | {
        "is_correct": summary.is_correct,
        "larl": larl.__version__,
        "python": platform.python_version(),
    }
    write_atomically(
        options.out / f"kills-{options.storage}.json", lambda path: path.write_text(json.dumps(results, indent=1))
    )
    sys.exit(0 if summary.is_correct else 1)


if __name__ == "__main__":
    main()
