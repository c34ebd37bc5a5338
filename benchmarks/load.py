"""What the service bears: the table of docs/reliability.md under "Load".

python benchmarks/load.py [--seconds 10] [--rounds 3]    writes into docs/ (a minute or two)

Bare commits and the service take turns on the same disk. The service runs as users run it: its own process, HTTP, SQLite
synced at every commit. Clients are as light as they can be made, as they share the machine.
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

from larl.service.clerk import Command
from larl.service.database import Database, journal
from larl.service.desk import Desk
from larl.service.journal import Journal
from larl.service.minds import Mind

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = Path(os.environ.get("LARL_BENCH", "results/bench"))
BEGIN, END = "<!-- load: begin -->", "<!-- load: end -->"
STUDY = {"arms": ["a", "b"], "policy": {"policy": "LARL", "s": 5}, "min_probability": 0.1}
CLIENTS = (1, 8, 64)
UNITS = 10_000


def bare(folder: Path, seconds: float) -> dict[str, float]:
    """Commits a second of rows as long as the journal's, one a commit, with nothing around them.

    "heap": into a table without an index; "journal": into the journal's own.
    """
    path = folder / f"bare-{time.monotonic_ns()}.db"
    Database(f"sqlite:///{path}", create=True).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    names = ", ".join(f'"{column.name}"' for column in journal.c)
    connection.execute(f"CREATE TABLE heap ({names}, PRIMARY KEY (seq))")
    found, seq = {}, 0
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
        found[table] = count / (seconds / 2)
    connection.close()
    return found


@contextmanager
def served(storage: str, bound: bool = False) -> Iterator[tuple[int, subprocess.Popen[str], float]]:
    """A service, bound to one core or not: its port, its process, and how long it took to start."""
    began = time.perf_counter()
    command = [sys.executable, "-c", "from larl.cli import main; main()", "serve", "--storage", storage, "--port", "0"]
    process = subprocess.Popen([*command, "--no-auth"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    if bound:
        os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
    line = process.stdout.readline()
    try:
        yield int(re.findall(r":(\d+) ", line)[0]), process, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


class Line:
    """A connection that is kept."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Send a body; what it is answered."""
        if not hasattr(self, "writer"):
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        text = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: it\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        )
        self.writer.write(head.encode() + text)
        answered = await self.reader.readuntil(b"\r\n\r\n")
        answer = await self.reader.readexactly(int(re.findall(rb"content-length: (\d+)", answered)[0]))
        assert answered.startswith(b"HTTP/1.1 200"), answer
        return json.loads(answer)


async def client(port: int, name: str, end: float, times: list[float]) -> None:
    """Decides and sends rewards, one after the other, for a unit of its own."""
    line, step = Line(port), 0
    while time.perf_counter() < end:
        began = time.perf_counter()
        decision = await line.post("/v1/studies/load/decisions", {"unit": name, "key": f"{name}-{step}"})
        between = time.perf_counter()
        await line.post(f"/v1/decisions/{decision['id']}/reward", {"key": f"{name}-{step}", "value": 0.5})
        times += [between - began, time.perf_counter() - between]
        step += 1


async def load(port: int, clients: int, seconds: float, tag: str) -> dict[str, float]:
    """Requests a second, and how long they took."""
    times: list[float] = []
    began = time.perf_counter()
    await asyncio.gather(*(client(port, f"{tag}-{i}", began + seconds, times) for i in range(clients)))
    took = time.perf_counter() - began
    return {"rate": len(times) / took, "p50": 1e3 * np.quantile(times, 0.5), "p99": 1e3 * np.quantile(times, 0.99)}


def rounds(folder: Path, count: int, seconds: float) -> dict[str, Any]:
    """Bare commits and the service, in turns; of each the best."""
    found: dict[str, Any] = {"bare": {"heap": 0.0, "journal": 0.0}}
    with (
        served(f"sqlite:///{folder / 'any.db'}") as (one, _, _),
        served(f"sqlite:///{folder / 'one.db'}", bound=True) as (other, _, _),
    ):
        ports = {"any": one, "one": other}
        for port in ports.values():
            asyncio.run(Line(port).post("/v1/studies", {"study": "load", **STUDY}))
            asyncio.run(load(port, 4, 2.0, "first"))
        for turn in range(count):
            found["bare"] = {table: max(rate, found["bare"][table]) for table, rate in bare(folder, seconds).items()}
            for clients, (cores, port) in product(CLIENTS, ports.items()):
                print(f"round {turn + 1} of {count}: {clients} clients, {cores} core", file=sys.stderr)
                now = asyncio.run(load(port, clients, seconds, f"{turn}-{clients}"))
                if now["rate"] > found.get(f"{clients} {cores}", {"rate": 0.0})["rate"]:
                    found[f"{clients} {cores}"] = now
    return found


