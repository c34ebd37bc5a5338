"""When pooling wins: 70 units × 140 decisions, units alike and not; makes the tables of docs/cohort.md.

    python benchmarks/cohort.py [--cohorts 60] [--docs docs]

The same luck under every pooling, so differences are taken cohort by cohort; ± is one standard error over cohorts.
"""

import argparse
import math
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import larl
from larl import worlds
from larl._core.files import write_atomically
from larl.policies import Policy
from larl.policies._pooling import POOLINGS
from larl.simulation import tables
from larl.worlds import LinearGaussianWorld, variants

UNITS, DECISIONS, SEED = 70, 140, 0
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
ALIKE = {
    "identical": (0.0, 0.0),
    "slightly different": (0.3, 0.15),
    "different": (0.7, 0.4),
    "very different": (2.0, 1.0),
}


class Setting(NamedTuple):
    """A policy, and the world around which units differ; where β is all noise, in their means alone."""

    policy: Policy
    base: LinearGaussianWorld
    beta: bool = True


def settings() -> dict[str, Setting]:
    slow = larl.LatentAR(gammas=(0.9,), beta=(-1.0, 1.0), mu=(0.0, 0.0))
    five = worlds.paper(5)
    long = larl.LatentAR(gammas=five.gammas, beta=five.beta, mu=five.mu, sigma_z=five.sigma_z, sigma_r=five.sigma_r)
    still = larl.LatentAR(gammas=(0.0,), beta=(1.0, 1.0), mu=(0.0, 0.3), sigma_z=0.0)
    return {
        "LARL(1), k = 1": Setting(larl.LARL(1), slow),
        "LARL(5), k = 5": Setting(larl.LARL(5), long),
        "UCB, means that stand still, 0.3 apart": Setting(larl.UCB(), still, beta=False),
    }


def result(setting: Setting, spread: tuple[float, float], pooling: str, cohorts: int) -> larl.Result:
    mu, beta = spread
    world = variants.HeterogeneousUnits(setting.base, mu=mu, beta=beta if setting.beta else 0.0)
    return larl.compare(
        {"it": setting.policy}, world, horizon=DECISIONS, trials=cohorts, seed=SEED, units=UNITS, pooling=pooling
    )


def shown(values: np.ndarray) -> str:
    return f"{values.mean():.1f} ± {values.std(ddof=1) / math.sqrt(values.size):.1f}"


def regrets(cohorts: int) -> str:
    """Regret per unit, and what pooling changes."""
    head = "| policy and world | units | none | full | partial | full − none | partial − none | partial − full |"
    lines = [head, "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    quarters = ["| policy and world | units | none | full | partial |", "| --- | --- | --- | --- | --- |"]
    for title, setting in settings().items():
        for alike, spread in ALIKE.items():
            found = {pooling: result(setting, spread, pooling, cohorts) for pooling in POOLINGS}
            total = {pooling: one.total().values.ravel() for pooling, one in found.items()}
            pairs = (("full", "none"), ("partial", "none"), ("partial", "full"))
            cells = [shown(each) for each in total.values()] + [shown(total[a] - total[b]) for a, b in pairs]
            lines.append(f"| {title} | {alike} | {' | '.join(cells)} |")
            rows = [tables.units(one).set_index("measure").loc["regret"] for one in found.values()]
            worse = " | ".join(f"{row['p75']:.1f} ± {row['p75_se']:.1f}" for row in rows)
            quarters.append(f"| {title} | {alike} | {worse} |")
            print(lines[-1], flush=True)
    return (
        "\n".join(lines)
        + "\n\nThe worse-off quarter: 75th percentile over units of total regret.\n\n"
        + "\n".join(quarters)
    )


def costs() -> str:
    """Microseconds of a step, the least of five runs of four cohorts on one thread."""
    lines = ["| a step, µs | none | full | partial |", "| --- | --- | --- | --- |"]
    for title, setting in settings().items():
        cells = []
        for pooling in POOLINGS:
            play = partial(
                larl.compare,
                {"it": setting.policy},
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
                began = time.process_time()
                play()
                times.append(time.process_time() - began)
            cells.append(f"{1e6 * min(times[1:]) / (4 * UNITS * DECISIONS):.2f}")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=60)
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    given = parser.parse_args()
    spreads = "; ".join(f"{name}: {mu:g}, {beta:g}" for name, (mu, beta) in ALIKE.items())
    text = f"""{BEGIN}
Made by `python benchmarks/cohort.py --cohorts {given.cohorts}`: {given.cohorts} cohorts of {UNITS} units ×
{DECISIONS} decisions, total regret per unit, ± one standard error over cohorts. Units draw their own μ_a and β_a around
the world's (`worlds.HeterogeneousUnits`), with standard deviations (for UCB, whose units differ in μ only, the first)
{spreads}. The sd of the noise is |β_a|.

{regrets(given.cohorts)}

{costs()}
{END}"""
    page = given.docs / "cohort.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    write_atomically(page, lambda draft: draft.write_text(before + text + after, encoding="utf-8"))


if __name__ == "__main__":
    main()
