"""How far `larl diagnose` can be trusted: the table of docs/diagnose.md, and its figure.

python benchmarks/diagnose.py [--logs 400]           writes both tables into docs/ (some fifteen minutes)
python benchmarks/diagnose.py --only periods         the table of periods and shared drift alone
python benchmarks/diagnose.py --only times           how long a diagnosis takes
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
from larl.diagnosis.drift import SIGNIFICANCE_LEVEL as LEVEL
from larl.diagnosis.drift import find_drift
from larl.diagnosis.estimates import estimate
from larl.diagnosis.figures import LIGHT, plot_time
from larl.diagnosis.fit import fit_orders
from larl.diagnosis.log import Log
from larl.diagnosis.periodic import find_period
from larl.diagnosis.shared_drift import find_shared_drift
from larl.reports.paper.report import image

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.diagnosis.logs import at_hours, constant_means, simulate_logs, stationary

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- made by benchmarks/diagnose.py -->", "<!-- end -->"
PERIODS_BEGIN, PERIODS_END = "<!-- periods: made by benchmarks/diagnose.py -->", "<!-- end of periods -->"
TIMES_BEGIN, TIMES_END = "<!-- times: made by benchmarks/diagnose.py -->", "<!-- end of times -->"
SEED = 20


def uneven(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Arms with noise of different size."""
    for frame in frames:
        yield frame.assign(r=frame.r * np.array([1.0, 3.0, 0.5])[frame.a])


def crowd(count: int) -> Iterator[pd.DataFrame]:
    """Logs of 40 units × 10 steps, each unit with a level of its own, nothing drifting."""
    generator = np.random.default_rng(SEED)
    for number in range(count):
        units = simulate_logs(constant_means(0.0, 1.0), 10, 40, SEED + number)
        yield pd.concat([each.assign(u=u, r=each.r + 3 * generator.normal()) for u, each in enumerate(units)])


def rate(hits: list[bool]) -> str:
    share = float(np.mean(hits))
    return f"{100 * share:.1f} ± {100 * np.sqrt(max(share * (1 - share), 1e-9) / len(hits)):.1f}"


