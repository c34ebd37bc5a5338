"""Cost of every registered policy: a step on one core, the speed-up of all cores, and a decision of an agent."""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import larl
from bare_kernel import rank_one_updates
from larl import worlds
from larl.policies import REGISTRY, Policy
from larl.simulation.precompile import example_world, specs
from larl.simulation.tasks import default_threads
from measure import agent_step_times, make_run, save, shortest_times, state_bytes

WORLD, HORIZON, SECONDS, PASSES = worlds.paper(5), 200, 0.15, 4
AGENT_POLICIES = ("LARL", "DiscountedUCB", "SlidingWindowUCB", "KalmanOracle", "AdaptiveLARL", "SharedLARL", "Auto")
TYPICAL: dict[str, Policy] = {
    "LARL": larl.LARL(5),
    "DiscountedLinUCB": larl.DiscountedLinUCB(5, 0.98),
    "SlidingWindowLinUCB": larl.SlidingWindowLinUCB(5, 50),
    "ARUCB": larl.ARUCB(5),
}


def typical_policy(name: str) -> Policy:
    return TYPICAL.get(name) or specs(name)[0]


def make_calls(spec: Policy, threads: int, pool: ThreadPoolExecutor) -> tuple[int, dict[str, Callable[[], Any]]]:
    """Return the number of steps, and functions that simulate the same trials on one thread and on all threads.

    Other processes may use the machine. A kernel without shared memory, measured in alternation, shows the speed-up
    that was possible.
    """
    world = example_world(spec) if isinstance(spec, larl.MarkovOracle | larl.FilterOracle) else WORLD
    make_run(spec, world, HORIZON, 1, 1)()
    trials, elapsed = 2 * threads, 0.0
    while elapsed < SECONDS / 2:
        trials *= 2
        started = time.process_time()
        make_run(spec, world, HORIZON, trials, 1)()
        elapsed = time.process_time() - started
    matrices, vector, picks = np.ones((threads, 2, 21, 21)), np.full(21, 1e-9), np.zeros(600_000, dtype=np.int64)
    return trials * HORIZON, {
        "one": make_run(spec, world, HORIZON, trials, 1),
        "all": make_run(spec, world, HORIZON, trials, threads),
        "bare kernel, one": lambda: [rank_one_updates(each, vector, picks) for each in matrices],
        "bare kernel, all": lambda: list(pool.map(lambda each: rank_one_updates(each, vector, picks), matrices)),
    }


def measure_speeds(threads: int) -> dict[str, dict[str, Any]]:
    """Return the shortest wall and processor times of every policy.

    Several passes over all policies, because the load of a machine changes within minutes.
    """
    names, rows = sorted(REGISTRY), {}
    with ThreadPoolExecutor(threads) as pool:
        prepared = {name: make_calls(typical_policy(name), threads, pool) for name in names}
        for name, (steps, _) in prepared.items():
            rows[name] = {"spec": str(typical_policy(name)), "steps": steps, "wall": {}, "processor": {}}
        for number in range(PASSES):
            print(f"pass {number + 1} of {PASSES}", file=sys.stderr, flush=True)
            for name, (_, calls) in prepared.items():
                for kind, clock in (("wall", time.perf_counter), ("processor", time.process_time)):
                    shortest = rows[name][kind]
                    for call, seconds in shortest_times(calls, 3, clock).items():
                        shortest[call] = min(seconds, shortest.get(call, seconds))
    return rows


def measure_agent(spec: Policy) -> dict[str, float]:
    steps = 2000 if agent_step_times(spec, WORLD, 100).mean() > 200.0 else 20_000
    p50, p99 = np.quantile(agent_step_times(spec, WORLD, steps), (0.5, 0.99))
    return {"p50": p50, "p99": p99, "bytes": state_bytes(spec.init(2, horizon=200, world=WORLD))}


def main() -> None:
    threads = default_threads()
    rows = measure_speeds(threads)
    print(f"policy              µs per step   wall, 1 : {threads}   bare kernel   processor, 1 : {threads} threads")
    for name, row in rows.items():
        wall, used = row["wall"], row["processor"]
        ratios = (
            wall["one"] / wall["all"],
            wall["bare kernel, one"] / wall["bare kernel, all"],
            used["one"] / used["all"],
        )
        print(f"{name:20s} {used['one'] / row['steps'] * 1e6:11.3f}", *(f"{ratio:20.2f}" for ratio in ratios))
    print("\nagent                     p50      p99 (µs)         State")
    agents = {
        name: measure_agent(typical_policy(name)) | {"spec": str(typical_policy(name))} for name in AGENT_POLICIES
    }
    for name, row in agents.items():
        print(f"{name:20s} {row['p50']:8.1f} {row['p99']:8.1f} {row['bytes']:12,d} bytes")
    save("policies", {"threads": threads, "rows": rows, "agents": agents, "horizon": HORIZON})


if __name__ == "__main__":
    main()
