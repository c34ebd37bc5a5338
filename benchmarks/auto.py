"""Cost of a decision and its update by an agent with Auto, on one core, and whether it grows over a long trial.

The script also measures one Kalman step of all particles without reweighting and moves. Any method with the same number
of particles needs at least this time.
"""

import argparse
import json
import time
from pathlib import Path

import numba
import numpy as np

import larl
from larl import worlds
from larl.policies.auto.layout import Kind
from larl.policies.auto.particle_kalman import step
from measure import agent_step_times, state_bytes


@numba.njit(nogil=True, error_model="numpy")
def filter_steps(data, owner, rows, order, form, steps):  # type: ignore[no-untyped-def]
    # Rewards repeat 0.0 … 0.6.
    for t in range(1, steps):
        for block in range(owner.size):
            population = owner[block]
            step(data[block], rows, Kind(order[population], form[population]), t, t % 2, 0.1 * (t % 7), t, 0.6)


def measure_filters(steps: int = 300) -> float:
    """Return the µs of one Kalman step of all particles."""
    swarm = larl.Auto().init(2).swarm
    arguments = (swarm.data, swarm.owner, swarm.rows, swarm.populations.order, swarm.populations.form)
    filter_steps(*arguments, 2)
    started = time.perf_counter()
    filter_steps(*arguments, steps)
    return (time.perf_counter() - started) / steps * 1e6


def main() -> None:
    """Measure, print the table, and write the JSON file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("results/bench/auto.json"))
    parser.add_argument("--long", type=int, default=100_000, help="steps of the long trial")
    options = parser.parse_args()
    agent_step_times(larl.Auto(), worlds.paper(1), 30)  # compile before measuring
    results: dict[str, object] = {"filters_us": measure_filters()}
    print(f"Kalman filters of all particles, one step: {results['filters_us']:.0f} µs")
    print("world    steps     mean      p99.9      worst   (µs per decision and update; targets 2,000 and 20,000)")
    for k in (1, 5, 10):
        for steps in (200, 2000):
            times = np.concatenate(
                [agent_step_times(larl.Auto(), worlds.paper(k), steps) for _ in range(max(1, 1000 // steps))]
            )
            mean, tail, worst = times.mean(), np.quantile(times, 0.999), times.max()
            results[f"k={k} T={steps}"] = {"mean": mean, "p99.9": tail, "worst": worst}
            target = "met" if mean <= 2000.0 and tail <= 20000.0 else "NOT met"
            print(f"k = {k:2d} {steps:7d} {mean:8.0f} {tail:10.0f} {worst:10.0f}   {target}")
    times = agent_step_times(larl.Auto(), worlds.paper(5), options.long)
    tenth = options.long // 10
    tenths = {f"tenth {i + 1}": float(times[i * tenth : (i + 1) * tenth].mean()) for i in range(10)}
    results["long"] = tenths
    size = state_bytes(larl.Auto().init(2))
    results["state_bytes"] = size
    print(f"{options.long:,} steps, mean by tenths: " + ", ".join(f"{value:.0f}" for value in tenths.values()) + " µs")
    print(f"State: {size / 1e6:.1f} MB, constant over time")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