def drift_rows(count: int) -> list[str]:
    """How often drift is reported, row by row of the table."""
    two, three, even = constant_means(0.0, 1.0), constant_means(0.0, 0.5, 1.0), constant_means(0.0, 0.0)
    still_logs: dict[str, Callable[[int], Iterator[pd.DataFrame]]] = {
        "2 arms at random": lambda steps: simulate_logs(two, steps, count, SEED),
        "3 arms at random, noises 1, 3 and ½": lambda steps: uneven(simulate_logs(three, steps, count, SEED)),
        "2 equal arms by UCB": lambda steps: simulate_logs(even, steps, count, SEED, larl.UCB()),
        "3 arms by UCB, noises 1, 3 and ½": lambda steps: uneven(simulate_logs(three, steps, count, SEED, larl.UCB())),
        "2 equal arms by Thompson sampling": lambda steps: simulate_logs(
            even, steps, count, SEED, larl.ThompsonSampling()
        ),
        "2 equal arms by LARL, s = 5": lambda steps: simulate_logs(even, steps, count, SEED, larl.LARL(5)),
    }
    moving = {
        f"k = {k}, {name}": lambda steps, world=world: simulate_logs(world, steps, count, SEED)
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
        "order k",
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
            for trial, frame in enumerate(simulate_logs(world, 200, count, SEED)):
                means = world.means(world.path(200, SEED, trial))
                loss = float(means.max(axis=1).mean() - means.mean(axis=0).max())
                log = make_log(frame)
                drift = find_drift(log)
                fits = fit_orders(log, drift.direction)
                got = estimate(log, fits, drift.direction, drift.verdict == "drift", 0)
                held.append(got.orders[0] <= k <= got.orders[1])
                widths.append(got.orders[1] - got.orders[0] + 1)
                fixed.append(
                    got.interval_of("fixed_arm_regret").low <= loss <= got.interval_of("fixed_arm_regret").high
                )
                shared.append(got.interval_of("state_share").low <= share <= got.interval_of("state_share").high)
            found.append(f"| k = {k}, {name} | {rate(held)} | {np.mean(widths):.1f} | {rate(fixed)} | {rate(shared)} |")
            print(found[-1], flush=True)
    return found


def same_rows(count: int) -> str:
    """How often a drift that all arms share is said to matter."""
    shared = larl.LatentAR(gammas=[0.9], beta=[1.0, 1.0], mu=[0.0, 0.3])
    hits = []
    for frame in simulate_logs(shared, 200, count, SEED):
        log = make_log(frame)
        drift = find_drift(log)
        hits.append(
            estimate(log, fit_orders(log, drift.direction), drift.direction, True, 0).same_beta_p_value <= LEVEL
        )
    return rate(hits)


def seconds(rows: int) -> float:
    frame = next(simulate_logs(stationary(5), rows, 1, SEED))
    started = time.perf_counter()
    larl.diagnose(frame, progress=False).save(DOCS.parent / "results" / "bench" / "diagnosis")
    return time.perf_counter() - started


def period_rows(count: int) -> list[str]:
    """How often a periodic component is reported: without dates, and with decisions at 9, 14 and 19 o'clock."""
    oscillating = larl.LatentAR(gammas=[1.4, -0.8], beta=[-1.0, 1.0], mu=[0.0, 0.0])
    worlds = {
        "constant means": constant_means(0.0, 1.0),
        "k = 1, stationary start": stationary(1),
        "k = 5, stationary start": stationary(5),
        "k = 10, the paper's start": larl.worlds.paper(10),
        "a drift that oscillates (γ = 1.4, −0.8)": oscillating,
    }
    of_hour = np.array([1.2, -0.3, -0.9])  # a time of day with a standard deviation of 0.9
    found = [
        "| | 120 steps | 120 steps, dates | 300 steps | 300 steps, dates |",
        "| --- | --- | --- | --- | --- |",
    ]
    for title, effect in (("no period", np.zeros(3)), ("a time of day of sd 0.9", of_hour)):
        found.append(f"| **{title}** | | | | |")
        for name, world in worlds.items():
            if effect.any() and name not in list(worlds)[:2]:
                continue
            cells = []
            for steps in (120, 300):
                frames = [
                    frame.assign(r=frame.r + effect[np.arange(steps) % 3])
                    for frame in simulate_logs(world, steps, count, SEED)
                ]
                cells.append(rate([find_period(make_log(frame)).is_detected for frame in frames]))
                cells.append(rate([find_period(make_log(at_hours(frame))).is_detected for frame in frames]))
            found.append(f"| {name} | {' | '.join(cells)} |")
            print(found[-1], flush=True)
    return found


def together_rows(count: int) -> list[str]:
    """How often units are reported to drift together."""
    own = larl.LatentAR(gammas=[0.9], beta=[-1.0, 1.0], mu=[0.0, 0.0])
    found = ["| | 5 units × 40 steps | 20 units × 40 steps |", "| --- | --- | --- |"]
    for name, world, size in (
        ("constant means", constant_means(0.0, 1.0), 0.0),
        ("each unit has its own drift (k = 1)", own, 0.0),
        ("its own drift and a shared one of a quarter of the variance", own, 1.45),
        ("a shared drift of half of the variance", constant_means(0.0, 1.0), 1.0),
    ):
        cells = []
        for units in (5, 20):
            hits = []
            for number in range(count):
                shared = size * path(40, SEED + number)
                frames = simulate_logs(world, 40, units, 1000 * SEED + number)
                frame = pd.concat([each.assign(u=u, r=each.r + shared) for u, each in enumerate(frames)])
                hits.append(find_shared_drift(make_log(frame)).is_detected)
            cells.append(rate(hits))
        found.append(f"| {name} | {' | '.join(cells)} |")
        print(found[-1], flush=True)
    return found


def path(steps: int, seed: int) -> np.ndarray:
    """A stationary AR(1) path with γ = 0.9 and variance 1."""
    generator = np.random.default_rng(seed)
    found = np.empty(steps)
    found[0] = generator.normal()
    for t in range(1, steps):
        found[t] = 0.9 * found[t - 1] + np.sqrt(1 - 0.81) * generator.normal()
    return found


def context_row(count: int) -> str:
    """How often drift is reported in a log without drift after a context was taken off."""
    hits = []
    for number, frame in enumerate(simulate_logs(constant_means(0.0, 1.0), 100, count, SEED)):
        generator = np.random.default_rng(number)
        x, place = generator.normal(size=100), generator.choice(["a", "b", "c"], size=100)
        effect = x * np.where(frame.a == 1, 1.0, -1.0) + (place == "b")
        hits.append(said(make_log(frame.assign(r=frame.r + effect, x=x, place=place), context=["x", "place"])))
    return rate(hits)


def replaced(begin: str, end: str, parts: list[str]) -> None:
    """Put a part into the page, between its marks."""
    page = DOCS / "diagnose.md"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    page.write_text(before + begin + "\n\n" + "\n".join(parts) + "\n\n" + end + after, encoding="utf-8")
    print(f"written: {page}")


def write_periods(count: int) -> None:
    """The table of periods and shared drift."""
    parts = [
        f"Percent of {count:,} logs in which a periodic component is reported (p ≤ {LEVEL}), ± one standard error:",
        "",
        *period_rows(count),
        "",
        f"Percent of {count:,} logs in which units are reported to drift together (p ≤ {LEVEL}):",
        "",
        *together_rows(count),
        "",
        f"After two contexts with an effect were taken off, drift is reported in {context_row(count)} percent of "
        f"{count:,} logs of 100 steps without drift.",
    ]
    replaced(PERIODS_BEGIN, PERIODS_END, parts)


def write_times() -> None:
    """How long a diagnosis takes."""
    seconds(100)  # compiles what is not yet
    took = [f"{seconds(rows):.0f} s for {rows:,} rows" for rows in (200, 10_000, 100_000)]
    replaced(TIMES_BEGIN, TIMES_END, [f"From table to page, with compiled kernels: {', '.join(took)}."])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=400)
    parser.add_argument("--only", choices=["periods", "times"])
    asked = parser.parse_args()
    count, few = asked.logs, max(asked.logs // 8, 10)
    if asked.only != "times":
        write_periods(max(count // 4, 10))
    if asked.only != "periods":
        write_times()
    if asked.only:
        return
    parts = [
        f"Percent of {count:,} logs in which drift is reported (p ≤ {LEVEL}), ± one standard error; arms are chosen at "
        "random unless a policy is named:",
        "",
        *drift_rows(count),
        "",
        f"Percent of {few} logs in which a 95% range or interval holds the truth:",
        "",
        *range_rows(few),
        "",
        f"A drift that all arms share (β = 1 for both) is reported to move them apart in {same_rows(few)} percent of "
        f"{few} logs.",
    ]
    replaced(BEGIN, END, parts)
    sample = larl.diagnose(next(simulate_logs(stationary(1), 200, 1, SEED)), replay=False, progress=False)
    (DOCS / "images" / "diagnose.png").write_bytes(image(plot_time(sample, LIGHT), "png"))
    print(f"written: {DOCS / 'images' / 'diagnose.png'}")


if __name__ == "__main__":
    main()
