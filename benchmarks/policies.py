"""What every registered policy costs: a step on one core, all cores beside one, a live decision with its learning."""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import larl
from floor import bare
from larl import worlds
from larl.policies import REGISTRY, Policy
from larl.simulation.precompile import specs
from larl.simulation.tasks import default_threads
from measure import live, play, quickest, save, state_bytes

WORLD, HORIZON, SECONDS, PASSES = worlds.paper(5), 200, 0.15, 4
LIVE = ("LARL", "DiscountedUCB", "SlidingWindowUCB", "KalmanOracle", "AdaptiveLARL", "SharedLARL", "Auto")
TYPICAL: dict[str, Policy] = {
    "LARL": larl.LARL(5),
    "SlidingWindowLinUCB": larl.SlidingWindowLinUCB(5, 50),
    "ARUCB": larl.ARUCB(5),
}


def spec_of(name: str) -> Policy:
    return TYPICAL.get(name) or specs(name)[0]


def works_of(spec: Policy, threads: int, pool: ThreadPoolExecutor) -> tuple[int, dict[str, Callable[[], Any]]]:
    """The same trials on one thread and on all, as many as take a while, and how many steps they have.

    Others may be using the machine: a kernel that shares nothing, in turns with them, shows what there was to get.
    """
    play(spec, WORLD, HORIZON, 1, 1)()
    trials, took = 2 * threads, 0.0
    while took < SECONDS / 2:
        trials *= 2
        started = time.process_time()
        play(spec, WORLD, HORIZON, trials, 1)()
        took = time.process_time() - started
    matrices, vector, picks = np.ones((threads, 2, 21, 21)), np.full(21, 1e-9), np.zeros(600_000, dtype=np.int64)
    return trials * HORIZON, {
        "one": play(spec, WORLD, HORIZON, trials, 1),
        "all": play(spec, WORLD, HORIZON, trials, threads),
        "bare one": lambda: [bare(each, vector, picks) for each in matrices],
        "bare all": lambda: list(pool.map(lambda each: bare(each, vector, picks), matrices)),
    }


def speeds(threads: int) -> dict[str, dict[str, Any]]:
    """Of every policy the least seconds, on the wall and of processors, in several passes over all of them.

    What else a machine does comes and goes in minutes: a policy is met at several moments.
    """
    names, rows = sorted(REGISTRY), {}
    with ThreadPoolExecutor(threads) as pool:
        prepared = {name: works_of(spec_of(name), threads, pool) for name in names}
        for name, (steps, _) in prepared.items():
            rows[name] = {"spec": str(spec_of(name)), "steps": steps, "wall": {}, "processor": {}}
        for turn in range(PASSES):
            print(f"pass {turn + 1} of {PASSES}", file=sys.stderr, flush=True)
            for name, (_, works) in prepared.items():
                for kind, clock in (("wall", time.perf_counter), ("processor", time.process_time)):
                    least = rows[name][kind]
                    for one, took in quickest(works, 3, clock).items():
                        least[one] = min(took, least.get(one, took))
    return rows


def lived(spec: Policy) -> dict[str, float]:
    took = live(spec, WORLD, 100)
    took = live(spec, WORLD, 2000 if took.mean() > 200.0 else 20_000)
    p50, p99 = np.quantile(took, (0.5, 0.99))
    return {"p50": p50, "p99": p99, "bytes": state_bytes(spec.init(2, horizon=200, world=WORLD))}


def main() -> None:
    threads = default_threads()
    rows = speeds(threads)
    print(f"policy                 µs a step   wall, 1 : {threads}   nothing shared   processor, 1 : {threads} threads")
    for name, row in rows.items():
        wall, used = row["wall"], row["processor"]
        ratios = (wall["one"] / wall["all"], wall["bare one"] / wall["bare all"], used["one"] / used["all"])
        print(f"{name:20s} {used['one'] / row['steps'] * 1e6:11.3f}", *(f"{ratio:20.2f}" for ratio in ratios))
    print("\nlive                      p50      p99 (µs)         State")
    moments = {name: lived(spec_of(name)) | {"spec": str(spec_of(name))} for name in LIVE}
    for name, row in moments.items():
        print(f"{name:20s} {row['p50']:8.1f} {row['p99']:8.1f} {row['bytes']:12,d} bytes")
    save("policies", {"threads": threads, "rows": rows, "live": moments, "horizon": HORIZON})


if __name__ == "__main__":
    main()
