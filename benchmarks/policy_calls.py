"""What a time limit costs a policy call: none, a thread for each call, a thread for each batch, a worker process.

python benchmarks/policy_calls.py [--calls 2000]    (a few seconds)

The call is a decision and its reward of LARL(5) with two arms, as in the service. The worker process keeps the agent;
only requests and responses cross the pipe.
"""

import argparse
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import larl
from larl.service.core.policy_timeout import PolicyRunner

ROUNDS = 5
BATCH = 32


def new_agent() -> larl.Agent:
    return larl.Agent(larl.LARL(s=5), arms=["a", "b"], seed=1, min_probability=0.1)


def step(agent: larl.Agent) -> larl.Decision:
    decision = agent.decide()
    agent.observe(decision, 0.5)
    return decision


def work(connection: Connection) -> None:
    """Serve steps of one agent until the pipe closes."""
    agent = new_agent()
    while connection.recv() is not None:
        connection.send(step(agent))


def measure(call: Callable[[], object], calls: int) -> float:
    """Return microseconds per call: the best of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return 1e6 * best


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=2_000)
    calls = parser.parse_args().calls
    agent, runner = new_agent(), PolicyRunner(60.0)
    near, far = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=work, args=(far,), daemon=True)
    process.start()

    def batch() -> None:
        runner.run(lambda: [runner.call(lambda: step(agent)) for _ in range(BATCH)])

    def remote() -> None:
        near.send("step")
        near.recv()

    remote()
    direct = measure(lambda: step(agent), calls)
    rows = {
        "no limit": direct,
        f"a thread for a batch of {BATCH}": measure(batch, calls // BATCH) / BATCH,
        "a thread for each call": measure(lambda: runner.call(lambda: step(agent)), calls),
        "a worker process": measure(remote, calls),
    }
    for name, microseconds in rows.items():
        print(f"{name:30} {microseconds:7.1f} µs a call, {microseconds / direct:4.1f} × no limit")
    near.send(None)
    process.join()
    runner.close()


if __name__ == "__main__":
    main()
