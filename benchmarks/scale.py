"""What more cores give: measured here with one and two workers, computed for a thousand; makes docs/scale.md.

    python benchmarks/scale.py [--out results/bench/scale.json] [--docs docs] [--reuse]

Measured: seconds of a block, overhead of a task, bytes of a block, time with one thread and with one and two worker
processes, each the least of several repetitions. Computed: the same study on up to 2,000 cores, by a small simulation
of a scheduler that hands out one task after another.
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
from larl.simulation.executors.dask import BLOCKS_PER_CORE, connect
from larl.simulation.figure import COLOURS, STYLES
from larl.simulation.store import Store
from larl.simulation.study import Study
from larl.simulation.tasks import make_blocks, run_block, task_block_size

REPEATS = 7
STUDY = Study(
    {"k = 5": worlds.paper(5)}, {"LARL, s = 5": larl.LARL(5), "LARL, s = 10": larl.LARL(10)}, 1000, 4000, keep="summary"
)
TINY = Study({"k = 5": worlds.paper(5)}, {"UCB": larl.UCB()}, 10, 400, keep="summary")
BIG_STEPS = 10**11  # of the study that is simulated: 100 candidates × 10 worlds × 100,000 units × 1,000 decisions
CORES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
BLOCK_STEPS = (200_000, 2_000_000, 20_000_000)
LINK = 125e6  # bytes a second that reach the one who started the study: 1 Gbit/s
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def best(works: dict[str, Callable[[], object]], repeats: int = REPEATS) -> dict[str, dict[str, float]]:
    """The least of several calls of each, which take turns: seconds on the clock, and of processors in this process."""
    times: dict[str, list[list[float]]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            before = time.perf_counter(), time.process_time()
            work()
            after = time.perf_counter(), time.process_time()
            times[name].append([late - early for early, late in zip(before, after, strict=True)])
    least = {name: np.min(each, axis=0).tolist() for name, each in times.items()}
    return {name: dict(zip(("clock_s", "here_s"), each, strict=True)) for name, each in least.items()}


def blocks(study: Study, keep: str = "summary") -> list[Any]:
    size = task_block_size(study.horizon, study.trials)
    given = {"horizon": study.horizon, "trials": study.trials, "seed": study.seed, "keep": keep, "size": size}
    return list(make_blocks(study.worlds, study.policies, **given))


def block_costs() -> dict[str, float]:
    """Processor seconds of a block of each policy."""
    firsts = {block.policy_name: block for block in blocks(STUDY) if block.first == 0}
    for block in firsts.values():
        run_block(block)
    times = best({name: partial(run_block, block) for name, block in firsts.items()})
    return {name: took["here_s"] for name, took in times.items()}


def block_bytes() -> dict[str, dict[str, int]]:
    """Bytes of a task, of its result and of its file, for each way of keeping."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder), {})
        for keep in ("summary", "all"):
            block = blocks(STUDY, keep)[0]
            played = run_block(block)
            assert played.arrays is not None
            file = store.put(block, played.arrays)
            found[keep] = {
                "task": len(pickle.dumps(block)),
                "result": len(pickle.dumps(played)),
                "file": file.stat().st_size,
                "stored result": len(pickle.dumps(played._replace(arrays=None))),
            }
    return found


def stored(address: str) -> None:
    """The study, with a store of its own."""
    with tempfile.TemporaryDirectory() as folder:
        STUDY.run(cluster=address, progress=False, store=folder)


def runs() -> dict[str, Any]:
    """The study on threads and on worker processes that run already, in turns; and a task that does next to nothing."""
    works: dict[str, Callable[[], object]] = {
        f"threads: {count}": partial(STUDY.run, threads=count, progress=False) for count in (1, 2)
    }
    with contextlib.ExitStack() as stack:
        for count in (1, 2):
            began = time.perf_counter()
            client = stack.enter_context(connect(f"local:{count}"))
            start, address, began = time.perf_counter() - began, client.scheduler.address, time.perf_counter()
            STUDY.run(cluster=address, progress=False)  # also loads the kernels
            first = time.perf_counter() - began
            works[f"worker processes: {count}"] = partial(STUDY.run, cluster=address, progress=False)
            works[f"worker processes: {count}, with a store"] = partial(stored, address)
        TINY.run(cluster=address, progress=False, block=1)
        task = best({"": partial(TINY.run, cluster=address, progress=False, block=1)})[""]
        found = best(works)
    per_task = {name: seconds / TINY.trials for name, seconds in task.items()}
    return {"start_s": start, "first_s": first, "task": per_task, "runs": found}


def simulate(cores: int, cost: Any, overhead: float, moved: float) -> float:
    """Seconds until the last result has arrived.

    One who hands out tasks and takes results, `overhead` seconds for each block, one block at a time; `cores` that each
    play one block at a time; `moved` seconds of the link for each result. At most BLOCKS_PER_CORE blocks a core are
    under way.
    """
    server = link = 0.0
    free = [0.0] * cores
    returning: list[float] = []  # when blocks that are under way will be done
    for seconds in cost:
        if len(returning) >= BLOCKS_PER_CORE * cores:
            link = max(link, heapq.heappop(returning)) + moved
            server = max(server, link)
        server += overhead
        done = max(server, heapq.heappop(free)) + seconds
        heapq.heappush(free, done)
        heapq.heappush(returning, done)
    while returning:
        link = max(link, heapq.heappop(returning)) + moved
    return max(server, link)


