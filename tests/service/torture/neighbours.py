"""Noisy neighbours: how long decisions of a study take while others use or attack the service.

    python -m tests.service.torture.neighbours [--seconds 10] [--json FILE]

Attackers without a token: endless headers, half-sent requests, slow bodies, idle connections. With the token of another
study: 200 readers of large pages, and policies that are huge, slow or hang.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from larl.service.http.auth import Auth
from larl.service.storage.database import Database
from tests.service.processes import Connection, Server
from tests.service.torture.attacks import KINDS
from tests.service.torture.checks import Table, progress

HANGING = """
from larl.policies import REGISTRY
from tests.service.failing_policy import FailingPolicy
REGISTRY["FailingPolicy"] = FailingPolicy
"""
HANGS = "a policy that hangs"
POLICIES: dict[str, Mapping[str, Any]] = {  # of the neighbour, and what it does
    "LARL(s=2000)": {"policy": "LARL", "s": 2000},
    "LARL(s=100)": {"policy": "LARL", "s": 100},
    "Auto": {"policy": "Auto"},
    HANGS: {"policy": "FailingPolicy", "failure": 2, "after": 0},
}
ROWS = 2_000  # decisions of the neighbour that are read
P50, P99, HEALTH = 0.010, 0.100, 0.100  # seconds: limits while the neighbour is at its worst
FACTOR = 3.0  # or so many times what it was before
MEMORY = 1024  # megabytes


@dataclass
class Latency:
    """Times of requests, in seconds, and the largest memory of the service in megabytes."""

    decisions: list[float]
    health: list[float]
    memory: float = 0.0

    def quantile(self, q: float) -> float:
        """Return a quantile of the times of decisions."""
        found = sorted(self.decisions)
        return found[min(int(q * len(found)), len(found) - 1)] if found else float("inf")


def measure(server: Server, token: str, seconds: float) -> Latency:
    """Request decisions of the quiet study one after the other for some time, and the health beside."""
    found, stop = Latency([], []), threading.Event()

    def probe() -> None:
        while not stop.wait(0.2):
            found.health.append(_timed(lambda: Connection(server.port, timeout=60.0).get("/v1/health")))
            found.memory = max(found.memory, _memory(server))

    thread = threading.Thread(target=probe, daemon=True)
    thread.start()
    until = time.monotonic() + seconds
    with Connection(server.port, token, timeout=60.0) as connection:
        while time.monotonic() < until:
            count = time.monotonic_ns()
            send = lambda count=count: connection.post(  # noqa: E731
                "/v1/studies/quiet/decisions", unit=f"u{count % 10}", key=f"k{count}"
            )
            found.decisions.append(_timed(send))
    stop.set()
    thread.join()
    return found


def _timed(send: Any) -> float:
    """Return the time of a request; one that fails counts as a minute."""
    started = time.monotonic()
    try:
        status = send().status
    except OSError:
        return 60.0
    return time.monotonic() - started if status == 200 else 60.0


def _memory(server: Server) -> float:
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@contextmanager
def attacking(kind: str, server: Server, token: str = "") -> Iterator[None]:
    """Run attackers of a kind for the duration of a block."""
    command = [sys.executable, "-m", "tests.service.torture.attacks", kind, str(server.port), token]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


class Neighbourhood:
    """A service with a quiet study, and its tokens."""

    def __init__(self, folder: Path, stack: ExitStack, program: str = "") -> None:
        storage = f"sqlite:///{folder}/study.db"
        database = Database(storage, write=True, create=True)
        self.quiet, self.noisy, admin = (
            Auth(database).create(study, role)
            for study, role in (("quiet", "host"), ("noisy", "admin"), ("*", "admin"))
        )
        database.close()
        self.server = Server(storage, folder / "log", "--rate", "100000", program=program)
        stack.enter_context(self.server)
        self._admin = admin
        self.create("quiet", {"policy": "LARL", "s": 1})

    def create(self, study: str, policy: Mapping[str, Any], arms: int = 2) -> int:
        """Create a study; return the status."""
        names = [f"arm{i}" for i in range(arms)]
        with self._connect() as connection:
            return connection.post("/v1/studies", study=study, arms=names, policy=dict(policy), seed=1).status

    def decide(self, count: int) -> None:
        """Make decisions of the noisy study."""
        with self._connect() as connection:
            for i in range(count):
                connection.post("/v1/studies/noisy/decisions", unit=f"u{i % 10}", key=f"k{i}")

    def _connect(self) -> Connection:
        """Return a new connection: the service closes idle ones."""
        return Connection(self.server.port, self._admin, timeout=300.0)


def run(name: str, seconds: float, folder: Path) -> tuple[str, Latency, Latency]:
    """Return the latencies before and during an attack, or decisions of a study with an expensive policy."""
    policy = POLICIES.get(name)
    kind = "deciders" if policy else name
    with ExitStack() as stack:
        service = Neighbourhood(folder, stack, HANGING if name == HANGS else "")
        if kind == "readers":
            service.create("noisy", {"policy": "UCB"})
            service.decide(ROWS)
        measure(service.server, service.quiet, 1.0)  # warm up
        before = measure(service.server, service.quiet, seconds / 2)
        is_refused = policy and service.create("noisy", policy) == 422
        with attacking(kind, service.server, service.noisy):
            time.sleep(min(seconds / 5, 2.0))  # until its connections are open
            during = measure(service.server, service.quiet, seconds)
    shown = name if policy else f"{KINDS[kind][1]:,} {name}"
    return shown + (" (refused)" if is_refused else ""), before, during


def failures(name: str, before: Latency, during: Latency) -> Iterator[str]:
    """Yield the limits that were exceeded."""
    for quantile, limit in ((0.5, P50), (0.99, P99)):
        allowed = max(limit, FACTOR * before.quantile(quantile))
        if during.quantile(quantile) > allowed:
            yield f"{name}: p{100 * quantile:.0f} {_ms(during.quantile(quantile))}; at most {_ms(allowed)}"
    if max(during.health) > max(HEALTH, FACTOR * max(before.health)):
        yield f"{name}: health took {_ms(max(during.health))}; at most {_ms(HEALTH)}"
    if during.memory > MEMORY:
        yield f"{name}: {during.memory:.0f} MB of memory; at most {MEMORY} MB"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms" if seconds < 60.0 else "no response"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="for each neighbour")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    columns = ("neighbour", "p50 before", "p99 before", "p50", "p99", "slowest health", "memory")
    table = Table("Noisy neighbours: decisions of another study", columns)

    def add(name: str, before: Latency, during: Latency) -> None:
        times = [_ms(each.quantile(q)) for each in (before, during) for q in (0.5, 0.99)]
        table.rows.append((name, *times, _ms(max(during.health)), f"{during.memory:.0f} MB"))
        table.failures += failures(name, before, during)
        progress(f"{table.rows[-1]}")

    for name in (*(kind for kind in KINDS if kind != "deciders"), *POLICIES):
        with tempfile.TemporaryDirectory() as folder:
            add(*run(name, options.seconds, Path(folder)))
    table.finish(options.json)


if __name__ == "__main__":
    main()
