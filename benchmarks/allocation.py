"""Regret and power of allocations, control shares, schedules and warm-ups: writes the table of docs/allocation.md.

    python benchmarks/allocation.py [--cohorts 200] [--docs docs]

70 units × 140 decisions in a drifting world with an average treatment effect, and in the same world without one. Every
row has the same random numbers of the world; ± is one standard error over cohorts.
"""

import argparse
import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import larl
from larl._core.files import write_atomically
from larl.policies._pooling import pooled_state
from larl.simulation.engine import Simulation

UNITS, DECISIONS, SEED, EFFECT, LEVEL = 70, 140, 0, 0.06, 0.05
PER_DAY = 5  # decisions, for the names of the rows
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
WORLD = larl.LatentAR(gammas=(0.9,), beta=(0.5, 1.0), mu=(0.0, EFFECT), sigma_z=0.3, sigma_r=1.0, noise="common")
POLICY = larl.LARL(s=1, standardise=True)
POOLING = "full"
Floats = NDArray[np.float64]

WIDE = larl.Allocation("smooth", low=0.1, high=0.9)
SETTINGS: dict[str, dict[str, object]] = {
    '`allocation="ucb"`': {},
    "ucb, `min_probability=0.1`": {"min_probability": 0.1},
    "ucb, `min_probability=0.2`": {"min_probability": 0.2},
    'ucb, control share `{"0": 0.3}`': {"min_probability": {"0": 0.3}},
    'ucb, `{"0": 0.3, "1": 0.1}`': {"min_probability": {"0": 0.3, "1": 0.1}},
    '`allocation="best"`': {"allocation": "best"},
    "best, `min_probability=0.1`": {"allocation": "best", "min_probability": 0.1},
    '`allocation="smooth"`, 0.2 to 0.8': {"allocation": "smooth"},
    "smooth, 0.1 to 0.9": {"allocation": WIDE},
    "smooth, `slope=20`": {"allocation": larl.Allocation("smooth", slope=20.0)},
    'smooth, control share `{"0": 0.3}`': {"allocation": "smooth", "min_probability": {"0": 0.3}},
    "smooth, `update_every=5` (daily)": {"allocation": "smooth", "update_every": PER_DAY},
    "smooth, `update_every=35` (weekly)": {"allocation": "smooth", "update_every": 7 * PER_DAY},
    "smooth, `warm_up=35` (a week)": {"allocation": "smooth", "warm_up": 7 * PER_DAY},
    "smooth, `warm_up=35`, `update_every=5`": {"allocation": "smooth", "warm_up": 7 * PER_DAY, "update_every": PER_DAY},
    "equal probabilities": {"warm_up": DECISIONS},
}


class Outcome(NamedTuple):
    """Regret per unit, share of the treatment, and the estimated effect with its p-value, of each cohort."""

    regret: Floats
    share: Floats
    effect: Floats
    p_value: Floats


def estimate(arm: Floats, reward: Floats, probability: Floats) -> tuple[float, float]:
    """Return the inverse-probability weighted estimate of the average treatment effect and its two-sided p-value.

    The arrays have the shape (units, decisions). The mean of the unit's earlier rewards is subtracted from a reward: it
    is known before the decision, so the estimate stays unbiased. The standard error is that of the means of units.
    """
    sums = np.cumsum(reward, axis=1) - reward
    before = sums / np.maximum(np.arange(reward.shape[1]), 1)
    weighted = np.where(arm == 1, 1.0 / probability, -1.0 / (1.0 - probability)) * (reward - before)
    units = weighted.mean(axis=1)
    effect, error = float(units.mean()), float(units.std(ddof=1) / math.sqrt(units.size))
    return effect, float(2.0 * stats.t.sf(abs(effect) / error, units.size - 1))


def simulate(world: larl.LatentAR, settings: dict[str, object], cohorts: int) -> Outcome:
    """Simulate cohorts and analyse each."""
    policy = larl.Deployed(POLICY, **settings)  # type: ignore[arg-type]
    state = pooled_state(policy, policy.init(world.arms, horizon=DECISIONS, world=world), POOLING)
    rows = []
    for number in range(cohorts):
        cohort = Simulation(world.latent(), state, policy, UNITS)
        arm, reward, regret, probability = (np.empty((UNITS, DECISIONS)) for _ in range(4))
        for t in range(DECISIONS):
            trace = cohort.run_cohort(SEED, number, 1)
            arm[:, t], reward[:, t], regret[:, t] = trace.arm[:, 0], trace.reward[:, 0], trace.regret[:, 0]
            probability[:, t] = cohort.probabilities[:, 1]
        is_random = np.all((probability > 0.0) & (probability < 1.0))
        tested = estimate(arm, reward, probability) if is_random else (math.nan, math.nan)
        rows.append((regret.sum(axis=1).mean(), arm.mean(), *tested))
    return Outcome(*np.array(rows).T)


def mean(values: Floats, digits: int, factor: float = 1.0) -> str:
    """Return a mean and its standard error, – if it is not defined."""
    if np.isnan(values).any():
        return "–"
    error = values.std(ddof=1) / math.sqrt(values.size)
    return f"{factor * values.mean():.{digits}f} ± {factor * error:.{digits}f}"


def table(cohorts: int) -> str:
    """Return the rows of all settings."""
    head = ["setting", "regret per unit", "share of arm 1, %", "estimated effect", "sd of the estimate"]
    head += ["power, %", "rejected without an effect, %"]
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    without_effect = replace(WORLD, mu=(0.0, 0.0))
    for title, settings in SETTINGS.items():
        found, null = (simulate(world, settings, cohorts) for world in (WORLD, without_effect))
        spread = "–" if np.isnan(found.effect).any() else f"{found.effect.std(ddof=1):.3f}"
        rejected = [np.where(np.isnan(each.p_value), math.nan, each.p_value < LEVEL) for each in (found, null)]
        cells = [mean(found.regret, 2), mean(found.share, 1, 100.0), mean(found.effect, 3), spread]
        cells += [mean(each, 0, 100.0) for each in rejected]
        lines.append(f"| {title} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=200)
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    options = parser.parse_args()
    spread = 0.5 * WORLD.sigma_z / math.sqrt(1.0 - WORLD.gammas[0] ** 2)
    text = f"""{BEGIN}
Generated by `python benchmarks/allocation.py --cohorts {options.cohorts}`: {options.cohorts} cohorts of {UNITS} units ×
{DECISIONS} decisions, `LARL(s=1, standardise=True)` with full pooling. The average effect of arm 1 over arm 0 is
{EFFECT:g} standard deviations of the noise; it drifts with the latent state, with the standard deviation {spread:.2f}.
± is one standard error over cohorts.

{table(options.cohorts)}
{END}"""
    page = options.docs / "allocation.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    write_atomically(page, lambda draft: draft.write_text(before + text + after, encoding="utf-8"))


if __name__ == "__main__":
    main()
