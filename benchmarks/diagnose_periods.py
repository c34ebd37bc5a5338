"""How often `larl diagnose` reports a period or shared drift: two tables that `diagnose.py` writes."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import larl
from larl.diagnosis.build import make_log
from larl.diagnosis.periodic import find_period
from larl.diagnosis.shared_drift import find_shared_drift

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.diagnosis.logs import at_hours, constant_means, simulate_logs, stationary

SEED = 20


def format_rate(hits: list[bool]) -> str:
    """Return the share of hits with its standard error, in percent."""
    share = float(np.mean(hits))
    return f"{100 * share:.1f} ± {100 * np.sqrt(max(share * (1 - share), 1e-9) / len(hits)):.1f}"


def period_rows(count: int) -> list[str]:
    """Return the table of how often a period is reported, without dates and with three decisions a day."""
    oscillating = larl.LatentAR(gammas=[1.4, -0.8], beta=[-1.0, 1.0], mu=[0.0, 0.0])
    worlds = {
        "constant means": constant_means(0.0, 1.0),
        "k = 1, stationary start": stationary(1),
        "k = 5, stationary start": stationary(5),
        "k = 10, the paper's start": larl.worlds.paper(10),
        "oscillating drift (γ = 1.4, −0.8)": oscillating,
    }
    of_hour = np.array([1.2, -0.3, -0.9])  # effect of the time of day, with a standard deviation of 0.9
    lines = [
        "| | 120 steps | 120 steps, dates | 300 steps | 300 steps, dates |",
        "| --- | --- | --- | --- | --- |",
    ]
    for title, effect in (("no period", np.zeros(3)), ("effect of the time of day, sd 0.9", of_hour)):
        lines.append(f"| **{title}** | | | | |")
        for name, world in worlds.items():
            if effect.any() and name not in list(worlds)[:2]:
                continue
            cells = []
            for steps in (120, 300):
                frames = [
                    frame.assign(r=frame.r + effect[np.arange(steps) % 3])
                    for frame in simulate_logs(world, steps, count, SEED)
                ]
                cells.append(format_rate([find_period(make_log(frame)).is_detected for frame in frames]))
                cells.append(format_rate([find_period(make_log(at_hours(frame))).is_detected for frame in frames]))
            lines.append(f"| {name} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


def shared_drift_rows(count: int) -> list[str]:
    """Return the table of how often units are reported to drift together."""
    own = larl.LatentAR(gammas=[0.9], beta=[-1.0, 1.0], mu=[0.0, 0.0])
    lines = ["| | 5 units × 40 steps | 20 units × 40 steps |", "| --- | --- | --- |"]
    for name, world, size in (
        ("constant means", constant_means(0.0, 1.0), 0.0),
        ("own drift of each unit (k = 1)", own, 0.0),
        ("own drift, and shared drift with a quarter of the variance", own, 1.45),
        ("shared drift with half of the variance", constant_means(0.0, 1.0), 1.0),
    ):
        cells = []
        for units in (5, 20):
            hits = []
            for number in range(count):
                shared = size * ar1_path(40, SEED + number)
                frames = simulate_logs(world, 40, units, 1000 * SEED + number)
                frame = pd.concat([each.assign(u=u, r=each.r + shared) for u, each in enumerate(frames)])
                hits.append(find_shared_drift(make_log(frame)).is_detected)
            cells.append(format_rate(hits))
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def ar1_path(steps: int, seed: int) -> np.ndarray:
    """Return a stationary AR(1) path with γ = 0.9 and variance 1."""
    generator = np.random.default_rng(seed)
    z = np.empty(steps)
    z[0] = generator.normal()
    for t in range(1, steps):
        z[t] = 0.9 * z[t - 1] + np.sqrt(1 - 0.81) * generator.normal()
    return z
