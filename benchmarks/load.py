"""Throughput and latency of the service: writes the table "Load" of docs/reliability.md.

python benchmarks/load.py [--seconds 10] [--rounds 3]    (one or two minutes)

Bare commits and the service alternate on the same disk. The service runs as in production: its own process, HTTP, SQLite
with a sync at every commit. The clients do as little work as possible, because they share the machine.
"""

import argparse
import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from larl.service.core.agents import AgentHandle
from larl.service.core.batch import CommandBatch, Resources
from larl.service.core.commands import Command
from larl.service.core.study_config import StudyConfig
from larl.service.schemas.requests import DecisionRequest, NewStudy, RewardRequest
from larl.service.storage.database import Database
from larl.service.storage.journal import Journal
from larl.service.storage.tables import journal

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = Path(os.environ.get("LARL_BENCH", "results/bench"))
BEGIN, END = "<!-- load: begin -->", "<!-- load: end -->"
STUDY = {"arms": ["a", "b"], "policy": {"policy": "LARL", "s": 5}, "min_probability": 0.1}
CLIENTS = (1, 8, 64)
UNITS = 10_000


def measure_bare_commits(folder: Path, seconds: float) -> dict[str, float]:
    """Return commits per second of rows of the journal's length, one row for each commit.

    "heap" is a table without an index, "journal" the journal table.
    """
    path = folder / f"bare-{time.monotonic_ns()}.db"
    Database(f"sqlite:///{path}", create=True).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    names = ", ".join(f'"{column.name}"' for column in journal.c)
    connection.execute(f"CREATE TABLE heap ({names}, PRIMARY KEY (seq))")
    rates, seq = {}, 0
    for table in ("heap", "journal"):
        statement = f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(journal.c))})"
        count, end = 0, time.perf_counter() + seconds / 2
        while time.perf_counter() < end:
            seq, count = seq + 1, count + 1
            unit, step = f"{seq % 128 // 2}", seq // 128
            kind, key, ref = ("decision", "reward")[seq % 2], f"{unit}-{step}", f"load.{unit}-{step}-0123456789abcdef"
            values = (seq, "load", kind, unit, ref, step, key, "2026-11-16T08:30:00.000000Z", "x" * 100, "x" * 300)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(statement, values)
            connection.execute("COMMIT")
        rates[table] = count / (seconds / 2)
    connection.close()
    return rates


