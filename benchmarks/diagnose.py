"""Error rates, coverage and run time of `larl diagnose`: the tables and the figure of docs/diagnose.md.

python benchmarks/diagnose.py [--logs 400]           all tables (about an hour)
python benchmarks/diagnose.py --only rewards         only the tables of binary, count and bounded rewards
python benchmarks/diagnose.py --only periods         only the tables of periods and of shared drift
python benchmarks/diagnose.py --only times           only the run times
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
from larl.diagnosis.drift import SIGNIFICANCE_LEVEL, find_drift
from larl.diagnosis.estimates import estimate
from larl.diagnosis.figures import LIGHT, plot_time
from larl.diagnosis.fit import fit_orders
from larl.diagnosis.log import Log
from larl.simulation.figure import image

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.diagnosis.logs import constant_means, simulate_logs, stationary

from diagnose_periods import SEED, format_rate, period_rows, shared_drift_rows
from diagnose_rewards import reward_drift_rows, reward_fit_rows

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- made by benchmarks/diagnose.py -->", "<!-- end -->"
PERIODS_BEGIN, PERIODS_END = "<!-- periods: made by benchmarks/diagnose.py -->", "<!-- end of periods -->"
REWARDS_BEGIN, REWARDS_END = "<!-- rewards: made by benchmarks/diagnose.py -->", "<!-- end of rewards -->"
TIMES_BEGIN, TIMES_END = "<!-- times: made by benchmarks/diagnose.py -->", "<!-- end of times -->"


def scale_rewards(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Yield the logs with a different noise scale for each arm."""
    for frame in frames:
        yield frame.assign(r=frame.r * np.array([1.0, 3.0, 0.5])[frame.a])


def logs_of_many_units(count: int) -> Iterator[pd.DataFrame]:
    """Yield logs of 40 units × 10 steps without drift, each unit with its own mean."""
    generator = np.random.default_rng(SEED)
    for number in range(count):
        units = simulate_logs(constant_means(0.0, 1.0), 10, 40, SEED + number)
        yield pd.concat([each.assign(u=u, r=each.r + 3 * generator.normal()) for u, each in enumerate(units)])


