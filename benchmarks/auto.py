"""What Auto costs: a decision and its learning, live, on one core; and whether that stays flat.

Run by `make bench`; writes JSON beside the table. Beside Auto, in the same run, the bare filters of its particles: what
one step of all of them costs without moves, the least that any method with as many particles pays.
"""

import argparse
import json
import time
from pathlib import Path

import numba
import numpy as np

import larl
from larl import worlds
from larl.policies.auto.particle_kalman import ModelKind, filter_step
from measure import live, state_bytes


@numba.njit(nogil=True, error_model="numpy")
def bare_steps(data, owner, fields, order, form, steps):  # type: ignore[no-untyped-def]
    for t in range(1, steps):
        for block in range(owner.size):
            mine = owner[block]
            filter_step(data[block], fields, ModelKind(order[mine], form[mine]), t, t % 2, 0.1 * (t % 7), t)


def bare(steps: int = 300) -> float:
    """µs of one step of all filters."""
    smc = larl.Auto().init(2).smc
    learn_all = (smc.data, smc.owner, smc.fields, smc.populations.order, smc.populations.form)
    bare_steps(*learn_all, 2)
    started = time.perf_counter()
    bare_steps(*learn_all, steps)
    return (time.perf_counter() - started) / steps * 1e6


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("results/bench/auto.json"))
    parser.add_argument("--long", type=int, default=100_000, help="steps of the long trial")
    options = parser.parse_args()
    live(larl.Auto(), worlds.paper(1), 30)  # compiled, and what happens first has happened
    found: dict[str, object] = {"bare_us": bare()}
    print(f"bare filters of all particles, one step: {found['bare_us']:.0f} µs")
    print("world    steps     mean      p99.9      worst   (µs a decision and its learning; targets 2,000 and 20,000)")
    for k in (1, 5, 10):
        for steps in (200, 2000):
            took = np.concatenate([live(larl.Auto(), worlds.paper(k), steps) for _ in range(max(1, 1000 // steps))])
            mean, tail, worst = took.mean(), np.quantile(took, 0.999), took.max()
            found[f"k={k} T={steps}"] = {"mean": mean, "p99.9": tail, "worst": worst}
            verdict = "met" if mean <= 2000.0 and tail <= 20000.0 else "NOT met"
            print(f"k = {k:2d} {steps:7d} {mean:8.0f} {tail:10.0f} {worst:10.0f}   {verdict}")
    took = live(larl.Auto(), worlds.paper(5), options.long)
    tenth = options.long // 10
    parts = {f"tenth {i + 1}": float(took[i * tenth : (i + 1) * tenth].mean()) for i in range(10)}
    found["long"] = parts
    size = state_bytes(larl.Auto().init(2))
    found["state_bytes"] = size
    print(f"{options.long:,} steps, mean by tenths: " + ", ".join(f"{value:.0f}" for value in parts.values()) + " µs")
    print(f"State: {size / 1e6:.1f} MB, however long it runs")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