@contextmanager
def running_service(storage: str, one_core: bool = False) -> Iterator[tuple[int, subprocess.Popen[str], float]]:
    """Start a service, on one core or on any; yield its port, its process and its start-up time."""
    started = time.perf_counter()
    command = [sys.executable, "-c", "from larl.cli import main; main()", "serve", "--storage", storage, "--port", "0"]
    process = subprocess.Popen([*command, "--no-auth"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    if one_core:
        os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
    line = process.stdout.readline()
    try:
        yield int(re.findall(r":(\d+) ", line)[0]), process, time.perf_counter() - started
    finally:
        process.terminate()
        process.wait()


class Connection:
    """A persistent HTTP connection."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Send a request; return the response body."""
        if not hasattr(self, "writer"):
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        text = json.dumps(body).encode()
        request = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        self.writer.write(request.encode() + text)
        head = await self.reader.readuntil(b"\r\n\r\n")
        response = await self.reader.readexactly(int(re.findall(rb"content-length: (\d+)", head)[0]))
        assert head.startswith(b"HTTP/1.1 200"), response
        return json.loads(response)


async def send_commands(port: int, name: str, end: float, times: list[float]) -> None:
    """Request decisions and send rewards for one unit until `end`."""
    connection, step = Connection(port), 0
    while time.perf_counter() < end:
        started = time.perf_counter()
        decision = await connection.post("/v1/studies/load/decisions", {"unit": name, "key": f"{name}-{step}"})
        decided = time.perf_counter()
        await connection.post(f"/v1/decisions/{decision['id']}/reward", {"key": f"{name}-{step}", "value": 0.5})
        times += [decided - started, time.perf_counter() - decided]
        step += 1


async def measure_rate(port: int, clients: int, seconds: float, tag: str) -> dict[str, float]:
    """Return requests per second and latencies in ms."""
    times: list[float] = []
    started = time.perf_counter()
    await asyncio.gather(*(send_commands(port, f"{tag}-{i}", started + seconds, times) for i in range(clients)))
    elapsed = time.perf_counter() - started
    return {"rate": len(times) / elapsed, "p50": 1e3 * np.quantile(times, 0.5), "p99": 1e3 * np.quantile(times, 0.99)}


def measure_rounds(folder: Path, count: int, seconds: float) -> dict[str, Any]:
    """Measure bare commits and the service in alternation; return the best of each."""
    results: dict[str, Any] = {"bare": {"heap": 0.0, "journal": 0.0}}
    with (
        running_service(f"sqlite:///{folder / 'any.db'}") as (one, _, _),
        running_service(f"sqlite:///{folder / 'one.db'}", one_core=True) as (other, _, _),
    ):
        ports = {"any": one, "one": other}
        for port in ports.values():
            asyncio.run(Connection(port).post("/v1/studies", {"study": "load", **STUDY}))
            asyncio.run(measure_rate(port, 4, 2.0, "first"))
        for number in range(count):
            results["bare"] = {
                table: max(rate, results["bare"][table])
                for table, rate in measure_bare_commits(folder, seconds).items()
            }
            for clients, (cores, port) in product(CLIENTS, ports.items()):
                print(f"round {number + 1} of {count}: {clients} clients, {cores} core", file=sys.stderr)
                rates = asyncio.run(measure_rate(port, clients, seconds, f"{number}-{clients}"))
                if rates["rate"] > results.get(f"{clients} {cores}", {"rate": 0.0})["rate"]:
                    results[f"{clients} {cores}"] = rates
    return results


def command_time(folder: Path, size: int) -> float:
    """Return the processor time of a command in µs, including the database, in batches of `size`."""
    database = Database(f"sqlite:///{folder / f'memory-{size}.db'}", write=True, create=True)
    resources, units = Resources(Journal(database)), [f"u{i}" for i in range(size)]
    batch = CommandBatch(resources)
    batch.execute([Command("load", "load", NewStudy.model_validate({"study": "load", **STUDY}))])
    best = float("inf")
    for step in range(max(300 // size, 20)):
        started = time.process_time()
        responses = batch.execute(
            [Command("load", f"{step}-{u}", DecisionRequest(unit=u, key=f"{step}-{u}"), u) for u in units]
        )
        ids = [json.loads(response)["id"] for response in responses if isinstance(response, bytes)]
        batch.execute([Command("load", one, RewardRequest(key=one, value=0.5), decision=one) for one in ids])
        best = min(best, time.process_time() - started)
    resources.close()
    database.close()
    return 1e6 * best / (2 * size)


def resident_megabytes(process: subprocess.Popen[str]) -> float:
    """Return the resident memory of a process in MB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


def measure_many_units(folder: Path) -> dict[str, float]:
    """Return the start-up time and the memory of a service with 10,000 units, before and after decisions of all of them."""
    storage, path = f"sqlite:///{folder / 'many.db'}", folder / "many.db"
    with running_service(storage) as (port, _, _):
        asyncio.run(Connection(port).post("/v1/studies", {"study": "load", **STUDY}))
        asyncio.run(send_for_all_units(port, "one"))
    size = sum(Path(f"{path}{end}").stat().st_size for end in ("", "-wal") if Path(f"{path}{end}").exists())
    with running_service(storage) as (port, process, start):
        empty = resident_megabytes(process)
        asyncio.run(send_for_all_units(port, "two"))
        full = resident_megabytes(process)
    return {"start": start, "empty": empty, "full": full, "bytes": size / (2 * UNITS)}


async def send_for_all_units(port: int, key: str) -> None:
    """Request a decision and send a reward for every unit."""

    async def some(first: int) -> None:
        connection = Connection(port)
        for unit in range(first, UNITS, 64):
            decision = await connection.post("/v1/studies/load/decisions", {"unit": f"u{unit}", "key": f"{key}-{unit}"})
            await connection.post(f"/v1/decisions/{decision['id']}/reward", {"key": f"{key}-{unit}", "value": 0.5})

    await asyncio.gather(*(some(first) for first in range(64)))


def unit_bytes() -> int:
    """Return the bytes of the state of one unit."""
    agent = AgentHandle(StudyConfig.create({"study": "load", **STUDY}), 0)
    agent.decide("u", None, None)
    return agent.update_size()


def page(data: dict[str, Any]) -> str:
    """Return the generated part of the page."""
    rates, bare_rate = data["rounds"], data["rounds"]["bare"]
    lines = [
        f"A loop that only commits one synced row at a time to SQLite reaches {bare_rate['heap']:,.0f} commits per second for a table "
        f"without an index and {bare_rate['journal']:,.0f} for the journal table. The service, measured in alternation on the same disk:",
        "",
        "| clients | service on | requests per second | % of bare commits, no index | % of bare commits, journal | p50 | p99 |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for clients, cores in product(CLIENTS, ("any", "one")):
        one = rates[f"{clients} {cores}"]
        shares = " | ".join(f"{100 * one['rate'] / bare_rate[table]:.0f}%" for table in ("heap", "journal"))
        row = (clients, f"{cores} core", f"{one['rate']:,.0f}", shares, f"{one['p50']:.1f} ms", f"{one['p99']:.1f} ms")
        lines.append(f"| {' | '.join(map(str, row))} |")
    work, units = data["work"], data["many"]
    lines += [
        "",
        f"Half of the requests are decisions, half are rewards. A command in a batch of its own takes {work['1'] / 1e3:.2f} ms of processor "
        f"time, including the database; in a batch of 32 it takes {work['32'] / 1e3:.2f} ms. With {UNITS:,} units the service starts in "
        f"{units['start']:.1f} s and uses {units['empty']:,.0f} MB of memory, and {units['full']:,.0f} MB after a decision of every unit. The state of one "
        f"unit takes {data['unit_bytes'] / 1e3:.0f} kB of memory, a command {units['bytes'] / 1e3:.1f} kB on disk, including snapshots.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        data = {
            "rounds": measure_rounds(folder, options.rounds, options.seconds),
            "work": {str(size): command_time(folder, size) for size in (1, 32)},
            "many": measure_many_units(folder),
            "unit_bytes": unit_bytes(),
        }
    (FOLDER / "load.json").write_text(json.dumps(data, indent=2))
    part, path = page(data), DOCS / "reliability.md"
    print(part)
    if path.exists() and BEGIN in (text := path.read_text(encoding="utf-8")):
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        path.write_text(f"{before}{BEGIN}\n{part}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
