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
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import larl
from larl._core.files import write_atomically
from tests.service.processes import Server, fresh_postgres
from tests.service.retrying_client import RetryingClient
from tests.service.torture.checks import Findings, check_clients
from tests.service.torture.load import create_studies, loading

CLIENTS = 4
MAX_UPTIME = 1.0  # seconds from the first response to a kill
STARTING = 10  # one of this many kills comes before the first response


@dataclass(kw_only=True)
class Summary(Findings):
    """Results of a run."""

    storage: str
    processes: int
    seed: int
    kills: int = 0
    retried: int = 0  # acknowledged after a failure, with the same key
    seconds: float = 0.0
    start_s: float = 0.0  # median time until a started process answers

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
    summary = Summary(storage=storage.partition(":")[0], processes=processes, seed=seed)
    servers = [Server(storage, folder / f"{i}.log", "--no-auth", "--timeout", "20") for i in range(processes)]
    clients = [RetryingClient(f"c{i}", [server.port for server in servers], seed) for i in range(CLIENTS)]
    until = started + 60.0 * minutes if minutes else None
    try:
        starts = _start(servers)
        with loading(clients):
            _kill(servers, kills, random.Random(seed), starts, summary, until)
    finally:
        for server in servers:
            server.__exit__()
    summary.start_s = sorted(starts)[len(starts) // 2]
    summary.seconds = time.monotonic() - started
    summary.retried = sum(client.retried for client in clients)
    check_clients(storage, clients, summary)
    return summary


def _start(servers: Sequence[Server]) -> list[float]:
    """Start the servers and create the studies; return start-up times."""
    for server in servers:
        server.start()
    starts = [server.ready() for server in servers]
    create_studies(servers[0].port)
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
