"""How everything here is measured: the sides of a ratio take turns in one run, and the least of each counts.

Time is processor time unless said otherwise, which others on the same machine disturb least.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numba
import numpy as np

import larl
from larl.simulation.executors import ThreadExecutor
from larl.simulation.executors.run import stream_results
from larl.simulation.tasks import default_threads, make_blocks, thread_block_size
from larl.worlds import Simulator

FOLDER = Path(os.environ.get("LARL_BENCH", "results/bench"))
Works = Mapping[str, Callable[[], object]]


def quickest(works: Works, repeats: int = 7, clock: Callable[[], float] = time.process_time) -> dict[str, float]:
    """Seconds of the quickest call of each, after one that is not counted; they take turns."""
    found = {}
    for name, work in works.items():
        work()
        found[name] = float("inf")
    for _ in range(repeats):
        for name, work in works.items():
            started = clock()
            work()
            found[name] = min(found[name], clock() - started)
    return found


def world_of(arms: int) -> larl.LatentAR:
    """A world with as many arms as wanted."""
    return larl.LatentAR(gammas=[0.9], beta=np.linspace(-1, 1, arms).tolist(), mu=[0.0] * arms)


def play(
    spec: larl.policies.Policy, world: larl.worlds.World, steps: int, trials: int, threads: int
) -> Callable[[], None]:
    """A call that plays so many trials."""
    size = thread_block_size(steps, trials, threads)

    def work() -> None:
        blocks = make_blocks({"": world}, {"": spec}, horizon=steps, trials=trials, seed=0, keep="all", size=size)
        with ThreadExecutor(threads) as executor:
            for _, result in stream_results(executor, blocks, ordered=True, on_idle=lambda: None):
                if isinstance(result, Exception):
                    raise result

    return work


def live(spec: larl.policies.Policy, world: larl.worlds.World, steps: int) -> np.ndarray:
    """µs of every decide + observe of an agent in one trial."""
    agent, walk = larl.Agent(spec, world.arms, seed=1, horizon=steps, world=world), Simulator(world, 1, 0)
    took = np.empty(steps)
    for t in range(steps):
        started = time.perf_counter()
        decision = agent.decide()
        between = time.perf_counter()
        arm = int(str(decision.arm))
        reward = walk.reward(arm)
        again = time.perf_counter()
        agent.observe(decision, reward)
        took[t] = (between - started + time.perf_counter() - again) * 1e6
        walk.advance(arm)
    return took


def state_bytes(state: object) -> int:
    """The memory of all arrays of a State."""
    if isinstance(state, tuple):
        return sum(map(state_bytes, state))
    return state.nbytes if isinstance(state, np.ndarray) else 0


def exponent(sizes: list[float], costs: list[float]) -> float:
    """The slope of log cost over log size."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def save(name: str, found: dict[str, Any]) -> None:
    """Keep what was found as JSON, with the circumstances."""
    about = {
        "larl": larl.__version__,
        "numba": numba.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": default_threads(),
        "load": [round(each, 1) for each in os.getloadavg()],
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps({"about": about} | found, indent=1) + "\n")
    print(f"written: {path}")
