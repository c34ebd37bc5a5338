"""Scaling over cores, measured with one and two workers and simulated for a thousand: writes docs/scale.md.

    python benchmarks/scale.py [--out results/bench/scale.json] [--docs docs] [--reuse]

Measured: seconds of a block, overhead of a task, bytes of a block, and the time of a study with threads and with worker
processes, each the shortest of several repetitions. Simulated: a large study on up to 2,000 cores, with one scheduler
that sends one task after another.
"""

import argparse
import contextlib
import heapq
import json
import os
import pickle
import platform
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import larl
from larl import worlds
from larl.simulation.executors import AHEAD, connected
from larl.simulation.figure import COLOURS, STYLES
from larl.simulation.store import Store
from larl.simulation.study import Study
from larl.simulation.tasks import cut, perform, task_size

REPEATS = 7
STUDY = Study(
    {"k = 5": worlds.paper(5)}, {"LARL, s = 5": larl.LARL(5), "LARL, s = 10": larl.LARL(10)}, 1000, 4000, keep="summary"
)
TINY = Study({"k = 5": worlds.paper(5)}, {"UCB": larl.UCB()}, 10, 400, keep="summary")
BIG_STEPS = 10**11  # steps of the simulated study: 100 candidates × 10 worlds × 100,000 units × 1,000 decisions
CORES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
BLOCK_STEPS = (200_000, 2_000_000, 20_000_000)
LINK = 125e6  # bytes per second from the workers to the client: 1 Gbit/s
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def shortest_times(calls: dict[str, Callable[[], object]], repeats: int = REPEATS) -> dict[str, dict[str, float]]:
    """Return the shortest wall time and processor time of this process of each function; the functions alternate."""
    times: dict[str, list[list[float]]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            before = time.perf_counter(), time.process_time()
            call()
            after = time.perf_counter(), time.process_time()
            times[name].append([end - start for start, end in zip(before, after, strict=True)])
    shortest = {name: np.min(each, axis=0).tolist() for name, each in times.items()}
    return {name: dict(zip(("wall_s", "processor_s"), each, strict=True)) for name, each in shortest.items()}


def make_blocks(study: Study, keep: str = "summary") -> list[Any]:
    size = task_size(study.horizon, study.trials)
    return list(cut(study.worlds, study.policies, study.horizon, study.trials, study.seed, keep, size))


def block_costs() -> dict[str, float]:
    """Return the processor seconds of a block of each policy."""
    first_blocks = {block.name: block for block in make_blocks(STUDY) if block.first == 0}
    for block in first_blocks.values():
        perform(block)
    return {
        name: times["processor_s"]
        for name, times in shortest_times({n: block.play for n, block in first_blocks.items()}).items()
    }


def block_bytes() -> dict[str, dict[str, int]]:
    """Return the bytes of a task, of its result and of its file, for each value of `keep`."""
    sizes = {}
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder), {})
        for keep in ("summary", "all"):
            block = make_blocks(STUDY, keep)[0]
            result = perform(block)
            assert result.arrays is not None
            file = store.put(block, result.arrays)
            sizes[keep] = {
                "task": len(pickle.dumps(block)),
                "result": len(pickle.dumps(result)),
                "file": file.stat().st_size,
                "stored result": len(pickle.dumps(result._replace(arrays=None))),
            }
    return sizes


def run_with_store(address: str) -> None:
    """Run the study with a new store."""
    with tempfile.TemporaryDirectory() as folder:
        STUDY.run(cluster=address, progress=False, store=folder)