def drift_rows(count: int) -> list[str]:
    """Return the table of how often drift is reported."""
    two_arms, three_arms, equal_arms = constant_means(0.0, 1.0), constant_means(0.0, 0.5, 1.0), constant_means(0.0, 0.0)
    without_drift: dict[str, Callable[[int], Iterator[pd.DataFrame]]] = {
        "2 arms, random choice": lambda steps: simulate_logs(two_arms, steps, count, SEED),
        "3 arms, random choice, noise 1, 3 and ½": lambda steps: scale_rewards(
            simulate_logs(three_arms, steps, count, SEED)
        ),
        "2 equal arms, UCB": lambda steps: simulate_logs(equal_arms, steps, count, SEED, larl.UCB()),
        "3 arms, UCB, noise 1, 3 and ½": lambda steps: scale_rewards(
            simulate_logs(three_arms, steps, count, SEED, larl.UCB())
        ),
        "2 equal arms, Thompson sampling": lambda steps: simulate_logs(
            equal_arms, steps, count, SEED, larl.ThompsonSampling()
        ),
        "2 equal arms, LARL, s = 5": lambda steps: simulate_logs(equal_arms, steps, count, SEED, larl.LARL(5)),
    }
    with_drift = {
        f"k = {k}, {name}": lambda steps, world=world: simulate_logs(world, steps, count, SEED)
        for k in (1, 5, 10)
        for name, world in (("the paper's start", larl.worlds.paper(k)), ("stationary start", stationary(k)))
    }
    lines = ["| | 50 steps | 200 steps |", "| --- | --- | --- |"]
    for title, cases in (("no drift", without_drift), ("the paper's worlds", with_drift)):
        lines.append(f"| **{title}** | | |")
        for name, frames in cases.items():
            cells = [format_rate([reports_drift(make_log(each)) for each in frames(steps)]) for steps in (50, 200)]
            lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
            print(lines[-1], flush=True)
        if title == "no drift":
            units = format_rate([reports_drift(make_log(each)) for each in logs_of_many_units(count // 4)])
            lines.append(f"| 40 units of 10 steps, each with its own mean ({count // 4} logs) | {units} | |")
            print(lines[-1], flush=True)
    return lines


def reports_drift(log: Log) -> bool:
    return find_drift(log).verdict == "drift"


def range_rows(count: int) -> list[str]:
    """Return the table of how often ranges and intervals contain the true value."""
    columns = (
        "200 steps",
        "order k",
        "mean number of orders in the range",
        "loss of the best fixed arm",
        "the state's share of variance",
    )
    lines = [f"| {' | '.join(columns)} |", "| --- | --- | --- | --- | --- |"]
    for k in (1, 5, 10):
        for name, world in (("the paper's start", larl.worlds.paper(k)), ("stationary start", stationary(k))):
            order_covered: list[bool] = []
            loss_covered: list[bool] = []
            share_covered: list[bool] = []
            widths = []
            share = world.stationary_var / (world.stationary_var + 1.0)
            for trial, frame in enumerate(simulate_logs(world, 200, count, SEED)):
                means = world.means(world.path(200, SEED, trial))
                loss = float(means.max(axis=1).mean() - means.mean(axis=0).max())
                log = make_log(frame)
                drift = find_drift(log)
                fits = fit_orders(log, drift.direction)
                estimates = estimate(log, fits, drift.direction, drift.verdict == "drift", 0)
                first, last = estimates.orders
                order_covered.append(first <= k <= last)
                widths.append(last - first + 1)
                loss_covered.append(
                    estimates.interval_of("fixed_arm_regret").low
                    <= loss
                    <= estimates.interval_of("fixed_arm_regret").high
                )
                share_covered.append(
                    estimates.interval_of("state_share").low <= share <= estimates.interval_of("state_share").high
                )
            cells = [
                format_rate(order_covered),
                f"{np.mean(widths):.1f}",
                format_rate(loss_covered),
                format_rate(share_covered),
            ]
            lines.append(f"| k = {k}, {name} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


def common_beta_rate(count: int) -> str:
    """Return how often a drift that all arms share is reported to change their order."""
    shared = larl.LatentAR(gammas=[0.9], beta=[1.0, 1.0], mu=[0.0, 0.3])
    hits = []
    for frame in simulate_logs(shared, 200, count, SEED):
        log = make_log(frame)
        drift = find_drift(log)
        hits.append(
            estimate(log, fit_orders(log, drift.direction), drift.direction, True, 0).same_beta_p_value
            <= SIGNIFICANCE_LEVEL
        )
    return format_rate(hits)


def diagnosis_seconds(rows: int) -> float:
    """Return the seconds of a diagnosis with its page."""
    frame = next(simulate_logs(stationary(5), rows, 1, SEED))
    started = time.perf_counter()
    larl.diagnose(frame, progress=False).save(DOCS.parent / "results" / "bench" / "diagnosis")
    return time.perf_counter() - started


def context_rate(count: int) -> str:
    """Return how often drift is reported in logs without drift after the effect of contexts was removed."""
    hits = []
    for number, frame in enumerate(simulate_logs(constant_means(0.0, 1.0), 100, count, SEED)):
        generator = np.random.default_rng(number)
        x, group = generator.normal(size=100), generator.choice(["a", "b", "c"], size=100)
        effect = x * np.where(frame.a == 1, 1.0, -1.0) + (group == "b")
        hits.append(reports_drift(make_log(frame.assign(r=frame.r + effect, x=x, group=group), context=["x", "group"])))
    return format_rate(hits)


def write_part(begin: str, end: str, parts: list[str]) -> None:
    """Replace the part of docs/diagnose.md between two markers."""
    page = DOCS / "diagnose.md"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    page.write_text(before + begin + "\n\n" + "\n".join(parts) + "\n\n" + end + after, encoding="utf-8")
    print(f"written: {page}")


def write_periods(count: int) -> None:
    """Write the tables of periods and of shared drift."""
    parts = [
        f"Percent of {count:,} logs in which a periodic component is reported (p ≤ {SIGNIFICANCE_LEVEL}), "
        "± one standard error:",
        "",
        *period_rows(count),
        "",
        f"Percent of {count:,} logs in which units are reported to drift together (p ≤ {SIGNIFICANCE_LEVEL}):",
        "",
        *shared_drift_rows(count),
        "",
        f"Drift is reported in {context_rate(count)} percent of {count:,} logs of 100 steps without drift, after the "
        "effect of two contexts was removed.",
    ]
    write_part(PERIODS_BEGIN, PERIODS_END, parts)


def write_rewards(count: int) -> None:
    """Write the tables of binary, count and bounded rewards."""
    few = max(count // 2, 10)
    parts = [
        f"Percent of {count:,} logs without drift in which drift is reported (p ≤ {SIGNIFICANCE_LEVEL}), "
        "± one standard error, by units × steps and policy:",
        "",
        *reward_drift_rows(count, has_drift=False),
        "",
        f"The same for {count:,} logs with drift (γ = 0.9; the state moves two arms in opposite directions):",
        "",
        *reward_drift_rows(count, has_drift=True),
        "",
        f"Fits of order 1 to {few} of these logs with random choice, by the model that is chosen and by the one for "
        "continuous rewards:",
        "",
        *reward_fit_rows(few),
    ]
    write_part(REWARDS_BEGIN, REWARDS_END, parts)


def write_times() -> None:
    """Write the run times."""
    diagnosis_seconds(100)  # compile before measuring
    times = [f"{diagnosis_seconds(rows):.0f} s for {rows:,} rows" for rows in (200, 10_000, 100_000)]
    write_part(
        TIMES_BEGIN, TIMES_END, [f"Run time from the table to the page, with compiled kernels: {', '.join(times)}."]
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=400)
    parser.add_argument("--only", choices=["periods", "rewards", "times"])
    options = parser.parse_args()
    count, slow_count = options.logs, max(options.logs // 8, 10)
    if options.only in (None, "periods"):
        write_periods(max(count // 4, 10))
    if options.only in (None, "rewards"):
        write_rewards(count)
    if options.only in (None, "times"):
        write_times()
    if options.only:
        return
    parts = [
        f"Percent of {count:,} logs in which drift is reported (p ≤ {SIGNIFICANCE_LEVEL}), "
        "± one standard error; random choice "
        "unless a policy is named:",
        "",
        *drift_rows(count),
        "",
        f"Percent of {slow_count} logs in which a 95% range or interval contains the true value:",
        "",
        *range_rows(slow_count),
        "",
        f"A drift that all arms share (β = 1 for both) is reported to change their order in "
        f"{common_beta_rate(slow_count)} percent of {slow_count} logs.",
    ]
    write_part(BEGIN, END, parts)
    sample = larl.diagnose(next(simulate_logs(stationary(1), 200, 1, SEED)), replay=False, progress=False)
    (DOCS / "images" / "diagnose.png").write_bytes(image(plot_time(sample, LIGHT), "png"))
    print(f"written: {DOCS / 'images' / 'diagnose.png'}")


if __name__ == "__main__":
    main()
