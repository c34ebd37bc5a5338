"""How far `larl diagnose` can be trusted: the table of docs/diagnose.md, and its figure.

python benchmarks/diagnose.py [--logs 400]    writes into docs/ (some ten minutes)
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import larl
from larl.diagnosis.build import make_log
from larl.diagnosis.drift import LEVEL, find_drift
from larl.diagnosis.estimates import estimate
from larl.diagnosis.figures import LIGHT, plot_time
from larl.diagnosis.fit import fit_orders
from larl.diagnosis.log import Log
from larl.paper.report import image

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.logs import logs, stationary, still

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- made by benchmarks/diagnose.py -->", "<!-- end -->"
SEED = 20


def uneven(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Arms with noise of different size."""
    for frame in frames:
        yield frame.assign(r=frame.r * np.array([1.0, 3.0, 0.5])[frame.a])


def crowd(count: int) -> Iterator[pd.DataFrame]:
    """Logs of 40 units × 10 steps, each unit with a level of its own, nothing drifting."""
    generator = np.random.default_rng(SEED)
    for number in range(count):
        units = logs(still(0.0, 1.0), 10, 40, SEED + number)
        yield pd.concat([each.assign(u=u, r=each.r + 3 * generator.normal()) for u, each in enumerate(units)])


def rate(hits: list[bool]) -> str:
    share = float(np.mean(hits))
    return f"{100 * share:.1f} ± {100 * np.sqrt(max(share * (1 - share), 1e-9) / len(hits)):.1f}"


def drift_rows(count: int) -> list[str]:
    """How often drift is said, row by row of the table."""
    two, three, even = still(0.0, 1.0), still(0.0, 0.5, 1.0), still(0.0, 0.0)
    still_logs: dict[str, Callable[[int], Iterator[pd.DataFrame]]] = {
        "2 arms at random": lambda steps: logs(two, steps, count, SEED),
        "3 arms at random, noises 1, 3 and ½": lambda steps: uneven(logs(three, steps, count, SEED)),
        "2 equal arms by UCB": lambda steps: logs(even, steps, count, SEED, larl.UCB()),
        "3 arms by UCB, noises 1, 3 and ½": lambda steps: uneven(logs(three, steps, count, SEED, larl.UCB())),
        "2 equal arms by Thompson sampling": lambda steps: logs(even, steps, count, SEED, larl.ThompsonSampling()),
        "2 equal arms by LARL, s = 5": lambda steps: logs(even, steps, count, SEED, larl.LARL(5)),
    }
    moving = {
        f"k = {k}, {name}": lambda steps, world=world: logs(world, steps, count, SEED)
        for k in (1, 5, 10)
        for name, world in (("the paper's start", larl.worlds.paper(k)), ("stationary start", stationary(k)))
    }
    found = ["| | 50 steps | 200 steps |", "| --- | --- | --- |"]
    for title, cases in (("no drift", still_logs), ("the paper's worlds", moving)):
        found.append(f"| **{title}** | | |")
        for name, frames in cases.items():
            cells = [rate([said(make_log(each)) for each in frames(steps)]) for steps in (50, 200)]
            found.append(f"| {name} | {cells[0]} | {cells[1]} |")
            print(found[-1], flush=True)
        if title == "no drift":
            units = rate([said(make_log(each)) for each in crowd(count // 4)])
            found.append(f"| 40 units of 10 steps, each with its own level ({count // 4} logs) | {units} | |")
            print(found[-1], flush=True)
    return found


def said(log: Log) -> bool:
    return find_drift(log).verdict == "drift"


def range_rows(count: int) -> list[str]:
    """How often ranges and intervals hold the truth."""
    columns = (
        "200 steps",
        "s",
        "mean width of its range",
        "loss of the best fixed arm",
        "the state's share of variance",
    )
    found = [f"| {' | '.join(columns)} |", "| --- | --- | --- | --- | --- |"]
    for k in (1, 5, 10):
        for name, world in (("the paper's start", larl.worlds.paper(k)), ("stationary start", stationary(k))):
            held: list[bool] = []
            fixed: list[bool] = []
            shared: list[bool] = []
            widths = []
            share = world.stationary_var / (world.stationary_var + 1.0)
            for trial, frame in enumerate(logs(world, 200, count, SEED)):
                means = world.means(world.path(200, SEED, trial))
                loss = float(means.max(axis=1).mean() - means.mean(axis=0).max())
                log = make_log(frame)
                drift = find_drift(log)
                fits = fit_orders(log, drift.direction)
                got = estimate(log, fits, drift.direction, drift.verdict == "drift", 0)
                held.append(got.orders[0] <= k <= got.orders[1])
                widths.append(got.orders[1] - got.orders[0] + 1)
                fixed.append(got.of("fixed").low <= loss <= got.of("fixed").high)
                shared.append(got.of("share").low <= share <= got.of("share").high)
            found.append(f"| k = {k}, {name} | {rate(held)} | {np.mean(widths):.1f} | {rate(fixed)} | {rate(shared)} |")
            print(found[-1], flush=True)
    return found


def same_rows(count: int) -> str:
    """How often a drift that all arms share is said to matter."""
    shared = larl.LatentAR(gammas=[0.9], beta=[1.0, 1.0], mu=[0.0, 0.3])
    hits = []
    for frame in logs(shared, 200, count, SEED):
        log = make_log(frame)
        drift = find_drift(log)
        hits.append(estimate(log, fit_orders(log, drift.direction), drift.direction, True, 0).same_beta <= LEVEL)
    return rate(hits)


def seconds(rows: int) -> float:
    frame = next(logs(stationary(5), rows, 1, SEED))
    started = time.perf_counter()
    larl.diagnose(frame, progress=False).save(DOCS.parent / "results" / "bench" / "diagnosis")
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=400)
    count = parser.parse_args().logs
    few = max(count // 8, 10)
    seconds(100)  # compiles what is not yet
    took = {rows: seconds(rows) for rows in (200, 10_000, 100_000)}
    parts = [
        f"Percent of {count:,} logs in which drift is said (p ≤ {LEVEL}), ± one standard error; arms chosen at random "
        "unless a policy is named:",
        "", *drift_rows(count), "",
        f"Percent of {few} logs in which a 95% range or interval holds the truth:",
        "", *range_rows(few), "",
        f"A drift that all arms share (β = 1 for both) is said to move them apart in {same_rows(few)} percent of {few} "
        f"logs. From table to page, compiled kernels at hand: {took[200]:.0f} s for 200 rows, {took[10_000]:.0f} s for "
        f"10,000, {took[100_000]:.0f} s for 100,000.",
    ]  # fmt: skip
    page = DOCS / "diagnose.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(before + BEGIN + "\n\n" + "\n".join(parts) + "\n\n" + END + after, encoding="utf-8")
    sample = larl.diagnose(next(logs(stationary(1), 200, 1, SEED)), replay=False, progress=False)
    (DOCS / "images" / "diagnose.png").write_bytes(image(plot_time(sample, LIGHT), "png"))
    print(f"written: {page}, {DOCS / 'images' / 'diagnose.png'}")


if __name__ == "__main__":
    main()
