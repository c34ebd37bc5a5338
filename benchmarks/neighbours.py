"""How much one study slows another: latency of study B alone and beside each kind of study A, and a load of `Auto`.

python benchmarks/neighbours.py [--seconds 5]    (one or two minutes)

B is a study of LARL with 4 clients. A has 16 clients, and a policy or a past that makes it slow. The service runs as in
production: its own process, HTTP, SQLite with a sync at every commit. B alone and B beside A alternate.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from load import Connection, running_service

FOLDER = Path(os.environ.get("LARL_BENCH", "results/bench"))
LARL = {"policy": "LARL", "s": 5}
LARGEST = {"policy": "LARL", "s": 270}  # the largest that is accepted
AUTO = {"policy": "Auto"}
RNG = np.random.default_rng(0)
CLIENTS = {"a": 16, "b": 4}


async def create_study(port: int, name: str, policy: dict[str, Any], **more: Any) -> None:
    await Connection(port).post("/v1/studies", {"study": name, "arms": ["a", "b"], "policy": policy, **more})


async def send(port: int, study: str, units: list[str], end: float, times: list[float], late: bool = False) -> None:
    """Request decisions and send rewards for units in turn until `end`; late: rewards come five decisions later."""
    connection, step, waiting = Connection(port), 0, []
    while time.perf_counter() < end:
        unit = units[step % len(units)]
        started = time.perf_counter()
        key = f"{unit}-{time.monotonic_ns()}"
        decision = await connection.post(f"/v1/studies/{study}/decisions", {"unit": unit, "key": key})
        times.append(time.perf_counter() - started)
        waiting.append(decision["id"])
        if len(waiting) > (5 * len(units) if late else 0):
            started, name = time.perf_counter(), waiting.pop(0)
            await connection.post(f"/v1/decisions/{name}/reward", {"key": key, "value": RNG.normal()})
            times.append(time.perf_counter() - started)
        step += 1


async def load(port: int, studies: dict[str, int], seconds: float, late: bool = False) -> dict[str, list[float]]:
    """Send commands to studies, each with a number of units; return the latencies of each study in s."""
    end = time.perf_counter() + seconds
    times: dict[str, list[float]] = {study: [] for study in studies}
    tasks = []
    for study, count in studies.items():
        clients = CLIENTS["b" if study == "b" else "a"]
        units = [f"{study}-{i}" for i in range(max(count, clients))]
        is_late = late and study != "b"
        tasks += [send(port, study, units[i::clients], end, times[study], is_late) for i in range(clients)]
    await asyncio.gather(*tasks)
    return times


def summary(times: list[float], seconds: float) -> dict[str, float]:
    return {
        "rate": len(times) / seconds,
        "p50": 1e3 * float(np.quantile(times, 0.5)),
        "p99": 1e3 * float(np.quantile(times, 0.99)),
    }


def measure(folder: Path, seconds: float) -> dict[str, Any]:
    """Return latencies of B alone and beside each study A, and of A."""
    results: dict[str, Any] = {}
    with running_service(f"sqlite:///{folder / 'neighbours.db'}") as (port, _, _):
        asyncio.run(create_study(port, "b", LARL))
        asyncio.run(create_study(port, "larl", LARL))
        asyncio.run(create_study(port, "largest", LARGEST))
        asyncio.run(create_study(port, "auto", AUTO))
        asyncio.run(create_study(port, "late", AUTO, max_delay=200))
        asyncio.run(load(port, {"b": 4}, 2.0))
        cases = {
            "LARL, 16 units": ("larl", 16, False),
            "the largest policy, 16 units": ("largest", 16, False),
            "Auto, 100 units": ("auto", 100, False),
            "Auto, 16 units, late rewards": ("late", 16, True),
        }
        for name, (study, units, late) in cases.items():
            alone = asyncio.run(load(port, {"b": 4}, seconds))["b"]
            both = asyncio.run(load(port, {"b": 4, study: units}, seconds, late))
            results[name] = {"alone": alone, "beside": both["b"], "a": both[study]}
        results["Auto alone, 100 units"] = {"a": asyncio.run(load(port, {"auto": 100}, seconds))["auto"]}
    with running_service(f"sqlite:///{folder / 'neighbours.db'}") as (port, _, _):
        alone = asyncio.run(load(port, {"b": 4}, seconds))["b"]
        both = asyncio.run(load(port, {"b": 4, "auto": 100}, seconds))
        results["Auto, 100 units after a restart"] = {"alone": alone, "beside": both["b"], "a": both["auto"]}
    return {
        name: {who: summary(times, seconds) for who, times in case.items() if times} for name, case in results.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        data = measure(Path(name), options.seconds)
    (FOLDER / "neighbours.json").write_text(json.dumps(data, indent=2))
    for case, found in data.items():
        parts = [
            f"{who}: {each['rate']:.0f}/s, p50 {each['p50']:.1f} ms, p99 {each['p99']:.1f} ms"
            for who, each in found.items()
        ]
        if "beside" in found:
            parts.append(f"p99 × {found['beside']['p99'] / found['alone']['p99']:.1f}")
        print(f"{case} | {' | '.join(parts)}")


if __name__ == "__main__":
    main()