def measure_runs() -> dict[str, Any]:
    """Measure the study on threads and on running worker processes in alternation, and the overhead of a task."""
    calls: dict[str, Callable[[], object]] = {
        f"threads: {count}": partial(STUDY.run, threads=count, progress=False) for count in (1, 2)
    }
    with contextlib.ExitStack() as stack:
        for count in (1, 2):
            started = time.perf_counter()
            client = stack.enter_context(connected(f"local:{count}"))
            startup, address, started = time.perf_counter() - started, client.scheduler.address, time.perf_counter()
            STUDY.run(cluster=address, progress=False)  # also loads the kernels
            first_run = time.perf_counter() - started
            calls[f"worker processes: {count}"] = partial(STUDY.run, cluster=address, progress=False)
            calls[f"worker processes: {count}, with a store"] = partial(run_with_store, address)
        TINY.run(cluster=address, progress=False, block=1)
        task = shortest_times({"": partial(TINY.run, cluster=address, progress=False, block=1)})[""]
        times = shortest_times(calls)
    per_task = {name: seconds / TINY.trials for name, seconds in task.items()}
    return {"start_s": startup, "first_s": first_run, "task": per_task, "runs": times}


def simulate(cores: int, cost: Any, overhead: float, transfer: float) -> float:
    """Return the seconds until the last result has arrived.

    The scheduler spends `overhead` seconds on each block, one block at a time. A core runs one block at a time. The
    link transfers a result in `transfer` seconds. At most AHEAD blocks per core are pending.
    """
    server = link = 0.0
    free = [0.0] * cores
    returning: list[float] = []  # end times of the pending blocks
    for seconds in cost:
        if len(returning) >= AHEAD * cores:
            link = max(link, heapq.heappop(returning)) + transfer
            server = max(server, link)
        server += overhead
        done = max(server, heapq.heappop(free)) + seconds
        heapq.heappush(free, done)
        heapq.heappush(returning, done)
    while returning:
        link = max(link, heapq.heappop(returning)) + transfer
    return max(server, link)


def simulate_cores(data: dict[str, Any]) -> list[dict[str, float]]:
    """Simulate the large study; return seconds and efficiency for each block size and number of cores."""
    per_step = np.array(list(data["block_s"].values())) / data["block_steps"]
    overhead, rows = data["task"]["processor_s"], []
    for steps in BLOCK_STEPS:
        count = BIG_STEPS // steps
        cost = np.random.default_rng(0).choice(per_step, count) * steps
        for cores in CORES:
            seconds = simulate(cores, cost, overhead, data["bytes"]["summary"]["stored result"] / LINK)
            ideal = float(cost.sum()) / cores
            rows.append({"block_steps": steps, "cores": cores, "seconds": seconds, "efficiency": ideal / seconds})
    return rows


def plot_cores(rows: list[dict[str, float]]) -> Figure:
    figure = Figure(figsize=(7.6, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, steps in enumerate(BLOCK_STEPS):
        selected = [row for row in rows if row["block_steps"] == steps]
        cores = [row["cores"] for row in selected]
        style = {
            "color": COLOURS[number],
            "linestyle": STYLES[number],
            "marker": ".",
            "label": f"{steps / 1e6:g} M steps",
        }
        left.plot(cores, [row["seconds"] / 60 for row in selected], **style)
        right.plot(cores, [100 * row["efficiency"] for row in selected], **style)
    left.set(xscale="log", yscale="log", xlabel="cores", ylabel="minutes")
    right.set(xscale="log", xlabel="cores", ylabel="efficiency, percent", ylim=(0, 104))
    left.yaxis.set_major_formatter("{x:g}")
    for axis in (left, right):
        axis.xaxis.set_major_formatter("{x:g}")
        axis.grid(alpha=0.25, linewidth=0.5)
        axis.spines[["top", "right"]].set_visible(False)
    right.legend(title="a block has", frameon=False, fontsize=8, title_fontsize=8)
    return figure


def measure() -> dict[str, Any]:
    load, blocks_s = os.getloadavg()[0], block_costs()
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} before the start",
        "study_steps": sum(block.steps for block in make_blocks(STUDY)),
        "blocks": len(make_blocks(STUDY)),
        "block_steps": make_blocks(STUDY)[0].steps,
        "block_s": blocks_s,
        "bytes": block_bytes(),
        **measure_runs(),
    }