def in_memory(folder: Path, batch: int) -> float:
    """Microseconds of processor time a command takes, with all that the database does, in turns of `batch`."""
    database = Database(f"sqlite:///{folder / f'memory-{batch}.db'}", write=True, create=True)
    desk = Desk(Journal(database))
    desk.do([Command("study", "load", "load", STUDY)])
    best = float("inf")
    for step in range(max(300 // batch, 20)):
        began = time.process_time()
        names = [f"u{i}" for i in range(batch)]
        words = {"available": None, "reason": None, "context": None}
        answers = desk.do([Command("decision", "load", f"{step}-{u}", {"unit": u, **words}, u) for u in names])
        ids = [json.loads(answer)["id"] for answer in answers if isinstance(answer, bytes)]
        desk.do([Command("reward", "load", one, {"decision": one, "value": 0.5, "arm": None}) for one in ids])
        best = min(best, time.process_time() - began)
    desk.close()
    database.close()
    return 1e6 * best / (2 * batch)


def resident(process: subprocess.Popen[str]) -> float:
    """Megabytes that a process holds."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


def many(folder: Path) -> dict[str, float]:
    """10,000 units: what a start takes, and what the service holds once all of them have decided again."""
    storage, path = f"sqlite:///{folder / 'many.db'}", folder / "many.db"
    with served(storage) as (port, _, _):
        asyncio.run(Line(port).post("/v1/studies", {"study": "load", **STUDY}))
        asyncio.run(everybody(port, "one"))
    size = sum(Path(f"{path}{end}").stat().st_size for end in ("", "-wal") if Path(f"{path}{end}").exists())
    with served(storage) as (port, process, start):
        empty = resident(process)
        asyncio.run(everybody(port, "two"))
        full = resident(process)
    return {"start": start, "empty": empty, "full": full, "bytes": size / (2 * UNITS)}


async def everybody(port: int, key: str) -> None:
    """A decision and a reward for every unit."""

    async def some(first: int) -> None:
        line = Line(port)
        for unit in range(first, UNITS, 64):
            decision = await line.post("/v1/studies/load/decisions", {"unit": f"u{unit}", "key": f"{key}-{unit}"})
            await line.post(f"/v1/decisions/{decision['id']}/reward", {"key": f"{key}-{unit}", "value": 0.5})

    await asyncio.gather(*(some(first) for first in range(64)))


def mind_size() -> int:
    """Bytes of what is kept of one unit."""
    from larl.service.terms import Terms

    mind = Mind(Terms.of({"study": "load", **STUDY}), 0)
    mind.decide("u", None, None)
    return mind.size


def page(found: dict[str, Any]) -> str:
    """The part of the page."""
    rate, bare_rate = found["rounds"], found["rounds"]["bare"]
    lines = [
        f"Bare SQLite, one row a commit, synced, from a loop that does nothing else: {bare_rate['heap']:,.0f} commits a second "
        f"into a table without an index, {bare_rate['journal']:,.0f} into the journal's own. The service, on the same disk in "
        "turns with it:",
        "",
        "| clients | service on | requests a second | of bare commits, no index | of bare commits, journal | p50 | p99 |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for clients, cores in product(CLIENTS, ("any", "one")):
        one = rate[f"{clients} {cores}"]
        shares = " | ".join(f"{100 * one['rate'] / bare_rate[table]:.0f}%" for table in ("heap", "journal"))
        row = (clients, f"{cores} core", f"{one['rate']:,.0f}", shares, f"{one['p50']:.1f} ms", f"{one['p99']:.1f} ms")
        lines.append(f"| {' | '.join(map(str, row))} |")
    work, crowd = found["work"], found["many"]
    lines += [
        "",
        f"Half are decisions, half rewards. A command alone in its turn takes {work['1'] / 1e3:.2f} ms of processor time, database "
        f"and all, in a turn of 32 {work['32'] / 1e3:.2f} ms. {UNITS:,} units: a start takes {crowd['start']:.1f} s; once all of "
        f"them have decided the process holds {crowd['full']:,.0f} MB ({crowd['empty']:,.0f} before). What is kept of one unit "
        f"takes {found['mind'] / 1e3:.0f} kB, a command {crowd['bytes'] / 1e3:.1f} kB on the disk (snapshots included).",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        found = {
            "rounds": rounds(folder, wanted.rounds, wanted.seconds),
            "work": {str(batch): in_memory(folder, batch) for batch in (1, 32)},
            "many": many(folder),
            "mind": mind_size(),
        }
    (FOLDER / "load.json").write_text(json.dumps(found, indent=2))
    part, path = page(found), DOCS / "reliability.md"
    print(part)
    if path.exists() and BEGIN in (text := path.read_text(encoding="utf-8")):
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        path.write_text(f"{before}{BEGIN}\n{part}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
