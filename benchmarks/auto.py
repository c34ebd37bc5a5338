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
from larl.policies.auto.layout import CONTINUOUS, ModelKind, field_offsets
from larl.policies.auto.replay import filter_step
from measure import agent_step_times, state_bytes, world_with_arms

ARMS = (2, 6, 10, 20)


@numba.njit(nogil=True, error_model="numpy")
def filter_steps(x, fields, kind, steps, contexts):  # type: ignore[no-untyped-def]
    # Rewards repeat 0.0 … 0.6.
    level = np.zeros(kind.arms)
    for t in range(steps):
        for row in range(0, x.shape[0], fields.end):
            block, reward = x[row : row + fields.end], 0.1 * (t % 7)
            filter_step(block, fields, kind, t, t % 2, reward, 1.0, float(t), 0.6, level, contexts, 0)


def measure_filters(steps: int = 300) -> float:
    """Return the µs of one Kalman step of all particles."""
    agent = larl.Agent(larl.Auto(), 2)
    agent.observe(agent.decide(), 0.3)  # draws the particles
    smc, total = agent.state.smc, 0.0
    for i, (p, form) in enumerate(zip(smc.populations.order, smc.populations.form, strict=True)):
        kind = ModelKind(2, int(p), int(form), CONTINUOUS)
        fields, top = field_offsets(kind), smc.populations.top[i]
        x = smc.data[top : top + fields.end * smc.populations.blocks[i]].copy()
        filter_steps(x, fields, kind, 2, smc.context)
        started = time.process_time()
        filter_steps(x, fields, kind, steps, smc.context)
        total += time.process_time() - started
    return total / steps * 1e6


def summary(times: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> dict[str, float]:
    """Return mean, 99.9% quantile and maximum."""
    return {"mean": float(times.mean()), "p99.9": float(np.quantile(times, 0.999)), "worst": float(times.max())}


def main() -> None:
    """Measure, print the table, and write the JSON file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("results/bench/auto.json"))
    parser.add_argument("--long", type=int, default=100_000, help="steps of the long trial")
    options = parser.parse_args()
    agent_step_times(larl.Auto(), worlds.paper(1), 30, repeats=1)  # compile before measuring
    results: dict[str, object] = {"filters_us": measure_filters()}
    print(f"Kalman filters of all particles, one step: {results['filters_us']:.0f} µs")
    print("world    steps     mean      p99.9      worst   (µs per decision and update; targets 2,000 and 20,000)")
    for k in (1, 5, 10):
        for steps in (200, 2000):
            found = summary(agent_step_times(larl.Auto(), worlds.paper(k), steps))
            results[f"k={k} T={steps}"] = found
            target = "met" if found["mean"] <= 2000.0 and found["p99.9"] <= 20000.0 else "NOT met"
            print(
                f"k = {k:2d} {steps:7d} {found['mean']:8.0f} {found['p99.9']:10.0f} {found['worst']:10.0f}   {target}"
            )
    print("arms     steps     mean      p99.9      worst   State (MB)")
    for arms in ARMS:
        found = summary(agent_step_times(larl.Auto(), world_with_arms(arms), 500))
        found["state_bytes"] = state_bytes(larl.Auto().init(arms))
        results[f"arms={arms}"] = found
        size = found["state_bytes"] / 1e6
        print(f"{arms:4d} {500:9d} {found['mean']:8.0f} {found['p99.9']:10.0f} {found['worst']:10.0f} {size:12.1f}")
    results["state_bytes"] = state_bytes(larl.Auto().init(2))  # constant over time
    times = agent_step_times(larl.Auto(), worlds.paper(5), options.long, repeats=2)
    tenth = options.long // 10
    tenths = {f"tenth {i + 1}": float(times[i * tenth : (i + 1) * tenth].mean()) for i in range(10)}
    results["long"] = tenths
    print(f"{options.long:,} steps, mean by tenths: " + ", ".join(f"{value:.0f}" for value in tenths.values()) + " µs")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
