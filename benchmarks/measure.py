"""Timing functions: the two sides of a ratio alternate in one process, and the shortest time of each counts.

Time is processor time unless stated otherwise, because other processes on the machine affect it least.
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
Calls = Mapping[str, Callable[[], object]]


def shortest_times(calls: Calls, repeats: int = 7, clock: Callable[[], float] = time.process_time) -> dict[str, float]:
    """Return the seconds of the shortest call of each function, without a first call; the functions alternate."""
    shortest = {}
    for name, call in calls.items():
        call()
        shortest[name] = float("inf")
    for _ in range(repeats):
        for name, call in calls.items():
            started = clock()
            call()
            shortest[name] = min(shortest[name], clock() - started)
    return shortest


def world_with_arms(arms: int) -> larl.LatentAR:
    """Return a world with this number of arms."""
    return larl.LatentAR(gammas=[0.9], beta=np.linspace(-1, 1, arms).tolist(), mu=[0.0] * arms)


def make_run(
    spec: larl.policies.Policy, world: larl.worlds.World, steps: int, trials: int, threads: int
) -> Callable[[], None]:
    """Return a function that simulates the trials."""
    size = thread_block_size(steps, trials, threads)

    def run() -> None:
        blocks = make_blocks({"": world}, {"": spec}, horizon=steps, trials=trials, seed=0, keep="all", size=size)
        with ThreadExecutor(threads) as executor:
            for _, result in stream_results(executor, blocks, ordered=True, on_idle=lambda: None):
                if isinstance(result, Exception):
                    raise result

    return run


def agent_step_times(spec: larl.policies.Policy, world: larl.worlds.World, steps: int, repeats: int = 5) -> np.ndarray:
    """Return the µs of processor time of every decide + observe of an agent in one trial.

    The trial is repeated with the same random numbers, and the shortest time of each step counts.
    """
    return np.min([_agent_step_times_once(spec, world, steps) for _ in range(repeats)], axis=0)


def _agent_step_times_once(spec: larl.policies.Policy, world: larl.worlds.World, steps: int) -> np.ndarray:
    agent, simulator = larl.Agent(spec, world.arms, seed=1, horizon=steps, world=world), Simulator(world, 1, 0)
    times = np.empty(steps)
    for t in range(steps):
        started = time.process_time()
        decision = agent.decide()
        decided = time.process_time()
        arm = int(str(decision.arm))
        reward = simulator.reward(arm)
        resumed = time.process_time()
        agent.observe(decision, reward)
        times[t] = (decided - started + time.process_time() - resumed) * 1e6
        simulator.advance(arm)
    return times


def state_bytes(state: object) -> int:
    """Return the size of all arrays of a State in bytes."""
    if isinstance(state, tuple):
        return sum(map(state_bytes, state))
    return state.nbytes if isinstance(state, np.ndarray) else 0


def exponent(sizes: list[float], costs: list[float]) -> float:
    """Return the slope of log cost over log size."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def save(name: str, results: dict[str, Any]) -> None:
    """Write results to a JSON file, with the versions, the machine and its load."""
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
    path.write_text(json.dumps({"about": about} | results, indent=1) + "\n")
    print(f"written: {path}")
