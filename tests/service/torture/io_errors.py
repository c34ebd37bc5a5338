"""Errors of the disk: writes, syncs and truncations of SQLite fail under load, once or for a while.

    python -m tests.service.torture.io_errors [--faults 100] [--images 100] [--seed 0] [--json FILE]

The service may answer 503 meanwhile; then it must go on, or end and start again. Nothing acknowledged may be lost, also
not by a power cut afterwards: a failed sync may drop what was written before.
"""

import argparse
import errno
import random
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tests.service.processes import Connection, Server
from tests.service.torture.checks import Findings, Table, check_clients, progress
from tests.service.torture.disk import SYNC, TRUNCATE, WRITE, Disk
from tests.service.torture.load import create_studies, loading, wait_for
from tests.service.torture.power_cuts import check_images, client, image_table, recording

CLIENTS = 4
KINDS = (WRITE, SYNC, WRITE | SYNC | TRUNCATE)
ERRORS = (errno.EIO, errno.ENOSPC)
COUNTS = (1, 3, -1)  # calls that fail; -1: all
LASTING = 1.0  # seconds of a fault that lasts
RESPONSES = 20  # after a fault, until the service has recovered


@dataclass(kw_only=True)
class Summary(Findings):
    """Results of a run."""

    faults: int = 0
    failed_calls: int = 0
    lasting: int = 0  # faults that last
    noticed: int = 0  # of them by health
    ended: int = 0  # the process, by a fault
    seconds_to_recover: float = 0.0  # the longest


def run(faults: int, images: int, seed: int, folder: Path) -> tuple[Summary, Mapping[str, Findings]]:
    """Inject faults into a service under load; check its journal, and images of its disk."""
    generator, disk, summary = random.Random(seed), Disk(folder), Summary()
    with Server(disk.storage, folder / "log", "--no-auth", "--timeout", "20", **disk.environment) as server:
        create_studies(server.port)
        clients = [client(server, disk, f"c{i}", seed) for i in range(CLIENTS)]

        def keep_running() -> None:
            if server.process is not None and server.process.poll() is not None:
                summary.ended += 1
                server.start()
                server.ready()

        with loading(clients):
            wait_for(clients, RESPONSES)
            for number in range(faults):
                _inject(disk, server, number, generator, summary)
                healed = time.monotonic()
                wait_for(clients, RESPONSES, keep_running)
                summary.seconds_to_recover = max(summary.seconds_to_recover, time.monotonic() - healed)
                if (number + 1) % 20 == 0:
                    progress(f"{number + 1} of {faults} faults")
        server.end(signal.SIGKILL)
        server.start()
        server.ready()
        server.end(signal.SIGTERM)
    check_clients(disk.storage, clients, summary)
    return summary, check_images(recording(disk, clients), images, seed, folder)


def _inject(disk: Disk, server: Server, number: int, generator: random.Random, summary: Summary) -> None:
    """Let calls fail: one, three, or all for some time."""
    calls, error, count = list(product(KINDS, ERRORS, COUNTS))[number % (len(KINDS) * len(ERRORS) * len(COUNTS))]
    time.sleep(0.05 * generator.random())
    disk.fail(calls, error, count)
    summary.faults += 1
    if count < 0:
        time.sleep(LASTING)
        summary.lasting += 1
        summary.noticed += _is_unhealthy(server)
    else:
        until = time.monotonic() + LASTING
        while disk.remaining() and time.monotonic() < until:
            time.sleep(0.01)
        summary.failed_calls += count - disk.remaining()
    disk.fail(0, 0, 0)


def _is_unhealthy(server: Server) -> bool:
    try:
        with Connection(server.port, timeout=10.0) as connection:
            response = connection.get("/v1/health")
    except OSError:
        return True
    return response.status != 200 or response.json()["status"] != "ok"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        summary, images = run(options.faults, options.images, options.seed, Path(folder))
    columns = (
        "faults",
        "that last",
        "of them noticed by health",
        "processes ended",
        "longest recovery",
        "acknowledged",
        "lost",
        "changed",
        "not replayed",
        "valid requests refused",
    )
    table = Table("Errors of writes and syncs (SQLite)", columns)
    recovery, results = f"{summary.seconds_to_recover:.1f} s", (summary.lost, summary.changed, summary.not_replayed)
    counts = (summary.faults, summary.lasting, summary.noticed, summary.ended, recovery)
    table.rows.append((*counts, summary.acknowledged, *results, summary.refused))
    if not summary.is_correct:
        table.failures += summary.examples or ["the journal differs from what was acknowledged"]
    if summary.noticed < summary.lasting:
        table.failures.append(f"health said ok during {summary.lasting - summary.noticed} faults that last")
    after = image_table("", images)
    table.failures += after.failures
    checked, lost = (sum(getattr(found, name) for found in images.values()) for name in ("runs", "lost"))
    table.note = f"Power cuts after these errors: {checked} images, {lost} responses lost."
    table.finish(options.json)


if __name__ == "__main__":
    main()