def page(data: dict[str, Any], rows: list[dict[str, float]]) -> str:
    """Return the measured part of docs/scale.md."""
    serial, task, sizes = data["runs"]["threads: 1"], data["task"], data["bytes"]
    lines = [
        f"Generated by `python benchmarks/scale.py --docs docs`. Machine: {data['machine']}.",
        f"The rows were measured in alternation, {REPEATS} times; each time is the shortest. Efficiency is the",
        "time of one thread divided by that of the row and by its number of threads or workers. Scheduler and",
        "client use the same two cores.",
        "",
        f'The study has {data["study_steps"] / 1e6:.0f} million steps in {data["blocks"]} blocks, `keep = "summary"`.',
        "",
        "| | seconds | efficiency |",
        "| --- | --- | --- |",
    ]
    for name, one in data["runs"].items():
        efficiency = serial["wall_s"] / one["wall_s"] / (2 if ": 2" in name else 1)
        lines.append(f"| {name} | {one['wall_s']:.2f} | {100 * efficiency:.0f}% |")
    lines += [
        "",
        "Parameters of the model:",
        "",
        "| | |",
        "| --- | --- |",
        *(
            f"| c, one block of {data['block_steps']:,} steps, {name} | {1e3 * seconds:.0f} ms, "
            f"{1e6 * seconds / data['block_steps']:.2f} µs per step |"
            for name, seconds in data["block_s"].items()
        ),
        f"| o, one task: processor time of scheduler and client | {1e3 * task['processor_s']:.1f} ms |",
        f"| one task: wall time, 2 workers on the same 2 cores | {1e3 * task['wall_s']:.1f} ms |",
        f"| start-up of 2 workers | {data['start_s']:.1f} s |",
        f"| first study on new workers, which loads the kernels | {data['first_s']:.1f} s |",
        *(
            f'| bytes of a task, its result and its file, `keep = "{keep}"` | {size["task"]:,}; {size["result"]:,}; '
            f"{size['file']:,} |"
            for keep, size in sizes.items()
        ),
        f"| bytes of a result that the worker wrote to the store | {sizes['summary']['stored result']:,} |",
    ]
    example = [row for row in rows if row["cores"] == 1000]
    mean = float(np.mean(list(data["block_s"].values()))) / data["block_steps"]
    lines += [
        "",
        f"A study of {BIG_STEPS:,} steps (100 candidates × 10 worlds × 100,000 units × 1,000 decisions) takes",
        f"{BIG_STEPS * mean / 3600:.0f} core hours at the mean of these costs, {1e6 * mean:.2f} µs per step.",
        "Simulation of 1,000 cores with a store that the workers can access:",
        "",
        "| steps per block | blocks | c/o, cores that one scheduler can serve | minutes | efficiency |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {row['block_steps']:,} | {BIG_STEPS // int(row['block_steps']):,} "
            f"| {mean * row['block_steps'] / task['processor_s']:,.0f} | {row['seconds'] / 60:.1f} "
            f"| {100 * row['efficiency']:.0f}% |"
            for row in example
        ),
        "",
        "![Minutes and efficiency over cores, for three block sizes](images/scale.png)",
        "",
        "*Simulated from the measured costs above. Where the time does not fall with more cores, the scheduler is the",
        "limit; longer blocks raise that limit.*",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/bench/scale.json"))
    parser.add_argument("--docs", type=Path, help="Folder of scale.md: write its measured part and its figure.")
    parser.add_argument(
        "--reuse", action="store_true", help="Read the measurements from the file of --out instead of measuring."
    )
    options = parser.parse_args()
    data = json.loads(options.out.read_text(encoding="utf-8")) if options.reuse else measure()
    rows = simulate_cores(data)
    text = page(data, rows)
    print(text)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(
        json.dumps(data | {"simulated": rows}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    if options.docs:
        path = options.docs / "scale.md"
        before, rest = path.read_text(encoding="utf-8").split(BEGIN)
        path.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")
        plot_cores(rows).savefig(options.docs / "images" / "scale.png", dpi=160)
    print(f"\nwritten: {options.out}")


if __name__ == "__main__":
    main()
