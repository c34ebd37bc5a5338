"""Regret with and without pooling, 70 units × 140 decisions: writes the tables of docs/cohort.md.

    python benchmarks/cohort.py [--cohorts 60] [--docs docs]

Every kind of pooling gets the same random numbers, so differences are paired by cohort; ± is one standard error.
"""

import argparse
import math
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import larl
from larl import worlds
from larl._core.files import write_whole
from larl.policies import Policy
from larl.policies._pooling import POOLINGS
from larl.simulation import tables
from larl.worlds import HeterogeneousUnits

UNITS, DECISIONS, SEED = 70, 140, 0
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
SPREADS = {
    "identical": (0.0, 0.0),
    "slightly different": (0.3, 0.15),
    "different": (0.7, 0.4),
    "very different": (2.0, 1.0),
}


class Setting(NamedTuple):
    """A policy, the mean world of the units, and whether β varies between units (else only μ does)."""

    policy: Policy
    base: larl.LatentAR
    varies_beta: bool = True


def make_settings() -> dict[str, Setting]:
    first_order = larl.LatentAR(gammas=(0.9,), beta=(-1.0, 1.0), mu=(0.0, 0.0))
    fifth_order = replace(worlds.paper(5), start="stationary")
    constant = larl.LatentAR(gammas=(0.0,), beta=(1.0, 1.0), mu=(0.0, 0.3), sigma_z=0.0)
    return {
        "LARL(1), k = 1": Setting(larl.LARL(1), first_order),
        "LARL(5), k = 5": Setting(larl.LARL(5), fifth_order),
        "UCB, constant means, 0.3 apart": Setting(larl.UCB(), constant, varies_beta=False),
    }


def simulate(setting: Setting, spread: tuple[float, float], pooling: str, cohorts: int) -> larl.Result:
    mu, beta = spread
    world = HeterogeneousUnits(setting.base, mu=mu, beta=beta if setting.varies_beta else 0.0)
    return larl.compare(
        {"policy": setting.policy}, world, horizon=DECISIONS, trials=cohorts, seed=SEED, units=UNITS, pooling=pooling
    )


def format_mean(values: np.ndarray) -> str:
    return f"{values.mean():.1f} ± {values.std(ddof=1) / math.sqrt(values.size):.1f}"


def regret_tables(cohorts: int) -> str:
    """Return the tables of regret per unit and of the differences between kinds of pooling."""
    head = "| policy and world | units | none | full | partial | full − none | partial − none | partial − full |"
    lines = [head, "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    upper = ["| policy and world | units | none | full | partial |", "| --- | --- | --- | --- | --- |"]
    for title, setting in make_settings().items():
        for similarity, spread in SPREADS.items():
            results = {pooling: simulate(setting, spread, pooling, cohorts) for pooling in POOLINGS}
            total = {pooling: one.total().values.ravel() for pooling, one in results.items()}
            pairs = (("full", "none"), ("partial", "none"), ("partial", "full"))
            cells = [format_mean(each) for each in total.values()] + [
                format_mean(total[a] - total[b]) for a, b in pairs
            ]
            lines.append(f"| {title} | {similarity} | {' | '.join(cells)} |")
            rows = [tables.units(one).set_index("measure").loc["regret"] for one in results.values()]
            quartiles = " | ".join(f"{row['p75']:.1f} ± {row['p75_se']:.1f}" for row in rows)
            upper.append(f"| {title} | {similarity} | {quartiles} |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n\n75th percentile of total regret over units:\n\n" + "\n".join(upper)


def cost_table() -> str:
    """Return the table of µs per step: the shortest of five runs of four cohorts on one thread."""
    lines = ["| µs per step | none | full | partial |", "| --- | --- | --- | --- |"]
    for title, setting in make_settings().items():
        cells = []
        for pooling in POOLINGS:
            run = partial(
                larl.compare,
                {"policy": setting.policy},
                setting.base,
                horizon=DECISIONS,
                trials=4,
                units=UNITS,
                pooling=pooling,
                threads=1,
                progress=False,
            )
            times = []
            for _ in range(6):
                started = time.process_time()
                run()
                times.append(time.process_time() - started)
            cells.append(f"{1e6 * min(times[1:]) / (4 * UNITS * DECISIONS):.2f}")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=60)
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    options = parser.parse_args()
    spreads = "; ".join(f"{name}: {mu:g}, {beta:g}" for name, (mu, beta) in SPREADS.items())
    text = f"""{BEGIN}
Generated by `python benchmarks/cohort.py --cohorts {options.cohorts}`: {options.cohorts} cohorts of {UNITS} units ×
{DECISIONS} decisions, total regret per unit, ± one standard error over cohorts. Each unit has its own μ_a and β_a,
drawn around those of the world (`larl.worlds.HeterogeneousUnits`) with these standard deviations of μ and β:
{spreads}.
Units of UCB differ in μ only. The standard deviation of the noise is |β_a|.

{regret_tables(options.cohorts)}

{cost_table()}
{END}"""
    page = options.docs / "cohort.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    write_whole(page, lambda draft: draft.write_text(before + text + after, encoding="utf-8"))


if __name__ == "__main__":
    main()