def curves(found: dict[str, Any]) -> list[dict[str, float]]:
    """The simulated study: for each size of block and number of cores, seconds and efficiency."""
    per_step = np.array(list(found["block_s"].values())) / found["block_steps"]
    overhead, rows = found["task"]["here_s"], []
    for steps in BLOCK_STEPS:
        count = BIG_STEPS // steps
        cost = np.random.default_rng(0).choice(per_step, count) * steps
        for cores in CORES:
            took = simulate(cores, cost, overhead, found["bytes"]["summary"]["stored result"] / LINK)
            ideal = float(cost.sum()) / cores
            rows.append({"block_steps": steps, "cores": cores, "seconds": took, "efficiency": ideal / took})
    return rows


def draw(rows: list[dict[str, float]]) -> Figure:
    figure = Figure(figsize=(7.6, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for place, steps in enumerate(BLOCK_STEPS):
        mine = [row for row in rows if row["block_steps"] == steps]
        cores = [row["cores"] for row in mine]
        look = {"color": COLOURS[place], "linestyle": STYLES[place], "marker": ".", "label": f"{steps / 1e6:g} M steps"}
        left.plot(cores, [row["seconds"] / 60 for row in mine], **look)
        right.plot(cores, [100 * row["efficiency"] for row in mine], **look)
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
        "study_steps": sum(block.steps for block in blocks(STUDY)),
        "blocks": len(blocks(STUDY)),
        "block_steps": blocks(STUDY)[0].steps,
        "block_s": blocks_s,
        "bytes": block_bytes(),
        **runs(),
    }


def page(found: dict[str, Any], rows: list[dict[str, float]]) -> str:
    """The measured part of docs/scale.md."""
    serial, task, kept = found["runs"]["threads: 1"], found["task"], found["bytes"]
    lines = [
        f"Made by `python benchmarks/scale.py --docs docs`; not typed by hand. Machine: {found['machine']}.",
        f"All rows took turns, {REPEATS} times; each number is the least. Efficiency is the time of one thread over",
        "that of the row and its number of threads or workers. Scheduler and client are on the same two cores.",
        "",
        f'The study: {found["study_steps"] / 1e6:.0f} million steps in {found["blocks"]} blocks, `keep = "summary"`.',
        "",
        "| | seconds | efficiency |",
        "| --- | --- | --- |",
    ]
    for name, one in found["runs"].items():
        efficiency = serial["clock_s"] / one["clock_s"] / (2 if ": 2" in name else 1)
        lines.append(f"| {name} | {one['clock_s']:.2f} | {100 * efficiency:.0f}% |")
    lines += [
        "",
        "The parts of the model:",
        "",
        "| | |",
        "| --- | --- |",
        *(
            f"| c, a block of {found['block_steps']:,} steps, {name} | {1e3 * seconds:.0f} ms, "
            f"{1e6 * seconds / found['block_steps']:.2f} µs a step |"
            for name, seconds in found["block_s"].items()
        ),
        f"| o, a task: processor time of scheduler and client together | {1e3 * task['here_s']:.1f} ms |",
        f"| the same on the clock, 2 workers on the same 2 cores | {1e3 * task['clock_s']:.1f} ms |",
        f"| start of 2 workers | {found['start_s']:.1f} s |",
        f"| the first study on them, which loads the kernels | {found['first_s']:.1f} s |",
        *(
            f'| bytes of a task; result; file, `keep = "{keep}"` | {size["task"]:,}; {size["result"]:,}; '
            f"{size['file']:,} |"
            for keep, size in kept.items()
        ),
        f"| bytes of a result whose worker wrote it to the store | {kept['summary']['stored result']:,} |",
    ]
    example = [row for row in rows if row["cores"] == 1000]
    mean = float(np.mean(list(found["block_s"].values()))) / found["block_steps"]
    lines += [
        "",
        f"A study of {BIG_STEPS:,} steps (100 candidates × 10 worlds × 100,000 units × 1,000 decisions) at the mean of",
        f"these costs, {1e6 * mean:.2f} µs a step, is {BIG_STEPS * mean / 3600:.0f} core hours. On 1,000 cores, by",
        "simulation, with a store that the workers see:",
        "",
        "| steps a block | blocks | c/o, cores that one scheduler feeds | minutes | efficiency |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {row['block_steps']:,} | {BIG_STEPS // int(row['block_steps']):,} "
            f"| {mean * row['block_steps'] / task['here_s']:,.0f} | {row['seconds'] / 60:.1f} "
            f"| {100 * row['efficiency']:.0f}% |"
            for row in example
        ),
        "",
        "![Minutes and efficiency over cores, for three sizes of block](images/scale.png)",
        "",
        "*Simulated, from the measured costs above. Where time stays flat, one scheduler is at its limit; longer",
        "blocks move that limit.*",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/bench/scale.json"))
    parser.add_argument("--docs", type=Path, help="Also write the measured part of scale.md, and its figure, there.")
    parser.add_argument("--reuse", action="store_true", help="Measure nothing; take what is in the file of --out.")
    options = parser.parse_args()
    found = json.loads(options.out.read_text(encoding="utf-8")) if options.reuse else measure()
    rows = curves(found)
    text = page(found, rows)
    print(text)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(
        json.dumps(found | {"simulated": rows}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    if options.docs:
        path = options.docs / "scale.md"
        before, rest = path.read_text(encoding="utf-8").split(BEGIN)
        path.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")
        draw(rows).savefig(options.docs / "images" / "scale.png", dpi=160)
    print(f"\nwritten: {options.out}")


if __name__ == "__main__":
    main()
