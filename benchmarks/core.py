"""What the core costs: LARL's step beside the bare kernel and beside MABWiser, in one run; AdaptiveLARL's; import and
first result.

    python benchmarks/core.py [--out results/bench/core.json]

Every figure is the best of several repetitions on one thread (the least disturbed by whatever else the machine does).
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

import larl
from larl import engine
from larl.policies._lags import dense, lags_init
from larl.policies._lags import push as _push

SIZES = [(2, 1), (2, 5), (2, 15), (10, 5)]  # arms, s
TARGETS = {(2, 5): 0.6, (2, 15): 2.0, (10, 5): 4.0}  # µs a step a core, world included
SHARED = [(2, 200), (2, 2_000), (2, 100_000), (3, 200), (4, 200), (10, 200)]  # arms, steps of a trial
SHARED_TARGET = 100.0  # µs a step with 2 arms, world included
ADAPTIVE = {2: 20.0, 3: None, 4: None, 10: None}  # arms, and the target of AdaptiveLARL() in µs a step, world included
AUTHORS_SCRIPTS = {(2, 5): 193.0, (2, 15): 425.0}  # µs a step, as measured once on a like machine; not run here
REPEATS = 7

EXAMPLE = """
import larl
world = larl.LatentAR(gammas=[0.9], beta=[-1, 1], mu=[0, 0])
policies = {"LARL": larl.LARL(s=1), "UCB": larl.UCB(), "Kalman": larl.KalmanOracle()}
print(larl.compare(policies, world, horizon=200, trials=1000, seed=0).summary())
"""


def best(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of the quickest of several calls, after one that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


@numba.njit(nogil=True, error_model="numpy")
def rank_one(matrix: Any, vector: Any, repeats: int) -> None:
    """The bare d×d update that any exact ridge step pays."""
    for _ in range(repeats):
        for i in range(vector.size):
            weight = vector[i]
            for j in range(vector.size):
                matrix[i, j] -= weight * vector[j]


@numba.njit
def push(lags: Any, s: int, arms: int, arm: int, reward: float) -> None:
    _push(lags, s, arms, arm, reward)


def world_of(arms: int) -> larl.LatentAR:
    return larl.LatentAR(gammas=[0.9], beta=np.linspace(-1, 1, arms).tolist(), mu=[0.0] * arms)


def step_of(spec: larl.policies.Policy, arms: int, steps: int = 1000, trials: int = 100) -> float:
    """µs a step of world + policy on one thread."""
    world = world_of(arms)
    latent, state = world.latent(), spec.init(arms, horizon=steps, world=world)
    shape = (trials, steps)
    trace = engine.Trace(np.empty(shape), np.empty(shape, np.int16), np.empty(shape))
    return best(lambda: engine.play_all(latent, state, 0, 0, trace)) / (steps * trials) * 1e6


def bare_kernel(arms: int, s: int) -> float:
    """µs of the rank-one update alone, on as many matrices as LARL has, so that caches are met alike."""
    d = 2 * s * arms + 1
    matrices, vector = np.tile(np.eye(d), (arms, 1, 1)), np.full(d, 1e-9)

    def work() -> None:
        for matrix in matrices:
            rank_one(matrix, vector, 2000)

    return best(work) / (2000 * arms) * 1e6


def mabwiser_step(arms: int, s: int, steps: int = 60) -> float:
    """µs a decision and update of MABWiser's LinUCB on LARL's own contexts."""
    from mabwiser.mab import MAB, LearningPolicy

    played = larl.compare({"it": larl.LARL(s)}, world_of(arms), horizon=steps + s + 20, trials=1)
    picks, rewards = played.arm.values[0, 0].astype(int), played.reward.values[0, 0]
    lags, contexts = lags_init(s), []
    for pick, reward in zip(picks, rewards, strict=True):
        contexts.append(dense(lags, s, arms))
        push(lags, s, arms, pick, reward)
    peer = MAB(list(range(arms)), LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0))
    first = s + 20
    peer.fit(picks[s:first].tolist(), rewards[s:first].tolist(), np.array(contexts[s:first]))
    start = time.perf_counter()
    for t in range(first, first + steps):
        peer.predict(contexts[t][None, :])
        peer.partial_fit([int(picks[t])], [float(rewards[t])], contexts[t][None, :])
    return (time.perf_counter() - start) / steps * 1e6


def in_new_process(code: str, cache: str) -> float:
    """Seconds that a new Python takes to run some code."""
    start = time.perf_counter()
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - start


def startup() -> dict[str, float]:
    """Seconds of an import and of the README's example: in a process with a cold cache, then with a warm one."""
    with tempfile.TemporaryDirectory() as cache:
        bare = min(in_new_process("pass", cache) for _ in range(3))
        cold = in_new_process(EXAMPLE, cache)
        warm = min(in_new_process(EXAMPLE, cache) for _ in range(3))
        light = min(in_new_process("import larl", cache) for _ in range(3))
        used = min(in_new_process("import larl; larl.LARL(5)", cache) for _ in range(3))
    return {
        "python alone": bare,
        "import larl": light,
        "import larl, make a policy": used,
        "first result, warm cache": warm,
        "first result, cold cache": cold,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/bench/core.json"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    rows = []
    print(f"larl {larl.__version__}, numba {numba.__version__}, {platform.machine()}, one thread\n")
    print("arms   s    d   LARL+world  bare d×d   ratio   MABWiser    ratio   authors' scripts*   ratio   target")
    for arms, s in SIZES:
        ours, bare, peer = step_of(larl.LARL(s), arms), bare_kernel(arms, s), mabwiser_step(arms, s)
        theirs, target = AUTHORS_SCRIPTS.get((arms, s)), TARGETS.get((arms, s))
        rows.append(
            {"arms": arms, "s": s, "d": 2 * s * arms + 1, "larl_us": ours, "bare_us": bare, "mabwiser_us": peer}
            | {"authors_us": theirs, "target_us": target}
        )
        print(
            f"{arms:4d} {s:3d} {2 * s * arms + 1:4d}  {ours:8.3f} µs {bare:7.3f} µs {ours / bare:6.1f}x"
            f" {peer:8.0f} µs {peer / ours:7.0f}x"
            + (f" {theirs:15.0f} µs {theirs / ours:7.0f}x" if theirs else " " * 27)
            + (f"  ≤ {target:g} µs: {'met' if ours <= target else 'NOT met'}" if target else "")
        )
    print("\n* measured once on a like machine, not in this run\n")
    adaptive = {arms: step_of(larl.AdaptiveLARL(), arms, trials=5) for arms in ADAPTIVE}
    for arms, ours in adaptive.items():
        target = ADAPTIVE[arms]
        verdict = f"  ≤ {target:g} µs: {'met' if ours <= target else 'NOT met'}" if target else ""
        print(f"AdaptiveLARL+world, {arms:2d} arms {ours:8.2f} µs{verdict}")
    print("arms   steps   SharedLARL+world")
    shared = []
    for arms, steps in SHARED:
        took = step_of(larl.SharedLARL(), arms, steps, max(1, 2000 // steps))
        shared.append({"arms": arms, "steps": steps, "shared_us": took})
        verdict = f"  ≤ {SHARED_TARGET:g} µs: {'met' if took <= SHARED_TARGET else 'NOT met'}" if arms == 2 else ""
        print(f"{arms:4d} {steps:7d} {took:15.1f} µs{verdict}")
    print()
    seconds = startup()
    for name, value in seconds.items():
        print(f"{name:28s} {value:6.2f} s")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    found = {"steps": rows, "adaptive_us": adaptive, "shared": shared, "startup_s": seconds}
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"\nwritten: {options.out}")


if __name__ == "__main__":
    main()
