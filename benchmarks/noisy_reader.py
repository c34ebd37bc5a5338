"""Latency of decisions and of health while an analyst reads large pages.

python benchmarks/noisy_reader.py [--readers 200] [--seconds 10] [--tokens 1]    (half a minute)

The service, its readers and the measuring host are three processes. The readers request the largest page of decisions
again as soon as they have a response, also after a refusal. `--tokens` spreads them over several tokens.
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from larl.service.core.batch import CommandBatch, Resources
from larl.service.core.commands import Command
from larl.service.http.auth import Auth
from larl.service.queries.journal_queries import JournalQueries
from larl.service.schemas.requests import DecisionRequest, NewStudy, RewardRequest
from larl.service.storage.database import Database
from larl.service.storage.journal import Journal

ROWS = 5_000  # decisions of the study that is read
HOSTS = 4  # connections that request decisions
STUDY = {"arms": ["a", "b"], "policy": {"policy": "LARL", "s": 5}, "min_probability": 0.1}
LARL = [sys.executable, "-c", "from larl.cli import main; main()"]


def fill(storage: str, tokens: int) -> tuple[str, list[str]]:
    """Store two studies, one with decisions; return the host's token of one and the analysts' tokens of the other."""
    database = Database(storage, write=True, create=True)
    resources = Resources(Journal(database))
    batch = CommandBatch(resources)
    batch.execute([Command(name, name, NewStudy.model_validate({"study": name, **STUDY})) for name in ("a", "b")])
    for first in range(0, ROWS, 100):
        keys = [f"{number}" for number in range(first, first + 100)]
        batch.execute(
            [
                Command("b", key, DecisionRequest(unit=f"u{int(key) % 100}", key=key), f"u{int(key) % 100}")
                for key in keys
            ]
        )
    queries, after = JournalQueries(Journal(database)), 0
    while True:
        page = queries.decisions("b", None, after, 1000)
        batch.execute(
            [
                Command("b", one["id"], RewardRequest(key=one["id"], value=0.5), decision=one["id"])
                for one in page["items"]
            ]
        )
        if page["next"] is None:
            break
        after = page["next"]
    resources.close()
    auth = Auth(database)
    found = auth.create("a", "host"), [auth.create("b", "analyst") for _ in range(tokens)]
    database.close()
    return found


@contextmanager
def running_service(storage: str) -> Iterator[tuple[int, int]]:
    """Start a service; yield its port and the id of its process."""
    command = [*LARL, "serve", "--storage", storage, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield int(re.findall(r":(\d+) ", process.stdout.readline())[0]), process.pid
    finally:
        process.terminate()
        process.wait()


class Connection:
    """A persistent HTTP connection that a refusal does not close."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.head = port, f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        self.reader: asyncio.StreamReader | None = None

    async def send(self, method: str, path: str, body: str = "") -> tuple[int, bytes]:
        """Send a request; return the status and the body of the response."""
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**22)
        more = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        self.writer.write(f"{method} {path} HTTP/1.1\r\n{self.head}{more}\r\n{body}".encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        response = await self.reader.readexactly(int(re.findall(rb"content-length: (\d+)", head)[0]))
        if b"connection: close" in head.lower():
            self.writer.close()
            self.reader = None
        return int(head[9:12]), response


async def read(port: int, tokens: list[str], readers: int, seconds: float) -> Counter[str]:
    """Request pages on many connections for some seconds; return how often each status came."""
    counts: Counter[str] = Counter()

    async def one(number: int) -> None:
        connection = Connection(port, tokens[number % len(tokens)])
        while True:
            try:
                status, _ = await connection.send("GET", "/v1/studies/b/decisions?limit=1000")
                counts[str(status)] += 1
            except OSError as error:
                counts[type(error).__name__] += 1
                connection = Connection(port, tokens[number % len(tokens)])

    tasks = [asyncio.create_task(one(number)) for number in range(readers)]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    return counts


async def measure(port: int, token: str, seconds: float, tag: str) -> tuple[list[float], list[float]]:
    """Return the times in ms of decisions and of health checks."""
    decisions: list[float] = []
    checks: list[float] = []
    end = time.perf_counter() + seconds

    async def host(number: int) -> None:
        connection, step = Connection(port, token), 0
        while time.perf_counter() < end:
            started, step = time.perf_counter(), step + 1
            body = f'{{"unit": "{tag}-{number}", "key": "{tag}-{number}-{step}"}}'
            status, response = await connection.send("POST", "/v1/studies/a/decisions", body)
            assert status == 200, response
            decisions.append(1e3 * (time.perf_counter() - started))
            await asyncio.sleep(0.01)

    async def monitor() -> None:
        while time.perf_counter() < end:
            started = time.perf_counter()
            status, response = await Connection(port, token).send("GET", "/v1/health")
            assert status == 200, response
            checks.append(1e3 * (time.perf_counter() - started))
            await asyncio.sleep(0.1)

    await asyncio.gather(monitor(), *(host(number) for number in range(HOSTS)))
    return decisions, checks


def describe(times: list[float]) -> str:
    p50, p99, largest = np.quantile(times, [0.5, 0.99, 1.0])
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, largest {largest:.1f} ms ({len(times):,})"


def show(name: str, decisions: list[float], checks: list[float]) -> None:
    print(f"{name}: decisions {describe(decisions)}; health {describe(checks)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--tokens", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        storage = f"sqlite:///{Path(folder) / 'study.db'}"
        host, analysts = fill(storage, options.tokens)
        with running_service(storage) as (port, process):
            asyncio.run(measure(port, host, 1.0, "first"))
            show("no readers", *asyncio.run(measure(port, host, options.seconds / 2, "alone")))
            child = os.fork()
            if child == 0:
                print(
                    "readers:",
                    dict(asyncio.run(read(port, analysts, options.readers, options.seconds + 2))),
                    flush=True,
                )
                os._exit(0)
            time.sleep(1.0)
            show(f"{options.readers} readers", *asyncio.run(measure(port, host, options.seconds, "read")))
            os.waitpid(child, 0)
            status = Path(f"/proc/{process}/status").read_text()
            peak = int(re.findall(r"VmHWM:\s+(\d+)", status)[0])
            print(f"memory: {peak / 1024:.0f} MB at most")


if __name__ == "__main__":
    main()
